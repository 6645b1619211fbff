"""Keep the machine code that Numba compiles here, found from a zip and from any folder.

Numba's own caches know a function by the path of its file. On a cluster that path is another one
for every application and executor, and inside a zip there is no file: every executor would compile
everything. So kernels are known by content here: all their sources, Numba, Python and processor.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import numba
from numba import config
from numba.core.registry import cpu_target

from anonspark.kernels.built import digest_of_sources
from anonspark.ownership import fault_at


@cache
def _name() -> str:
    """Name a folder by everything that machine code depends on.

    All sources together: Numba notices a change of the file that a function stands in, but not of
    the functions that it calls, and could go on with old machine code.
    """
    processor = cpu_target.target_context.codegen().magic_tuple()
    made_by = (digest_of_sources(), numba.__version__, sys.version_info[:3], processor)
    return f"numba-{hashlib.sha256(repr(made_by).encode()).hexdigest()[:16]}"


@cache
def folder_to_compile_into() -> Path:
    """Return a folder to compile into, the same for all processes of a user where one can be had.

    Machine code of another user would run, so it is a private folder of the user.

    Returns
    -------
    Path
        Of a folder named by everything that machine code depends on.
    """
    chosen = config.CACHE_DIR  # type: ignore[attr-defined]
    if chosen and _is_private(parent := Path(chosen).absolute()) and _is_private(parent / _name()):
        return parent / _name()
    package = Path(__file__).parent
    own = package / "__pycache__"
    # Who can write there can change the package as well, but not who has written once.
    if os.access(own if own.exists() else package, os.W_OK) and _is_private(own / _name()):
        return own / _name()
    # Either may be missing or unwritable: containers on a cluster often have no real home, and
    # without one `~` stays as it is.
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    for parent in (Path(home) / "anonspark", Path(tempfile.gettempdir()) / _temporary_name()):
        if parent.is_absolute() and _is_private(parent) and _is_private(parent / _name()):
            return parent / _name()
    return Path(tempfile.mkdtemp(prefix="anonspark-")) / _name()


def _is_private(folder: Path) -> bool:
    """Create a folder, and return whether only this user can write to it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return folder.is_dir() and fault_at(folder, "code") is None and os.access(folder, os.W_OK)


def _temporary_name() -> str:
    return f"anonspark-{os.getuid()}"
