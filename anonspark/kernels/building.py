"""Build the machine code of all kernels into one file, so that nobody has to compile later.

    python -m anonspark.kernels.building

It takes a minute, Numba, a compiler of C and C++, and the headers of Python. The file serves every
processor of the architecture, with the minor version of Python that built it.

The compiler is Numba's `pycc`. It compiles what a kernel calls once more for each caller, and keeps
Python's lock; here a kernel that is compiled is known to its callers, and runs without the lock.
"""

from __future__ import annotations

import gc
import importlib
import os
import platform
import re
import subprocess
import sys
import tempfile
import warnings
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from anonspark.kernels.built import MODULE, VERSION_OF_NUMBA, file_name, folder_of_package
from anonspark.kernels.compiling import KERNELS, import_all_kernels

# As measured, instructions that only newer ones have save no time.
_PROCESSOR = {"x86_64": "x86-64"}.get(platform.machine(), "generic")

_IN_A_PROCESS_OF_ITS_OWN = (
    "import sys; from anonspark.kernels.building import compile_into; compile_into(sys.argv[1])"
)


def build(folder: Path) -> Path:
    """Build the machine code of all kernels.

    Parameters
    ----------
    folder : Path
        Where the file is put, and left where it is there already. What was built there from other
        sources is removed.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    OSError
        Numba, a compiler or the headers of Python are missing; it holds what was said.
    """
    target = folder / file_name()
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".kernels-") as temporary:
        # In a process of its own: Numba compiles for one processor there, and is changed.
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
        made = Path(temporary) / file_name()
        if done.returncode or not made.is_file():
            raise OSError(f"the machine code of the kernels cannot be built: {done.stdout[-2000:]}")
        for old in folder.glob(f"kernels-*{EXTENSION_SUFFIXES[0]}"):
            old.unlink()
        made.replace(target)
    return target


class _Linked:
    """A library one of whose functions stays visible to what is compiled behind it.

    `pycc` hides it once its wrapper is there, and who calls it later would not find it.
    """

    def __init__(self, library: Any, function: Any) -> None:
        self._library = library
        self._name = function.llvm_func_name

    def get_function(self, name: str) -> Any:
        """Return a function, and in the place of ours something to write on."""
        return SimpleNamespace() if name == self._name else self._library.get_function(name)


def _put_aside(library: Any, linked: list[Any]) -> None:
    """Keep what is linked to a library so far until the library is complete.

    Behind each kernel `pycc` looks through all that is linked, a tenth of the time; once is enough.
    """
    if "finalize" not in vars(library):
        complete = library.finalize

        def with_all() -> None:
            library._linking_libraries[:0] = linked
            complete()

        library.finalize = with_all
    linked += library._linking_libraries
    library._linking_libraries.clear()


def _never_run(numba: Any) -> None:
    """Let what Numba compiles for kernels to call be called by them alone, and not be run here.

    Else it makes machine code of each, and two more functions, by which Python and C would call it.
    """
    compiler: Any = numba.core.dispatcher._FunctionCompiler
    customized = compiler._customize_flags

    def for_kernels_alone(self: Any, flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return customized(self, flags)

    compiler._customize_flags = for_kernels_alone
    # Something new that Python takes for a compiled function: it is known by that.
    numba.core.cpu.CPUContext.get_executable = lambda *_: [].append


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
    numba = importlib.import_module("numba")
    pycc = importlib.import_module("numba.pycc")
    compiler: Any = importlib.import_module("numba.pycc.compiler")
    typing = importlib.import_module("numba.core.typing")
    import_all_kernels()

    class Extension(pycc.CC):  # type: ignore[misc,name-defined]
        # In the order of their declaration: what a kernel calls was declared before.
        @property
        def _export_entries(self) -> list[Any]:
            return list(self._exported_functions.values())

    _never_run(numba)
    extension = Extension(MODULE)
    extension.output_dir = folder
    extension.output_file = file_name()
    extension.target_cpu = _PROCESSOR
    version = tuple(map(int, re.findall(r"\d+", numba.__version__)[:3]))
    extension.export(VERSION_OF_NUMBA, "UniTuple(int64, 3)()")(lambda: version)
    for kernel in KERNELS:
        signature = kernel.signature.made
        extension.export(kernel.symbol, signature)(kernel.function)
        overload = typing.signature(signature.return_type, *signature.args)
        template = typing.templates.make_concrete_template(kernel.symbol, kernel, [overload])
        kernel.known_as(numba.types.Function(template))
    waiting = iter([None, *KERNELS])
    compile_extra = compiler.compile_extra
    linked: list[Any] = []

    def compile_one(typing_context: Any, context: Any, *arguments: Any, **named: Any) -> Any:
        _put_aside(named["library"], linked)
        flags = arguments[3].copy()
        flags.release_gil = True
        flags.no_cfunc_wrapper = True
        compiled = compile_extra(
            typing_context, context, *arguments[:3], flags, *arguments[4:], **named
        )
        kernel = next(waiting)
        if kernel is None:
            return compiled
        context.insert_user_function(kernel, compiled.fndesc)
        return compiled._replace(library=_Linked(compiled.library, compiled.fndesc))

    compiler.compile_extra = compile_one
    extension.compile()


if __name__ == "__main__":
    build(folder_of_package())
