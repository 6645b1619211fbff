"""The hierarchies of the configuration: read from their files, or built over the values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from operator import ge, le
from typing import Any

import numpy as np

from anonspark.config import Configuration, HierarchyRule
from anonspark.core.grids import day_of, day_text
from anonspark.core.hierarchies.hierarchy import (
    MASK,
    TOP,
    Hierarchy,
    beginning_hierarchy,
    calendar_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)
from anonspark.core.labels import Kind, open_marks
from anonspark.engine.files import Files
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import InputColumn
from anonspark.errors import DataError

# Leaves of a hierarchy are texts on the driver and in every task.
_MOST_OF_RANGE = 100_000


def read_hierarchies(files: Files, configuration: Configuration) -> dict[str, Hierarchy]:
    """Read the hierarchies that come from files, by attribute, in configuration order.

    Raises ConfigurationError with all problems of the files. No job: the driver reads them.
    """
    coding = configuration.agreed_coding
    return read_hierarchy_files(
        files,
        {
            name: attribute.hierarchy
            for name, attribute in configuration.attributes.items()
            if isinstance(attribute.hierarchy, str)
        },
        None if coding is None else coding.digests,
    )


def match_hierarchy(column: InputColumn, present: Sequence[str]) -> Hierarchy | None:
    """Return the hierarchy of a quasi-identifier for all its values, or None without one.

    Raises DataError if the file lacks values, or they do not fit the rule.
    """
    where = f"attributes.{column.name}.hierarchy"
    if column.hierarchy is not None:
        lacking = len(set(present).difference(column.hierarchy.leaves))
        if lacking:
            raise DataError(
                f"{where}: {column.attribute.hierarchy} lacks {lacking:,} of the column's "
                f"{len(present):,} different values. Add them to the file, or name those that "
                "mean missing in input.missing_markers"
            )
        return column.hierarchy
    rule = column.attribute.hierarchy
    if not isinstance(rule, HierarchyRule):
        return None
    if rule.intervals is not None or rule.calendar is not None:
        values = _all_of_range(column, present)
        outer = leaves_beyond(column, values)
        values = [value for value in values if value not in outer]
        top = column.attribute.top if rule.top is None else rule.top
        built = (
            calendar_hierarchy(values, rule.calendar)
            if rule.calendar is not None
            else interval_hierarchy(values, rule.intervals or (), rule.origin or 0, top)
        )
        return _with_outer(built, set(outer.values()), open_marks(_kind_of(column))[0])
    _require_maskable(where, present, alone=rule.keep is None)
    if rule.keep is not None:
        return beginning_hierarchy(present, rule.keep)
    return prefix_hierarchy(present, rule.prefix or ())


def _kind_of(column: InputColumn) -> Kind:
    return "date" if column.attribute.hierarchy_kind == "calendar" else "decimal"


def leaves_beyond(column: InputColumn, values: Sequence[str]) -> dict[str, str]:
    """Return the leaf of each value from ``bottom`` on downwards, or from ``top`` on upwards."""
    attribute, kind = column.attribute, _kind_of(column)
    pairs = zip((attribute.bottom, attribute.top), open_marks(kind), (le, ge), strict=True)
    return {
        value: f"{end}{mark}"
        for end, mark, is_beyond in pairs
        for value in values
        if end is not None and is_beyond(_sortable(value, kind), _sortable(str(end), kind))
    }


def _sortable(text: str, kind: Kind) -> Any:
    return tuple(map(int, text.rsplit("-", 2))) if kind == "date" else Fraction(text)


def _with_outer(hierarchy: Hierarchy, outer: set[str], bottom_mark: str) -> Hierarchy:
    """Add leaves that are groups by themselves at all levels but the top."""
    if not outer:
        return hierarchy
    codes = np.arange(len(hierarchy.leaves))
    levels = [hierarchy.labels(level, codes).tolist() for level in range(hierarchy.height + 1)]
    rows = [list(row) for row in zip(*levels, strict=True)]
    for leaf in outer:
        row = [*[leaf] * hierarchy.height, TOP]
        rows.insert(0 if leaf.endswith(bottom_mark) else len(rows), row)
    return Hierarchy.from_rows(rows, hierarchy.height)


def _all_of_range(column: InputColumn, present: Sequence[str]) -> Sequence[str]:
    """Return the whole numbers or days of a declared range, or the values that occur.

    So what a group covers does not depend on who else is in the table. For other numbers, and for
    ranges with very many values, only those that occur count.
    """
    bounds = column.attribute.range
    if bounds is None or any(isinstance(bound, float) for bound in bounds):
        return present
    days = isinstance(bounds[0], str)
    low, high = (day_of(bound) if days else int(bound) for bound in bounds)
    if high - low >= _MOST_OF_RANGE:
        return present
    values = [day_text(index) if days else str(index) for index in range(low, high + 1)]
    return values if set(present) <= set(values) else present


def _require_maskable(where: str, present: Sequence[str], *, alone: bool) -> None:
    """Raise DataError if a mask could be read as a value, or as the label of everything."""
    with_mask = sum(MASK in value for value in present)
    if with_mask:
        raise DataError(
            f"{where}: {with_mask:,} of the column's {len(present):,} different values hold the "
            f"sign {MASK}, which masks characters. Correct them, or use a hierarchy file"
        )
    single = sum(len(value) == 1 for value in present)
    if alone and 0 < single < len(present):
        raise DataError(
            f"{where}: {single:,} of the column's {len(present):,} different values have one "
            f"character only, whose mask {MASK} is the label of everything. Correct them, name "
            "those that mean missing in input.missing_markers, or use a hierarchy file"
        )
