"""What a report shows of the records: marginals, associations, class sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.release.manifest import Manifest
from anonspark.release.originals import original_records
from anonspark.reporting.association import associations
from anonspark.reporting.attributes import Attribute, others_of, quasi_identifiers_of
from anonspark.reporting.axes import GroupAxis, OrderedAxis
from anonspark.reporting.bins import Bins
from anonspark.reporting.counts import RECORDS, count_values, most_frequent
from anonspark.reporting.groups import plan_groups
from anonspark.reporting.marginals import (
    Marginal,
    category_marginal,
    ordered_labels,
    ordered_marginal,
)
from anonspark.reporting.original import BinCounts, Original, OriginalFigures, count_bins
from anonspark.reporting.products import readers_of_release, sum_of_products
from anonspark.utility.records import as_comparable

Numbers = npt.NDArray[np.float64]

# More would not be readable.
_MOST_ATTRIBUTES = 20

# Free texts and keys: the groups would tell of few records.
_LEAST_COVERED = 0.5


@dataclass(frozen=True)
class Associations:
    """How strongly pairs of attributes go together. See :mod:`anonspark.reporting.association`.

    Parameters
    ----------
    names : tuple of str
        Of the attributes.
    ordered : tuple of bool
        Whether each is ordered.
    before : float64 ndarray of shape (attributes, attributes) or None
    after : float64 ndarray of shape (attributes, attributes)
    """

    names: tuple[str, ...]
    ordered: tuple[bool, ...]
    before: Numbers | None
    after: Numbers


@dataclass(frozen=True)
class Figures:
    """Everything that was counted for a report.

    Parameters
    ----------
    marginals : tuple of Marginal
    associations : Associations
    original : OriginalFigures or None
    """

    marginals: tuple[Marginal, ...]
    associations: Associations
    original: OriginalFigures | None


def measure(
    data: Table,
    manifest: Manifest,
    hierarchies: Mapping[str, Hierarchy],
    original: Table | None = None,
) -> Figures:
    """Count what a report shows.

    Parameters
    ----------
    data : Table
        Published records.
    manifest : Manifest
        Of the release.
    hierarchies : mapping of str to Hierarchy
        Those of quasi-identifiers that come from files.
    original : Table or None
        The table that the release was made of.

    Raises
    ------
    DataError
        If the original lacks columns, a category of it has more than 1,000,000 different texts, or
        labels of the release cannot be read.

    Notes
    -----
    Over the release one job with a shuffle for the values of all attributes, one pass for the ends
    of those that are not quasi-identifiers, and one for the associations. The different labels of
    each quasi-identifier are collected. Over the original one job for the categories, one for the
    ordered attributes, one for the associations, and one with a shuffle of all different tuples of
    quasi-identifiers. The different values of each category are collected, no record is.
    """
    k = manifest.k
    attributes = quasi_identifiers_of(manifest, hierarchies)
    others = others_of(data, manifest)
    table = (
        None
        if original is None
        else Original(original_records(original, manifest), manifest, attributes, others)
    )
    values = _count_values(data, attributes, others)
    labels = {
        place: ordered_labels(values[place], attribute, k)
        for place, attribute in enumerate(attributes)
        if attribute.scale is not None
    }
    counts: dict[int, BinCounts] = {}
    if table is not None:
        edges: dict[int, Sequence[float]] = {place: one.bins.edges for place, one in labels.items()}
        for place, other in enumerate(others, start=len(attributes)):
            if other.scale is not None and other.name in table.places:
                edges[place] = ()
        counts = count_bins(table.records, edges)
    marginals = [
        ordered_marginal(attribute, labels[place], counts.get(place), k)
        if place in labels
        else category_marginal(values[place], attribute, k, table)
        for place, attribute in enumerate(attributes)
    ]
    others = _with_axes(data, others, k, counts, values, len(attributes))
    shown = [*attributes, *others][:_MOST_ATTRIBUTES]
    after = associations(*sum_of_products(data, readers_of_release(shown)))
    before = None
    if table is not None:
        before = associations(*sum_of_products(table.records, table.readers(shown)))
    return Figures(
        tuple(marginals),
        Associations(
            tuple(attribute.name for attribute in shown),
            tuple(attribute.scale is not None for attribute in shown),
            before,
            after,
        ),
        None if table is None else table.figures(len(attributes)),
    )


def _with_axes(
    data: Table,
    others: Sequence[Attribute],
    k: int,
    originals: Mapping[int, BinCounts],
    values: Mapping[int, pa.Table],
    first: int,
) -> list[Attribute]:
    """Return the attributes that are published as they are and can be compared, with their axes."""
    rows = pc.sum(values[0][RECORDS]).as_py()
    numbered = dict(enumerate(others, start=first))
    ordered = {place: one for place, one in numbered.items() if one.scale is not None}
    extremes = _extremes(data, ordered)
    kept = []
    for place, attribute in numbered.items():
        if attribute.scale is not None:
            sides = [one[place] for one in (extremes, originals) if place in one]
            low, high = min(one.low for one in sides), max(one.high for one in sides)
            attribute.axis = OrderedAxis(Bins(attribute.scale, ()), low, high)
            kept.append(attribute)
            continue
        frequent = most_frequent(values[place], values[place].column_names[0])
        sizes = frequent[RECORDS].to_numpy().astype(np.float64)
        names = [(value,) for value in frequent.column(0).to_pylist()]
        groups = plan_groups(names, sizes, k, [str])
        if groups.places and sizes.sum() >= _LEAST_COVERED * rows:
            attribute.axis = GroupAxis(groups)
            kept.append(attribute)
    return kept


def _extremes(data: Table, attributes: Mapping[int, Attribute]) -> dict[int, BinCounts]:
    """Return the smallest and the largest value of ordered attributes, by their places."""
    if not attributes:
        return {}
    readings = [one.reading(one.name, f"value_{place}", ()) for place, one in attributes.items()]
    records = as_comparable(data.read(readings), readings)
    return count_bins(records, dict.fromkeys(attributes, ()))


def _count_values(
    data: Table, attributes: Sequence[Attribute], others: Sequence[Attribute]
) -> dict[int, pa.Table]:
    """Count the labels of quasi-identifiers and the most frequent texts of other categories."""
    columns = {
        place: {f"value_{place}_{at}": name for at, name in enumerate(one.columns)}
        for place, one in enumerate([*attributes, *others])
        if one.published is not None or one.scale is None
    }
    numbered = {new: name for own in columns.values() for new, name in own.items()}
    labels = [new for place in range(len(attributes)) for new in columns[place]]
    texts = [Reading(name, name, pa.string()) for name in numbered if name not in labels]
    read = data.select(numbered).read(texts, labels)
    frequent = [place for place in columns if place >= len(attributes)]
    return count_values(read, {place: list(own) for place, own in columns.items()}, frequent)
