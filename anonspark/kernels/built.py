"""Machine code of the kernels that was built beforehand: with the package, or by `make kernels`.

It lies in one extension module, whose name has a digest of the sources of all kernels: what was
built from others is never found. It serves every processor of its architecture.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import sys
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

MODULE = "machine_code_of_anonspark"
"""Name of the extension module, whatever its file is called."""

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


def file_name() -> str:
    """Return the name of the extension module's file, for this Python and architecture."""
    return f"kernels-{digest_of_sources()}{EXTENSION_SUFFIXES[0]}"


def folder_of_package() -> Path:
    """Return where the package has it."""
    return Path(__file__).parent / "_built"


def folder_of_environment() -> Path:
    """Return where an environment has it that `make dist` packed: its package is a zip."""
    return Path(sys.prefix) / "share" / "anonspark"


@cache
def built() -> ModuleType | None:
    """Load the module, or return None without one."""
    for folder in (folder_of_package(), folder_of_environment()):
        file = folder / file_name()
        if file.is_file():
            loader = ExtensionFileLoader(MODULE, str(file))
            module = module_from_spec(spec_from_loader(MODULE, loader, origin=str(file)))  # type: ignore[arg-type]
            loader.exec_module(module)
            return module
    return None


def version_of_numba() -> str:
    """Return the version of Numba that the machine code comes from, built or compiled here."""
    module = built()
    if module is not None:
        return ".".join(map(str, getattr(module, VERSION_OF_NUMBA)()))
    try:
        return importlib.metadata.version("numba")
    except importlib.metadata.PackageNotFoundError:
        return ""
