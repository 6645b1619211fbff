"""The frozen source as the input of a run: the records of one recipient, or of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import ATOM, SUBJECT
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.engine.values.column_plans import PlannedColumn, plan_columns
from anonspark.engine.values.reading import ReadRecords
from anonspark.engine.values.record_input import RecordInput
from anonspark.sharing.recipients.freezing import PATTERN, column_of
from anonspark.sharing.recipients.frozen_source import FrozenSource


@dataclass(frozen=True)
class _Select:
    """Yields the records of one recipient under the names of the input."""

    names: tuple[str, ...]
    bit: int | None
    becomes: Mapping[int, int] | None = None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            patterns = batch.column(PATTERN).to_numpy(zero_copy_only=False)
            kept = patterns != 0
            if self.bit is not None:
                kept = (patterns >> self.bit & 1).astype(bool)
            if self.becomes is not None:
                now = np.array([self.becomes.get(one, 0) for one in patterns.tolist()], np.int64)
                kept &= now != 0
                if ATOM in batch.schema.names:
                    has_atom = batch.column(ATOM).is_valid().to_numpy(zero_copy_only=False)
                    kept |= has_atom & (patterns != 0)
            own = batch if kept.all() else batch.filter(pa.array(kept))
            yield pa.RecordBatch.from_arrays(own.columns[: len(self.names)], list(self.names))


@dataclass(frozen=True)
class OpenFrozen:
    """Opens the records of a recipient. See :data:`anonspark.engine.protocol.OpenInput`.

    Parameters
    ----------
    frozen : FrozenSource
    bit : int or None
        The recipient's place. None for all records that any recipient gets.
    with_patterns : bool
        Whether patterns travel beside the records.
    becomes : mapping of int to int, or None
        What becomes of the patterns of records without an atom. 0 are withheld.
    """

    frozen: FrozenSource
    bit: int | None
    with_patterns: bool = False
    becomes: Mapping[int, int] | None = None

    def __call__(
        self, configuration: Configuration, hierarchies: Mapping[str, Hierarchy]
    ) -> FrozenInput:
        """Open the records. Parameters as of :data:`anonspark.engine.protocol.OpenInput`."""
        companions = {SUBJECT: SUBJECT} | ({ATOM: ATOM} if self.frozen.has_atoms else {})
        companions |= {PATTERN: PATTERN} if self.with_patterns else {}
        # Whatever the columns of the input are called.
        taken = set(self.frozen.columns)
        for staged in companions:
            while companions[staged] in taken:
                companions[staged] += "_"
        schema = self.frozen.records.schema
        fields = [
            schema.field(column_of(index)).with_name(name)
            for index, name in enumerate(self.frozen.columns)
        ]
        fields += [schema.field(own).with_name(name) for own, name in companions.items()]
        given = pa.schema(fields)
        plans = tuple(plan_columns(given, configuration, hierarchies))
        return FrozenInput(
            self.frozen, self.bit, configuration, plans, given, companions, self.becomes
        )


@dataclass(frozen=True)
class FrozenInput(RecordInput):
    """The records of one recipient as an :class:`anonspark.engine.protocol.Input`.

    Parameters
    ----------
    frozen : FrozenSource
    bit : int or None
    configuration : Configuration
    plans : tuple of PlannedColumn
        Of the quasi-identifiers.
    given : pyarrow.Schema
        Of the records, under the names of the input.
    companions : mapping of str to str
        Staged names of what travels beside the records, and the names in ``given``.
    becomes : mapping of int to int, or None
    """

    frozen: FrozenSource
    bit: int | None
    configuration: Configuration
    plans: tuple[PlannedColumn, ...]
    given: pa.Schema
    companions: Mapping[str, str]
    becomes: Mapping[int, int] | None = None

    @property
    def engine(self) -> Engine:
        """That froze the source."""
        return self.frozen.records.engine

    @property
    def names(self) -> None:
        """Return nothing: the private copy has the columns that some recipient asked for."""
        return

    def reader(self, *, identifiers: bool = False, seed: int | None = None) -> ReadRecords:
        """Return what reads the records, with what travels beside those that are staged."""
        reader = super().reader(identifiers=identifiers, seed=seed)
        companions = {} if seed is None else self.companions
        # Which rows are records was decided for all recipients alike.
        return replace(reader, listed=(), companions=companions)

    def rows(self, names: Sequence[str]) -> Table:
        """Return some columns of the records. Lazy."""
        staged = {name: column_of(index) for index, name in enumerate(self.frozen.columns)}
        staged |= {name: own for own, name in self.companions.items()}
        wanted = [name for name in self.given.names if name in names]
        select = _Select(tuple(wanted), self.bit, self.becomes)
        needed = [PATTERN, *([ATOM] if self.becomes and self.frozen.has_atoms else [])]
        columns = list(dict.fromkeys([*(staged[name] for name in wanted), *needed]))
        schema = pa.schema(map(self.given.field, wanted))
        return self.frozen.records.map_batches(select, schema, columns)
