"""Report errors in the values, and their ranges."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.grids import (
    Bound,
    UnfitGridError,
    UnfitRangeError,
    bound_numbers,
    day_of,
    decimal_places,
    default_grid,
    number_of,
    read_grid,
)
from anonspark.engine.protocol import InputColumn
from anonspark.errors import ConfigurationError, DataError
from anonspark.layers.prepare.hierarchies import leaves_beyond, match_hierarchy

_LOGGER = logging.getLogger("anonspark")

_MOST_DIGITS = 18
_MOST_CATEGORIES = 1_000_000


def require_fitting_ranges(columns: Sequence[InputColumn], *, texts: bool = False) -> None:
    """Raise ConfigurationError with all declared ranges that do not fit the type of the column.

    Without ``texts``, not of text columns: first their values that are numbers are counted.
    """
    problems = []
    for column in columns:
        attribute, kind = column.attribute, column.kind
        # With a hierarchy the configuration itself says what the values are.
        if attribute.hierarchy is not None or (column.undeclared_text and not texts):
            continue
        for key in ("range", "grid", "bottom", "top"):
            value = getattr(attribute, key)
            try:
                if key == "grid" and value not in (None, "auto", "none"):
                    read_grid(value, kind)
                elif key != "grid" and value is not None:
                    bound_numbers(kind, value if key == "range" else [value])
            except (UnfitRangeError, UnfitGridError) as error:
                problems.append(
                    f"attributes.{column.name}.{key}: does not fit the column, whose kind is "
                    f"{kind}. Expected {error}. Correct or remove it, or declare the type"
                )
    if problems:
        raise ConfigurationError(*problems)


def require_sound_values(
    figures: Mapping[str, Any], columns: Sequence[InputColumn], configuration: Configuration
) -> None:
    """Check the counts of :meth:`anonspark.engine.protocol.Input.inspect`.

    Raises DataError with all problems at once: names and counts, never a value.
    """
    rows, left, k = figures["rows"], figures["kept"], configuration.privacy.k
    problems = []
    if rows == 0:
        empty = "the table is empty"
        if figures["blank_rows"]:
            empty = "no row of the table has a value in any of the attributes' columns"
        raise DataError(f"input.path: {empty}. Expected at least k = {k} rows")
    for index, column in enumerate(columns):
        where = f"attributes.{column.name}"
        lacking = figures[f"missing_{index}"]
        if configuration.missing == ("drop" if lacking == rows else "error") and lacking:
            problems.append(
                f"{where}: {lacking:,} of {rows:,} values are missing. Complete them, leave the "
                "column out, or set missing to drop or category"
            )
        if figures[f"invalid_{index}"]:
            problems.append(
                f"{where}: {figures[f'invalid_{index}']:,} of {rows:,} values are not of the "
                f"declared type {column.declared}{_remedy(column, configuration)}"
            )
        if figures[f"infinite_{index}"]:
            problems.append(
                f"{where}: {figures[f'infinite_{index}']:,} of {rows:,} values are infinite. "
                "Replace them by numbers or by missing values"
            )
        if column.kind == "category":
            numeric = figures[f"numeric_{index}"]
            present = left - (figures[f"missing_{index}"] if configuration.missing != "drop" else 0)
            if column.undeclared_text and 0 < present == numeric:
                _LOGGER.warning(
                    "%s: a text column with nothing but numbers. Its values are ordered as text. "
                    "Set its type to number, or to text to confirm",
                    where,
                )
            if column.undeclared_text and present / 2 <= numeric < present:
                problems.append(
                    f"{where}: a text column in which {numeric:,} of {present:,} values are "
                    "numbers. For a number set its type to number and correct the others or list "
                    "them in input.missing_markers, for a code set its type to text"
                )
            if figures[f"distinct_{index}"] > _MOST_CATEGORIES and column.attribute.hierarchy:
                problems.append(
                    f"{where}: more than {_MOST_CATEGORIES:,} different values, too many for a "
                    "hierarchy. Is it an identifier? Make it coarser, or remove the hierarchy"
                )
            elif figures[f"distinct_{index}"] > _MOST_CATEGORIES:
                problems.append(
                    f"{where}: a text quasi-identifier with more than {_MOST_CATEGORIES:,} "
                    "different values. Is it an identifier? Declare its type (number, date), or "
                    "make it coarser"
                )
    if problems:
        raise DataError(*problems)
    require_fitting_ranges(columns, texts=True)
    require_enough_rows(rows, left, k)


def _remedy(column: InputColumn, configuration: Configuration) -> str:
    """Propose a remedy for values of a text column that are not of the declared type."""
    options = {name.lower() for name in configuration.input.options}
    if column.declared in ("date", "timestamp") and "dateformat" in options:
        return (
            ", because a day among texts is read as 2026-01-31, whatever dateFormat says: "
            "dateFormat needs inferSchema and a column of such days only. Convert the column, "
            "correct what is no day, or set the one text that means missing as nullValue in "
            "input.options"
        )
    midnight = (
        " (a moment is one at midnight, in UTC if it has a zone)"
        if column.declared == "date"
        else ""
    )
    markers = "list what means missing in input.missing_markers, or change the type"
    return f"{midnight}. Correct them, {markers}"


def require_enough_rows(rows: int, left: int, k: int) -> None:
    """Raise DataError if the rows that stay, ``left``, are fewer than k.

    >>> require_enough_rows(100, 95, k=5)
    """
    if left < k:
        dropped = f", {rows - left:,} more were dropped for missing values" if left < rows else ""
        raise DataError(
            f"privacy.k: {k} needs at least {k} rows, the input has {left:,}{dropped}. "
            "Nothing can be published"
        )


def describe_quasi_identifier(
    index: int,
    column: InputColumn,
    arrow_type: pa.DataType,
    figures: Mapping[str, Any],
    configuration: Configuration,
    categories: Sequence[str] | None,
) -> QuasiIdentifier:
    """Return a quasi-identifier, at an index in configuration order, with its global range.

    ``figures`` are those of :meth:`anonspark.engine.protocol.Input.inspect`. ``categories`` are its
    different values, in any order (kind ``category`` only). Raises DataError if decimals need more
    digits than 64-bit integers hold, or the declared order or the hierarchy lacks values.
    """
    has_missing = configuration.missing == "category" and figures[f"missing_{index}"] > 0
    if column.kind == "category":
        described = _describe_categories(column, arrow_type, sorted(categories or ()))
    else:
        described = _describe_numbers(index, column, arrow_type, figures, configuration)
        if has_missing and described.highest == np.iinfo(np.int64).max:
            raise DataError(
                f"attributes.{column.name}: holds the largest 64-bit integer, which leaves no code "
                "for missing values. Drop them or cast the column to double"
            )
    return replace(described, has_missing=has_missing)


def _describe_categories(
    column: InputColumn, arrow_type: pa.DataType, present: Sequence[str]
) -> QuasiIdentifier:
    """Describe a quasi-identifier of texts, whose order decides which values are near.

    The order is that of the hierarchy, or else the declared one, the one that the table brings, or
    that of ``present`` values. Raises DataError if it or the declared range lacks some of these.
    """
    order: Sequence[str] | None = column.attribute.order
    if column.attribute.range is not None and not _all_between(present, column.attribute.range):
        raise _outside(column)
    hierarchy = match_hierarchy(column, present)
    code_of_folded: dict[str, int] = {}
    if hierarchy is not None:
        order = hierarchy.leaves
        code_of_leaf = {leaf: code for code, leaf in enumerate(order)}
        if column.attribute.bottom is not None or column.attribute.top is not None:
            outer = leaves_beyond(column, present)
            code_of_folded = {value: code_of_leaf[leaf] for value, leaf in outer.items()}
        codes = sorted((code_of_leaf | code_of_folded)[value] for value in present)
    elif order is not None:
        if not set(present) <= set(order):
            raise DataError(
                f"attributes.{column.name}.order: lacks some of the column's values. List all of "
                "them, or name those that mean missing in input.missing_markers"
            )
        codes = sorted(order.index(value) for value in present)
    elif present and set(present) <= set(column.brought_order):
        _LOGGER.info("attributes.%s: its values have the order that the table brings", column.name)
        # Values that no record has would reveal records that were left out.
        order = [value for value in column.brought_order if value in set(present)]
        codes = list(range(len(order)))
    else:
        order, codes = present, list(range(len(present)))
    lowest, highest = (codes[0], codes[-1]) if codes else (0, -1)
    return QuasiIdentifier(
        column.name,
        column.kind,
        arrow_type,
        lowest,
        highest,
        categories=tuple(order),
        weight=column.attribute.weight,
        hierarchy=hierarchy,
        folded=tuple(code_of_folded.items()),
    )


def _outside(column: InputColumn) -> DataError:
    return DataError(
        f"attributes.{column.name}.range: the column has values outside of it. Expected none. "
        "Correct them, name those that mean missing in input.missing_markers, or widen the range"
    )


def _all_between(values: Sequence[str], bounds: Sequence[Bound]) -> bool:
    """Return whether texts of numbers or days, as rules group them, are all in a range.

    >>> _all_between(["17", "42"], (0, 99)), _all_between(["17", "142"], (0, 99))
    (True, False)
    """
    read = day_of if isinstance(bounds[0], str) else Fraction
    low, high = [day_of(bound) if isinstance(bound, str) else number_of(bound) for bound in bounds]
    try:
        return all(low <= read(value) <= high for value in values)
    except UnfitRangeError:
        # A day of a year with more than four digits.
        return False


def _require_few_digits(column: InputColumn, lowest: int, highest: int, scale: int) -> None:
    """Raise DataError unless the codes of decimals fit into 64 bits."""
    if max(abs(lowest), abs(highest)) < 10**_MOST_DIGITS:
        return
    what, remedy = "whole numbers", "to a text if they are codes"
    if scale:
        what, remedy = "decimals", "round it to fewer decimal places"
    raise DataError(
        f"attributes.{column.name}: its {what} need more than {_MOST_DIGITS} digits. Cast the "
        f"column to double, or {remedy}"
    )


def _describe_numbers(
    index: int,
    column: InputColumn,
    arrow_type: pa.DataType,
    figures: Mapping[str, Any],
    configuration: Configuration,
) -> QuasiIdentifier:
    """Describe a quasi-identifier with a natural order, coded from the lowest value upwards."""
    scale = arrow_type.scale if column.kind == "decimal" else 0
    low, high = figures[f"lowest_{index}"], figures[f"highest_{index}"]
    if low is None:
        lowest, highest = 0, -1
    elif column.kind == "float":
        reader = QuasiIdentifier(column.name, "float", pa.float64(), 0, 0)
        codes = reader.encode(pa.array([low, high], pa.float64()))
        lowest, highest = (int(code) for code in codes)
    elif column.kind == "decimal":
        # Decimal places that the values use, which may be fewer than those of the column's type.
        scale = figures[f"places_{index}"]
        lowest, highest = (int(Decimal(value).scaleb(scale)) for value in (low, high))
        _require_few_digits(column, lowest, highest, scale)
    else:
        lowest, highest = int(low), int(high)
    described = QuasiIdentifier(
        column.name,
        column.kind,
        arrow_type,
        lowest,
        highest,
        scale=scale,
        weight=column.attribute.weight,
    )
    if column.attribute.range is not None:
        described = _with_range(described, column)
    return _with_grid(described, column, configuration)


def _with_grid(
    described: QuasiIdentifier, column: InputColumn, configuration: Configuration
) -> QuasiIdentifier:
    """Add the grid at whose lines the ranges of a quasi-identifier end, and its open ends.

    A decimal gets the places that the lines and ends need. Then the lowest and highest code move
    outwards to lines. Raises DataError if the column's type cannot hold them.
    """
    attribute, kind, scale = column.attribute, described.kind, described.scale
    single = described.arrow_type == pa.float32()
    bottom, top = (
        None if end is None else bound_numbers(kind, [end], single=single)[0]
        for end in (attribute.bottom, attribute.top)
    )
    # Means have no ends. Models that reproduce printed figures have no grid by default.
    step = attribute.grid
    is_printed = step == "auto" and getattr(configuration.model, "published", None) is not None
    hides_ends = configuration.output.style == "mean"
    step = None if step == "none" or is_printed or hides_ends else step
    grid = None
    if described.lowest <= described.highest and step is not None:
        low, high = (described.value_of(code) for code in (described.lowest, described.highest))
        grid = read_grid(step, kind) if step != "auto" else default_grid(kind, low, high, scale)
        grid = None if grid is None else replace(grid, single=single)
        if grid is not None and not grid.is_exact(max(abs(low), abs(high))):
            raise DataError(
                f"attributes.{column.name}.grid: float numbers hold no exact multiples of it "
                "at the column's size. Choose a larger step, or declare a smaller range"
            )
    if kind == "decimal":
        numbers = [grid.step if grid is not None else 0, bottom or 0, top or 0]
        scale = max(scale, decimal_places([float(number) for number in numbers]))
    factor = 10 ** (scale - described.scale)
    described = replace(
        described,
        scale=scale,
        lowest=described.lowest * factor,
        highest=described.highest * factor,
        grid=grid,
        bottom=bottom,
        top=top,
    )
    if described.lowest > described.highest:
        return described
    lowest, highest = described.coarsened(np.array([described.lowest, described.highest])).tolist()
    coarser = replace(described, lowest=lowest, highest=highest)
    # Lines below the smallest 64-bit integer come out above.
    is_beyond = bottom is None and lowest > described.lowest
    if grid is not None and (is_beyond or not coarser.holds_ends):
        raise DataError(
            f"attributes.{column.name}.grid: the type {described.arrow_type} of the column cannot "
            "hold the ends of its ranges. Cast the column to a larger type, or choose another step"
        )
    return coarser


def _with_range(described: QuasiIdentifier, column: InputColumn) -> QuasiIdentifier:
    """Replace the range of a quasi-identifier by the declared one, which must contain it."""
    bounds: Sequence[Bound] = column.attribute.range or ()
    single = described.arrow_type == pa.float32()
    scale, kind = described.scale, described.kind
    places = bound_numbers(kind, bounds, single=single)
    if kind == "decimal":
        scale = max(scale, decimal_places(bounds))
        places = [bound_place * 10**scale for bound_place in places]
        if max(map(abs, places)) >= 10**_MOST_DIGITS:
            raise DataError(
                f"attributes.{column.name}.range: its bounds need more than {_MOST_DIGITS} digits. "
                "Cast the column to double, or choose bounds with fewer"
            )
    if kind == "float":
        low, high = map(int, described.encode(pa.array(map(float, places), pa.float64())))
    else:
        low, high = map(int, places)
    factor = 10 ** (scale - described.scale)
    is_empty = described.lowest > described.highest
    if not is_empty and not (
        low <= described.lowest * factor and described.highest * factor <= high
    ):
        raise _outside(column)
    return replace(described, lowest=low, highest=high, scale=scale, range_declared=True)
