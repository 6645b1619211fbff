"""Labels, bounds and loss of finished classes; every label is read back."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from arrow_types import arrow_type
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import (
    Kind,
    category_label,
    hierarchy_label,
    interval_labels,
    value_labels,
)
from anonspark.layers.generalize.classes import ClassFigures, Generalizer, Style

CATEGORIES = ("a", "b", "c, d", "", "missing", "{a, b}", "[x]", 'say "x"', " blank", "é")
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"


# Reading labels back ------------------------------------------------------------------------------


def read_category_label(label: str) -> list[str | None]:
    """Return the set of categories that a label stands for."""

    def read_one(text: str) -> tuple[str | None, str]:
        if text.startswith('"'):
            value, end = json.JSONDecoder().raw_decode(text)
            return value, text[end:]
        end = min(text.index(mark) for mark in (",", "}") if mark in text)
        return None if text[:end] == "missing" else text[:end], text[end:]

    if label == "missing":
        return [None]
    if label.startswith('"'):
        return [json.loads(label)]
    if not label.startswith("{"):
        return [label]
    values, rest = [], label[1:]
    while True:
        value, rest = read_one(rest)
        values.append(value)
        if rest == "}":
            return values
        assert rest.startswith(", ")
        rest = rest[2:]


def read_value(text: str, kind: Kind) -> Any:
    match kind:
        case "date":
            return datetime.date.fromisoformat(text)
        case "timestamp":
            return datetime.datetime.fromisoformat(text)
        case "float":
            return float(text)
        case "decimal":
            return Decimal(text)
        case _:
            return int(text)


def read_interval_label(label: str, kind: Kind) -> tuple[Any, Any, bool]:
    """Return the ends of an interval (None, None for missing values alone), and "or missing"."""
    if label == "missing":
        return None, None, True
    ends, with_missing = label.removesuffix(" or missing"), label.endswith(" or missing")
    if not ends.startswith("["):
        low = high = ends
    elif kind in ("date", "timestamp"):
        low, high = ends[1:-1].split("/")
    else:
        found = re.fullmatch(rf"\[({NUMBER})-({NUMBER})\]", ends)
        assert found
        low, high = found.groups()
    return read_value(low, kind), read_value(high, kind), with_missing


# Named labels -------------------------------------------------------------------------------------


def interval_of(values: list[Any], arrow_type: pa.DataType, kind: Kind, **more: bool) -> str:
    labels = value_labels(pa.array(values, arrow_type), kind)
    low, high = labels[:1], labels[1:]
    return str(interval_labels(low, high, kind, np.array([more.get("with_missing", False)]))[0])


MICROS = pa.timestamp("us")


@cases(__file__, "kind", "alias", "values", "label")
def test_interval_labels(kind: Kind, alias: str, values: list[str], label: str) -> None:
    column = pa.array(values).cast(arrow_type(alias))
    assert interval_of(column.to_pylist(), column.type, kind) == label


def test_interval_labels_with_missing_values() -> None:
    assert interval_of([1, 2], pa.int64(), "integer", with_missing=True) == "[1-2] or missing"
    assert interval_of([1, 1], pa.int64(), "integer", with_missing=True) == "1 or missing"


@cases(__file__, "values", "label")
def test_category_labels(values: list[str | None], label: str) -> None:
    assert category_label(values) == label
    assert read_category_label(label) == values


@given(
    st.lists(
        st.one_of(st.none(), st.text(), st.text(alphabet='{}[]", ab\\'), st.just("missing")),
        min_size=1,
        max_size=5,
        unique=True,
    )
)
def test_category_labels_are_read_back(values: list[str | None]) -> None:
    assert read_category_label(category_label(values)) == values


# Classes ------------------------------------------------------------------------------------------

Case = tuple[Kind, pa.DataType, Any, int]


def decimal_of(unit: int) -> Decimal:
    return Decimal(unit).scaleb(-3)


finite = {"allow_nan": False, "allow_infinity": False}
moments = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))

CASES: dict[str, Case] = {
    "int64": ("integer", pa.int64(), st.integers(-(2**63), 2**63 - 2), 0),
    "small integers": ("integer", pa.int64(), st.integers(-5, 5), 0),
    "int8": ("integer", pa.int8(), st.integers(-128, 127), 0),
    "float64": ("float", pa.float64(), st.floats(**finite), 0),
    "small floats": ("float", pa.float64(), st.floats(-1, 1), 0),
    "float32": ("float", pa.float32(), st.floats(width=32, **finite), 0),
    "decimal": ("decimal", pa.decimal128(20, 5), st.integers(-(10**12), 10**12).map(decimal_of), 3),
    "date": ("date", pa.date32(), st.dates(), 0),
    "timestamp": ("timestamp", MICROS, moments, 0),
    "boolean": ("boolean", pa.bool_(), st.booleans(), 0),
    "category": ("category", pa.string(), st.sampled_from(CATEGORIES), 0),
}
INTERVALS = {name: case for name, case in CASES.items() if case[0] not in ("boolean", "category")}
SETS = {name: case for name, case in CASES.items() if name not in INTERVALS}


def every_case(cases: dict[str, Case] = CASES) -> Callable[..., Any]:
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


def described(column: pa.Array, case: Case) -> QuasiIdentifier:
    kind, arrow_type, _, scale = case
    categories = CATEGORIES if kind == "category" else ()
    draft = QuasiIdentifier("x", kind, arrow_type, 0, -1, scale=scale, categories=categories)
    draft = replace(draft, has_missing=column.null_count > 0)
    present = draft.encode(column.drop_null())
    if not len(present):
        return draft
    return replace(draft, lowest=int(present.min()), highest=int(present.max()))


class Release:
    """One column in classes, and what becomes of it."""

    def __init__(self, classes: Sequence[Sequence[Any]], case: Case, style: Style) -> None:
        self.classes = classes
        column = pa.array([value for members in classes for value in members], case[1])
        self.quasi_identifier = described(column, case)
        self.shows_missing = column.null_count > 0
        generalizer = Generalizer((self.quasi_identifier,), style, self.shows_missing)
        starts = np.cumsum([0, *map(len, classes)]).astype(np.int64)
        codes = self.quasi_identifier.encode(column)[:, None]
        # In canonical order inside each class, as the tasks have them.
        for start, stop in itertools.pairwise(starts):
            codes[start:stop].sort(axis=0)
        columns, self.figures = generalizer.generalize(codes, starts)
        described_columns = generalizer.columns()
        for array, published in zip(columns, described_columns, strict=True):
            assert array.type == published.arrow_type
            assert len(array) == len(classes)
        self.columns = {
            published.name: array.to_pylist()
            for array, published in zip(columns, described_columns, strict=True)
        }

    def present(self) -> list[list[Any]]:
        return [[value for value in members if value is not None] for members in self.classes]

    @property
    def penalties(self) -> list[float]:
        return self.figures.penalties[:, 0].tolist()

    @property
    def losses(self) -> list[float]:
        return self.figures.losses[:, 0].tolist()


def require_sound_figures(release: Release) -> None:
    figures: ClassFigures = release.figures
    assert figures.sizes.tolist() == [len(members) for members in release.classes]
    for place, members in enumerate(release.classes):
        (penalty,), (loss,) = figures.penalties[place], figures.losses[place]
        assert 0 <= penalty <= 1
        assert 0 <= loss <= 1
        if len(set(members)) == 1:
            assert penalty == loss == 0
        # Of a wider range float64 cannot tell neighbouring integers apart: a share below 2^-53.
        elif release.quasi_identifier.step > 0 and release.quasi_identifier.range < 2**53:
            assert loss > 0
        low, high = figures.lowest[0][place].as_py(), figures.highest[0][place].as_py()
        present = [value for value in members if value is not None]
        assert (low is None) == (high is None) == (not present)
        if release.quasi_identifier.kind == "category":
            present = [CATEGORIES.index(value) for value in present]
            low, high = (CATEGORIES.index(v) if v is not None else None for v in (low, high))
        if present:
            assert (low, high) == (min(present), max(present))


def drawn_classes(data: st.DataObject, case: Case, *, missing: bool) -> list[list[Any]]:
    value = st.one_of(st.none(), case[2]) if missing else case[2]
    members = st.lists(value, min_size=1, max_size=6)
    return data.draw(st.lists(members, min_size=1, max_size=5), label="classes")


@every_case(INTERVALS)
@given(data=st.data(), missing=st.booleans())
def test_each_interval_is_that_of_its_records(
    case: Case, data: st.DataObject, missing: bool
) -> None:
    release = Release(
        drawn_classes(data, case, missing=missing and case[1] != pa.int8()), case, "interval"
    )
    require_sound_figures(release)
    for label, members in zip(release.columns["x"], release.classes, strict=True):
        low, high, with_missing = read_interval_label(label, case[0])
        assert with_missing == (None in members)
        present = [value for value in members if value is not None]
        if not present:
            assert low is None
        elif case[1] == pa.float32():
            # Written with as many digits as a float32 needs.
            assert (np.float32(low), np.float32(high)) == (min(present), max(present))
        else:
            assert (low, high) == (min(present), max(present))


@every_case(SETS)
@pytest.mark.parametrize("style", ["interval", "bounds", "mean"])
@given(data=st.data(), missing=st.booleans())
def test_each_set_is_that_of_its_records(
    case: Case, style: Style, data: st.DataObject, missing: bool
) -> None:
    release = Release(drawn_classes(data, case, missing=missing), case, style)
    require_sound_figures(release)
    for published, members in zip(release.columns["x"], release.classes, strict=True):
        values = published if style == "bounds" else read_category_label(published)
        assert len(values) == len(set(values))
        texts = {str(v).lower() if isinstance(v, bool) else v for v in members}
        assert set(values) == texts
        # In the order of the domain, missing values last.
        order = [*CATEGORIES, "false", "true", None]
        assert [order.index(value) for value in values] == sorted(map(order.index, values))


@every_case(INTERVALS)
@given(data=st.data(), missing=st.booleans())
def test_bounds_are_those_of_the_records(case: Case, data: st.DataObject, missing: bool) -> None:
    release = Release(
        drawn_classes(data, case, missing=missing and case[1] != pa.int8()), case, "bounds"
    )
    require_sound_figures(release)
    present = release.present()
    assert release.columns["x_min"] == [min(values, default=None) for values in present]
    assert release.columns["x_max"] == [max(values, default=None) for values in present]
    if release.shows_missing:
        assert release.columns["x_missing"] == [None in members for members in release.classes]


@every_case(INTERVALS)
@given(data=st.data(), missing=st.booleans())
def test_means_lie_inside_their_class(case: Case, data: st.DataObject, missing: bool) -> None:
    release = Release(
        drawn_classes(data, case, missing=missing and case[1] != pa.int8()), case, "mean"
    )
    require_sound_figures(release)
    for mean, values in zip(release.columns["x"], release.present(), strict=True):
        if not values:
            assert mean is None
        elif case[0] == "date":
            assert mean.toordinal() == sum(value.toordinal() for value in values) // len(values)
        elif case[0] == "timestamp":
            offsets = [value - datetime.datetime(1, 1, 1) for value in values]
            expected = sum(offsets, datetime.timedelta()) // datetime.timedelta(microseconds=1)
            micros = (mean - datetime.datetime(1, 1, 1)) // datetime.timedelta(microseconds=1)
            assert micros == expected // len(values)
        else:
            assert float(min(values)) <= mean <= float(max(values))
            # Shares of each value, so that the sum of huge ones stays finite.
            share = sum(float(value) / len(values) for value in values)
            size = max(abs(float(value)) for value in values)
            assert mean == pytest.approx(share, rel=1e-12, abs=size * 1e-12 + 1e-320)
    if release.shows_missing:
        assert release.columns["x_missing"] == [None in members for members in release.classes]


# Penalties and losses -----------------------------------------------------------------------------


@every_case(INTERVALS)
@given(data=st.data())
def test_numbers_among_missing_values_lose_everything(case: Case, data: st.DataObject) -> None:
    value = case[2].filter(lambda drawn: drawn != 127)
    some = data.draw(st.lists(value, min_size=1, max_size=4), label="mixed with missing")
    others = data.draw(st.lists(value, min_size=1, max_size=4), label="others")
    release = Release([[*some, None], others, [None, None]], case, "interval")
    assert release.penalties[0] == 1
    assert release.penalties[2] == 0
    require_sound_figures(release)


def test_a_missing_value_counts_beside_a_constant_too_large_for_a_distance() -> None:
    # 1e17 + 2 is 1e17: the position of missing values coincides with that of the others.
    release = Release([[1e17, None], [1e17]], CASES["float64"], "interval")
    assert (release.penalties, release.losses) == ([1, 0], [1, 0])


INTEGERS = CASES["small integers"]


def test_penalty_is_the_share_of_the_global_range() -> None:
    release = Release([[0, 10], [4], [2, 3, 7]], INTEGERS, "interval")
    assert release.penalties == [1, 0, 0.5]


def test_penalty_of_categories_is_the_share_of_the_order() -> None:
    release = Release([["a", "b"], ["a", "é"], ["", ""]], CASES["category"], "interval")
    assert release.penalties == [pytest.approx(1 / 9), 1, 0]


def test_penalty_of_a_constant_column_is_nothing() -> None:
    release = Release([[7, 7], [7]], INTEGERS, "interval")
    assert (release.penalties, release.losses) == ([0, 0], [0, 0])


@given(st.lists(st.lists(st.integers(-1000, 1000), min_size=1, max_size=5), min_size=1, max_size=5))
def test_loss_of_integers_counts_the_values_covered(classes: list[list[int]]) -> None:
    # ILoss (Xiao and Tao 2006): (values covered - 1) / values of the domain.
    release = Release(classes, INTEGERS, "interval")
    everything = [value for members in classes for value in members]
    domain = max(everything) - min(everything) + 1
    expected = [(max(members) - min(members)) / domain for members in classes]
    np.testing.assert_allclose(release.losses, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("case", "classes", "losses"),
    [
        pytest.param(
            "decimal", [[decimal_of(0), decimal_of(9)], [decimal_of(3)] * 2], [0.9, 0], id="decimal"
        ),
        pytest.param(
            "date",
            [[datetime.date(2020, 1, 1), datetime.date(2020, 1, 4)], [datetime.date(2020, 1, 10)]],
            [0.3, 0],
            id="date",
        ),
        pytest.param(
            "float64", [[0.0, 10.0], [2.0, 7.0]], [1, 0.5], id="float, a continuous domain"
        ),
        pytest.param("boolean", [[False, True], [True]], [0.5, 0], id="boolean"),
        pytest.param("category", [["a", "é"], ["b", "", "b"], ["a"]], [0.1, 0.1, 0], id="category"),
        pytest.param("category", [["a", None], ["b"]], [1 / 3, 0], id="category with missing"),
        pytest.param(
            "small integers", [[0, 8, None], [0, 4]], [8 / 9, 4 / 9], id="integers with missing"
        ),
    ],
)
def test_loss(case: str, classes: list[list[Any]], losses: list[float]) -> None:
    np.testing.assert_allclose(Release(classes, CASES[case], "interval").losses, losses, rtol=1e-12)


# Hierarchies --------------------------------------------------------------------------------------


@cases(__file__, "label", "told")
def test_hierarchy_labels(label: str, told: str) -> None:
    assert hierarchy_label(label, with_missing=False) == told
    assert hierarchy_label(label, with_missing=True) == f"{told} or missing"


ROWS = {
    # Of two groups, one has a single leaf.
    "a": ("A", "AB", "*"),
    "b": ("B", "AB", "*"),
    "c": ("B", "AB", "*"),
    "missing": ("D", "D", "*"),
    "e": ("E", "EF", "*"),
    "f": ("F", "EF", "*"),
}
TREE = Hierarchy.from_rows([(leaf, *groups) for leaf, groups in ROWS.items()])


def tree_release(
    classes: Sequence[Sequence[str | None]], style: Style = "interval"
) -> tuple[list[Any], ClassFigures]:
    """Generalize classes of one attribute that has the hierarchy TREE."""
    has_missing = any(None in members for members in classes)
    quasi_identifier = QuasiIdentifier(
        "x", "category", pa.string(), 0, 5, 0, TREE.leaves, has_missing, hierarchy=TREE
    )
    column = pa.array([value for members in classes for value in members], pa.string())
    starts = np.cumsum([0, *map(len, classes)]).astype(np.int64)
    codes = quasi_identifier.encode(column)[:, None]
    generalizer = Generalizer((quasi_identifier,), style, has_missing)
    (published,), figures = generalizer.generalize(codes, starts)
    (described_column,) = generalizer.columns()
    assert published.type == described_column.arrow_type
    return published.to_pylist(), figures


@pytest.mark.parametrize("style", ["interval", "mean"])
def test_a_class_is_published_as_its_lowest_common_ancestor(style: Style) -> None:
    classes = [["a", "a"], ["c", "b"], ["a", "c"], ["missing"], ["missing", "e"], ["f", "e"]]
    labels, figures = tree_release(classes, style)
    assert labels == ["a", "B", "AB", '"missing"', "*", "EF"]
    np.testing.assert_allclose(figures.penalties[:, 0], [0, 2 / 6, 3 / 6, 0, 1, 2 / 6])
    np.testing.assert_allclose(figures.losses[:, 0], [0, 1 / 6, 2 / 6, 0, 5 / 6, 1 / 6])
    assert figures.lowest[0].to_pylist() == ["a", "b", "a", "missing", "missing", "e"]
    assert figures.highest[0].to_pylist() == ["a", "c", "c", "missing", "e", "f"]


def test_a_class_of_a_hierarchy_with_missing_values() -> None:
    labels, figures = tree_release([["c", None, "b"], [None, None], ["missing", None], ["e"]])
    assert labels == ["B or missing", "missing", '"missing" or missing', "e"]
    assert figures.penalties[:, 0].tolist() == [1, 0, 1, 0]
    np.testing.assert_allclose(figures.losses[:, 0], [2 / 7, 0, 1 / 7, 0])
    assert figures.lowest[0].to_pylist() == ["b", None, "missing", "e"]


def test_bounds_of_a_hierarchy_are_sets() -> None:
    sets, figures = tree_release([["c", None, "a", "c"], ["f"]], "bounds")
    assert sets == [["a", "c", None], ["f"]]
    # What is lost does not depend on the style.
    assert figures.penalties[:, 0].tolist() == [1, 0]


def test_a_hierarchy_over_nothing_but_missing_values() -> None:
    empty = Hierarchy.from_rows([], height=2)
    quasi_identifier = QuasiIdentifier(
        "x", "category", pa.string(), 0, -1, has_missing=True, hierarchy=empty
    )
    codes = quasi_identifier.encode(pa.nulls(2, pa.string()))[:, None]
    generalizer = Generalizer((quasi_identifier,), "interval", shows_missing=True)
    (labels,), figures = generalizer.generalize(codes, np.array([0, 1, 2]))
    assert labels.to_pylist() == ["missing", "missing"]
    assert (figures.penalties == 0).all()
    assert (figures.losses == 0).all()


@given(
    st.lists(
        st.lists(st.one_of(st.none(), st.sampled_from(list(ROWS))), min_size=1, max_size=5),
        min_size=1,
        max_size=5,
    )
)
def test_any_class_of_a_hierarchy(classes: list[list[str | None]]) -> None:
    labels, figures = tree_release(classes)
    with_missing = any(None in members for members in classes)
    for members, label, (penalty,), (loss,) in zip(
        classes, labels, figures.penalties, figures.losses, strict=True
    ):
        present = {value for value in members if value is not None}
        if not present:
            assert (label, penalty, loss) == ("missing", 0, 0)
            continue
        paths = [(value, *ROWS[value]) for value in present]
        (ancestor, *_) = (column[0] for column in zip(*paths, strict=True) if len(set(column)) == 1)
        leaves = [leaf for leaf, groups in ROWS.items() if ancestor in (leaf, *groups)]
        quoted = f'"{ancestor}"' if ancestor == "missing" else ancestor
        some_missing = None in members
        assert label == (f"{quoted} or missing" if some_missing else quoted)
        share = len(leaves) / len(ROWS) if len(leaves) > 1 else 0
        assert penalty == (1 if some_missing else share)
        expected = (len(leaves) + some_missing - 1) / (len(ROWS) + with_missing)
        assert loss == pytest.approx(expected)


# Columns ------------------------------------------------------------------------------------------


@cases(__file__, "style", "shows_missing", "expected")
def test_published_columns(style: Style, shows_missing: bool, expected: list[str]) -> None:
    quasi_identifiers = (
        QuasiIdentifier("age", "integer", pa.int32(), 17, 90),
        QuasiIdentifier("born", "date", pa.date32(), 0, 100),
        QuasiIdentifier("sex", "category", pa.string(), 0, 1, categories=("f", "m")),
    )
    columns = Generalizer(quasi_identifiers, style, shows_missing).columns()
    assert [f"{column.name} {column.arrow_type}" for column in columns] == expected


def test_several_attributes_and_classes_at_once() -> None:
    quasi_identifiers = (
        QuasiIdentifier("age", "integer", pa.int64(), 20, 60),
        QuasiIdentifier("sex", "category", pa.string(), 0, 1, categories=("f", "m")),
    )
    generalizer = Generalizer(quasi_identifiers, "interval", shows_missing=False)
    codes = np.array([[20, 0], [30, 1], [40, 1], [60, 1], [60, 1]])
    columns, figures = generalizer.generalize(codes, np.array([0, 2, 4, 5]))
    assert [column.to_pylist() for column in columns] == [
        ["[20-30]", "[40-60]", "60"],
        ["{f, m}", "m", "m"],
    ]
    assert figures.sizes.tolist() == [2, 2, 1]
    assert figures.penalties.tolist() == [[0.25, 1], [0.5, 0], [0, 0]]
    assert [column.to_pylist() for column in figures.lowest] == [[20, 40, 60], ["f", "m", "m"]]
    assert [column.to_pylist() for column in figures.highest] == [[30, 60, 60], ["m", "m", "m"]]
