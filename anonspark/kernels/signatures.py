"""Types of signatures, which are looked up in Numba when a kernel is compiled.

Numba takes a quarter of a second of processor time to import, and is not everywhere: a process that
calls what was built with the package has no need of it. So a signature is written down here, to be
read by Numba, and by what looks at the arguments of a call (:mod:`anonspark.kernels.compiling`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any


class Deferred:
    """A type of Numba, by its name, which is resolved when it is needed.

    In the body of a kernel it converts a number, as Numba's type does.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def resolved(self) -> Any:
        """Numba's own type."""
        return self._make()

    def _make(self) -> Any:
        return getattr(importlib.import_module("numba.types"), self.name)

    def __getitem__(self, layout: Any) -> Layout:
        return Layout(self, layout)

    def __call__(self, *arguments: Any, **named: Any) -> Applied:
        """Return the signature of this result, or the compound type of these parts."""
        return Applied(self, arguments, named)

    @property
    def _numba_type_(self) -> Any:
        # What Numba asks where the body of a kernel names a type.
        return importlib.import_module("numba").typeof(self.resolved)


class Layout(Deferred):
    """An array of a type.

    ``axes`` has a slice for each axis, the last with a step of 1: all arrays are C-contiguous.
    """

    def __init__(self, element: Deferred, axes: Any) -> None:
        super().__init__(element.name)
        self.element = element
        self.axes: tuple[slice, ...] = axes if isinstance(axes, tuple) else (axes,)

    def _make(self) -> Any:
        return self.element.resolved[self.axes if len(self.axes) > 1 else self.axes[0]]


class Applied(Deferred):
    """The signature of a result with its arguments, or a compound type with its parts."""

    def __init__(
        self, what: Deferred, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> None:
        super().__init__(what.name)
        self.what = what
        self.arguments = arguments
        self.named = named

    def _make(self) -> Any:
        return self.what.resolved(*resolve(self.arguments), **self.named)


def resolve(declared: Any) -> Any:
    """Return a declaration with Numba's types for deferred ones, also inside a tuple."""
    if isinstance(declared, Deferred):
        return declared.resolved
    return tuple(map(resolve, declared)) if type(declared) is tuple else declared


class types:  # noqa: N801 - kernels write it as Numba does
    """Compound types, by Numba's names."""

    Array = Deferred("Array")
    NamedTuple = Deferred("NamedTuple")
    Tuple = Deferred("Tuple")
    UniTuple = Deferred("UniTuple")


boolean = Deferred("boolean")
float64 = Deferred("float64")
int32 = Deferred("int32")
int64 = Deferred("int64")
uint8 = Deferred("uint8")
uint64 = Deferred("uint64")
void = Deferred("void")
