"""Declare kernels, and find or compile their machine code when they are first called."""

from __future__ import annotations

import functools
import importlib
import inspect
import logging
import pkgutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from anonspark.errors import EnvironmentProblem
from anonspark.kernels.built import machine_code
from anonspark.kernels.signatures import Applied, Layout

Check = Callable[[Any], bool]
"""Checks whether a value is of a type."""


def check_of(declared: Any) -> Check:
    """Return a check of whether a value can be passed for the type of an argument."""
    if isinstance(declared, Layout):
        return _array(declared.element.name, len(declared.axes), writable=True)
    if isinstance(declared, Applied):
        kind, parts = declared.what.name, declared.arguments
        if kind == "Array":
            return _array(parts[0].name, parts[1], writable=not declared.named.get("readonly"))
        if kind == "NamedTuple":
            return _parts(parts[1], parts[0])
        return _parts(tuple, parts[0] if kind == "Tuple" else [parts[0]] * parts[1])
    kinds = (int, np.integer, np.bool_)
    return _number((*kinds, float, np.floating) if declared.name == "float64" else kinds)


def describe(value: Any) -> str:
    """Describe a value's type and layout, without a value of the data."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    return f"{value.dtype} of {value.ndim} axes" + "".join(
        f", {lack}"
        for lack, there in (
            ("not contiguous", not value.flags.c_contiguous),
            ("not aligned", not value.flags.aligned),
            ("read-only", not value.flags.writeable),
        )
        if there
    )


def _array(element: str, axes: int, *, writable: bool) -> Check:
    dtype = np.dtype({"boolean": "bool"}.get(element, element))

    def is_array(value: Any) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != axes:
            return False
        flags = value.flags
        return flags.carray if writable else flags.c_contiguous and flags.aligned

    return is_array


def _number(kinds: tuple[type, ...]) -> Check:
    return lambda value: isinstance(value, kinds)


def _parts(kind: type, declared: Iterable[Any]) -> Check:
    checks = [check_of(part) for part in declared]

    def has_parts(value: Any) -> bool:
        return (
            isinstance(value, kind)
            and len(value) == len(checks)  # type: ignore[arg-type]
            and all(check(part) for check, part in zip(checks, value, strict=True))  # type: ignore[call-overload]
        )

    return has_parts


_LOGGER = logging.getLogger("anonspark")

KERNELS: list[Kernel] = []
"""All that were declared, in this order. Each calls only such as stand before it."""

_DECLARED_IN: Counter[str] = Counter()

_PACKAGE = "anonspark.kernels."

NUMBA_PATCHES = f"{_PACKAGE}numba_patches"
_IMPORT_NUMBA = (f"{_PACKAGE}machine_code", NUMBA_PATCHES)

# Numba itself compiles one function at a time; it is not asked for one twice.
_TURN = threading.RLock()


class Kernel:
    """A function whose machine code is loaded or compiled when it is called for the first time.

    What was built with the package is loaded in a millisecond. Without it, as after a change of a
    kernel, Numba compiles what is called, and keeps it. Numba itself takes a quarter of a second of
    processor time to load. Kernels call each other by their names as usual.

    Parameters
    ----------
    function : callable
    signature : Applied
        Types of the arguments and the result. No other signature is ever compiled.
    """

    def __init__(self, function: Callable[..., Any], signature: Applied) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.signature = signature
        module = function.__module__
        self.symbol = f"{module.removeprefix(_PACKAGE)}_{_DECLARED_IN[module]}"
        _DECLARED_IN[module] += 1
        self._called: Callable[..., Any] | None = None
        self._compiled: Any = None
        self._type: Any = None
        KERNELS.append(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the machine code."""
        return (self._called or self._load())(*arguments, **named)

    def __reduce__(self) -> tuple[Callable[[str, str], Kernel], tuple[str, str]]:
        # Tasks are sent with the kernels that they call; each process has machine code of its own.
        return _declared, (self.function.__module__, self.symbol)

    def _load(self) -> Callable[..., Any]:
        with _TURN:
            if self._called is None:
                is_ours = self.function.__module__.startswith(_PACKAGE)
                code = machine_code(self.symbol) if is_ours else None
                self._called = _with_checked_arguments(code, self) if code else self.compiled()
            return self._called

    def compiled(self) -> Any:
        """Return Numba's function. The first call loads it or compiles it."""
        with _TURN:
            if self._compiled is None:
                numba = _numba()
                importlib.import_module(NUMBA_PATCHES).keep_machine_code()
                # Without the lock of Python, so that threads run kernels side by side.
                declare = numba.njit(self.signature.resolved, cache=True, nogil=True)
                self._compiled = declare(self.function)
                if self._compiled.stats.cache_misses:
                    _say_that_it_takes_time()
            return self._compiled

    def known_as(self, numba_type: Any) -> None:
        """Have Numba call this kernel by another type than that of its own function."""
        self._type = numba_type

    @property
    def _numba_type_(self) -> Any:
        # What Numba asks where another kernel calls this one.
        return self._type or _numba().typeof(self.compiled())


def _declared(module: str, symbol: str) -> Kernel:
    """Return the kernel of a module by its symbol."""
    importlib.import_module(module)
    return next(item for item in KERNELS if item.symbol == symbol)


def _with_checked_arguments(code: Callable[..., Any], kernel: Kernel) -> Callable[..., Any]:
    """Return a function that calls machine code with what its signature says, and nothing else."""
    names = inspect.signature(kernel.function)
    checks = [check_of(declared) for declared in kernel.signature.arguments]
    expected = len(checks)

    def call(*arguments: Any, **named: Any) -> Any:
        if named or len(arguments) != expected:
            bound = names.bind(*arguments, **named)
            bound.apply_defaults()
            arguments = bound.args
        for check, value in zip(checks, arguments, strict=True):
            if not check(value):
                types = ", ".join(map(describe, arguments))
                raise TypeError(f"{kernel.symbol} ({kernel.function.__name__}) takes no ({types})")
        return code(*arguments)

    return call


@functools.cache
def _say_that_it_takes_time() -> None:
    """Report once why a small table takes long, when the first of many kernels is compiled."""
    _LOGGER.info("compiling for this machine: this takes a minute or two, once after installing")


def _numba() -> Any:
    try:
        return importlib.import_module("numba")
    except ImportError as error:
        message = (
            "the package has no machine code for this Python and processor, and Numba, which would "
            "compile it here, cannot be imported. Install Numba (pip install 'anonspark[numba]')"
        )
        raise EnvironmentProblem(message) from error


def kernel(signature: Applied) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel.

    Parameters
    ----------
    signature : Applied
        Types of the arguments and the result, of :mod:`anonspark.kernels.signatures`.
    """
    return lambda function: Kernel(function, signature)


def import_all_kernels() -> None:
    """Import all modules that declare kernels, without Numba."""
    package = importlib.import_module(_PACKAGE[:-1])
    for module in pkgutil.iter_modules(package.__path__, _PACKAGE):
        if module.name not in _IMPORT_NUMBA:
            importlib.import_module(module.name)
