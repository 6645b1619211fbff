"""Full-domain recoding as if records that are left out had not been in the input.

A rule's hierarchy is built over the values that occur, and an attribute has missing values if one
occurs: a record that is left out adds a leaf, or makes the top label one that may be missing. If
nothing may be published about such records, labels and losses are those of the published values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.columns import published_column, quasi_identifier_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.tasks import Batches
from anonspark.layers.generalize.classes import PublishedColumn
from anonspark.layers.generalize.full_domain import recode
from anonspark.layers.partition.lattice.domain import AttributeGroups
from anonspark.staged.records import PACKED, Records, packed_batch, unpack_batches

Counts = npt.NDArray[np.int64]

_CODES = pa.schema([("attribute", pa.int32()), ("code", pa.int64()), ("records", pa.int64())])


@dataclass(frozen=True)
class PublishedValues:
    """The quasi-identifiers as the published records alone show them.

    ``before`` are those of the whole input, ``after`` those of the published records, among which
    ``missing`` values of each are missing.
    """

    before: tuple[QuasiIdentifier, ...]
    after: tuple[QuasiIdentifier, ...]
    missing: tuple[int, ...]

    def pairs(self, index: int) -> tuple[AttributeGroups, AttributeGroups]:
        """Return the groups of a quasi-identifier, before and after."""
        return AttributeGroups(self.before[index], index), AttributeGroups(self.after[index], index)

    def new_top(self, index: int) -> tuple[str, str] | None:
        """Return the label of everything before and after, or None if it is the same."""
        tops = [recode(pair, pair.height).labels[0].as_py() for pair in self.pairs(index)]
        return None if tops[0] == tops[1] else (tops[0], tops[1])


@dataclass(frozen=True)
class _CountCodes:
    """Counts the codes of each quasi-identifier in one task."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]

    def __call__(self, batches: Batches) -> Batches:
        totals = [
            np.zeros(identifier.highest + 2, np.int64) for identifier in self.quasi_identifiers
        ]
        for batch in batches:
            for index, identifier in enumerate(self.quasi_identifiers):
                codes = identifier.encode(batch.column(quasi_identifier_column(index)))
                totals[index] += np.bincount(codes, minlength=len(totals[index]))
        for index, total in enumerate(totals):
            present = np.flatnonzero(total)
            attribute = np.full(len(present), index, np.int32)
            yield pa.RecordBatch.from_arrays(
                [pa.array(attribute), pa.array(present), pa.array(total[present])], schema=_CODES
            )


def _count_codes(records: Records, quasi_identifiers: tuple[QuasiIdentifier, ...]) -> list[Counts]:
    names = [quasi_identifier_column(index) for index in range(len(quasi_identifiers))]
    counted = records.map_batches(_CountCodes(quasi_identifiers), _CODES, names)
    rows = counted.aggregate(["attribute", "code"], sums=["records"]).collect().to_pylist()
    counts = [np.zeros(identifier.highest + 2, np.int64) for identifier in quasi_identifiers]
    for row in rows:
        counts[row["attribute"]][row["code"]] = row["records"]
    return counts


def count_published(
    records: Records,
    left_out: Records,
    quasi_identifiers: tuple[QuasiIdentifier, ...],
    from_files: Sequence[str],
) -> PublishedValues:
    """Count the values of the published records: those of all records minus those left out.

    ``records`` are all of the input, as staged, and ``left_out`` those that are not published. Each
    quasi-identifier has a hierarchy. ``from_files`` names those whose hierarchy comes from a file,
    which does not depend on records. Two jobs with one shuffle each of the different values of each
    task. These are collected, at most about 1,000,000 for each quasi-identifier.
    """
    totals, left_counts = (_count_codes(part, quasi_identifiers) for part in (records, left_out))
    after, missing = [], []
    for identifier, total, count in zip(quasi_identifiers, totals, left_counts, strict=True):
        published = total - count
        lacking = int(published[identifier.missing_code]) if identifier.has_missing else 0
        present = np.flatnonzero(published[: identifier.highest + 1])
        missing.append(lacking)
        after.append(_with_values(identifier, present, lacking > 0, identifier.name in from_files))
    return PublishedValues(quasi_identifiers, tuple(after), tuple(missing))


def _with_values(
    quasi_identifier: QuasiIdentifier, present: Counts, has_missing: bool, from_file: bool
) -> QuasiIdentifier:
    """Restrict a quasi-identifier, and its hierarchy unless from a file, to values that occur."""
    hierarchy = quasi_identifier.hierarchy
    if hierarchy is None:
        raise ValueError(f"{quasi_identifier.name} has no hierarchy")
    if not from_file:
        columns = [hierarchy.labels(level, present) for level in range(hierarchy.height + 1)]
        rows = [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        hierarchy = Hierarchy.from_rows(rows, hierarchy.height)
        present = np.arange(len(present))
    lowest, highest = (int(present[0]), int(present[-1])) if len(present) else (0, -1)
    return replace(
        quasi_identifier,
        lowest=lowest,
        highest=highest,
        categories=hierarchy.leaves,
        has_missing=has_missing,
        hierarchy=hierarchy,
    )


@dataclass(frozen=True)
class _RecodeClasses:
    """Gives staged classes the labels and losses that they have among the published values."""

    values: PublishedValues
    labels: Mapping[str, tuple[str, str]]

    def __call__(self, packed: Batches) -> Batches:
        for first, classes in unpack_batches(packed):
            recoded = self._relabelled(self._recoded(classes))
            yield pa.RecordBatch.from_pydict(packed_batch(first, recoded))

    def _relabelled(self, classes: pa.Table) -> pa.Table:
        for name, (before, after) in self.labels.items():
            column = classes.column(name)
            relabelled = pc.if_else(pc.equal(column, before), pa.scalar(after, column.type), column)
            classes = classes.set_column(classes.schema.get_field_index(name), name, relabelled)
        return classes

    def _recoded(self, classes: pa.Table) -> pa.Table:
        """Replace the labels and losses of classes by those among the published values."""
        for index in range(len(self.values.after)):
            names = [f"{name}_{index}" for name in ("lowest", "highest", "penalty", "loss")]
            levels = classes.column(f"level_{index}").to_numpy()
            labels = classes.column(names[0]).combine_chunks()
            new_labels = np.array(labels.to_pylist(), object)
            penalties, losses = np.zeros(len(levels)), np.zeros(len(levels))
            for level in np.unique(levels).tolist():
                rows = np.flatnonzero(levels == level)
                recoded = recode(self.values.pairs(index)[1], level)
                if level == self.values.after[index].height:
                    # One group, whose label may be another one now.
                    groups = np.zeros(len(rows), np.int64)
                else:
                    chosen = labels.take(pa.array(rows))
                    groups = pc.index_in(chosen, value_set=recoded.labels).to_numpy()
                new_labels[rows] = np.array(recoded.labels.to_pylist(), object)[groups]
                penalties[rows], losses[rows] = recoded.penalties[groups], recoded.losses[groups]
            texts = pa.array(new_labels.tolist(), labels.type)
            for name, column in zip(
                names, (texts, texts, pa.array(penalties), pa.array(losses)), strict=True
            ):
                classes = classes.set_column(classes.schema.get_field_index(name), name, column)
        return classes


def recode_classes(
    classes: Records, columns: Sequence[PublishedColumn], values: PublishedValues
) -> Records:
    """Give staged classes of full-domain recoding the labels and losses of the published values.

    ``classes`` are of :func:`anonspark.layers.generalize.figures.class_schema`, with labels as
    bounds. ``columns`` has one label for each quasi-identifier. Lazy, without a shuffle.
    """
    labels = {
        published_column(index): change
        for index, column in enumerate(columns)
        if (change := values.new_top(column.attribute)) is not None
    }
    recoded = classes.packed.map_batches(_RecodeClasses(values, labels), PACKED)
    return Records(recoded, classes.schema)
