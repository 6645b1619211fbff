"""What a kernel is called with, looked at before machine code takes it as it is.

Machine code that was built beforehand reads an array by the layout of its signature, whatever it
gets: one with other types or with gaps would give wrong results or end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from anonspark.kernels.signatures import Applied, Layout

Check = Callable[[Any], bool]
"""Tells whether a value is of a type."""


def check_of(declared: Any) -> Check:
    """Return what tells whether a value can be handed over for a type.

    Parameters
    ----------
    declared : Deferred
        The type of an argument.

    Returns
    -------
    callable
    """
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
    """Tell what a value is, without a value of the data."""
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
