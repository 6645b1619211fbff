"""What a kernel takes: machine code that was built beforehand looks at nothing itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from anonspark.kernels.compiling import check_of, describe
from anonspark.kernels.signatures import boolean, float64, int32, int64, types, uint8, uint64

NUMBERS = np.arange(6)


class Pair(NamedTuple):
    count: int
    values: npt.NDArray[np.float64]


PAIR = types.NamedTuple((int64, float64[::1]), Pair)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def not_aligned() -> npt.NDArray[np.int64]:
    return np.frombuffer(bytearray(25), np.int8)[1:].view(np.int64)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (int64, 1),
        (int64, np.int32(1)),
        (int64, True),
        (uint64, np.uint64(2**64 - 1)),
        (boolean, np.bool_(True)),
        (float64, 1.5),
        (float64, np.float64(1.5)),
        (float64, 1),
        (int64[::1], NUMBERS),
        (int64[::1], NUMBERS[2:]),
        (int64[:, ::1], NUMBERS.reshape(2, 3)),
        (float64[:, :, ::1], np.zeros((0, 2, 2))),
        (types.Array(boolean, 1, "C", readonly=True), read_only(NUMBERS > 1)),
        (types.Array(int64, 1, "C", readonly=True), NUMBERS),
        (PAIR, Pair(1, np.zeros(2))),
        (types.Tuple((int64, float64)), (1, 1.5)),
        (types.UniTuple(int64, 2), (1, 2)),
    ],
)
def test_what_fits_its_type(declared: Any, value: Any) -> None:
    assert check_of(declared)(value)


@pytest.mark.parametrize(
    ("declared", "value", "told"),
    [
        (int64, 1.5, "float"),
        (int64, "1", "str"),
        (int64, NUMBERS, "int64 of 1 axes"),
        (float64, None, "NoneType"),
        (int64[::1], [1, 2], "list"),
        (int64[::1], NUMBERS[::2], "int64 of 1 axes, not contiguous"),
        (int64[::1], NUMBERS[::-1], "int64 of 1 axes, not contiguous"),
        (int64[::1], not_aligned(), "int64 of 1 axes, not aligned"),
        (int64[::1], NUMBERS.astype(">i8"), ">i8 of 1 axes"),
        (int64[::1], NUMBERS.astype(np.int32), "int32 of 1 axes"),
        (int32[::1], NUMBERS, "int64 of 1 axes"),
        (uint8[::1], NUMBERS > 1, "bool of 1 axes"),
        (int64[::1], NUMBERS.reshape(2, 3), "int64 of 2 axes"),
        (int64[:, ::1], NUMBERS.reshape(2, 3).T, "int64 of 2 axes, not contiguous"),
        (int64[::1], read_only(NUMBERS), "int64 of 1 axes, read-only"),
        (PAIR, (1, np.zeros(2)), "tuple"),
        (PAIR, Pair(1, np.zeros(2, np.float32)), "Pair"),
        (types.Tuple((int64, float64)), (1, 1.5, 2), "tuple"),
        (types.UniTuple(int64, 2), (1, 2.5), "tuple"),
    ],
)
def test_what_does_not(declared: Any, value: Any, told: str) -> None:
    assert not check_of(declared)(value)
    assert describe(value) == told
