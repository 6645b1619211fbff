"""Labels read back: what was written comes out, and what cannot be read is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arrow_types import arrow_type
from cases import cases
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from anonspark.core.hierarchies.hierarchy import (
    Hierarchy,
    beginning_hierarchy,
    calendar_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)
from anonspark.core.labels import category_label, hierarchy_label, interval_labels, value_labels
from anonspark.errors import AnonsparkError, ConfigurationError, DataError
from anonspark.labels.region_matching import RegionReader
from anonspark.labels.regions import (
    CategoryRegion,
    Interval,
    OrderedRegion,
    PublishedAttribute,
    UnreadableLabelError,
    code_key,
    distinct_rows,
    leaves_by_label,
    published_attributes,
    read_label,
    read_regions,
)
from anonspark.release.manifest import Manifest

ODD = st.sampled_from('aé"\\{}[],* \t\n-/0')
TEXTS = st.one_of(
    st.text(ODD, max_size=6),
    st.text(max_size=8),
    st.sampled_from(["missing", "null", "a or missing", "{a, b}", '"a"', "[1-2]"]),
).filter(lambda text: text != "*")
TEXTS = TEXTS.filter(lambda text: text.isascii() or _encodable(text))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def attribute(kind: Any, **fields: Any) -> PublishedAttribute:
    columns = fields.pop("columns", ("x",))
    return PublishedAttribute("x", kind, fields.pop("style", "interval"), columns, **fields)


def micros(moment: datetime) -> int:
    return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def as_number(value: Any) -> Any:
    """Return what a value is read as."""
    if isinstance(value, datetime):
        return micros(value)
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def finite(width: int) -> st.SearchStrategy[float]:
    return st.floats(allow_nan=False, allow_infinity=False, width=width)  # type: ignore[arg-type]


ORDERED = st.sampled_from(
    [
        ("integer", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        ("integer", pa.int8(), st.integers(-128, 127)),
        ("float", pa.float64(), finite(64)),
        ("float", pa.float32(), finite(32)),
        ("decimal", pa.decimal128(18, 4), st.decimals(-1000, 1000, places=4)),
        ("date", pa.date32(), st.dates()),
        ("timestamp", pa.timestamp("us"), st.datetimes()),
        ("timestamp", pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    ]
)


@given(st.data(), ORDERED, st.booleans())
def test_interval_labels_read_back(
    data: st.DataObject, column: tuple[Any, pa.DataType, Any], with_missing: bool
) -> None:
    kind, arrow_type, values = column
    low, high = sorted(data.draw(st.tuples(values, values)))
    labels = value_labels(pa.array([low, high], arrow_type), kind)
    (label,) = interval_labels(labels[:1], labels[1:], kind, np.array([with_missing])).to_pylist()
    found = read_label(label, attribute(kind, type=str(arrow_type)))
    expected = Interval(as_number(low), as_number(high))
    assert found == OrderedRegion((expected,), with_missing)
    if kind == "integer":
        assert isinstance(found.intervals[0].low, int)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**digits - 1
    return st.integers(-largest, largest).map(
        lambda units: Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))
    )


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


NEAR_2_53 = st.integers(2**53 - 2, 2**53 + 2)
ODD_FLOATS = st.sampled_from(
    [-0.0, 0.0, 5e-324, -5e-324, 2.2e-308, 1e300, -1e-7, 1e16, 123456789.0, 0.1, -(2.0**60)]
)
EARLY_DATES = st.dates(max_value=date(1600, 1, 1))
# As days and microseconds, beyond the years that Python knows.
FAR_DAYS = st.integers(-(2**31), 2**31 - 1)

# Of a column: what a manifest calls its type, its kind, in which type and as what Spark hands its
# values over for a comparison (see `prepare_table`), and values.
COMPARED: list[tuple[str, Any, pa.DataType, Any, st.SearchStrategy[Any]]] = [
    *(
        (f"int{bits}", "integer", pa.int64(), "integer", _integers(bits))
        for bits in (8, 16, 32, 64)
    ),
    ("int64", "integer", pa.int64(), "integer", NEAR_2_53),
    # Of a table that has the same values as decimals, and as doubles.
    ("int64", "integer", pa.decimal128(38, 0), 0, _integers(64)),
    ("int64", "integer", pa.float64(), "float", _integers(32)),
    *(
        (
            f"decimal128({digits}, {scale})",
            "decimal",
            pa.decimal128(38, scale),
            scale,
            _decimals(digits, scale),
        )
        for digits, scale in (
            *((1, 0), (1, 1), (5, 0), (5, 2), (5, 5), (18, 0), (18, 18), (19, 0), (28, 10)),
            *((38, 0), (38, 18), (38, 38)),
        )
    ),
    ("decimal128(18, 0)", "decimal", pa.int64(), "integer", _decimals(18, 0)),
    ("double", "float", pa.float64(), "float", finite(64)),
    ("double", "float", pa.float64(), "float", ODD_FLOATS),
    ("float", "float", pa.float64(), "float", finite(32)),
    ("date32[day]", "date", pa.date32(), "integer", st.dates()),
    ("date32[day]", "date", pa.date32(), "integer", EARLY_DATES),
    ("date32[day]", "date", pa.date32(), "integer", FAR_DAYS),
    ("timestamp[us]", "timestamp", pa.timestamp("us"), "integer", st.datetimes()),
    ("timestamp[us]", "timestamp", pa.timestamp("us"), "integer", _integers(64)),
    (
        "timestamp[us, tz=UTC]",
        "timestamp",
        pa.timestamp("us", "UTC"),
        "integer",
        st.datetimes(timezones=st.just(UTC)),
    ),
]


@pytest.mark.parametrize("style", ["interval", "bounds"])
@pytest.mark.parametrize(
    "column", COMPARED, ids=[f"{number}-{own[0]}" for number, own in enumerate(COMPARED)]
)
@settings(max_examples=20)
@given(st.data())
def test_regions_hold_the_values_of_their_labels_and_no_others(
    column: tuple[str, Any, pa.DataType, Any, st.SearchStrategy[Any]],
    style: str,
    data: st.DataObject,
) -> None:
    own_type, kind, compared, places, values = column
    first, second, third = sorted(data.draw(st.lists(values, min_size=3, max_size=3)))
    raw = pa.array([first, second, third])
    raw = raw.cast(pa.int32()) if values is FAR_DAYS else raw
    raw = raw.cast(arrow_type(own_type))
    low, high = raw.slice(0, 2), raw.slice(1, 2)
    published: list[pa.Array] = [low, high]
    if style == "interval":
        labels = value_labels(low, kind), value_labels(high, kind)
        published = [interval_labels(*labels, kind, np.zeros(2, bool))]
    names = ("x",) if style == "interval" else ("x_min", "x_max")
    own = attribute(kind, style=style, columns=names, type=own_type)
    classes = pa.table({f"published_0_{place}": one for place, one in enumerate(published)})
    search = RegionReader([own], (places,), {}).search(classes)
    columns = [raw.cast(compared), pa.array([False] * 3)]
    asked = pa.RecordBatch.from_arrays(columns, names=["value_0", "missing_value_0"])
    codes, unreadable = search.points(asked)
    assert not unreadable.any()
    counts = np.zeros(2, np.int64)
    search.count(codes, counts)
    # From the first to the second, and from the second to the third.
    assert counts.tolist() == [2 + (third == second), 2 + (first == second)]


@given(st.lists(st.one_of(st.none(), TEXTS), min_size=1, max_size=5, unique=True))
def test_sets_of_categories_read_back(values: list[str | None]) -> None:
    found = read_label(category_label(values), attribute("category"))
    present = tuple(sorted(value for value in values if value is not None))
    assert found == CategoryRegion(present, None in values)


@example(["", '""'], False)
@given(st.lists(TEXTS, min_size=1, max_size=5, unique=True), st.booleans())
def test_labels_of_a_hierarchy_read_back(leaves: list[str], with_missing: bool) -> None:
    groups = [f"group {place // 2}" for place in range(len(leaves))]
    assume(not set(groups) & set(leaves))
    hierarchy = Hierarchy.from_rows(
        [[leaf, group, "*"] for leaf, group in zip(leaves, groups, strict=True)]
    )
    meanings = leaves_by_label(hierarchy)
    for place, leaf in enumerate(leaves):
        for label, expected in ((leaf, [leaf]), (groups[place], leaves[place // 2 * 2 :][:2])):
            text = hierarchy_label(label, with_missing=with_missing)
            found = read_label(text, attribute("category"), meanings)
            assert found == CategoryRegion(tuple(sorted(expected)), with_missing)
    text = hierarchy_label("*", with_missing=with_missing)
    assert read_label(text, attribute("category"), meanings) == CategoryRegion(None, with_missing)


@pytest.mark.parametrize("kind", ["integer", "float", "decimal", "date", "timestamp", "category"])
def test_marks_of_missing_and_of_everything(kind: Any) -> None:
    nothing, everything = read_label("missing", attribute(kind)), read_label("*", attribute(kind))
    region = CategoryRegion if kind == "category" else OrderedRegion
    assert nothing == region((), True)
    assert everything == region(None, True)


@cases(__file__, "label", "kind", "expected")
def test_labels_of_plain_meaning(label: str, kind: Any, expected: dict[str, Any]) -> None:
    assert read_label(label, attribute(kind)) == OrderedRegion((Interval(**expected),), False)


@cases(__file__, "label", "kind")
def test_other_labels_are_refused_without_their_text(label: str, kind: Any) -> None:
    with pytest.raises(UnreadableLabelError):
        read_label(label, attribute(kind))
    column = pa.array([label, "7" if kind == "integer" else label, label])
    with pytest.raises(DataError, match="column 'x'") as refused:
        read_regions([column], attribute(kind))
    assert not label or label not in str(refused.value)
    assert " 1 of " in str(refused.value)


def intervals_of(hierarchy: Hierarchy, own: PublishedAttribute) -> Iterator[tuple[Any, Any]]:
    """Read the labels of a rule, and return each interval with its leaves. The top has none."""
    for label, leaves in leaves_by_label(hierarchy).items():
        region = read_label(label, own)
        if label == "*":
            assert region == OrderedRegion(None, False)
            continue
        assert isinstance(region, OrderedRegion)
        assert not region.missing
        (interval,) = region.intervals or ()
        yield interval, leaves


@given(
    st.lists(st.decimals(-1000, 1000, places=2), min_size=1, max_size=8, unique=True),
    st.sampled_from([None, -20.25, 90]),
)
def test_interval_rules_read_back(values: list[Decimal], top: float | None) -> None:
    texts = [str(value) for value in values]
    hierarchy = interval_hierarchy(texts, [0.5, 5.0, 20.0], origin=0.25, top=top)
    for interval, leaves in intervals_of(hierarchy, attribute("decimal", rule="intervals")):
        inside = [
            text
            for text in texts
            if interval.low <= Decimal(text)  # type: ignore[operator]
            and (Decimal(text) < interval.high or Decimal(text) == interval.low)  # type: ignore[operator]
        ]
        assert sorted(inside) == sorted(leaves)


@given(st.lists(st.dates(), min_size=1, max_size=8, unique=True))
def test_calendar_rules_read_back(values: list[date]) -> None:
    hierarchy = calendar_hierarchy(map(str, values), ["month", "quarter", "year", "decade"])
    for interval, leaves in intervals_of(hierarchy, attribute("date", rule="calendar")):
        inside = [str(day) for day in values if interval.low <= as_number(day) <= interval.high]  # type: ignore[union-attr, operator]
        assert sorted(inside) == sorted(leaves)


@given(st.lists(st.text("0123aé", min_size=2, max_size=5), min_size=1, max_size=8, unique=True))
@pytest.mark.parametrize("by_length", [True, False])
def test_rules_of_codes_read_back(by_length: bool, values: list[str]) -> None:
    hierarchy = (
        prefix_hierarchy(values, [1, 3]) if by_length else beginning_hierarchy(values, [4, 3, 1])
    )
    own = attribute("category", rule="prefix" if by_length else "keep")
    for interval, leaves in intervals_of(hierarchy, own):
        inside = [
            text
            for text in values
            if interval.low <= code_key(text, by_length=by_length) <= interval.high  # type: ignore[union-attr, operator]
        ]
        assert sorted(inside) == sorted(leaves)


def test_masks_tell_of_codes_that_were_not_released() -> None:
    own = attribute("category", rule="prefix")
    (interval,) = read_label("061**", own).intervals  # type: ignore[union-attr, misc]
    for code, inside in (("06100", True), ("061zz", True), ("0610", False), ("06200", False)):
        key = code_key(code, by_length=True)
        assert (interval.low <= key <= interval.high) is inside  # type: ignore[union-attr, operator]
    for label, rule in (("0*1", "prefix"), ("06**", "keep"), ("0*1", "keep")):
        with pytest.raises(UnreadableLabelError):
            read_label(label, attribute("category", rule=rule))


def test_numbers_with_a_hierarchy_are_sets_of_points() -> None:
    meanings = {"young": ["17", "18.0"], "[0-9]": ["3"], "*": ["3", "17", "18"]}
    own = attribute("integer")
    points = tuple(Interval(Decimal(text), Decimal(text)) for text in ("17", "18"))
    assert read_label("young or missing", own, meanings) == OrderedRegion(points, True)
    assert read_label("[0-9]", own, meanings) == OrderedRegion((Interval(3, 3),), False)
    assert read_label("*", own, meanings) == OrderedRegion(None, False)


def test_columns_of_bounds() -> None:
    own = attribute("date", style="bounds", columns=("x_min", "x_max", "x_missing"))
    first, last = date(1970, 1, 2), date(1970, 1, 5)
    columns = [
        pa.array([first, None, first, first]),
        pa.array([last, None, last, first]),
        pa.array([False, True, True, False]),
    ]
    regions, numbers = read_regions([pa.chunked_array([column]) for column in columns], own)
    assert [regions[number] for number in numbers] == [
        OrderedRegion((Interval(1, 4),), False),
        OrderedRegion((), True),
        OrderedRegion((Interval(1, 4),), True),
        OrderedRegion((Interval(1, 1),), False),
    ]
    with pytest.raises(DataError, match="1 of 1 different entries of the published columns"):
        read_regions([pa.array([last]), pa.array([first])], own)
    with pytest.raises(DataError, match="1 of 1"):
        read_regions([pa.array([first]), pa.array([None], pa.date32())], own)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("float", pa.array([0.1, 0.1], pa.float32()), float(np.float32(0.1))),
        ("integer", pa.array([2**62, 2**62]), 2**62),
        ("decimal", pa.array([Decimal("1.50")] * 2), Decimal("1.5")),
        ("timestamp", pa.array([datetime(1970, 1, 1, tzinfo=UTC)] * 2), 0),
    ],
)
def test_columns_of_own_type(kind: Any, values: pa.Array, expected: Any) -> None:
    own = attribute(kind, style="bounds", columns=("x_min", "x_max"))
    region = OrderedRegion((Interval(expected, expected),), False)
    for columns in ([values, values], [values]):
        one = own if len(columns) > 1 else attribute(kind)
        regions, numbers = read_regions(columns, one)
        assert regions == [region]
        assert numbers.tolist() == [0, 0]


def test_columns_of_sets() -> None:
    own = attribute("category", style="bounds")
    column = pa.array([["b", "a"], ["a", None], [None], ["b", "a"]], pa.list_(pa.string()))
    regions, numbers = read_regions([column], own)
    assert [regions[number] for number in numbers] == [
        CategoryRegion(("a", "b"), False),
        CategoryRegion(("a",), True),
        CategoryRegion((), True),
        CategoryRegion(("a", "b"), False),
    ]
    with pytest.raises(DataError):
        read_regions([pa.array([[]], pa.list_(pa.string()))], own)
    dates = attribute("date", style="bounds", rule="calendar")
    regions, _ = read_regions([pa.array([["1970-01-01", "1970-01-03"]])], dates)
    assert regions == [OrderedRegion((Interval(0, 0), Interval(2, 2)), False)]


def test_no_rows() -> None:
    for own, column in (
        (attribute("integer"), pa.array([], pa.string())),
        (attribute("category", style="bounds"), pa.array([], pa.list_(pa.string()))),
    ):
        regions, numbers = read_regions([column], own)
        assert not regions
        assert len(numbers) == 0


def test_booleans() -> None:
    own = attribute("boolean")
    assert read_label("{false, true}", own) == CategoryRegion(("false", "true"), False)
    regions, _ = read_regions([pa.array([True])], own)
    assert regions == [CategoryRegion(("true",), False)]


def test_means_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"output\.style: 'mean'"):
        read_regions([pa.array([1.5])], attribute("float", style="mean"))
    # Categories have labels under every style.
    assert read_regions([pa.array(["a"])], attribute("category", style="mean"))[0]
    assert issubclass(ConfigurationError, AnonsparkError)


def test_infinite_ends_are_read_as_such() -> None:
    (interval,) = read_label("1e999", attribute("float")).intervals  # type: ignore[union-attr, misc]
    assert interval.low == math.inf  # type: ignore[union-attr]


def manifest(style: str, columns: list[str], *described: tuple[str, str, Any]) -> dict[str, Any]:
    return {
        "configuration": {
            "output": {"style": style},
            "attributes": {name: {"hierarchy": hierarchy} for name, _, hierarchy in described},
        },
        "published": {
            "quasi_identifier_columns": columns,
            "quasi_identifiers": [
                {"name": name, "kind": kind, "type": "string"} for name, kind, _ in described
            ],
        },
    }


def test_attributes_of_a_manifest() -> None:
    document = manifest(
        "bounds",
        ["age_min", "age_max", "age_missing", "sex", "day_min", "day_max", "day_missing"],
        ("age", "integer", None),
        ("sex", "category", "/groups.csv"),
        ("day", "date", None),
    )
    document["configuration"]["missing"] = "category"
    assert [own.columns for own in published_attributes(Manifest(document))] == [
        ("age_min", "age_max", "age_missing"),
        ("sex",),
        ("day_min", "day_max", "day_missing"),
    ]
    document["published"]["quasi_identifier_columns"].remove("age_max")
    with pytest.raises(DataError, match="'age'"):
        published_attributes(Manifest(document))


def test_rules_of_a_manifest() -> None:
    rules = {"intervals": None, "origin": None, "prefix": None, "calendar": None}
    document = manifest(
        "interval",
        ["age", "code", "day"],
        ("age", "category", rules | {"intervals": [5.0]}),
        ("code", "category", rules | {"prefix": [1]}),
        ("day", "category", rules | {"calendar": ["year"]}),
    )
    found = [(own.kind, own.rule, own.type) for own in published_attributes(Manifest(document))]
    assert found == [
        ("decimal", "intervals", None),
        ("category", "prefix", None),
        ("date", "calendar", None),
    ]


def test_rows_of_many_columns_stay_different() -> None:
    # The product of the columns' sizes is 2^72: the first column must count nevertheless.
    columns = [pa.array(np.roll(np.arange(256), shift)) for shift in range(9)]
    first = pa.concat_arrays([columns[0], columns[0].take(pa.array(np.roll(np.arange(256), 1)))])
    others = [pa.concat_arrays([column, column]) for column in columns[1:]]
    rows, numbers = distinct_rows([first, *others])
    assert len(rows[0]) == 512
    assert rows[0].take(pa.array(numbers)) == first
