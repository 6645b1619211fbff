"""Read records of the input batch by batch: validate, hash and count them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.config import Configuration
from anonspark.core.columns import (
    PAYLOAD_HASH,
    RECORD_HASH,
    UNIT,
    WEIGHT,
    identifier_column,
    is_payload,
    payload_column,
    quasi_identifier_column,
)
from anonspark.engine.raw_columns import Reading, batch_with_one_zero, flags, is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.column_plans import PlannedColumn
from anonspark.engine.values.hashing import content_hash
from anonspark.engine.values.value_texts import blank_rows, read_values
from anonspark.engine.values.value_validation import Findings, Validated, validate


@dataclass(frozen=True)
class ReadRecords:
    """Reads and validates records, hashes them, and counts findings.

    Parameters
    ----------
    plans : tuple of PlannedColumn
        How the quasi-identifiers are read.
    carried : mapping of str to str
        Unchanged columns of the records: the staged name of each, and that in the input.
    markers : tuple of str
        Texts that mean missing.
    drops : bool
        Whether records with missing values are left out.
    seed : int or None
        Key of the hashes, or None to hash nothing.
    unit : tuple of str
        Columns that identify the unit that is counted, as people.
    companions : mapping of str to str
        Columns that travel with the records, but are not hashed, named as ``carried`` are.
    pseudonymous : bool
        Whether a pseudonym of the unit is published, and hashed with the unchanged columns.
    listed : tuple of str
        Columns of which a record has a value in at least one. Other rows are blank.
    """

    plans: tuple[PlannedColumn, ...]
    carried: Mapping[str, str]
    markers: tuple[str, ...]
    drops: bool
    seed: int | None = None
    unit: tuple[str, ...] = ()
    companions: Mapping[str, str] = field(default_factory=dict)
    pseudonymous: bool = False
    listed: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        plans: Sequence[PlannedColumn],
        configuration: Configuration,
        *,
        identifiers: bool = False,
        seed: int | None = None,
    ) -> ReadRecords:
        """Return the reader of a configuration's attributes, with identifiers if needed."""
        payload = configuration.published_as_is
        carried = {payload_column(index): name for index, name in enumerate(payload)}
        if identifiers:
            indexed = enumerate(configuration.identifiers)
            carried |= {identifier_column(index): name for index, name in indexed}
        weights = configuration.evaluate.risk.weights
        # Only staged records need weights, and only these are hashed.
        is_companion = seed is not None and weights in configuration.identifiers
        return cls(
            tuple(plans),
            carried,
            tuple(configuration.input.missing_markers),
            configuration.missing == "drop",
            seed,
            tuple(configuration.privacy.unit),
            {WEIGHT: weights} if weights and is_companion else {},
            pseudonymous=bool(configuration.output.pseudonyms),
            listed=tuple(configuration.columns_of_records),
        )

    @property
    def columns(self) -> list[str]:
        """Return the columns of the input that are read, each once."""
        names = [plan.column.name for plan in self.plans]
        # A column may have two roles.
        unread = (*self.carried.values(), *self.unit, *self.companions.values())
        return list(dict.fromkeys([*names, *unread]))

    def schema(self, source: pa.Schema) -> pa.Schema:
        """Return the schema of the records, from that of the input.

        In this order: quasi-identifiers, columns that are carried along, hashes of staged records,
        the unit, companions. A quasi-identifier with ``in_text`` is read as ``read_as`` to be
        checked, and then written as a text.
        """
        fields = []
        for index, plan in enumerate(self.plans):
            data_type = plan.read_as or source.field(plan.column.name).type
            data_type = pa.string() if plan.in_text is not None else data_type
            fields.append(pa.field(quasi_identifier_column(index), data_type))
        fields += [pa.field(name, source.field(old).type) for name, old in self.carried.items()]
        if self.seed is not None:
            fields += [pa.field(name, pa.int64()) for name in (RECORD_HASH, PAYLOAD_HASH)]
        fields += [pa.field(UNIT, pa.int64())] * bool(self.unit)
        fields += [
            pa.field(name, source.field(companion).type)
            for name, companion in self.companions.items()
        ]
        return pa.schema(fields)

    def of_columns(self, names: Collection[str], *, whole: bool) -> ReadRecords:
        """Return the reader of some staged columns, and of those that decide which records stay.

        If ``whole``, all records stay, and no column decides.
        """
        if not whole:
            return self
        carried = {name: old for name, old in self.carried.items() if name in names}
        validated = any(quasi_identifier_column(index) in names for index in range(len(self.plans)))
        unit = self.unit if UNIT in names else ()
        plans = self.plans if validated else ()
        return replace(self, plans=plans, carried=carried, drops=False, unit=unit, listed=())

    def records(self, batches: Batches, findings: Findings | None = None) -> Batches:
        """Yield the records that stay, from batches of :attr:`columns`, and count the findings."""
        for rows in map(batch_with_one_zero, batches):
            blank = blank_rows(rows, self.listed, self.markers)
            if findings is not None:
                findings.count("blank_rows", int(blank.sum()))
            batch = rows.filter(pa.array(~blank)) if blank.any() else rows
            validated = [
                validate(plan, batch.column(plan.column.name), self.markers) for plan in self.plans
            ]
            keep = self._staying(validated, len(batch))
            if findings is not None:
                findings.add(self.plans, validated, keep)
            columns: dict[str, object] = {
                quasi_identifier_column(i): column.values for i, column in enumerate(validated)
            }
            columns |= {name: batch.column(old) for name, old in self.carried.items()}
            added = self._units(batch)
            added |= {name: batch.column(companion) for name, companion in self.companions.items()}
            records = pa.RecordBatch.from_pydict(columns)
            if not keep.all():
                records = records.filter(pa.array(keep))
                added = {name: array.filter(pa.array(keep)) for name, array in added.items()}
            if self.seed is not None:
                people = [added[UNIT]] if self.pseudonymous else []
                records = self._hashed(records, people, findings)
            for name, array in added.items():
                records = records.append_column(name, array)
            yield records

    def _staying(self, validated: Sequence[Validated], rows: int) -> np.ndarray:
        """Return which records stay under the policy for missing values, bool (rows,)."""
        keep = np.ones(rows, bool)
        for column in validated if self.drops else ():
            keep &= ~column.missing
        return keep

    def _units(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the hash of each record's unit as a column, or no column if no unit is declared.

        It is null if a column of the unit is missing.
        """
        if not self.unit:
            return {}
        reading = Reading(UNIT, UNIT, None, ("", *self.markers))
        values, is_missing = [], np.zeros(len(batch), bool)
        for name in self.unit:
            column, missing = read_values(reading, batch.column(name))
            # With blanks, one key would be that of two people.
            values.append(pc.ascii_trim(column, " ") if is_text(column.type) else column)
            is_missing |= flags(missing)
        return {UNIT: pa.array(content_hash(values, self.seed), mask=is_missing)}

    def _hashed(
        self, records: pa.RecordBatch, people: Sequence[pa.Array], findings: Findings | None
    ) -> pa.RecordBatch:
        """Add the hash of each record's content, and that of its unchanged columns."""
        names = [name for name in records.schema.names if is_payload(name)]
        hashes = content_hash(records.columns, self.seed)
        payload = [*(records.column(name) for name in names), *people]
        payload_hashes = content_hash(payload, self.seed, rows=len(records))
        if findings is not None:
            findings.add_hashes(hashes)
        return pa.RecordBatch.from_arrays(
            [*records.columns, pa.array(hashes), pa.array(payload_hashes)],
            [*records.schema.names, RECORD_HASH, PAYLOAD_HASH],
        )
