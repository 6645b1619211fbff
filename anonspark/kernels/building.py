"""Build the machine code of all kernels into three files, so that no user has to compile later.

    python -m anonspark.kernels.building [2]

It takes a minute of two processors, Numba, a compiler of C and C++, and the headers of Python. The
files serve every processor of the architecture, with the minor version of Python that built them.
The first two hold what su-mondrian and verification call: half of the time.

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

from anonspark.kernels.built import PARTS, file_names, folder_of_package
from anonspark.kernels.compiling import KERNELS, NUMBA_PATCHES, Kernel, import_all_kernels

# Measured: instructions that only newer processors have save no time.
_PROCESSOR = {"x86_64": "x86-64"}.get(platform.machine(), "generic")

_IN_A_PROCESS_OF_ITS_OWN = (
    "import sys; from anonspark.kernels.building import compile_part; "
    "compile_part(sys.argv[1], int(sys.argv[2]))"
)

_FIRST_PARTS = (
    ("canonical_order", "descent", "mondrian", "paths", "paying_separation", "separation"),
    ("criteria", "group_exchange", "merging", "refinement", "selection", "sorting", "xxhash"),
)
"""Modules whose kernels, with those that they call, `anonspark demo` calls: two equal parts."""


def build(folder: Path, parts: int = PARTS) -> list[Path]:
    """Build the machine code of all kernels, each part in a process.

    Parameters
    ----------
    folder : Path
        Where the files are put, unless they are there already. What was built there from other
        sources is removed.
    parts : int
        How many files, from the first on. A kernel of another file is compiled when it is called.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    OSError
        If Numba, a compiler or the headers of Python are missing. It holds their messages.
    """
    targets = [folder / name for name in file_names()[:parts]]
    missing = [part for part, target in enumerate(targets) if not target.is_file()]
    if not missing:
        return targets
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".kernels-") as temporary:
        # Separate processes, in which Numba is patched and compiles for one processor.
        processes = [
            subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _IN_A_PROCESS_OF_ITS_OWN, temporary, str(part)],
                env={
                    **os.environ,
                    "NUMBA_CPU_NAME": _PROCESSOR,
                    "NUMBA_CPU_FEATURES": "",
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for part in missing
        ]
        outputs = [process.communicate()[0] for process in processes]
        libraries = [Path(temporary, targets[part].name) for part in missing]
        for process, output, library in zip(processes, outputs, libraries, strict=True):
            if process.returncode or not library.is_file():
                raise OSError(f"the machine code of the kernels cannot be built: {output[-2000:]}")
        for old in folder.glob(f"kernels-*{EXTENSION_SUFFIXES[0]}"):
            if old.name not in file_names():
                old.unlink()
        for library in libraries:
            library.replace(folder / library.name)
    return targets


def compile_part(folder: str, part: int) -> None:
    """Compile the kernels of a part for the processor that the environment names."""
    # A tenth of the time would go into looking through what Numba keeps to the end.
    gc.set_threshold(100_000, 50, 1000)
    warnings.simplefilter("ignore")  # pycc is to be replaced one day; there is no successor yet
    import_all_kernels()
    file = Path(folder, file_names()[part])
    importlib.import_module(NUMBA_PATCHES).build_extension(file, _PROCESSOR, kernels_of_part(part))


def kernels_of_part(part: int) -> list[Kernel]:
    """Return the kernels of a part and all that they call, callees first."""
    part_of = {module: index for index, modules in enumerate(_FIRST_PARTS) for module in modules}
    chosen = _with_callees(
        [k for k in KERNELS if part_of.get(k.symbol.rpartition("_")[0], PARTS - 1) == part]
    )
    return [kernel for kernel in KERNELS if kernel in chosen]


def _with_callees(kernels: list[Kernel]) -> set[Kernel]:
    reached: set[Kernel] = set()
    while kernels:
        kernel = kernels.pop()
        reached.add(kernel)
        code, names = kernel.function.__code__, kernel.function.__globals__
        called = [names.get(name) for name in code.co_names]
        kernels += [k for k in called if isinstance(k, Kernel) and k not in reached]
    return reached


if __name__ == "__main__":
    build(folder_of_package(), int(sys.argv[1]) if sys.argv[1:] else PARTS)
