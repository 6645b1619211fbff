"""The original: its columns as axes, and the part of it that models are tested on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.queries import Domain
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading, is_text
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.labels.axes import Axis
from anonspark.labels.raw_values import Scale, comparable, reading_of, scale_of
from anonspark.labels.regions import Leaves, PublishedAttribute
from anonspark.utility.bins import frequent_of
from anonspark.utility.records import (
    as_comparable,
    lacking,
    read_values,
    unreadable,
    value_column,
)

# Number of quantile steps between the smallest and the largest value.
_STEPS = 1000

_DRAWN = 100_000
_MOST_TEXTS = 1_000_000

HASH = "record_hash"
"""Column of the hashes by which records are drawn."""

# Records whose hash is below a bound are drawn: so many bits of it are compared.
_BITS = 30


@dataclass(frozen=True)
class PlannedValues:
    """How a column's values are read. ``published`` is None if it is published as it is."""

    scale: Scale
    published: PublishedAttribute | None
    reading: Reading


def describe_original(
    original: Table,
    quasi_identifiers: Sequence[PublishedAttribute],
    others: Sequence[str],
    hierarchies: Mapping[str, Leaves],
    missing_markers: Sequence[str],
) -> tuple[list[Axis], list[Axis], int]:
    """Describe the columns of the original as axes, sorted by name, and count its records.

    ``others`` are columns that are published as they are, and ``hierarchies`` belong to attributes
    that the hierarchy of a file generalizes. Others whose type has no order (lists), and those of
    texts with more than 1,000,000 different values, are left out. Raises DataError if the original
    lacks columns, holds no records, or a quasi-identifier cannot be read as the release's, or has
    more than 1,000,000 different texts.

    Two jobs, and one for each column of texts, whose different values are collected. For each
    column of numbers 1,001 quantiles are collected: the extremes, and order statistics of about
    100,000 records, drawn by a hash of their content, or of all records if there are fewer.
    """
    columns: dict[str, PublishedAttribute | None] = {
        column.name: column for column in sorted(quasi_identifiers, key=lambda column: column.name)
    }
    planned = plan_values(original, columns | dict.fromkeys(sorted(others)), missing_markers)
    d = len(columns)
    rows, axes = _axes(original, planned, hierarchies)
    too_many = [axis.name for axis in axes[:d] if len(axis.texts) > _MOST_TEXTS]
    if too_many:
        raise DataError(
            f"--original: more than {_MOST_TEXTS:,} different texts in the columns "
            f"{', '.join(map(repr, too_many))}"
        )
    return axes[:d], [axis for axis in axes[d:] if len(axis.texts) <= _MOST_TEXTS], rows


def with_record_hash(table: Table, columns: Sequence[str]) -> Table:
    """Add a hash of some values of each record in column `HASH`, for :func:`drawn`.

    Numbers are float64, or texts, so that equal values of all types have one hash.
    """
    return table.with_hashes({HASH: columns}, nulls=False)


def drawn(hashes: pa.Array, share: float) -> npt.NDArray[np.bool_]:
    """Return which records belong to the share that is drawn by their hashes.

    >>> drawn(pa.array([0, 2**29, 2**30 - 1]), 0.25).tolist()
    [True, False, False]
    """
    numbers = hashes.to_numpy() & ((1 << _BITS) - 1)
    return np.asarray(numbers < math.ceil(share * (1 << _BITS)))


def plan_values(
    original: Table,
    columns: Mapping[str, PublishedAttribute | None],
    missing_markers: Sequence[str],
) -> list[PlannedValues]:
    """Plan how to read columns, each into :func:`value_column` of its index in the list.

    A column is None if it is published as it is, and is left out if its type has no order. Raises
    DataError if columns are absent, or cannot be read as the release's.
    """
    types = {field.name: field.type for field in original.schema}
    planned: list[PlannedValues] = []
    problems = []
    for name, published in columns.items():
        if name not in types:
            problems.append(lacking("--original", name, original))
            continue
        scale, new = scale_of(types[name], published), value_column(len(planned))
        reading = scale and reading_of(name, new, types[name], scale, published, missing_markers)
        if scale is not None and reading is not None:
            planned.append(PlannedValues(scale, published, reading))
        elif published is not None:
            problems.append(unreadable("--original", name, scale or "category"))
    if problems:
        raise DataError(*problems)
    return planned


_FACTS = pa.schema(
    [
        ("place", pa.int32()),
        ("rows", pa.int64()),
        ("present", pa.int64()),
        ("broken", pa.int64()),
        ("smallest", pa.float64()),
        ("largest", pa.float64()),
    ]
)


@dataclass(frozen=True)
class _FindFacts:
    """Counts and compares the values of a task's records: a row for each column and batch."""

    columns: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            facts = [self._facts(batch, index) for index in range(len(self.columns))]
            yield pa.RecordBatch.from_pylist(facts, _FACTS)

    def _facts(self, batch: pa.RecordBatch, index: int) -> dict[str, object]:
        values = comparable(batch.column(self.columns[index]))
        facts: dict[str, object] = {"place": index, "rows": batch.num_rows}
        facts["present"] = len(values) - values.null_count
        if not is_text(values.type):
            ends = pc.min_max(values)
            facts["smallest"], facts["largest"] = ends["min"].as_py(), ends["max"].as_py()
            broken = pc.not_equal(values, pc.round(values))
            facts["broken"] = pc.sum(broken, min_count=0).as_py()
        return facts


def _axes(
    original: Table, planned: Sequence[PlannedValues], hierarchies: Mapping[str, Leaves]
) -> tuple[int, list[Axis]]:
    """Count the records, and find the axis of each column, by jobs of :func:`describe_original`."""
    readings = [plan.reading for plan in planned]
    find_facts = _FindFacts(tuple(reading.name for reading in readings))
    facts = (
        read_values(original, readings)
        .map_batches(find_facts, _FACTS)
        .aggregate(
            ["place"],
            sums=["rows", "present", "broken"],
            least=["smallest"],
            most=["largest"],
        )
        .collect()
        .to_pylist()
    )
    by_index = {row["place"]: row for row in facts}
    rows = max((row["rows"] for row in facts), default=0)
    if not rows:
        raise DataError("--original: the table holds no records")
    ends = {
        index: (by_index[index]["smallest"], by_index[index]["largest"])
        for index, plan in enumerate(planned)
        if plan.scale != "text"
    }
    domains = _number_domains(original, readings, ends, rows)
    axes = []
    for position, plan in enumerate(planned):
        name, row = plan.reading.column, by_index[position]
        texts: list[str] = []
        frequent = np.empty(0)
        if plan.scale == "text":
            texts, counts = _texts(original, plan)
            positions = np.arange(len(texts), dtype=np.float64)
            domains[position] = Domain(positions, counts / max(1, counts.sum()), evenly=True)
            frequent = frequent_of(counts)
        axes.append(
            Axis(
                name=name,
                scale=plan.scale,
                published=plan.published,
                leaves=hierarchies.get(name) if plan.published is not None else None,
                whole=not row["broken"],
                texts=tuple(texts),
                domain=domains[position],
                frequent=frequent,
                missing=rows - row["present"],
            )
        )
    return rows, axes


def _number_domains(
    original: Table,
    readings: Sequence[Reading],
    ends: Mapping[int, tuple[float | None, float | None]],
    rows: int,
) -> dict[int, Domain]:
    """Collect the quantiles of columns of numbers.

    ``ends`` are their smallest and largest values, which the drawn records may lack.
    """
    if not ends:
        return {}
    numbers = [readings[end].name for end in ends]
    table = read_values(original, readings)
    if rows > _DRAWN:
        comparables = as_comparable(table, readings)
        hashed = with_record_hash(comparables, comparables.schema.names).select([*numbers, HASH])
        of_numbers = pa.schema([(name, pa.float64()) for name in numbers])
        table = hashed.map_batches(_Draw(of_numbers, _DRAWN / rows), of_numbers)
    quantiles_of = (
        table.select(numbers).group([], 1).map_batches(_FindQuantiles(tuple(ends)), _QUANTILES)
    )
    collected = quantiles_of.collect().to_pylist()
    by_index = {row["place"]: row["quantiles"] for row in collected}
    domains = {}
    for index, (smallest, largest) in ends.items():
        quantiles = np.array(by_index.get(index, ()), np.float64)
        if smallest is not None:
            quantiles = np.concatenate([[smallest], quantiles[1:-1], [largest]])
        values, counts = np.unique(quantiles, return_counts=True)
        domains[index] = Domain(values, counts / max(1, len(quantiles)), evenly=False)
    return domains


@dataclass(frozen=True)
class _Draw:
    """Draws a share of a task's records by their hashes."""

    schema: pa.Schema
    share: float

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            chosen = batch.filter(pa.array(drawn(batch.column(HASH), self.share)))
            yield chosen.select(self.schema.names)


_QUANTILES = pa.schema([("place", pa.int32()), ("quantiles", pa.list_(pa.float64()))])


@dataclass(frozen=True)
class _FindQuantiles:
    """Returns the values at even steps through each sorted column of one task."""

    indices: tuple[int, ...]

    def __call__(self, batches: Batches) -> Batches:
        collected = list(batches)
        for index, number in enumerate(self.indices):
            parts = [comparable(batch.column(index)).drop_null() for batch in collected]
            values = np.sort(np.concatenate([np.empty(0), *(part.to_numpy() for part in parts)]))
            if not len(values):
                continue
            steps = np.arange(_STEPS + 1) * (len(values) - 1)
            # Halves are rounded up.
            quantiles = values[(2 * steps + _STEPS) // (2 * _STEPS)]
            yield pa.record_batch(
                [pa.array([number], pa.int32()), pa.array([quantiles], pa.list_(pa.float64()))],
                schema=_QUANTILES,
            )


def _texts(original: Table, plan: PlannedValues) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Collect the different texts of a column, in order, and how often each occurs."""
    name = plan.reading.name
    counted = read_values(original, [plan.reading]).aggregate([name], count="records")
    # One more than are allowed, and missing.
    present = counted.collect(_MOST_TEXTS + 2).filter(pc.field(name).is_valid())
    texts = comparable(present.column(name).combine_chunks())
    order = order_of_texts(texts, plan.published)
    return texts.take(order).to_pylist(), present.column("records").take(order).to_numpy()


def order_of_texts(texts: pa.Array, published: PublishedAttribute | None) -> pa.Array:
    """Return the indices that sort different texts by their positions on an axis.

    >>> order_of_texts(pa.array(["b", "a"]), None).to_pylist()
    [1, 0]
    """
    table = pa.table({"text": texts})
    keys = [("text", "ascending")]
    if published is not None and published.rule == "prefix":
        # The order of code_key.
        table = table.append_column("length", pc.utf8_length(texts))
        keys = [("length", "ascending"), *keys]
    return pc.sort_indices(table, keys)
