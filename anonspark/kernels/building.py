"""Build the machine code of all kernels into one file, so that no user has to compile later.

    python -m anonspark.kernels.building

It takes a minute, Numba, a compiler of C and C++, and the headers of Python. The file serves every
processor of the architecture, with the minor version of Python that built it.

The compiler is Numba's `pycc`, changed by :mod:`anonspark.kernels.numba_patches`. As it is, it
compiles what a kernel calls once more for each caller, and keeps Python's lock. Here a kernel that
is compiled is known to its callers, and runs without the lock.
"""

from __future__ import annotations

import gc
import importlib
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from anonspark.kernels.built import file_name, folder_of_package
from anonspark.kernels.compiling import NUMBA_PATCHES, import_all_kernels

# Measured: instructions that only newer processors have save no time.
_PROCESSOR = {"x86_64": "x86-64"}.get(platform.machine(), "generic")

_IN_A_PROCESS_OF_ITS_OWN = (
    "import sys; from anonspark.kernels.building import compile_into; compile_into(sys.argv[1])"
)


def build(folder: Path) -> Path:
    """Build the machine code of all kernels.

    Parameters
    ----------
    folder : Path
        Where the file is put, unless it is there already. What was built there from other sources
        is removed.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OSError
        If Numba, a compiler or the headers of Python are missing. It holds their messages.
    """
    target = folder / file_name()
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".kernels-") as temporary:
        # A separate process, in which Numba is patched and compiles for one processor.
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _IN_A_PROCESS_OF_ITS_OWN, temporary],
            env={
                **os.environ,
                "NUMBA_CPU_NAME": _PROCESSOR,
                "NUMBA_CPU_FEATURES": "",
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        library = Path(temporary) / file_name()
        if done.returncode or not library.is_file():
            raise OSError(f"the machine code of the kernels cannot be built: {done.stdout[-2000:]}")
        for old in folder.glob(f"kernels-*{EXTENSION_SUFFIXES[0]}"):
            old.unlink()
        library.replace(target)
    return target


def compile_into(folder: str) -> None:
    """Compile all kernels for the processor that the environment names.

    Parameters
    ----------
    folder : str
        Where the file is put.
    """
    # A tenth of the time would go into looking through what Numba keeps to the end.
    gc.set_threshold(100_000, 50, 1000)
    warnings.simplefilter("ignore")  # pycc is to be replaced one day; there is no successor yet
    import_all_kernels()
    importlib.import_module(NUMBA_PATCHES).build_extension(folder, _PROCESSOR)


if __name__ == "__main__":
    build(folder_of_package())
