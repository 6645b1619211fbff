"""Turn the criteria of other packages into functions that kernels can call.

A kernel calls a C function by its address, which takes seven numbers: the addresses of codes and
counts of the values that a group has, their number, the address of the shares of all values in the
whole input, their number, the records of the group, and the bound. It returns how many records the
group lacks at least, and 0 where it satisfies the criterion.

A Python function is called with a :class:`GroupValues` and the bound. One with an ``address``, as
``numba.cfunc`` makes it, is called as it is.
"""

from __future__ import annotations

import ctypes
import logging
import operator
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from anonspark.core import extensions
from anonspark.core.arrays import Figures, Integers


class GroupValues(NamedTuple):
    """The sensitive values of a group of records.

    Attributes
    ----------
    codes : int64 ndarray of shape (values of the group,)
        Codes of the values that the group has, ascending.
    counts : int64 ndarray of shape (values of the group,)
        Its records with each of them.
    shares : float64 ndarray of shape (values,)
        Share of each value in the whole input, by code.
    size : int
        Records of the group.
    """

    codes: Integers
    counts: Integers
    shares: Figures
    size: int


_LOGGER = logging.getLogger("anonspark")
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6, ctypes.c_double)


@cache
def _as_c(judge: Callable[..., int], key: str) -> Any:
    """Return a C function that calls one of Python. -1 stands for an exception."""

    def call(*numbers: Any) -> int:
        codes, counts, present, shares, values, size, bound = numbers
        try:
            return operator.index(
                judge(
                    GroupValues(
                        _array(codes, present, ctypes.c_int64),
                        _array(counts, present, ctypes.c_int64),
                        _array(shares, values, ctypes.c_double),
                        size,
                    ),
                    bound,
                )
            )
        # A kernel can take none; its text may hold values.
        except BaseException as error:  # noqa: BLE001
            _LOGGER.error("privacy.%s: judging a group ends with %s", key, type(error).__name__)  # noqa: TRY400
            return -1

    return _FUNCTION(call)


def _array(address: int, length: int, kind: Any) -> np.ndarray[Any, Any]:
    return np.ctypeslib.as_array((kind * length).from_address(address))


@cache
def address_of(judge: Callable[..., int], key: str) -> int:
    """Return the address of the C function that judges groups, in this process alone.

    Parameters
    ----------
    judge : callable
    key : str
        Of the criterion.

    Raises
    ------
    ConfigurationError
        It cannot judge a class of two records with the same value.
    """
    address: Any = getattr(judge, "address", None)
    if address is None:
        address = ctypes.cast(_as_c(judge, key), ctypes.c_void_p).value
    values, share = np.array([0, 2]), np.ones(1)
    code = values.ctypes.data
    lacks = _FUNCTION(address)(code, code + values.itemsize, 1, share.ctypes.data, 1, 2, 1.0)
    plugin = extensions.extension(extensions.CRITERIA, key)
    if lacks < 0 and plugin is not None:
        problem = "its function fails, or returns less than 0, for a class of one value"
        raise plugin.refused(extensions.CRITERIA, key, problem)
    return int(address)
