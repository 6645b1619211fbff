"""What a report shows of the records: marginals and class sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Table
from anonspark.release.manifest import Manifest
from anonspark.release.originals import original_records
from anonspark.reporting.attributes import Attribute, count_values, quasi_identifiers_of
from anonspark.reporting.marginals import (
    Marginal,
    category_marginal,
    ordered_labels,
    ordered_marginal,
)
from anonspark.reporting.original import BinCounts, Original, OriginalFigures, count_bins


@dataclass(frozen=True)
class Figures:
    """The counts of a report: marginals, and the original if one was given."""

    marginals: tuple[Marginal, ...]
    original: OriginalFigures | None


def measure(
    data: Table,
    manifest: Manifest,
    hierarchies: Mapping[str, Hierarchy],
    original: Table | None = None,
) -> Figures:
    """Count what a report shows of published records, and of the original if it is given.

    Over the release one job with a shuffle for the labels of all quasi-identifiers. Over the
    original one job for the categories, one for the ordered attributes, and one with a shuffle of
    all different tuples of quasi-identifiers. The different labels and categories are collected,
    but no record. Raises DataError if the original lacks columns, a category has more than
    1,000,000 different texts, or labels of the release cannot be read.
    """
    k = manifest.k
    attributes = quasi_identifiers_of(manifest, hierarchies)
    table = (
        None
        if original is None
        else Original(original_records(original, manifest), manifest, attributes)
    )
    values = _count_values(data, attributes)
    labels = {
        index: ordered_labels(values[index], attribute, k)
        for index, attribute in enumerate(attributes)
        if attribute.scale is not None
    }
    counts: dict[int, BinCounts] = {}
    if table is not None:
        edges: dict[int, Sequence[float]] = {
            index: label.bins.edges for index, label in labels.items()
        }
        counts = count_bins(table.records, edges)
    marginals = [
        ordered_marginal(attribute, labels[index], counts.get(index), k)
        if index in labels
        else category_marginal(values[index], attribute, k, table)
        for index, attribute in enumerate(attributes)
    ]
    return Figures(tuple(marginals), None if table is None else table.figures(len(attributes)))


def _count_values(data: Table, attributes: Sequence[Attribute]) -> dict[int, pa.Table]:
    """Count the labels of quasi-identifiers."""
    columns = {
        index: {f"value_{index}_{at}": name for at, name in enumerate(attribute.columns)}
        for index, attribute in enumerate(attributes)
    }
    labels = {new: name for column in columns.values() for new, name in column.items()}
    read = data.select(labels).read([], list(labels))
    return count_values(read, {index: list(column) for index, column in columns.items()})
