"""Records at the midpoints of their atoms, so that a tree over them never divides an atom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.core.columns import ATOM, code_column, quasi_identifier_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.tasks import Batches
from anonspark.layers.partition.distribution import Addressed, received_records, send_records
from anonspark.staged.keys import is_coded
from anonspark.staged.records import PACKED, PackRecords, Records


@dataclass(frozen=True)
class MidpointAxis(QuasiIdentifier):
    """A quasi-identifier of which there are positions alone.

    Parameters
    ----------
    of_values : float
        Unit of the quasi-identifier itself, whose ranges widths are compared by.
    """

    of_values: float = 1.0

    @property
    def unit(self) -> float:
        """Difference of positions that counts as 1: that of the values."""
        return self.of_values

    @classmethod
    def of(cls, own: QuasiIdentifier) -> MidpointAxis:
        """Return the axis of the midpoints of a quasi-identifier."""
        last = own.missing_code if own.has_missing else own.highest
        ends = own.positions(np.array([own.lowest, last], np.int64))
        axis = cls(own.name, "float", pa.float64(), 0, 0, of_values=own.unit)
        low, high = axis.encode(pa.array(ends)).tolist()
        return cls(own.name, "float", pa.float64(), low, high, of_values=own.unit)


def own_column(index: int) -> str:
    """Return the column of the codes of a record's own values."""
    return f"own_{index}"


def at_midpoints(
    records: Records, quasi_identifiers: Sequence[QuasiIdentifier], tasks: int
) -> Records:
    """Return records whose quasi-identifiers are the midpoints of their atoms' boxes.

    Parameters
    ----------
    records : Records
        With :data:`~anonspark.core.columns.ATOM`.
    quasi_identifiers : sequence of QuasiIdentifier
    tasks : int
        Number of tasks that the atoms are shared out to.

    Returns
    -------
    Records
        Of :class:`MidpointAxis`. For :func:`back_from_midpoints`.

    Notes
    -----
    Lazy. One shuffle of the whole records.
    """
    d = len(quasi_identifiers)
    name_of = code_column if is_coded(records.schema) else quasi_identifier_column
    raw = {name_of(index) for index in range(d)}
    others = [field for field in records.schema if field.name not in raw]
    schema = pa.schema(
        [
            *((quasi_identifier_column(index), pa.float64()) for index in range(d)),
            *((own_column(index), pa.int64()) for index in range(d)),
            *others,
        ]
    )
    sent = send_records(records, _AtomTasks(tasks), tasks)
    return Records(sent.map_batches(_Move(tuple(quasi_identifiers), schema), PACKED), schema)


def back_from_midpoints(records: pa.Table, d: int) -> pa.Table:
    """Return received records with the codes of their own values."""
    own = records.drop_columns([code_column(index) for index in range(d)])
    names = {own_column(index): code_column(index) for index in range(d)}
    return own.rename_columns([names.get(name, name) for name in own.column_names])


@dataclass(frozen=True)
class _AtomTasks:
    """Sends all records of an atom to one task. Names of atoms are mixed, so that all get some."""

    tasks: int

    def __call__(self, records: pa.Table, first: int) -> Addressed:  # noqa: ARG002 - not by place
        atoms = records.column(ATOM).to_numpy().view(np.uint64)
        return Addressed(records, (atoms % np.uint64(self.tasks)).astype(np.int64))


@dataclass(frozen=True)
class _Move:
    """Packs a task's records with the midpoints of their atoms, and the codes of their own values.

    Parameters
    ----------
    quasi_identifiers : tuple of QuasiIdentifier
    schema : pyarrow.Schema
        Of the records.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        return PackRecords()(self._moved(batches))

    def _moved(self, batches: Batches) -> Batches:
        records = received_records(batches)
        if records is None:
            return
        coded = is_coded(records.schema)
        _, of_records, sizes = np.unique(
            records.column(ATOM).to_numpy(), return_inverse=True, return_counts=True
        )
        order = np.argsort(of_records, kind="stable")
        starts = np.cumsum(sizes) - sizes
        middles, codes = [], []
        for index, one in enumerate(self.quasi_identifiers):
            name = code_column(index) if coded else quasi_identifier_column(index)
            column = records.column(name).combine_chunks()
            own = column.to_numpy().astype(np.int64) if coded else one.encode(column)
            in_order = own[order]
            low = one.positions(np.minimum.reduceat(in_order, starts))
            high = one.positions(np.maximum.reduceat(in_order, starts))
            codes.append(pa.array(own))
            middles.append(pa.array((low + (high - low) / 2)[of_records]))
        others = [records.column(field.name) for field in list(self.schema)[2 * len(codes) :]]
        moved = pa.Table.from_arrays([*middles, *codes, *others], schema=self.schema)
        yield from moved.combine_chunks().to_batches()
