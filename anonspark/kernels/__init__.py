"""Compiled kernels: NumPy arrays in, NumPy arrays out, and no Spark.

Every kernel is compiled by Numba for one explicit type signature and cached on disk, so that a
fresh Python worker loads machine code instead of compiling. None of them uses ``fastmath``: sums
are taken in a fixed order, so that every machine gets the same digits. A slow, obvious reference of
each kernel lives in the tests.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from importlib.resources import files
from pathlib import Path

from numba import config


def _cache_directory() -> str:
    """Return where compiled kernels are kept, named by the content of all kernel sources.

    Numba notices a change of the file that a function stands in, but not of the functions that it
    calls: with one directory for all files it could go on with old machine code.
    """
    digest = hashlib.sha256()
    for source in sorted(files(__name__).iterdir(), key=lambda entry: entry.name):
        if source.name.endswith(".py"):
            digest.update(source.read_bytes())
    name = f"numba-{digest.hexdigest()[:16]}"
    package = Path(__file__).parent
    own = package / "__pycache__"
    if os.access(own if own.exists() else package, os.W_OK):
        return str(own / name)
    home = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    user = Path(home) / "anonspark" / name
    try:
        user.mkdir(parents=True, exist_ok=True)
    except OSError:
        # Not a fixed name in the shared temporary folder: machine code that somebody else put
        # there would run.
        return tempfile.mkdtemp(prefix="anonspark-")
    return str(user)


# A directory that the user set (NUMBA_CACHE_DIR) stays.
if not config.CACHE_DIR:  # type: ignore[attr-defined]
    config.CACHE_DIR = _cache_directory()  # type: ignore[attr-defined]
