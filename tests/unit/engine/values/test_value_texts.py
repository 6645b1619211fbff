"""Texts as values and values as texts, where SQL and Java have ways of their own."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from anonspark.engine.values.value_texts import (
    float_text,
    hashed_as,
    nearest_single,
    parse,
    within,
    write,
)

_ZONED, _CLOCK = pa.timestamp("us", "UTC"), pa.timestamp("us")


def read(text: str, target: pa.DataType) -> Any:
    """Return one text as a value; days and points in time as numbers."""
    values = parse(pa.array([text, None]), target)
    assert values.type == target
    if pa.types.is_date(target):
        values = values.view(pa.int32())
    return (values.view(pa.int64()) if pa.types.is_timestamp(target) else values)[0].as_py()


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("1e3", pa.float64(), 1000.0),
        (" +007.50 ", pa.float64(), 7.5),
        ("1d", pa.float64(), None),
        ("0x1p3", pa.float64(), None),
        ("\u0661", pa.float64(), None),
        ("\u0661", pa.decimal128(3, 0), None),
        ("1_000", pa.float64(), None),
        ("-Infinity", pa.float64(), None),
        ("\t1", pa.float64(), None),
        ("12.0", pa.int64(), None),
        (" +12", pa.int64(), 12),
        ("128", pa.int8(), None),
        (" tRuE", pa.bool_(), True),
        ("0", pa.bool_(), False),
        ("on", pa.bool_(), None),
        (" 2024-01-05 ", pa.date32(), 19727),
        ("2024", pa.date32(), None),
        ("2024-1-5", pa.date32(), None),
        ("20240105", pa.date32(), None),
        ("2024-01-05 whatever", pa.date32(), None),
        ("2024-02-30", pa.date32(), None),
        ("0000-02-29", pa.date32(), None),
        ("2024-01-05 01:02:03.1234567", _CLOCK, 1704416523123456),
        ("2024-01-05", _ZONED, 1704412800000000),
        ("2024-01-05T", _ZONED, None),
        ("2024-01-05 01:02 UTC", _ZONED, 1704416520000000),
        ("2024-01-05T01:02:03+01:05", _ZONED, 1704412623000000),
        ("2024-01-05T01:02:03+0105", _CLOCK, 1704412623000000),
        ("2024-01-05T01:02:03-02", _CLOCK, 1704423723000000),
        ("2024-01-05 01:02:03Z", _CLOCK, 1704416523000000),
        ("2024-01-05 01:02:03+25:00", _ZONED, None),
        ("2024-01-05 01:02:03 Europe/Berlin", _ZONED, None),
        ("2024-01-05 01:02:03 EST", _ZONED, None),
        ("2024-01-05 24:00:00", _ZONED, None),
        ("999999-01-01 00:00:00", _ZONED, None),
        # The day of a time alone would be another one tomorrow.
        ("12:30", _ZONED, None),
    ],
)
def test_what_a_text_says(text: str, target: pa.DataType, expected: Any) -> None:
    assert read(text, target) == expected


@given(some.floats(width=32, allow_nan=False, allow_infinity=False), some.integers(-2, 2))
def test_numbers_between_two_floats_of_32_bits(value: float, step: int) -> None:
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    following = struct.unpack("<f", struct.pack("<i", (bits & 0x7FFFFFFF) + 1))[0]
    assume(np.isfinite(following))
    first = abs(value)
    middle = (Fraction(first) + Fraction(following)) / 2
    number = middle + Fraction(step, 10**400)
    digits = str(abs(int(number * 10**420))).rjust(421, "0")
    found = nearest_single(f"{digits[:-420]}.{digits[-420:]}")
    even = first if bits % 2 == 0 else following
    assert found == (even if step == 0 else first if step < 0 else following)


@given(some.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back_from_their_texts(value: float) -> None:
    text = float_text(value)
    assert struct.pack("<d", float(text)) == struct.pack("<d", value + 0.0)
    assert read(text, pa.float64()) == value


@given(some.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_of_32_bits_read_back_from_their_texts(value: float) -> None:
    assert read(float_text(value, narrow=True), pa.float32()) == value


@given(
    some.lists(some.none() | some.floats() | some.floats(1e-4, 1e8), max_size=5), some.booleans()
)
def test_floats_of_all_sizes_side_by_side(values: list[float | None], whole: bool) -> None:
    for own in (pa.float64(), pa.float32()):
        column = pa.array(values, pa.float64()).cast(own, safe=False)
        narrow = own == pa.float32()
        assert write(column, whole=whole).to_pylist() == [
            None if one is None else float_text(one, narrow=narrow, whole=whole)
            for one in column.to_pylist()
        ]


@given(some.datetimes(), some.sampled_from([" ", "T"]), some.booleans())
def test_full_timestamps_alone_and_beside_others(
    moment: datetime, divider: str, zoned: bool
) -> None:
    text, target = moment.isoformat(divider), _ZONED if zoned else _CLOCK
    expected = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert read(text, target) == expected
    # Beside an odd one all are read one by one.
    beside = parse(pa.array([text, "odd", "2023-02-29 00:00:00"]), target)
    assert beside.view(pa.int64()).to_pylist() == [expected, None, None]
    assert parse(pa.array([text, "2023-02-29 00:00:00"]), target).null_count == 1


@given(some.lists(some.none() | some.sampled_from(["1.5", " -7 ", "?", "1e3", "9" * 400, "-0"])))
def test_usual_numbers_beside_others(texts: list[str | None]) -> None:
    for own in (pa.float64(), pa.float32()):
        alone = [None if text is None else read(text, own) for text in texts]
        assert parse(pa.array(texts, pa.string()), own).to_pylist() == alone


def test_floats_as_java_writes_them() -> None:
    values = [5e-324, 2e23, 1e7, 9999999.0, 1e-3, 9.99e-4, -0.0, 123456.75, float("nan")]
    assert write(pa.array(values)).to_pylist() == [
        "4.9E-324",
        "2.0E23",
        "1.0E7",
        "9999999.0",
        "0.001",
        "9.99E-4",
        "0.0",
        "123456.75",
        "NaN",
    ]
    assert write(pa.array([17.0, -0.0, 1e15, 0.5]), whole=True).to_pylist() == [
        "17",
        "0",
        "1.0E15",
        "0.5",
    ]


def test_days_of_any_year() -> None:
    days = pa.array([-719529, -719528, 2932896, 2932897, None], pa.int32()).view(pa.date32())
    expected = ["-0001-12-31", "0000-01-01", "9999-12-31", "+10000-01-01", None]
    assert write(days).to_pylist() == expected


@given(some.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_points_in_time_read_back_from_their_texts(micros: int) -> None:
    moments = pa.array([micros], pa.int64()).view(_ZONED)
    assert parse(write(moments), _ZONED).view(pa.int64()).to_pylist() == [micros]


@pytest.mark.parametrize("bits", [8, 64])
def test_whole_numbers_within_their_bits(bits: int) -> None:
    end = 2 ** (bits - 1)
    assert [within(one, bits) for one in (-end - 1, -end, end - 1, end)] == [
        None,
        -end,
        end - 1,
        None,
    ]


@pytest.mark.parametrize(
    ("values", "kind", "wanted", "changed"),
    [
        ([2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, None], "int64", "double", [2]),
        ([2**24, 2**24 + 1], "int32", "float", [1]),
        ([2.0, 2.5, None], "double", "int64", [1]),
        ([2**31 - 1, 2**31], "int64", "int32", [1]),
        ([0.1, 2.5], "double", "float", []),
        ([2**53 + 1], "int64", "string", []),
    ],
)
def test_values_that_another_type_does_not_hold(
    values: list[float | None], kind: str, wanted: str, changed: list[int]
) -> None:
    _, flags = hashed_as(pa.array(values, kind), pa.type_for_alias(wanted))
    assert np.flatnonzero(flags.to_numpy(zero_copy_only=False)).tolist() == changed
