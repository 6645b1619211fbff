"""The original beside a release: what a report counts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_readable, type_name
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.release.manifest import Manifest
from anonspark.reporting.attributes import Attribute, count_values
from anonspark.utility.records import as_comparable

# They are collected.
_MOST_TEXTS = 1_000_000


@dataclass(frozen=True)
class OriginalFigures:
    """The records of the original, and its groups of equal quasi-identifiers by size.

    Records that the release's policy for missing values drops are not counted.
    """

    rows: int
    sizes: Mapping[int, int]


class BinCounts(NamedTuple):
    """Records of each bin, and how many are missing."""

    counts: Figures
    missing: float


class Original:
    """The original table, read as ``value_<i>`` of attribute i of the report."""

    def __init__(
        self,
        original: Table,
        manifest: Manifest,
        attributes: Sequence[Attribute],
    ) -> None:
        """Read the attributes of the report, or raise DataError if the table lacks one."""
        types = {field.name: field.type for field in original.schema}
        lacking = [attribute.name for attribute in attributes if attribute.name not in types]
        if lacking:
            raise DataError(
                f"--original: lacks the columns {', '.join(map(repr, lacking))}. Give the table "
                "that the release was made of"
            )
        self.positions: dict[str, int] = {}
        self.categories = [index for index, item in enumerate(attributes) if item.scale is None]
        readings = []
        for position, attribute in enumerate(attributes):
            if attribute.name in types:
                name = f"value_{position}"
                self.positions[attribute.name] = position
                reading = attribute.reading(attribute.name, name, manifest.missing_markers)
                readings.append(_require_readable(reading, types[attribute.name]))
        records = original.read(readings)
        if manifest.drops_missing:
            # They are not in the release: a difference must not tell how many.
            records = records.without([reading.missing for reading in readings])
        self.records = as_comparable(records, readings)

    @cached_property
    def _counted(self) -> dict[int, pa.Table]:
        """The texts of all categories, counted in one job."""
        columns = {category: [f"value_{category}"] for category in self.categories}
        # One text more than allowed, and one row for missing values, show that there are too many.
        return count_values(self.records, columns, most=(_MOST_TEXTS + 2) * len(columns))

    def values(self, attribute: str) -> tuple[list[str], Figures, float]:
        """Return the different texts of a category, their counts, and how many are missing.

        Raises DataError if there are more than 1,000,000 different texts.
        """
        counted = self._counted[self.positions[attribute]]
        counts = dict(zip(*(column.to_pylist() for column in counted.columns), strict=True))
        missing = float(counts.pop(None, 0))
        if len(counts) > _MOST_TEXTS:
            raise DataError(
                f"--original: more than {_MOST_TEXTS:,} different texts in the column {attribute!r}"
            )
        names = sorted(counts)
        return names, np.array([counts[name] for name in names], np.float64), missing

    def figures(self, quasi_identifiers: int) -> OriginalFigures:
        """Count the groups of equal quasi-identifiers by their size. Collects a row per size."""
        names = [f"value_{index}" for index in range(quasi_identifiers)]
        counted = self.records.aggregate(names, count="size").aggregate(["size"], count="groups")
        table = counted.collect()
        sizes = dict(zip(table["size"].to_pylist(), table["groups"].to_pylist(), strict=True))
        return OriginalFigures(sum(size * groups for size, groups in sizes.items()), sizes)


def _require_readable(reading: Reading, kind: pa.DataType) -> Reading:
    if reading.type is not None and not is_readable(kind, reading.type):
        raise DataError(
            f"--original: column {reading.column!r} has type {type_name(kind)}, which cannot be "
            f"read as {type_name(reading.type)}. Give the table that the release was made of"
        )
    return reading


def count_bins(records: Table, edges: Mapping[int, Sequence[float]]) -> dict[int, BinCounts]:
    """Count the records in the bins of ordered attributes, by their indices, in one job for all."""
    count = _CountBins({index: tuple(edge) for index, edge in edges.items()})
    collected = records.map_batches(count, _COUNTED).collect()
    rows = pc.sum(collected.filter(pc.field("place") < 0)["rows"], min_count=0).as_py()
    counts = {}
    for index, bounds in edges.items():
        tasks = collected.filter(pc.field("place") == index)
        reached = np.zeros(1 + len(bounds), np.int64)
        reached += sum(np.array(value, np.int64) for value in tasks["reached"].to_pylist())
        inside = -np.diff(np.array([*reached, 0], np.float64))
        counts[index] = BinCounts(inside, float(rows - reached[0]))
    return counts


_COUNTED = pa.schema(
    [
        ("place", pa.int32()),
        ("rows", pa.int64()),
        ("reached", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True)
class _CountBins:
    """Counts, batch by batch, the values that reach each edge, and the records with index -1.

    All values come before the first edge.
    """

    edges: dict[int, tuple[float, ...]]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            rows = [{"place": -1, "rows": batch.num_rows}]
            for index, edges in self.edges.items():
                values = batch.column(f"value_{index}").drop_null().to_numpy()
                reached = [len(values), *(int((values >= edge).sum()) for edge in edges)]
                rows.append({"place": index, "reached": reached})
            yield pa.RecordBatch.from_pylist(rows, _COUNTED)
