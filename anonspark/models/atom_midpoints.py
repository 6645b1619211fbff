"""Records at the midpoints of their atoms, so that a tree over them never divides an atom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.core.columns import ATOM, code_column, quasi_identifier_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.tasks import Batches
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


def _codes(batch: pa.RecordBatch, quasi_identifiers: Sequence[QuasiIdentifier]) -> list[np.ndarray]:
    """Return the codes of records, as the quasi-identifiers have them."""
    if is_coded(batch.schema):
        return [batch.column(code_column(i)).to_numpy() for i in range(len(quasi_identifiers))]
    return [
        one.encode(batch.column(quasi_identifier_column(index)))
        for index, one in enumerate(quasi_identifiers)
    ]


def at_midpoints(records: Records, quasi_identifiers: Sequence[QuasiIdentifier]) -> Records:
    """Return records whose quasi-identifiers are the midpoints of their atoms' boxes.

    Parameters
    ----------
    records : Records
        With :data:`~anonspark.core.columns.ATOM`.
    quasi_identifiers : sequence of QuasiIdentifier

    Returns
    -------
    Records
        Of :class:`MidpointAxis`; for :func:`back_from_midpoints`.

    Notes
    -----
    Lazy; one shuffle of the boxes that tasks find, and one of the records.
    """
    d = len(quasi_identifiers)
    bounds = pa.schema(
        [
            (ATOM, pa.int64()),
            *((f"low_{index}", pa.int64()) for index in range(d)),
            *((f"high_{index}", pa.int64()) for index in range(d)),
        ]
    )
    middles = pa.schema(
        [(ATOM, pa.int64()), *((f"middle_{index}", pa.float64()) for index in range(d))]
    )
    raw = [*map(code_column if is_coded(records.schema) else quasi_identifier_column, range(d))]
    find = _FindBoxes(tuple(quasi_identifiers), bounds)
    boxes = records.map_batches(find, bounds, [ATOM, *raw]).add_up(
        [ATOM],
        least=[f"low_{index}" for index in range(d)],
        most=[f"high_{index}" for index in range(d)],
    )
    found = boxes.map_batches(_Middles(tuple(quasi_identifiers), middles), middles)
    rows = records.rows().join(found, [ATOM], small=False)
    others = [field for field in records.schema if field.name not in raw]
    schema = pa.schema(
        [
            *((quasi_identifier_column(index), pa.float64()) for index in range(d)),
            *((own_column(index), pa.int64()) for index in range(d)),
            *others,
        ]
    )
    moved = rows.map_batches(_Move(tuple(quasi_identifiers), schema), schema)
    return Records(moved.map_batches(PackRecords(), PACKED), schema)


def back_from_midpoints(records: pa.Table, d: int) -> pa.Table:
    """Return received records with the codes of their own values."""
    own = records.drop_columns([code_column(index) for index in range(d)])
    names = {own_column(index): code_column(index) for index in range(d)}
    return own.rename_columns([names.get(name, name) for name in own.column_names])


@dataclass(frozen=True)
class _FindBoxes:
    """Finds the box of each atom, batch by batch."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            atoms = batch.column(ATOM).to_numpy()
            order = np.argsort(atoms, kind="stable")
            names, starts = np.unique(atoms[order], return_index=True)
            if not len(names):
                continue
            codes = [one[order] for one in _codes(batch, self.quasi_identifiers)]
            low = [np.minimum.reduceat(one, starts) for one in codes]
            high = [np.maximum.reduceat(one, starts) for one in codes]
            arrays = [pa.array(one) for one in (names, *low, *high)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class _Middles:
    """Yields the midpoint of each atom."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            arrays = [batch.column(ATOM)]
            for index, one in enumerate(self.quasi_identifiers):
                low, high = (
                    one.positions(batch.column(f"{name}_{index}").to_numpy(zero_copy_only=False))
                    for name in ("low", "high")
                )
                arrays.append(pa.array(low + (high - low) / 2))
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


@dataclass(frozen=True)
class _Move:
    """Yields records with their midpoints, and the codes of their own values."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        d = len(self.quasi_identifiers)
        for batch in batches:
            own = _codes(batch, self.quasi_identifiers)
            arrays = [batch.column(f"middle_{index}") for index in range(d)]
            arrays += [pa.array(one) for one in own]
            arrays += [batch.column(field.name) for field in list(self.schema)[2 * d :]]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
