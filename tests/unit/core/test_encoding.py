"""Quasi-identifiers as numbers: nothing lost, the order kept, differences kept."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.criteria import SensitiveAttribute, Units, numbered, with_units
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import Kind
from anonspark.core.pseudonyms import pseudonyms_of, release_key

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
CATEGORIES = ("Preschool", "1st-4th", "", "missing", "é", "Doctorate")

Case = tuple[Kind, pa.DataType, Any, int]
"""Kind, type, strategy of the values, decimal places."""


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**digits - 1
    return st.integers(-largest, largest).map(lambda number: Decimal(number).scaleb(-scale))


moments = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30))
zoned_moments = moments.map(lambda moment: moment.replace(tzinfo=datetime.UTC))
finite = {"allow_nan": False, "allow_infinity": False}

CASES: dict[str, Case] = {
    "int8": ("integer", pa.int8(), st.integers(-(2**7), 2**7 - 1), 0),
    "int16": ("integer", pa.int16(), st.integers(-(2**15), 2**15 - 1), 0),
    "int32": ("integer", pa.int32(), st.integers(-(2**31), 2**31 - 1), 0),
    "int64": ("integer", pa.int64(), st.integers(INT64_MIN, INT64_MAX), 0),
    "float32": ("float", pa.float32(), st.floats(width=32, **finite), 0),
    "float64": ("float", pa.float64(), st.floats(**finite), 0),
    "decimal(5,2)": ("decimal", pa.decimal128(5, 2), decimals(5, 2), 2),
    "decimal(18,0)": ("decimal", pa.decimal128(18, 0), decimals(18, 0), 0),
    "decimal(38,18), 9 places used": ("decimal", pa.decimal128(38, 18), decimals(18, 9), 9),
    "date": ("date", pa.date32(), st.dates(), 0),
    "timestamp": ("timestamp", pa.timestamp("us"), moments, 0),
    "timestamp UTC": ("timestamp", pa.timestamp("us", "UTC"), zoned_moments, 0),
    "timestamp Istanbul": ("timestamp", pa.timestamp("us", "Europe/Istanbul"), zoned_moments, 0),
    "boolean": ("boolean", pa.bool_(), st.booleans(), 0),
    "category": ("category", pa.string(), st.sampled_from(CATEGORIES), 0),
}
NUMBERS = {name: case for name, case in CASES.items() if case[0] not in ("boolean", "category")}


def every_case(cases: dict[str, Case] = CASES) -> Callable[..., Any]:
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


def described(column: pa.Array, case: Case, *, has_missing: bool = False) -> QuasiIdentifier:
    """Return a quasi-identifier with the range of the column's present values."""
    kind, arrow_type, _, scale = case
    categories = CATEGORIES if kind == "category" else ()
    draft = QuasiIdentifier("x", kind, arrow_type, 0, -1, scale=scale, categories=categories)
    present = draft.encode(column.drop_null())
    if not len(present):
        return replace(draft, has_missing=has_missing)
    lowest, highest = int(present.min()), int(present.max())
    return replace(draft, lowest=lowest, highest=highest, has_missing=has_missing)


def order_key(value: Any, case: Case) -> Any:
    return CATEGORIES.index(value) if case[0] == "category" else value


def exactly(value: Any, case: Case) -> Fraction:
    """Return a value as an exact number, in the units of its positions."""
    match case[0]:
        case "decimal":
            return Fraction(value) * 10 ** case[3]
        case "date":
            return Fraction(value.toordinal())
        case "timestamp":
            since = value.replace(tzinfo=None) - datetime.datetime(1970, 1, 1)
            return Fraction(since // datetime.timedelta(microseconds=1))
        case _:
            return Fraction(value)


@every_case()
@given(data=st.data())
def test_values_and_their_codes(case: Case, data: st.DataObject) -> None:
    values = data.draw(st.lists(case[2], min_size=1, max_size=20))
    column = pa.array(values, case[1])
    quasi_identifier = described(column, case)
    codes = quasi_identifier.encode(column)
    decoded = quasi_identifier.decode(codes)
    assert decoded.type == case[1]
    assert decoded.to_pylist() == column.to_pylist()
    positions = quasi_identifier.positions(codes)
    require_order(case, values, codes, positions)
    if case[0] not in ("boolean", "category"):
        require_differences(case, values, quasi_identifier, positions)
    normalized = quasi_identifier.normalized(positions)
    assert normalized.min() == 0
    constant = len(set(column.to_pylist())) == 1
    assert normalized.max() == (0 if constant else 1)


def require_order(case: Case, values: list[Any], codes: np.ndarray, positions: np.ndarray) -> None:
    """Require that codes and positions are in the order of the values."""
    keys = [order_key(value, case) for value in values]
    found = list(zip(keys, codes.tolist(), positions.tolist(), strict=True))
    for (a, code_a, place_a), (b, code_b, place_b) in pairwise(found):
        assert (code_a < code_b) == (a < b)
        assert (code_a == code_b) == (a == b)
        assert place_a <= place_b if a <= b else place_a >= place_b


def require_differences(
    case: Case, values: list[Any], quasi_identifier: QuasiIdentifier, positions: np.ndarray
) -> None:
    """Require that positions are as far apart as the values."""
    exact = [exactly(value, case) for value in values]
    whole = max(exact) - min(exact)
    if case[0] == "float":
        # Where the range would overflow all positions shrink alike, to normal numbers at least.
        assert np.isfinite(quasi_identifier.range)
        shrink = Fraction(1, 8) if whole * 4 > Fraction(np.finfo(np.float64).max) else Fraction(1)
        exact, whole = [value * shrink for value in exact], whole * shrink
    assert quasi_identifier.range == pytest.approx(float(whole) or 1.0, rel=1e-15)
    for place, value in zip(positions.tolist(), exact, strict=True):
        difference = Fraction(place) - Fraction(quasi_identifier.origin)
        # Half a unit in the last place of the range is all that may be lost.
        assert abs(difference - (value - min(exact))) <= whole / 2**52


@every_case()
@given(data=st.data())
def test_missing_values_and_slices_come_back(case: Case, data: st.DataObject) -> None:
    below_the_end = case[2].filter(lambda value: value != INT64_MAX)
    values = data.draw(st.lists(st.one_of(st.none(), below_the_end), min_size=4, max_size=20))
    column = pa.array(values, case[1])
    quasi_identifier = described(column, case, has_missing=True)
    codes = quasi_identifier.encode(column)
    assert (codes == quasi_identifier.missing_code).tolist() == [v is None for v in values]
    decoded = quasi_identifier.decode(codes)
    # Slices are encoded from their offset.
    assert (
        quasi_identifier.encode(column.slice(2, len(column) - 3)).tolist() == codes.tolist()[2:-1]
    )
    assert decoded.type == case[1]
    assert decoded.to_pylist() == column.to_pylist()


# Named cases --------------------------------------------------------------------------------------


def number(kind: Kind, arrow_type: pa.DataType, values: list[Any], **more: Any) -> QuasiIdentifier:
    case: Case = (kind, arrow_type, None, more.pop("scale", 0))
    return described(pa.array(values, arrow_type), case, **more)


@pytest.mark.parametrize(
    ("arrow_type", "values"),
    [
        pytest.param(pa.int64(), [INT64_MIN, -1, 0, 1, INT64_MAX], id="int64"),
        pytest.param(pa.int8(), [-128, 127], id="int8"),
    ],
)
def test_the_ends_of_integers(arrow_type: pa.DataType, values: list[int]) -> None:
    quasi_identifier = number("integer", arrow_type, values)
    codes = quasi_identifier.encode(pa.array(values, arrow_type))
    assert codes.tolist() == values
    assert quasi_identifier.decode(codes).to_pylist() == values
    assert quasi_identifier.range == float(values[-1] - values[0])
    positions = quasi_identifier.positions(codes)
    assert quasi_identifier.normalized(positions)[[0, -1]].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("last", [INT64_MAX, INT64_MIN + 2, 2**53 + 2], ids=str)
def test_neighbouring_huge_integers_are_told_apart(last: int) -> None:
    values = [last - 2, last - 1, last]
    quasi_identifier = number("integer", pa.int64(), values)
    codes = quasi_identifier.encode(pa.array(values))
    assert quasi_identifier.normalized(quasi_identifier.positions(codes)).tolist() == [0, 0.5, 1]


def test_neighbouring_microseconds_are_told_apart() -> None:
    late = datetime.datetime(9999, 1, 1)
    values = [late + datetime.timedelta(microseconds=step) for step in range(3)]
    quasi_identifier = number("timestamp", pa.timestamp("us"), values)
    codes = quasi_identifier.encode(pa.array(values, pa.timestamp("us")))
    assert quasi_identifier.normalized(quasi_identifier.positions(codes)).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("arrow_type", [pa.float64(), pa.float32()], ids=str)
def test_minus_zero_is_zero(arrow_type: pa.DataType) -> None:
    column = pa.array([-0.0, 0.0], arrow_type)
    quasi_identifier = number("float", arrow_type, [-1.0, 1.0])
    codes = quasi_identifier.encode(column)
    assert codes.tolist() == [0, 0]
    assert [math.copysign(1, v) for v in quasi_identifier.decode(codes).to_pylist()] == [1, 1]


def test_codes_of_floats_are_in_order_around_zero() -> None:
    values = [-1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308]
    quasi_identifier = number("float", pa.float64(), values)
    codes = quasi_identifier.encode(pa.array(values))
    assert (np.diff(codes) > 0).all()
    assert codes[3:5].tolist() == [0, 1]
    assert np.isfinite(quasi_identifier.range)
    assert np.isfinite(quasi_identifier.positions(codes)).all()


def test_float32_is_decoded_as_float32() -> None:
    values = pa.array([0.1, -3.3e38, 1e-45], pa.float32())
    quasi_identifier = number("float", pa.float32(), values.to_pylist())
    decoded = quasi_identifier.decode(quasi_identifier.encode(values))
    assert decoded.equals(values)


def test_decimals_are_coded_in_their_smallest_unit() -> None:
    values = [Decimal("-0.01"), Decimal("123456789012345.67"), Decimal("0.00"), Decimal("-5.50")]
    quasi_identifier = number("decimal", pa.decimal128(38, 4), values, scale=2)
    column = pa.array(values, pa.decimal128(38, 4))
    codes = quasi_identifier.encode(column)
    assert codes.tolist() == [-1, 12345678901234567, 0, -550]
    assert quasi_identifier.decode(codes).equals(column)


def test_timestamps_with_and_without_zone_count_microseconds() -> None:
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    naive = number("timestamp", pa.timestamp("us"), [moment])
    assert naive.encode(pa.array([moment], pa.timestamp("us"))).tolist() == [-1]
    zoned_type = pa.timestamp("us", "America/New_York")
    zoned = number("timestamp", zoned_type, [moment.replace(tzinfo=datetime.UTC)])
    column = pa.array([moment.replace(tzinfo=datetime.UTC)], zoned_type)
    assert zoned.encode(column).tolist() == [-1]
    assert zoned.decode(np.array([-1])).equals(column)


def test_dates_count_days() -> None:
    values = [datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2020, 2, 29)]
    quasi_identifier = number("date", pa.date32(), values)
    assert quasi_identifier.encode(pa.array(values)).tolist() == [-1, 0, 18321]
    assert quasi_identifier.range == 18322


def test_categories_are_coded_by_their_place() -> None:
    quasi_identifier = QuasiIdentifier(
        "x", "category", pa.string(), 0, 2, categories=("low", "middle", "high")
    )
    codes = quasi_identifier.encode(pa.array(["high", "low", "middle"]))
    assert codes.tolist() == [2, 0, 1]
    assert quasi_identifier.range == 2


def test_nan_is_missing() -> None:
    column = pa.array([1.0, float("nan"), None, 3.0])
    quasi_identifier = number("float", pa.float64(), [1.0, 3.0], has_missing=True)
    codes = quasi_identifier.encode(column)
    assert (codes == quasi_identifier.missing_code).tolist() == [False, True, True, False]
    assert quasi_identifier.decode(codes).to_pylist() == [1.0, None, None, 3.0]


@every_case(NUMBERS)
def test_a_missing_number_lies_a_range_beyond_the_largest(case: Case) -> None:
    value = {"date": datetime.date(2020, 1, 1), "timestamp": datetime.datetime(2020, 1, 1)}
    column = pa.array([value.get(case[0], 7), None], case[1])
    quasi_identifier = described(column, case, has_missing=True)
    positions = quasi_identifier.positions(quasi_identifier.encode(column))
    # The range of a constant column is 1.
    assert positions[1] - positions[0] == 2
    assert quasi_identifier.normalized(positions).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("kind", "arrow_type", "values"),
    [
        pytest.param("category", pa.string(), ["Preschool", "", None], id="category"),
        pytest.param("boolean", pa.bool_(), [False, True, None], id="boolean"),
    ],
)
def test_a_missing_category_is_the_last_of_its_domain(
    kind: Kind, arrow_type: pa.DataType, values: list[Any]
) -> None:
    column = pa.array(values, arrow_type)
    quasi_identifier = described(column, (kind, arrow_type, None, 0), has_missing=True)
    codes = quasi_identifier.encode(column)
    assert codes[-1] == codes[:-1].max() + 1
    assert quasi_identifier.normalized(quasi_identifier.positions(codes)).max() == 1


@every_case()
def test_nothing_but_missing_values(case: Case) -> None:
    column = pa.nulls(3, case[1])
    quasi_identifier = replace(
        described(column, case, has_missing=True), categories=(), lowest=0, highest=-1
    )
    codes = quasi_identifier.encode(column)
    assert (codes == quasi_identifier.missing_code).all()
    assert quasi_identifier.decode(codes).equals(column)
    assert quasi_identifier.range == 1
    assert np.isfinite(quasi_identifier.normalized(quasi_identifier.positions(codes))).all()


@every_case()
def test_no_record_at_all(case: Case) -> None:
    empty = pa.array([], case[1])
    quasi_identifier = described(pa.nulls(1, case[1]), case, has_missing=True)
    codes = quasi_identifier.encode(empty)
    assert codes.dtype == np.int64
    assert quasi_identifier.decode(codes).equals(empty)
    assert quasi_identifier.positions(codes).tolist() == []


@every_case()
def test_missing_values_that_are_no_category_are_refused(case: Case) -> None:
    quasi_identifier = described(pa.nulls(1, case[1]), case)
    with pytest.raises(ValueError, match="missing"):
        quasi_identifier.encode(pa.nulls(1, case[1]))


@pytest.mark.parametrize("values", [["new"], ["new", None], [None, "Doctorate", "new"]], ids=str)
def test_unknown_categories_are_refused(values: list[str | None]) -> None:
    quasi_identifier = QuasiIdentifier(
        "x", "category", pa.string(), 0, 5, categories=CATEGORIES, has_missing=True
    )
    with pytest.raises(ValueError, match="unknown"):
        quasi_identifier.encode(pa.array(values, pa.string()))


def test_the_description_holds_no_value() -> None:
    quasi_identifier = number("integer", pa.int64(), [17, 90])
    assert quasi_identifier.describe() == {"name": "x", "kind": "integer", "type": "int64"}


# Hierarchies --------------------------------------------------------------------------------------

HIERARCHY = Hierarchy.from_rows(
    [
        ["Izmir", "west", "*"],
        ["Ankara", "middle", "*"],
        ["Bursa", "west", "*"],
        ["Konya", "middle", "*"],
    ]
)


def city(lowest: int, highest: int, **more: Any) -> QuasiIdentifier:
    return QuasiIdentifier(
        "city",
        "category",
        pa.string(),
        lowest,
        highest,
        categories=HIERARCHY.leaves,
        hierarchy=HIERARCHY,
        **more,
    )


def test_with_a_hierarchy_codes_are_places_in_the_tree() -> None:
    column = pa.array(["Konya", "Izmir", "Bursa", "Ankara"])
    quasi_identifier = city(0, 3)
    codes = quasi_identifier.encode(column)
    assert codes.tolist() == [3, 0, 1, 2]
    assert quasi_identifier.decode(codes).equals(column)
    assert quasi_identifier.range == 3
    assert quasi_identifier.positions(codes).tolist() == [3, 0, 1, 2]


def test_with_a_hierarchy_the_range_is_that_of_the_values_that_occur() -> None:
    quasi_identifier = city(1, 2, has_missing=True)
    codes = quasi_identifier.encode(pa.array(["Bursa", "Ankara", None]))
    assert codes.tolist() == [1, 2, 3]
    assert quasi_identifier.decode(codes).to_pylist() == ["Bursa", "Ankara", None]
    normalized = quasi_identifier.normalized(quasi_identifier.positions(codes))
    assert normalized.tolist() == [0, 0.5, 1]


def test_the_description_of_a_hierarchy_holds_no_value() -> None:
    assert city(0, 3).describe() == {
        "name": "city",
        "kind": "category",
        "type": "string",
        "hierarchy": {"height": 2, "leaves": 4},
    }


@pytest.mark.parametrize("missing", [[], [None]])
def test_sensitive_values_of_dictionaries(missing: list[None]) -> None:
    values = pa.array(["b", "c", *missing], pa.string())
    none = np.zeros(0, np.int64)
    attribute = SensitiveAttribute(
        "a", "payload_0", values, np.ones(len(values), np.int64), none, none
    )
    # Of the dictionary of a file not all values need to be among the records.
    words = pa.array(["dropped", "c", "b", "c"])
    codes = pa.array([1, 2, 3, 2, *missing], pa.int32())
    column = pa.DictionaryArray.from_arrays(codes, words)
    assert (
        attribute.encode(column).tolist() == attribute.encode(column.dictionary_decode()).tolist()
    )
    with pytest.raises(ValueError, match="unknown"):
        attribute.encode(pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), words))


@pytest.mark.parametrize(
    ("lowest", "highest", "expected"),
    [
        (0, 126, pa.int8()),
        (0, 127, pa.int16()),
        (-129, 0, pa.int16()),
        (2**31 - 2, 2**31 - 2, pa.int32()),
        (0, 2**31 - 1, pa.int64()),
        (INT64_MIN, INT64_MAX, pa.int64()),
    ],
)
def test_the_smallest_type_of_all_codes(lowest: int, highest: int, expected: pa.DataType) -> None:
    """The one of a missing value is behind the highest."""
    own = QuasiIdentifier("a", "integer", pa.int64(), lowest, highest, has_missing=True)
    assert own.code_type == expected


def test_everybody_has_one() -> None:
    units = np.array([5, -3, 5, 2**62], np.int64)
    found = pseudonyms_of(units, release_key(1, "a")).to_pylist()
    assert found[0] == found[2]
    assert len(set(found)) == 3
    assert all(len(one) == 32 for one in found)


def test_it_is_a_keyed_hash_of_the_little_endian_number() -> None:
    key = release_key(7, "records", "settings")
    expected = blake2b((-3).to_bytes(8, "little", signed=True), key=key, digest_size=16)
    assert pseudonyms_of(np.array([-3]), key).to_pylist() == [expected.hexdigest()]


def test_keys_are_of_seed_and_facts_apart() -> None:
    keys = [
        release_key(*one) for one in ((1, "ab", "c"), (1, "a", "bc"), (2, "ab", "c"), (1, "ab"))
    ]
    assert len(set(keys)) == 4
    assert release_key(1, "ab", "c") == keys[0]


def test_nobody_has_none() -> None:
    assert pseudonyms_of(np.zeros(0, np.int64), release_key(1)).to_pylist() == []


def test_equal_records_of_different_people_have_an_order() -> None:
    hashes = np.array([7, 7, 7, -7, 2**63 - 1], np.int64)
    units = np.array([1, 1, 2, 1, -(2**63)], np.int64)
    mixed = with_units(hashes, units)
    assert mixed.dtype == np.int64
    assert mixed[0] == mixed[1]
    assert len(set(mixed.tolist())) == 4


def test_different_records_stay_different() -> None:
    """The mixture of a hash and a unit is one to one for each unit."""
    random = np.random.default_rng(1)
    hashes = random.integers(-(2**63), 2**63 - 1, 10_000)
    assert len(set(with_units(hashes, np.full(10_000, 5)).tolist())) == 10_000
    assert len(set(with_units(np.full(10_000, 5), hashes).tolist())) == 10_000


def test_numbers_follow_the_hashes() -> None:
    numbers, people = numbered(np.array([30, -10, 30, 20], np.int64))
    assert numbers.tolist() == [2, 0, 2, 1]
    assert people == 3
    assert numbered(np.zeros(0, np.int64))[1] == 0


def test_nobody_repeats() -> None:
    assert not Units(5, 1, 4).repeat
    assert Units(5, 2, 6).repeat
