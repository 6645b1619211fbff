"""Where the machine code that Numba compiles here is kept: found from a zip and from any folder.

Numba's own caches know a function by the path of its file. On a cluster that path is another one
for every application and executor, and inside a zip there is no file: every executor would compile
everything. So kernels are known by content here: all their sources, Numba, Python and processor.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import config
from numba.core import caching
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

    Machine code that somebody else put there would run: so it is a folder of the user's own.

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
    """Make a folder, and tell whether this user can write to it and nobody else can."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return folder.is_dir() and fault_at(folder, "code") is None and os.access(folder, os.W_OK)


def _temporary_name() -> str:
    return f"anonspark-{os.getuid()}"


class _KernelLocator(caching._CacheLocator):
    """Tell Numba where the machine code of one of our functions is.

    Parameters
    ----------
    function : callable
        What is compiled.
    source : str
        Path of its file, for Numba's warnings.
    """

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._py_file = source
        self._line = function.__code__.co_firstlineno
        self._folder = str(folder_to_compile_into())

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> _KernelLocator | None:
        """Return a locator of our own functions, and None for those of other packages."""
        return cls(function, source) if function.__module__.startswith("anonspark.") else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self._folder

    def get_source_stamp(self) -> str:
        """Return what changes with any source."""
        return _name()

    def get_disambiguator(self) -> str:
        """Tell functions of one name in one file apart."""
        return str(self._line)


def keep_machine_code() -> None:
    """Make Numba ask us first where machine code of this package is; others keep their places."""
    locators = caching.CacheImpl._locator_classes
    if _KernelLocator not in locators:
        locators.insert(0, _KernelLocator)
