"""Types of signatures, which are looked up in Numba when the first kernel is called.

Numba takes a quarter of a second of processor time to import. A process that declares kernels and
calls none, as one that checks a configuration or that collects tests, does not bear it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cached_property
from typing import Any


class Deferred:
    """A type of Numba, written as there, which is made when it is asked for.

    In the body of a kernel it converts a number, as Numba's type does.

    Parameters
    ----------
    make : callable
        Returns the type of Numba. It is called once.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def made(self) -> Any:
        """Numba's own type."""
        return self._make()

    def __getitem__(self, layout: Any) -> Deferred:
        return Deferred(lambda: self.made[layout])

    def __call__(self, *arguments: Any, **named: Any) -> Deferred:
        """Return the signature of this result, or the compound type of these parts."""
        return Deferred(lambda: self.made(*made(arguments), **named))

    @property
    def _numba_type_(self) -> Any:
        # What Numba asks where the body of a kernel names a type.
        return importlib.import_module("numba").typeof(self.made)


def made(declared: Any) -> Any:
    """Return what was declared with Numba's types in the place of those that were deferred.

    Parameters
    ----------
    declared : object
        A deferred type, a tuple with some of them, or anything else, which stays as it is.
    """
    if isinstance(declared, Deferred):
        return declared.made
    return tuple(map(made, declared)) if type(declared) is tuple else declared


def _named(name: str) -> Deferred:
    return Deferred(lambda: getattr(importlib.import_module("numba.types"), name))


class types:  # noqa: N801 - kernels write it as Numba does
    """Compound types, by Numba's names."""

    Array = _named("Array")
    NamedTuple = _named("NamedTuple")
    Tuple = _named("Tuple")
    UniTuple = _named("UniTuple")


boolean = _named("boolean")
float64 = _named("float64")
int32 = _named("int32")
int64 = _named("int64")
uint8 = _named("uint8")
uint64 = _named("uint64")
void = _named("void")
