"""Hierarchies: the tree, the files that it is read from, and the rules that build one."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import pickle
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from places import require_data

from anonspark.core.hierarchies.files import parse_hierarchy
from anonspark.core.hierarchies.hierarchy import (
    Hierarchy,
    beginning_hierarchy,
    calendar_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)
from anonspark.errors import ConfigurationError

EDUCATION = """\
Bachelors;Undergraduate;Higher education;*
11th;High School;Secondary education;*
Some-college;Undergraduate;Higher education;*
Masters;Graduate;Higher education;*
9th;High School;Secondary education;*
"""


def parsed(text: str) -> Hierarchy:
    return parse_hierarchy(text, "place")


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        parsed(text)
    assert all(problem.startswith("place: ") for problem in caught.value.problems)
    assert all(len(problem.splitlines()) == 1 for problem in caught.value.problems)
    return tuple(problem.removeprefix("place: ") for problem in caught.value.problems)


# A slow reference ---------------------------------------------------------------------------------


class Reference:
    """A hierarchy as its rows, with every question answered by looking at all of them."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        self.rows = {row[0]: list(row) for row in rows}
        self.height = len(rows[0]) - 1

    def below(self, level: int, value: str) -> set[str]:
        """Return the values that share a value's ancestor at a level."""
        group = self.rows[value][level]
        return {other for other, row in self.rows.items() if row[level] == group}

    def lowest_common_level(self, values: set[str]) -> int:
        some = next(iter(values))
        return next(level for level in range(self.height + 1) if values <= self.below(level, some))


def require_agreement(hierarchy: Hierarchy, rows: Sequence[Sequence[str]]) -> None:
    """Compare a hierarchy with its rows: everything but the common ancestors."""
    reference = Reference(rows)
    assert sorted(hierarchy.leaves) == sorted(reference.rows)
    assert hierarchy.height == reference.height
    codes = np.arange(len(hierarchy.leaves))
    for level in range(hierarchy.height + 1):
        expected = [reference.rows[leaf][level] for leaf in hierarchy.leaves]
        assert hierarchy.labels(level, codes).tolist() == expected
        # Neighbours: each group is one run.
        assert len(list(itertools.groupby(expected))) == len(set(expected))
        counts = [len(reference.below(level, leaf)) for leaf in hierarchy.leaves]
        assert hierarchy.leaf_counts(level, codes).tolist() == counts
    require_tree(hierarchy)


def require_tree(hierarchy: Hierarchy) -> None:
    """Check the list of nodes: bottom up, and the same ancestors as by label."""
    parents, heights = hierarchy.tree()
    assert parents.dtype == heights.dtype == np.int64
    n = len(hierarchy.leaves)
    assert heights[:n].tolist() == [0] * n
    assert heights[-1] == hierarchy.height
    assert parents[-1] == -1
    inner = parents[:-1]
    assert (inner > np.arange(len(inner))).all()
    assert (heights[inner] == heights[:-1] + 1).all()
    nodes = np.arange(n)
    for level in range(hierarchy.height + 1):
        assert hierarchy.nodes(level, np.arange(n)).tolist() == nodes.tolist()
        nodes = parents[nodes]


@st.composite
def trees(draw: st.DrawFn) -> list[list[str]]:
    """Draw the rows of a hierarchy, in any order."""
    height = draw(st.integers(1, 4))
    paths: list[tuple[int, ...]] = [()]
    for _ in range(height):
        paths = [(*path, child) for path in paths for child in range(draw(st.integers(1, 3)))]
    rows = [
        ["/".join(map(str, path[:depth])) or "*" for depth in range(height, -1, -1)]
        for path in paths
    ]
    return draw(st.permutations(rows))


@given(trees())
def test_any_tree(rows: list[list[str]]) -> None:
    require_agreement(Hierarchy.from_rows(rows), rows)


@given(trees(), st.data())
def test_lowest_common_ancestors(rows: list[list[str]], data: st.DataObject) -> None:
    hierarchy, reference = Hierarchy.from_rows(rows), Reference(rows)
    code = st.integers(0, len(rows) - 1)
    sets = data.draw(st.lists(st.sets(code, min_size=1), max_size=6))
    lows = np.array([min(codes) for codes in sets], np.int64)
    highs = np.array([max(codes) for codes in sets], np.int64)
    levels = hierarchy.lowest_common_level(lows, highs)
    assert levels.dtype == np.int64
    values = [{hierarchy.leaves[code] for code in codes} for codes in sets]
    expected = [reference.lowest_common_level(some) for some in values]
    assert levels.tolist() == expected
    counts = hierarchy.leaf_counts(levels, lows).tolist()
    labels = hierarchy.labels(levels, lows).tolist()
    for some, level, count, label in zip(values, expected, counts, labels, strict=True):
        value = next(iter(some))
        assert count == len(reference.below(level, value))
        assert label == reference.rows[value][level]


@given(trees(), st.sampled_from(";,\t|"), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_written_is_read(
    rows: list[list[str]], delimiter: str, end: str, last_end: bool
) -> None:
    rows = [[f"{cell}. {delimiter}" if cell != "*" else cell for cell in row] for row in rows]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=end).writerows(rows)
    written = text.getvalue() if last_end else text.getvalue().removesuffix(end)
    stripped = [[cell.strip() for cell in row] for row in rows]
    require_agreement(parsed(written), stripped)


def test_children_stand_in_the_order_of_their_first_appearance() -> None:
    hierarchy = parsed(EDUCATION)
    assert hierarchy.leaves == ("Bachelors", "Some-college", "Masters", "11th", "9th")
    assert [level.labels for level in hierarchy.levels] == [
        ("Undergraduate", "Graduate", "High School"),
        ("Higher education", "Secondary education"),
        ("*",),
    ]
    assert [level.starts for level in hierarchy.levels] == [(0, 2, 3), (0, 3), (0,)]
    parents, heights = hierarchy.tree()
    assert parents.tolist() == [5, 5, 6, 7, 7, 8, 8, 9, 10, 10, -1]
    assert heights.tolist() == [0] * 5 + [1] * 3 + [2] * 2 + [3]


def test_a_hierarchy_travels() -> None:
    hierarchy = parsed(EDUCATION)
    small = len(pickle.dumps(hierarchy))
    hierarchy.labels(1, np.arange(5))
    hierarchy.tree()
    copy = pickle.loads(pickle.dumps(hierarchy))  # noqa: S301
    assert copy == hierarchy
    assert hash(copy) == hash(hierarchy)
    assert copy.labels(2, np.array([4])).tolist() == ["Secondary education"]
    # The arrays that are derived stay behind.
    assert len(pickle.dumps(hierarchy)) == small


# Files --------------------------------------------------------------------------------------------


FILES = [
    *(f"adult_full_hierarchy_{name}" for name in ("capital-gain", "capital-loss")),
    *(f"adult_full_hierarchy_{name}" for name in ("hours-per-week", "relationship")),
    *(f"adult_hierarchy_{name}" for name in ("age", "education", "marital-status")),
    *(f"adult_hierarchy_{name}" for name in ("native-country", "occupation", "race")),
    *(f"adult_hierarchy_{name}" for name in ("salary-class", "sex", "workclass")),
    *(f"fars_hierarchy_{name}" for name in ("iage", "ideathday", "ideathmon", "ihispanic")),
    *(f"fars_hierarchy_{name}" for name in ("iinjury", "irace", "isex", "istatenum")),
]


@pytest.mark.parametrize("name", FILES)
def test_real_files(data_directory: Path, name: str) -> None:
    require_data(data_directory / "hierarchies")
    text = (data_directory / "hierarchies" / f"{name}.csv").read_bytes().decode()
    rows = list(csv.reader(io.StringIO(text), delimiter=";"))
    require_agreement(parsed(text), rows)


def test_no_real_file_is_forgotten(data_directory: Path) -> None:
    require_data(data_directory / "hierarchies")
    found = {path.stem for path in (data_directory / "hierarchies").glob("*.csv")}
    assert found == set(FILES)


def test_a_real_file_in_full(data_directory: Path) -> None:
    path = data_directory / "hierarchies" / "adult_full_hierarchy_hours-per-week.csv"
    require_data(path)
    hierarchy = parsed(path.read_bytes().decode())
    assert hierarchy.leaves[:3] == ("1", "2", "3")
    assert [len(level.labels) for level in hierarchy.levels] == [10, 4, 2, 1]
    assert hierarchy.levels[0].labels[0] == "[1; 10["
    # 9 and 10 share the second level.
    assert hierarchy.lowest_common_level(np.array([8]), np.array([9])).tolist() == [2]


@cases(__file__, "text", "leaves")
def test_accepted(text: str, leaves: list[str]) -> None:
    assert list(parsed(text).leaves) == leaves


def test_a_group_may_have_the_name_of_its_only_value() -> None:
    hierarchy = parsed("99;99;99;*\n0;0-8;0-16;*\n1;0-8;0-16;*\n")
    assert hierarchy.leaves == ("99", "0", "1")
    assert [level.labels for level in hierarchy.levels[:2]] == [("99", "0-8"), ("99", "0-16")]


@cases(__file__, "text", "expected")
def test_refused(text: str, expected: list[str]) -> None:
    assert list(problems(text)) == expected


def test_all_problems_at_once_in_the_order_of_the_lines() -> None:
    told = problems("a;x;u;*\nb;x;v;*\nc;;u;*\na;x;u;*\nd;y;u;?\ne;*\nf;y;u;*\n")
    assert [problem.partition(":")[0] for problem in told] == [
        f"line {line}" for line in (2, 3, 4, 5, 6)
    ]


def test_of_many_problems_some_are_listed() -> None:
    lines = ["a;x;*", *(f"v{number};;*" for number in range(25))]
    told = problems("\n".join(lines))
    assert len(told) == 11
    assert told[-1] == "15 more problems of this kind. Correct the file"


def test_line_numbers_count_lines_inside_quotes() -> None:
    (told,) = problems('"a\nb";x;*\r\n\r\nc;x;*\nd;*\n')
    assert told.startswith("line 5: found 2 columns")


def require_lines(error: ConfigurationError) -> None:
    assert error.problems
    assert all(len(problem.splitlines()) == 1 for problem in error.problems)


@given(st.text(alphabet='ab*;,|\t"\r\n \ufeff', max_size=40))
def test_any_text_is_a_hierarchy_or_a_configuration_error(text: str) -> None:
    try:
        hierarchy = parsed(text)
    except ConfigurationError as error:
        require_lines(error)
    else:
        require_tree(hierarchy)


@given(st.lists(st.lists(st.sampled_from("abc*"), min_size=3, max_size=3), min_size=1, max_size=6))
def test_what_is_accepted_is_sound(rows: list[list[str]]) -> None:
    sets = [
        (label, frozenset(row[0] for row in rows if row[level] == label))
        for level in range(3)
        for label in {row[level] for row in rows}
    ]
    sound = (
        len({row[0] for row in rows}) == len(rows)
        and len({row[2] for row in rows}) == 1
        and len({label for label, _ in sets}) == len(set(sets))
    )
    text = "\n".join(";".join(row) for row in rows)
    if sound:
        require_agreement(parsed(text), rows)
    else:
        problems(text)


# Rules ----------------------------------------------------------------------------------------


RULES: dict[str, Callable[..., Hierarchy]] = {
    "intervals": interval_hierarchy,
    "prefix": prefix_hierarchy,
    "keep": beginning_hierarchy,
    "calendar": calendar_hierarchy,
}


@cases(__file__, "rule", "values", "arguments", "leaves", "levels")
def test_rules_make_these_groups(
    rule: str, values: list[str], arguments: list[Any], leaves: list[str], levels: list[list[str]]
) -> None:
    hierarchy = RULES[rule](values, *arguments)
    assert hierarchy.leaves == tuple(leaves)
    assert [list(level.labels) for level in hierarchy.levels] == levels


@given(
    st.sets(st.decimals(-(10**6), 10**6, places=3).map(str), max_size=20),
    st.sampled_from([[1.0], [0.25, 1.5], [5.0, 10.0, 20.0], [1e-3, 1e6]]),
    st.sampled_from([0.0, -7.0, 0.1, 1e9]),
)
def test_values_lie_in_their_intervals(
    values: set[str], widths: list[float], origin: float
) -> None:
    unique = list({Fraction(value): value for value in values}.values())
    hierarchy = interval_hierarchy(unique, widths, origin)
    assert list(hierarchy.leaves) == sorted(unique, key=Fraction)
    assert hierarchy.height == len(widths) + 1
    codes = np.arange(len(unique))
    for level, width in enumerate(widths, start=1):
        for value, label in zip(hierarchy.leaves, hierarchy.labels(level, codes), strict=True):
            assert label[0] == label[-1] == "["
            low, high = read_interval(label)
            assert low <= Fraction(value) < high
            assert high - low == Fraction(repr(width))
            assert (low - Fraction(repr(origin))) % Fraction(repr(width)) == 0
    if unique:
        require_tree(hierarchy)
        assert set(hierarchy.labels(hierarchy.height, codes)) == {"*"}


def read_interval(label: str) -> tuple[Fraction, Fraction]:
    inner = label[1:-1]
    middle = inner.index("-", 1)
    return Fraction(inner[:middle]), Fraction(inner[middle + 1 :])


@given(
    st.sets(st.text(alphabet="01é", min_size=2, max_size=5), min_size=1, max_size=20),
    st.sampled_from([[1], [1, 2, 3], [2, 4, 9]]),
)
def test_masks(values: set[str], masked: list[int]) -> None:
    rows = [
        [value, *("".join(c if i < len(value) - m else "*" for i, c in enumerate(value))
                  for m in masked), "*"]
        for value in values
    ]  # fmt: skip
    hierarchy = prefix_hierarchy(values, masked)
    require_agreement(hierarchy, rows)
    assert [len(leaf) for leaf in hierarchy.leaves] == sorted(map(len, values))


@given(
    st.sets(st.dates(), min_size=1, max_size=20),
    st.sampled_from([["year"], ["quarter"], ["month", "year"], ["month", "quarter", "year"]]),
)
def test_dates_keep_their_order(days: set[datetime.date], levels: list[str]) -> None:
    labels = {
        "month": lambda day: day.isoformat()[:7],
        "quarter": lambda day: f"{day.isoformat()[:4]}-Q{(day.month - 1) // 3 + 1}",
        "year": lambda day: day.isoformat()[:4],
    }
    rows = [[day.isoformat(), *(labels[level](day) for level in levels), "*"] for day in days]
    hierarchy = calendar_hierarchy([day.isoformat() for day in days], levels)  # type: ignore[arg-type]
    require_agreement(hierarchy, rows)
    assert list(hierarchy.leaves) == [day.isoformat() for day in sorted(days)]


@pytest.mark.parametrize(
    "hierarchy",
    [
        interval_hierarchy([], [5, 10], top=90),
        prefix_hierarchy([], [1, 2]),
        beginning_hierarchy([], [3, 1]),
        calendar_hierarchy([], ["month", "year"]),
    ],
    ids=["intervals", "prefix", "keep", "calendar"],
)
def test_rules_over_nothing(hierarchy: Hierarchy) -> None:
    none = np.array([], np.int64)
    assert (hierarchy.leaves, hierarchy.height) == ((), 3)
    assert hierarchy.lowest_common_level(none, none).tolist() == []
    assert hierarchy.labels(none, none).tolist() == []
    assert hierarchy.tree().parents.tolist() == []
