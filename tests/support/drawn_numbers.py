"""Arrays that Hypothesis draws at once, as bytes.

Lists of drawn numbers take ten times as long, and so does a strategy that is made for each example:
these functions are called within one, with its ``draw``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

Column = Callable[[st.DrawFn, int], np.ndarray]
"""Draws n values."""


def among(draw: st.DrawFn, n: int, pool: Sequence[Any]) -> np.ndarray:
    """Draw n values, each of which is one of at most 256."""
    values = np.array(pool)
    return values[_drawn(draw, n, np.uint8) % len(values)]


def wide(draw: st.DrawFn, n: int, bits: int = 64) -> np.ndarray:
    """Draw n integers of so many bits, most of which differ."""
    return _drawn(draw, n, np.int64) >> (64 - bits)


def order(draw: st.DrawFn, n: int) -> np.ndarray:
    """Draw the numbers from 0 to n - 1 in some order."""
    return np.argsort(_drawn(draw, n, np.uint16), kind="stable")


def some_hashes(draw: st.DrawFn, n: int) -> np.ndarray:
    """Draw n hashes, some of which are equal."""
    return np.where(among(draw, n, [False, True]), among(draw, n, [-1, 0, 1]), wide(draw, n))


def one_of(*columns: Column) -> Column:
    """Return what draws a column in one of several ways."""
    chosen = st.sampled_from(columns)
    return lambda draw, n: draw(chosen)(draw, n)


def of(*pool: Any) -> Column:
    """Return what draws a column of these values."""
    return lambda draw, n: among(draw, n, pool)


def of_few(value: st.SearchStrategy[Any]) -> Column:
    """Return what draws a column of a few values that are drawn first."""
    values = st.lists(value, min_size=1, max_size=8)
    return lambda draw, n: among(draw, n, draw(values))


def _drawn(draw: st.DrawFn, n: int, kind: type[np.number[Any]]) -> np.ndarray:
    return np.frombuffer(draw(_bytes(n * np.dtype(kind).itemsize)), kind)


@cache
def _bytes(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)
