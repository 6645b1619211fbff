"""Texts as values and values as texts, and what is told of the values of batches."""

from __future__ import annotations

import math
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as some

from anonspark.config import Attribute
from anonspark.engine.values.column_plans import PlannedColumn, plan_column
from anonspark.engine.values.distinct import Distinct
from anonspark.engine.values.value_texts import (
    are_missing,
    float_text,
    hashed_as,
    nearest_single,
    parse,
    within,
    write,
)
from anonspark.engine.values.value_validation import Findings, validate

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
    texts = {
        **{5e-324: "4.9E-324", 2e23: "2.0E23", 1e7: "1.0E7", 9999999.0: "9999999.0"},
        **{1e-3: "0.001", 9.99e-4: "9.99E-4", -0.0: "0.0", 123456.75: "123456.75"},
        math.nan: "NaN",
    }
    assert write(pa.array(list(texts))).to_pylist() == list(texts.values())
    whole = {17.0: "17", -0.0: "0", 1e15: "1.0E15", 0.5: "0.5"}
    assert write(pa.array(list(whole)), whole=True).to_pylist() == list(whole.values())


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


def planned(data_type: pa.DataType, **declared: Any) -> PlannedColumn:
    plan = plan_column("a", Attribute(role="quasi_identifier", **declared), data_type, None)
    assert isinstance(plan, PlannedColumn)
    return plan


def told(plan: PlannedColumn, *batches: tuple[pa.Array, list[bool]]) -> dict[str, Any]:
    """Return what is told of batches, each found by a task of its own."""
    total = Findings()
    for column, kept in batches:
        found = Findings()
        found.add([plan], [validate(plan, column, ["", "?"])], np.array(kept, bool))
        assert Findings.of_text(found.to_text()).as_dict([plan]) == found.as_dict([plan])
        total.merge(Findings.of_text(found.to_text()))
    return total.as_dict([plan])


def test_texts_that_are_declared_as_numbers() -> None:
    column = pa.array([" 1.5", "?", None, "x", "1e400", "nan", "1e3"])
    plan = planned(pa.string(), type="number")
    one = validate(plan, column, ["", "?"])
    assert one.values.to_pylist() == [1.5, None, None, None, float("inf"), None, 1000.0]
    assert one.missing.tolist() == [False, True, True, False, False, True, False]
    assert one.invalid.tolist() == [False, False, False, True, False, False, False]
    assert one.infinite.tolist() == [False, False, False, False, True, False, False]
    assert told(plan, (column[:4], [True] * 4), (column[6:], [True])) == {
        "rows": 5,
        "kept": 5,
        "blank_rows": 0,
        "missing_0": 2,
        "invalid_0": 1,
        "infinite_0": 0,
        "lowest_0": 1.5,
        "highest_0": 1000.0,
    }


def test_texts_of_which_nothing_was_declared() -> None:
    column = pa.array(["1", "b", "b", "?", " ", "2.5"])
    kept = [True, True, True, False, False, False]
    assert told(planned(pa.string()), (column, kept), (column.dictionary_encode(), kept)) == {
        "rows": 12,
        "kept": 6,
        "blank_rows": 0,
        "missing_0": 4,
        "invalid_0": 0,
        "infinite_0": 0,
        "numeric_0": 2,
        "distinct_0": 2,
    }


@given(
    some.lists(some.sampled_from(["1", " b", "b", "?", "", "nan", "2024", None]), min_size=9),
    some.sampled_from(
        [{}, {"type": "number"}, {"type": "date"}, {"type": "text"}, {"hierarchy": {"prefix": [1]}}]
    ),
)
def test_dictionaries_are_judged_as_their_texts(
    texts: list[str | None], declared: dict[str, Any]
) -> None:
    plan = planned(pa.string(), **declared)
    column = pa.array(texts, pa.string())
    plain, coded = (validate(plan, one, ["", "?"]) for one in (column, column.dictionary_encode()))
    # NaN is missing.
    assert coded.values.to_pylist() == plain.values.to_pylist()
    for name in ("missing", "invalid", "infinite", "numeric"):
        assert getattr(coded, name).tolist() == getattr(plain, name).tolist()
    kept = [row % 3 > 0 for row in range(len(texts))]
    assert told(plan, (column.dictionary_encode(), kept)) == told(plan, (column, kept))


def test_markers_and_nan_are_missing_whatever_is_declared() -> None:
    plan = planned(pa.float64(), type="text")
    one = validate(plan, pa.array([17.0, float("nan"), None, 999.0]), ["", "999"])
    assert one.values.to_pylist() == ["17.0", None, None, None]
    assert one.missing.tolist() == [False, True, True, True]


def test_markers_mean_the_numbers_that_texts_say() -> None:
    plan = planned(pa.string(), type="number")
    texts = pa.array(["017", "0999", "+999.0", "9.99e2", " NaN ", "x"])
    one = validate(plan, texts, ["", "999"])
    assert one.values.to_pylist() == [17.0, None, None, None, None, None]
    assert one.missing.tolist() == [False, True, True, True, True, False]


_MARKERS = ("", "?", " 999", "-9.50", "1e2", "false", "2024-01-05", "2024-01-06T01:00+01:00", "0")


@pytest.mark.parametrize(
    ("data_type", "values", "missing"),
    [
        (pa.int8(), [99, 100, 0, -9, None], [False, True, True, False, True]),
        (pa.int64(), [998, 999, 1], [False, True, False]),
        (pa.float32(), [999.0, -9.5, 9.5, float("nan")], [True, True, False, True]),
        (pa.float64(), [999.0, 999.5], [True, False]),
        (pa.decimal128(5, 2), [Decimal("999.00"), Decimal("-9.51")], [True, False]),
        (pa.decimal128(2, 0), [Decimal("-9"), Decimal("-10")], [False, False]),
        (pa.bool_(), [False, True, None], [True, False, True]),
        (pa.date32(), [19727, 19728], [True, False]),
        (pa.timestamp("us", "UTC"), [1704499200000000, 1704499200000001], [True, False]),
        (pa.string(), [" ? ", "999", "999.0", "False"], [True, True, False, False]),
        (pa.list_(pa.int64()), [[999], None], [False, True]),
    ],
    ids=str,
)
def test_markers_mean_a_value_of_the_type(
    data_type: pa.DataType, values: list[Any], missing: list[bool]
) -> None:
    assert are_missing(pa.array(values, data_type), _MARKERS).to_pylist() == missing


def test_without_values_there_are_no_extremes() -> None:
    found = told(planned(pa.decimal128(9, 2)), (pa.nulls(2, pa.decimal128(9, 2)), [True, True]))
    assert found["places_0"] is None
    assert found["lowest_0"] is None
    assert found["highest_0"] is None


@pytest.mark.parametrize(
    ("data_type", "values", "lowest", "highest"),
    [
        (pa.bool_(), [True, False], 0, 1),
        (pa.int8(), [-128, 5], -128, 5),
        (pa.date32(), [3, -4], -4, 3),
        (pa.timestamp("us", "UTC"), [7, -7], -7, 7),
        (pa.float32(), [0.5, float("nan"), -1.5], -1.5, 0.5),
        (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-3.00")], "-3.00", "1.50"),
    ],
    ids=str,
)
def test_extremes_as_plain_numbers(
    data_type: pa.DataType, values: list[Any], lowest: Any, highest: Any
) -> None:
    column = pa.array(values, data_type)
    found = told(planned(data_type), *((column[i : i + 1], [True]) for i in range(len(column))))
    assert (found["lowest_0"], found["highest_0"]) == (lowest, highest)


_DECIMALS = some.decimals(places=19, allow_nan=False, allow_infinity=False).filter(
    lambda value: abs(value) < 10**19
)


@given(some.lists(some.lists(some.none() | _DECIMALS, max_size=3), min_size=1, max_size=3))
def test_places_of_decimals(batches: list[list[Decimal | None]]) -> None:
    data_type = pa.decimal128(38, 19)
    columns = [pa.array(values, data_type) for values in batches]
    found = told(planned(data_type), *((one, [True] * len(one)) for one in columns))
    texts = [format(one, "f") for values in batches for one in values if one is not None]
    needed = [len(text.partition(".")[2].rstrip("0")) for text in texts]
    assert found["places_0"] == max(needed, default=None)


def test_places_of_decimals_without_a_digit_before_the_point() -> None:
    column = pa.array([Decimal("0.100000000000000000"), None], pa.decimal128(18, 18))
    assert told(planned(column.type), (column, [True, True]))["places_0"] == 1


def test_places_beyond_what_python_counts_by_default() -> None:
    column = pa.array([Decimal("1234567890123456789.0123456789012345678")], pa.decimal128(38, 19))
    assert told(planned(column.type), (column, [True]))["places_0"] == 19


def test_hashes_are_told_as_they_are() -> None:
    found = Findings(most_distinct=3)
    found.add_hashes(np.array([-(2**63), 2**63 - 1, -5]))
    found.add(
        [planned(pa.string())],
        [validate(planned(pa.string()), pa.array(["a"]), [])],
        np.ones(1, bool),
    )
    told_again = Findings.of_text(found.to_text())
    assert (told_again.hash_sum, told_again.hash_xor) == (-6, found.hash_xor)
    assert (told_again.most_distinct, told_again.rows, told_again.staying) == (3, 1, 1)


_LARGEST = 2**64 - 1


def hashes(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


@given(
    some.lists(some.lists(some.integers(0, 40) | some.integers(0, _LARGEST)), min_size=1),
    some.integers(2, 30),
)
def test_parts_in_any_order(parts: list[list[int]], most: int) -> None:
    together, merged = Distinct(most), Distinct(most)
    for part in parts:
        together.add(hashes(part))
    for part in reversed(parts):
        one = Distinct(most)
        one.add(hashes(part))
        merged.add(one.smallest())
    different = sorted({value for part in parts for value in part})
    assert together.smallest().tolist() == merged.smallest().tolist() == different[:most]
    assert together.count() == merged.count()
    if len(different) < most:
        assert together.count() == len(different)


@pytest.mark.parametrize("size", [4095, 4096, 5000, 300_000])
def test_the_estimate_is_near(size: int) -> None:
    random = np.random.default_rng(size)
    drawn = random.integers(0, _LARGEST, size, np.uint64, endpoint=True)
    counted = Distinct(4096)
    for part in np.array_split(np.concatenate([drawn, drawn[::-1]]), 7):
        counted.add(part)
    # Four standard errors.
    assert counted.count() == pytest.approx(size, rel=4 / 64 if size > 4095 else 0)
    assert len(counted.smallest()) == min(size, 4096)
