"""What groups are published as under full-domain recoding, and what they lose."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from cases import cases
from lattice_tables import quasi_identifier

from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.generalize.full_domain import FullDomainRecoding
from anonspark.layers.partition.lattice.domain import AttributeGroups

ROWS = [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"]]
OTHERS = [["e", "*"], ["f", "*"]]


def recoding(
    levels: tuple[int, int],
    *,
    has_missing: bool = False,
) -> FullDomainRecoding:
    attributes = (
        quasi_identifier("q", ROWS, has_missing=has_missing),
        quasi_identifier("r", OTHERS),
    )
    columns = Generalizer(attributes, "interval", tell_missing=has_missing).columns()
    return FullDomainRecoding(
        tuple(AttributeGroups(one, place) for place, one in enumerate(attributes)),
        levels,
        tuple(columns),
    )


def groups(*rows: tuple[int, int]) -> np.ndarray:
    return np.array(rows, np.int32)


@cases(__file__, "levels", "rows", "labels")
def test_labels_are_those_of_the_level(
    levels: tuple[int, int], rows: list[tuple[int, int]], labels: list[list[str]]
) -> None:
    assert [column.to_pylist() for column in recoding(levels).publish(groups(*rows))] == labels


def test_one_leaf_alone_is_published_at_the_level_too() -> None:
    rows = [["a", "x", "*"], ["b", "y", "*"], ["c", "y", "*"]]
    one = quasi_identifier("q", rows)
    columns = tuple(Generalizer((one,), "interval", tell_missing=False).columns())
    recoded = FullDomainRecoding((AttributeGroups(one, 0),), (1,), columns)
    only = np.array([[0], [1]], np.int32)
    assert [column.to_pylist() for column in recoded.publish(only)] == [["x", "y"]]
    figures = recoded.figures(only, np.array([5, 6], np.int64))
    # It tells as much as the value itself.
    assert figures.penalties.tolist() == [[0.0], [2 / 3]]
    assert figures.losses.tolist() == [[0.0], [1 / 3]]
    assert figures.levels.tolist() == [[1], [1]]


def test_missing_values_stay_apart_below_the_top() -> None:
    recoded = recoding((1, 0), has_missing=True)
    label, _ = recoded.publish(groups((0, 0), (2, 0)))
    assert label.to_pylist() == ["x", "missing"]
    figures = recoded.figures(groups((0, 0), (2, 0)), np.array([3, 4], np.int64))
    assert figures.penalties[:, 0].tolist() == [0.5, 0.0]
    assert figures.losses[:, 0].tolist() == [0.2, 0.0]


def test_the_top_takes_in_missing_values() -> None:
    recoded = recoding((2, 0), has_missing=True)
    label, _ = recoded.publish(groups((0, 0)))
    assert label.to_pylist() == ["* or missing"]
    figures = recoded.figures(groups((0, 0)), np.array([3], np.int64))
    assert figures.penalties[0].tolist() == [1.0, 0.0]
    assert figures.losses[0].tolist() == [4 / 5, 0.0]


def test_bounds_are_labels_for_values_may_be_those_of_records_left_out() -> None:
    figures = recoding((1, 1)).figures(groups((1, 0)), np.array([7], np.int64))
    assert [column.to_pylist() for column in figures.lowest] == [["y"], ["*"]]
    assert [column.to_pylist() for column in figures.highest] == [["y"], ["*"]]
    assert figures.lowest[0].type == pa.string()
    assert figures.sizes.tolist() == [7]


def test_an_attribute_without_any_value() -> None:
    one = QuasiIdentifier(
        "q", "category", pa.string(), 0, -1, has_missing=True, hierarchy=Hierarchy.from_rows([], 2)
    )
    own = AttributeGroups(one, 0)
    columns = tuple(Generalizer((one,), "interval", tell_missing=True).columns())
    for level in range(3):
        assert own.number(level) == 1
        assert own.leaves(level).tolist() == [1]
        assert own.of_codes(level).tolist() == [0]
        assert own.between(0, level).tolist() == [0]
        recoded = FullDomainRecoding((own,), (level,), columns)
        only = np.zeros((2, 1), np.int32)
        assert [column.to_pylist() for column in recoded.publish(only)] == [["missing"] * 2]
        figures = recoded.figures(only, np.array([3, 4], np.int64))
        assert figures.penalties.tolist() == figures.losses.tolist() == [[0.0], [0.0]]


def test_columns_and_figures_are_in_the_order_of_the_configuration() -> None:
    attributes = (quasi_identifier("r", OTHERS), quasi_identifier("q", ROWS))
    columns = tuple(Generalizer(attributes, "interval", tell_missing=False).columns())
    # The larger hierarchy comes first in a table of tuples.
    own = (AttributeGroups(attributes[1], 1), AttributeGroups(attributes[0], 0))
    recoded = FullDomainRecoding(own, (1, 0), columns)
    assert [column.to_pylist() for column in recoded.publish(groups((1, 0)))] == [["e"], ["y"]]
    figures = recoded.figures(groups((1, 0)), np.array([7], np.int64))
    assert figures.levels.tolist() == [[0, 1]]
    assert figures.penalties.tolist() == [[0.0, 0.5]]
    assert [column.to_pylist() for column in figures.lowest] == [["e"], ["y"]]
