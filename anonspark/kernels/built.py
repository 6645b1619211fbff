"""Machine code of the kernels that was built beforehand: with the package, or by `make kernels`.

It lies in extension modules, which are built side by side. Their names have a digest of the sources
of all kernels: what was built from others is never found. They serve every processor of their
architecture.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

MODULE = "machine_code_of_anonspark"
"""Name of each extension module, whatever its file is called."""

PARTS = 3
"""How many there are."""

VERSION_OF_NUMBA = "version_of_numba"
"""A function of it, which returns the version of Numba that built it, as three numbers."""


@cache
def digest_of_sources() -> str:
    """Return a digest of the sources of all kernels, as 16 hexadecimal digits.

    All together: a kernel holds the code of those that it calls.
    """
    digest = hashlib.sha256()
    for source in sorted(files("anonspark.kernels").iterdir(), key=lambda entry: entry.name):
        if source.name.endswith(".py"):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def file_names() -> list[str]:
    """Return the names of the extension modules' files, for this Python and architecture."""
    digest, suffix = digest_of_sources(), EXTENSION_SUFFIXES[0]
    return [f"kernels-{digest}-{part}{suffix}" for part in range(PARTS)]


def folder_of_package() -> Path:
    """Return where the package has them."""
    return Path(__file__).parent / "_built"


def folder_of_environment() -> Path:
    """Return where an environment has them that `make dist` packed: its package is a zip."""
    return Path(sys.prefix) / "share" / "anonspark"


@cache
def built() -> tuple[ModuleType, ...]:
    """Load the extension modules that were built."""
    folders = (folder_of_package(), folder_of_environment())
    files = (folder / name for folder in folders for name in file_names())
    return tuple(_load(file) for file in files if file.is_file())


def machine_code(symbol: str) -> Callable[..., Any] | None:
    """Return the machine code of a kernel, or None if it was not built beforehand."""
    return next((vars(module)[symbol] for module in built() if hasattr(module, symbol)), None)


def _load(file: Path) -> ModuleType:
    loader = ExtensionFileLoader(MODULE, str(file))
    module = module_from_spec(spec_from_loader(MODULE, loader, origin=str(file)))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


def version_of_numba() -> str:
    """Return the version of Numba that the machine code comes from, built or compiled here."""
    version = machine_code(VERSION_OF_NUMBA)
    if version is not None:
        return ".".join(map(str, version()))
    try:
        return importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        return ""
