"""The hierarchies of the configuration: read from their files, or built over the values."""

from __future__ import annotations

from collections.abc import Sequence

from anonspark.config import Configuration, HierarchyRule
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.hierarchies.rules import (
    MASK,
    calendar_hierarchy,
    interval_hierarchy,
    prefix_hierarchy,
)
from anonspark.engine.files import Files
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import InputColumn
from anonspark.errors import DataError


def read_hierarchies(files: Files, configuration: Configuration) -> dict[str, Hierarchy]:
    """Read the hierarchies that come from files, of quasi-identifiers and of sensitive attributes.

    Parameters
    ----------
    files : Files
    configuration : Configuration

    Returns
    -------
    dict
        Attribute name to hierarchy, in configuration order.

    Raises
    ------
    ConfigurationError
        With everything that is wrong with the files.

    Notes
    -----
    No job: the files are read on the driver.
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
    """Return the hierarchy of a quasi-identifier, which knows all values that occur.

    Parameters
    ----------
    column : InputColumn
    present : sequence of str
        The different values that occur.

    Returns
    -------
    Hierarchy or None
        None where none is configured.

    Raises
    ------
    DataError
        If values lack in the file, or do not fit the rule.
    """
    where = f"attributes.{column.name}.hierarchy"
    if column.hierarchy is not None:
        lacking = len(set(present).difference(column.hierarchy.leaves))
        if lacking:
            raise DataError(
                f"{where}: {column.attribute.hierarchy} lacks {lacking:,} of the column's "
                f"{len(present):,} different values; add them to the file, or name those that "
                "mean missing in input.missing_markers"
            )
        return column.hierarchy
    rule = column.attribute.hierarchy
    if not isinstance(rule, HierarchyRule):
        return None
    if rule.intervals is not None:
        return interval_hierarchy(present, rule.intervals, rule.origin or 0)
    if rule.calendar is not None:
        return calendar_hierarchy(present, rule.calendar)
    _require_maskable(where, present)
    return prefix_hierarchy(present, rule.prefix or ())


def _require_maskable(where: str, present: Sequence[str]) -> None:
    """Check that no mask reads like a value, nor like the label of everything."""
    with_mask = sum(MASK in value for value in present)
    if with_mask:
        raise DataError(
            f"{where}: {with_mask:,} of the column's {len(present):,} different values hold the "
            f"sign {MASK}, which masks characters; correct them, or use a hierarchy file"
        )
    single = sum(len(value) == 1 for value in present)
    if 0 < single < len(present):
        raise DataError(
            f"{where}: {single:,} of the column's {len(present):,} different values have one "
            f"character only, whose mask {MASK} is the label of everything; correct them, name "
            "those that mean missing in input.missing_markers, or use a hierarchy file"
        )
