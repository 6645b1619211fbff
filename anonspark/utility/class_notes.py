"""The classes of values, noted while records are staged, so that no other pass need read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import Reading
from anonspark.engine.tasks import Batches
from anonspark.engine.values.planning import kind_of
from anonspark.release.regions import KIND_OF_RULE, PublishedAttribute, Rule
from anonspark.staged.records import unpack_table
from anonspark.utility.class_reading import read_coded, read_column
from anonspark.utility.learning import (
    LABELS,
    MOST_CLASSES,
    Target,
    reading_of_target,
    target_of,
)
from anonspark.utility.original import PlannedValues, plan_column
from anonspark.utility.value_counts import COUNTS, count_part, counts_table

Integers = npt.NDArray[np.int64]

# The place of the target, whose row comes first.
_TARGET = -1


@dataclass(frozen=True)
class NotedColumn:
    """A column of staged records.

    Parameters
    ----------
    name : str
        Of the attribute.
    column : str
        Of the records.
    rule : Rule or None
        What makes its hierarchy, if a rule does.
    """

    name: str
    column: str
    rule: Rule | None = None


@dataclass(frozen=True)
class NoteClasses:
    """Notes of a batch of records how many of each class of a target each value has.

    Parameters
    ----------
    quasi_identifiers : tuple of NotedColumn
        Sorted by name.
    target : NotedColumn
    missing_markers : tuple of str
    """

    quasi_identifiers: tuple[NotedColumn, ...]
    target: NotedColumn
    missing_markers: tuple[str, ...]

    def plans(self, schema: pa.Schema) -> list[PlannedValues] | None:
        """Return how values of staged records are read; None where some cannot be."""
        plans = []
        for place, one in enumerate(self.quasi_identifiers):
            found = _plain(schema.field(one.column).type)
            kind = KIND_OF_RULE[one.rule] if one.rule else kind_of(found)
            if kind is None:
                return None
            # Of the release, this is what decides how values are read.
            published = PublishedAttribute(
                one.name, kind, "", (one.name,), None if one.rule else str(found), one.rule
            )
            plan = plan_column(found, one.name, published, self.missing_markers, place)
            if plan is None:
                return None
            plans.append(plan)
        return plans

    def label(self, schema: pa.Schema) -> Reading | None:
        """Return how the target of staged records is read; None where it cannot be."""
        found = _plain(schema.field(self.target.column).type)
        return reading_of_target(found, self.target.name, self.missing_markers)

    def __call__(self, records: pa.Table) -> pa.Table:
        """Return rows of :data:`~anonspark.utility.value_counts.COUNTS`, first those of the target.

        The classes of the others are numbers of its texts, of which the records of each are told.
        With more of them than a target has, there is no other row, and not all of them are told.
        """
        plans, label = self.plans(records.schema), self.label(records.schema)
        if plans is None or label is None:
            return COUNTS.empty_table()
        classes, labels = _classes(label, records.column(self.target.column))
        told = classes.slice(0, MOST_CLASSES + 1)
        counts = np.bincount(labels, minlength=len(told))[: len(told)]
        tables = [counts_table(_TARGET, np.arange(len(told)), counts, text=told)]
        if len(classes) <= MOST_CLASSES:
            for place, (one, plan) in enumerate(zip(self.quasi_identifiers, plans, strict=True)):
                values, _ = read_column(plan.reading, records.column(one.column))
                tables.append(count_part(place, values, labels, len(classes)))
        return pa.concat_tables(tables)


def _plain(found: pa.DataType) -> pa.DataType:
    return found.value_type if pa.types.is_dictionary(found) else found


def _classes(label: Reading, column: pa.ChunkedArray) -> tuple[pa.Array, Integers]:
    """Return the different texts that records have, and the number of each record's."""
    texts, _, codes = read_coded(label, column)
    texts = texts.cast(pa.string())
    some = np.bincount(codes, minlength=len(texts)) > 0
    classes = texts.filter(pa.array(some)).drop_null().unique()
    numbers = pc.fill_null(pc.index_in(texts, value_set=classes, skip_nulls=True), len(classes))
    return classes, numbers.to_numpy(zero_copy_only=False).astype(np.int64)[codes]


@dataclass(frozen=True)
class NotedClasses:
    """What was noted of records.

    Parameters
    ----------
    note : NoteClasses
    notes : Table
        Of one column, the notes of each batch.
    schema : pyarrow.Schema
        Of the records.
    """

    note: NoteClasses
    notes: Table
    schema: pa.Schema

    def target(self, key: str) -> Target | None:
        """Find the classes of the target; None where they could not be noted.

        Parameters
        ----------
        key : str
            What named it, for messages.

        Raises
        ------
        ConfigurationError
            If it is no category of 2 to 100 values.

        Notes
        -----
        One job over the notes; the different values are collected.
        """
        if self.note.plans(self.schema) is None or self.note.label(self.schema) is None:
            return None
        counted = self.notes.map_batches(_TellTarget(), LABELS)
        return target_of(counted, self.note.target.name, self.note.missing_markers, key)

    def parts(self, plans: Sequence[PlannedValues], target: Target) -> Table | None:
        """Return what batches tell of values, None where they were read otherwise; lazy.

        Parameters
        ----------
        plans : sequence of PlannedValues
            Sorted by name.
        target : Target

        Returns
        -------
        Table or None
            Of :data:`~anonspark.utility.value_counts.COUNTS`, with the classes of the target.
        """
        own = self.note.plans(self.schema)
        alike = (
            own is not None
            and [(one.scale, one.reading) for one in own]
            == [(one.scale, one.reading) for one in plans]
            and (target.name, target.missing_markers)
            == (self.note.target.name, self.note.missing_markers)
        )
        return self.notes.map_batches(_TellParts(target), COUNTS) if alike else None


@dataclass(frozen=True)
class _TellTarget:
    """Tells the texts of the target, and the records of each."""

    def __call__(self, batches: Batches) -> Batches:
        for target, _ in _read(batches):
            yield from target.select(["text", "records"]).rename_columns(LABELS.names).to_batches()


@dataclass(frozen=True)
class _TellParts:
    """Tells what was noted of attributes, with the numbers of the target's classes."""

    target: Target

    def __call__(self, batches: Batches) -> Batches:
        none = len(self.target.classes)
        place = COUNTS.get_field_index("class")
        for target, others in _read(batches):
            own = pc.fill_null(self.target.numbers(target["text"].combine_chunks()), float(none))
            # Records without a class come behind.
            numbers = np.append(own.to_numpy(zero_copy_only=False), none).astype(np.int32)
            classes = pa.array(numbers[others["class"].to_numpy()])
            yield from others.set_column(place, "class", classes).to_batches()


def _read(batches: Batches) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield what each note tells of the target, and of the attributes."""
    for batch in batches:
        for note in batch.column(0):
            rows = unpack_table(note)
            is_target = pc.equal(rows["place"], _TARGET)
            yield rows.filter(is_target), rows.filter(pc.invert(is_target))
