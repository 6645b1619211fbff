"""Everything that changes Numba, or relies on what Numba does not document, in one file.

Numba promises none of these names, so any minor version may lack one or use it otherwise.
``pyproject.toml`` allows no later minor version than the tested one. To allow the next one: run
``tests/unit/kernels/test_compiling.py``, which names what a version lacks, build the machine
code, and run ``tests/systems/test_kernels_compiled_here.py``.

======================================================  ===========================================
names                                                   what for
======================================================  ===========================================
`caching._CacheLocator`, `CacheImpl._locator_classes`   what is compiled here is kept under a name
                                                        made of its content: `keep_machine_code`
`dispatcher._FunctionCompiler._customize_flags`,        what kernels call is not compiled once more
`CPUContext.get_executable`                             for Python and for C: `_never_run`
`pycc.CC._export_entries`, `_exported_functions`        kernels are built in the order of their
                                                        declaration: `build_extension`
`pycc.compiler.compile_extra`, `insert_user_function`,  a kernel that was built is known to its
`make_concrete_template`, `Flags`                       callers, and runs without Python's lock
`CodeLibrary.finalize`, `_linking_libraries`            linking is done once: `_put_aside`
`runtime.nrtdynmod._define_atomic_inc_dec`,             arrays of kernels, which are of one thread
`_word_type`                                            alone, are counted without locks:
                                                        `_count_alone`
`_numba_type_`                                          asked of a `Kernel` that another one calls
`cpu_target`, `config.CACHE_DIR`                        read in `machine_code`
`typing_context.resolve_value_type`                     a kernel calls an address:
                                                        `type_of_address_call`
======================================================  ===========================================
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
from llvmlite import ir
from numba import config
from numba.core import caching
from numba.core.registry import cpu_target

from anonspark.kernels.built import MODULE, VERSION_OF_NUMBA, digest_of_sources
from anonspark.kernels.compiling import Kernel
from anonspark.ownership import fault_at

# Numba's own caches know a function by the path of its file. On a cluster that path is another one
# for every application and executor, and inside a zip there is no file: every executor would
# compile everything. So kernels are known by content here: all their sources, Numba, Python and
# processor.


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
    """Return a folder to compile into, the same for all processes of a user if possible.

    Its name holds everything that machine code depends on. It is private, because machine code of
    another user would run.
    """
    chosen = config.CACHE_DIR  # type: ignore[attr-defined]
    if chosen and _is_private(parent := Path(chosen).absolute()) and _is_private(parent / _name()):
        return parent / _name()
    package = Path(__file__).parent
    folder = package / "__pycache__"
    # A user who can write there now can change the package as well.
    if os.access(folder if folder.exists() else package, os.W_OK) and _is_private(folder / _name()):
        return folder / _name()
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


# Numba has types for a part of it.
_CORE: Any = numba.core


@numba.extending.intrinsic
def _call_address(
    _: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, bound: Any
) -> Any:
    """Call the C function at an address with numbers. It returns a whole number."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = [context.get_value_type(argument) for argument in signature.args[1:]]
        function = ir.FunctionType(ir.IntType(64), kinds).as_pointer()
        return builder.call(builder.inttoptr(values[0], function), values[1:])

    return numba.types.int64(address, a, b, c, d, e, f, bound), generate


def type_of_address_call() -> Any:
    """Return Numba's type of what :mod:`anonspark.kernels.criteria` lets kernels call."""
    return _CORE.registry.cpu_target.typing_context.resolve_value_type(_call_address)


def keep_machine_code() -> None:
    """Make Numba ask us first where machine code of this package is. Others keep their places."""
    locators = caching.CacheImpl._locator_classes
    if KernelLocator not in locators:
        locators.insert(0, KernelLocator)


class KernelLocator(caching._CacheLocator):
    """Shows Numba where the machine code of one of our functions is.

    ``source`` is the path of its file, for Numba's warnings.
    """

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._py_file = source
        self._line = function.__code__.co_firstlineno
        self._folder = folder_to_compile_into()

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> KernelLocator | None:
        """Return a locator of our own functions, and None for those of other packages."""
        return cls(function, source) if function.__module__.startswith("anonspark.") else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return what changes with any source."""
        return self._folder.name

    def get_disambiguator(self) -> str:
        """Distinguish functions of one name in one file."""
        return str(self._line)


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

    Behind each kernel `pycc` looks through all that is linked, a tenth of the time. Once is enough.
    """
    if "finalize" not in vars(library):
        complete = library.finalize

        def with_all() -> None:
            library._linking_libraries[:0] = linked
            complete()

        library.finalize = with_all
    linked += library._linking_libraries
    library._linking_libraries.clear()


def _never_run() -> None:
    """Let what Numba compiles for kernels to call be called by them alone, and not be run here.

    Else it makes machine code of each, and two more functions, by which Python and C would call it.
    """
    compiler = _CORE.dispatcher._FunctionCompiler
    customized = compiler._customize_flags

    def for_kernels_alone(self: Any, flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        return customized(self, flags)

    compiler._customize_flags = for_kernels_alone
    # Something new that Python takes for a compiled function: it is known by that.
    _CORE.cpu.CPUContext.get_executable = lambda *_: [].append


def _count_alone(module: Any, operation: str, ordering: str) -> Any:  # noqa: ARG001
    """Define the function that counts a reference up or down, as no other thread counts then.

    What a kernel is handed and what it makes is known to its own thread alone until it is done. A
    lock takes four times as long as all the rest.
    """
    word = _CORE.runtime.nrtdynmod._word_type
    kind = ir.FunctionType(word, [word.as_pointer()])
    function = ir.Function(module, kind, name=f"nrt_atomic_{operation}")
    builder = ir.IRBuilder(function.append_basic_block())
    count = getattr(builder, operation)(builder.load(function.args[0]), ir.Constant(word, 1))
    builder.store(count, function.args[0])
    builder.ret(count)
    return function


def build_extension(file: Path, processor: str, kernels: Sequence[Kernel]) -> None:
    """Compile kernels, those that others call before these, into one extension module.

    Parameters
    ----------
    file : Path
        Of the extension module.
    processor : str
        As LLVM calls it.

    Notes
    -----
    Numba is changed for good: this is for a process of its own.
    """
    pycc = importlib.import_module("numba.pycc")
    compiler: Any = importlib.import_module("numba.pycc.compiler")

    class Extension(pycc.CC):  # type: ignore[misc,name-defined]
        # In the order of declaration, because what a kernel calls was declared before.
        @property
        def _export_entries(self) -> list[Any]:
            return list(self._exported_functions.values())

    _never_run()
    _CORE.runtime.nrtdynmod._define_atomic_inc_dec = _count_alone
    extension = Extension(MODULE)
    extension.output_dir = str(file.parent)
    extension.output_file = file.name
    extension.target_cpu = processor
    version = tuple(map(int, re.findall(r"\d+", numba.__version__)[:3]))
    extension.export(VERSION_OF_NUMBA, "UniTuple(int64, 3)()")(lambda: version)
    for kernel in kernels:
        signature = kernel.signature.resolved
        extension.export(kernel.symbol, signature)(kernel.function)
        overload = _CORE.typing.signature(signature.return_type, *signature.args)
        templates = _CORE.typing.templates
        template = templates.make_concrete_template(kernel.symbol, kernel, [overload])
        kernel.known_as(numba.types.Function(template))
    waiting = iter([None, *kernels])
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
