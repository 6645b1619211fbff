"""What a report shows of the records: marginals, associations, class sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.release.manifest import Manifest
from anonspark.release.originals import original_records
from anonspark.reporting.association import associations
from anonspark.reporting.attributes import Attribute, others_of, quasi_identifiers_of
from anonspark.reporting.axes import GroupAxis, OrderedAxis
from anonspark.reporting.bins import Bins
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

_MOST_FREQUENT = 100


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
    Over the release one job with a shuffle for each attribute, and one pass for the associations.
    The different labels of each quasi-identifier are collected. Over the original one job for each
    category, one for the ordered attributes, one for the associations, and one with a shuffle of
    all different tuples of quasi-identifiers. The different values of each category are collected,
    no record is.
    """
    k = manifest.k
    attributes = quasi_identifiers_of(manifest, hierarchies)
    others = others_of(data, manifest)
    table = (
        None
        if original is None
        else Original(original_records(original, manifest), manifest, attributes, others)
    )
    labels = {
        place: ordered_labels(data, attribute, k)
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
        else category_marginal(data, attribute, k, table)
        for place, attribute in enumerate(attributes)
    ]
    others = _with_axes(data, others, k, counts, len(attributes))
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
    first: int,
) -> list[Attribute]:
    """Return the attributes that are published as they are and can be compared, with their axes."""
    rows = data.count()
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
        counted = data.read([Reading(attribute.name, "value", pa.string())])
        counted = counted.aggregate(["value"], count="records")
        frequent = _most_frequent(counted.map_batches(_TakeMostFrequent(), _COUNTED).collect())
        sizes = frequent["records"].to_numpy().astype(np.float64)
        names = [(value,) for value in frequent["value"].to_pylist()]
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


_COUNTED = pa.schema([("value", pa.string()), ("records", pa.int64())])


@dataclass(frozen=True)
class _TakeMostFrequent:
    """Leaves of a task's values those that occur most often."""

    def __call__(self, batches: Batches) -> Batches:
        rows = [pa.record_batch(batch.columns, schema=_COUNTED) for batch in batches]
        table = pa.Table.from_batches(rows, _COUNTED)
        yield from _most_frequent(table.drop_null()).to_batches()


def _most_frequent(counted: pa.Table) -> pa.Table:
    """Return what occurs most often, of equally frequent values the first."""
    order = [("records", "descending"), ("value", "ascending")]
    return counted.sort_by(order).slice(0, _MOST_FREQUENT)
