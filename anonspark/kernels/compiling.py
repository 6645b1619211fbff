"""How kernels are declared: compiled for one signature, and loaded when they are first called."""

from __future__ import annotations

import functools
import importlib
import logging
import pkgutil
import threading
from collections.abc import Callable
from typing import Any

from anonspark.kernels.signatures import Deferred

_LOGGER = logging.getLogger("anonspark")

_KERNELS: list[Kernel] = []

# It imports Numba.
_MACHINE_CODE = "anonspark.kernels.machine_code"

# Numba itself compiles one function at a time; it is not asked for one twice.
_TURN = threading.RLock()


class Kernel:
    """A function whose machine code is loaded, or made, when it is called for the first time.

    A process loads what it calls only: the machine code of all kernels takes more than a second of
    processor time to load, and Numba itself a quarter of one. Kernels call each other by their
    names as usual.

    Parameters
    ----------
    function : callable
    signature : Deferred
        Of the arguments and the result; no other is ever compiled.
    """

    def __init__(self, function: Callable[..., Any], signature: Deferred) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._signature = signature
        self._compiled: Any = None
        _KERNELS.append(self)

    def compiled(self) -> Any:
        """Return Numba's function; the first call loads it or compiles it."""
        if self._compiled is None:
            with _TURN:
                if self._compiled is None:
                    importlib.import_module(_MACHINE_CODE).keep_machine_code()
                    # Without the lock of Python, so that threads run kernels side by side.
                    declare = _numba().njit(self._signature.made, cache=True, nogil=True)
                    self._compiled = declare(self._function)
                    if self._compiled.stats.cache_misses:
                        _say_that_it_takes_time()
        return self._compiled

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it."""
        return self.compiled()(*arguments, **named)

    @property
    def _numba_type_(self) -> Any:
        # What Numba asks where another kernel calls this one.
        return _numba().typeof(self.compiled())


@functools.cache
def _say_that_it_takes_time() -> None:
    """Tell once why a small table takes long, when the first kernel of many was made."""
    _LOGGER.info("compiling for this machine: this takes a minute or two, once after installing")


def _numba() -> Any:
    return importlib.import_module("numba")


def kernel(signature: Deferred) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel.

    Parameters
    ----------
    signature : Deferred
        Of the arguments and the result, in the types of :mod:`anonspark.kernels.signatures`.
    """
    return lambda function: Kernel(function, signature)


def compile_all() -> int:
    """Compile every kernel that is not compiled yet, and return how many there are."""
    package = importlib.import_module("anonspark.kernels")
    for module in pkgutil.iter_modules(package.__path__, "anonspark.kernels."):
        importlib.import_module(module.name)
    for one in _KERNELS:
        one.compiled()
    return len(_KERNELS)
