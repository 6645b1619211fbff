"""The input as this process reads it: the one pass that judges, hashes, counts and stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import (
    PAYLOAD_HASH,
    RECORD_HASH,
    identifier_column,
    is_payload,
    payload_column,
    quasi_identifier_column,
)
from anonspark.core.fingerprints import table_fingerprint
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.columns.hashing import content_hash
from anonspark.engine.columns.judging import Found, Judged, judge
from anonspark.engine.columns.planning import (
    PlannedColumn,
    plan_columns,
    require_columns,
    require_types,
)
from anonspark.engine.protocol import InputColumn, OnBatches, Staged, Table
from anonspark.engine.raw_columns import require_distinct
from anonspark.engine.tasks import Batches


@dataclass(frozen=True)
class LocalInput:
    """A table as an :class:`anonspark.engine.protocol.Input`.

    Parameters
    ----------
    table : Table
        As it was opened.
    plans : tuple of PlannedColumn
        Of the quasi-identifiers.
    configuration : Configuration
    """

    table: Table
    plans: tuple[PlannedColumn, ...]
    configuration: Configuration

    @classmethod
    def of(
        cls, table: Table, configuration: Configuration, hierarchies: Mapping[str, Hierarchy]
    ) -> LocalInput:
        """Find each attribute's column in a table.

        Raises
        ------
        DataError
            If columns are missing or there twice, or hold what cannot be published.
        """
        names = table.schema.names
        require_distinct(names, configuration.attributes, "input")
        require_columns(names, configuration)
        require_types(table.schema, configuration)
        plans = plan_columns(table.schema, configuration, hierarchies)
        return cls(table, tuple(plans), configuration)

    @property
    def columns(self) -> Sequence[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        return [plan.column for plan in self.plans]

    def _reader(self, *, identifiers: bool = False) -> _ReadRecords:
        configuration = self.configuration
        payload = configuration.published_as_is
        carried = {payload_column(index): name for index, name in enumerate(payload)}
        if identifiers:
            own = enumerate(configuration.identifiers)
            carried |= {identifier_column(index): name for index, name in own}
        return _ReadRecords(
            self.plans,
            carried,
            tuple(configuration.input.missing_markers),
            configuration.missing == "drop",
        )

    def _read(self, reader: _ReadRecords) -> Table:
        wanted = [*self.configuration.quasi_identifiers, *reader.carried.values()]
        schema = reader.schema(self.table.schema)
        # A column may have two roles.
        return self.table.select(list(dict.fromkeys(wanted))).map_batches(reader, schema)

    @property
    def kept(self) -> Table:
        """The records that stay, as they are staged; lazy."""
        return self._read(self._reader())

    @property
    def identified(self) -> Table:
        """The same with their identifiers, which are not staged; lazy."""
        return self._read(self._reader(identifiers=True))

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values."""
        reader = replace(self._reader(), found=[])
        self._read(reader).count()
        return reader.total().as_dict(self.plans)

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count."""
        reader = replace(self._reader(), seed=seed, found=[])
        self._read(reader).map_batches(pack, schema).stage(path)
        total = reader.total()
        return Staged(
            reader.schema(self.table.schema),
            total.as_dict(self.plans),
            table_fingerprint(total.kept, total.hash_sum, total.hash_xor),
        )


@dataclass(frozen=True)
class _ReadRecords:
    """Judges the records of each task, and tells what it found in those of all.

    Parameters
    ----------
    plans : tuple of PlannedColumn
    carried : mapping of str to str
        Staged names of the columns that are taken along as they are, and their own.
    markers : tuple of str
        Texts that mean missing.
    drops : bool
        Whether records with missing values are left out.
    seed : int or None
        Key of the hashes; None where nothing is hashed.
    found : list of Found
        One of each task that is done.
    """

    plans: tuple[PlannedColumn, ...]
    carried: Mapping[str, str]
    markers: tuple[str, ...]
    drops: bool
    seed: int | None = None
    found: list[Found] | None = None

    def schema(self, given: pa.Schema) -> pa.Schema:
        """Return the schema of the records."""
        fields = []
        for index, plan in enumerate(self.plans):
            own = plan.read_as or given.field(plan.column.name).type
            own = pa.string() if plan.in_text is not None else own
            fields.append(pa.field(quasi_identifier_column(index), own))
        fields += [pa.field(name, given.field(own).type) for name, own in self.carried.items()]
        if self.seed is not None:
            fields += [pa.field(name, pa.int64()) for name in (RECORD_HASH, PAYLOAD_HASH)]
        return pa.schema(fields)

    def total(self) -> Found:
        """Return what was found in all records."""
        total = Found()
        for one in self.found or ():
            total.merge(one)
        return total

    def __call__(self, batches: Batches) -> Batches:
        found = Found()
        for batch in batches:
            judged = [judge(one, batch.column(one.column.name), self.markers) for one in self.plans]
            kept = self._kept(judged, len(batch))
            found.add(self.plans, judged, kept)
            columns = {quasi_identifier_column(i): one.values for i, one in enumerate(judged)}
            columns |= {name: batch.column(own) for name, own in self.carried.items()}
            records = pa.RecordBatch.from_pydict(columns)
            if not kept.all():
                records = records.filter(pa.array(kept))
            yield records if self.seed is None else self._hashed(records, found)
        if self.found is not None:
            self.found.append(found)

    def _kept(self, judged: Sequence[Judged], rows: int) -> np.ndarray:
        kept = np.ones(rows, bool)
        for one in judged if self.drops else ():
            kept &= ~one.missing
        return kept

    def _hashed(self, records: pa.RecordBatch, found: Found) -> pa.RecordBatch:
        names = [name for name in records.schema.names if is_payload(name)]
        hashes = content_hash(records.columns, self.seed)
        payload = [records.column(name) for name in names]
        own = content_hash(payload, self.seed, rows=len(records))
        found.add_hashes(hashes)
        return pa.RecordBatch.from_arrays(
            [*records.columns, pa.array(hashes), pa.array(own)],
            [*records.schema.names, RECORD_HASH, PAYLOAD_HASH],
        )
