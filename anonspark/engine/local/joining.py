"""A join as a function over batches: the rows of another table are looked up by their values."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.local.materialized import Stage
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import xxhash64


class RowIndex:
    """Finds rows by some of their columns.

    Parameters
    ----------
    rows : pyarrow.Table
        At most one is looked for by the same values.
    on : sequence of str
        Nulls agree with nothing.
    """

    def __init__(self, rows: pa.Table, on: Sequence[str]) -> None:
        self._keys = rows.select(on).combine_chunks()
        hashes = xxhash64(self._keys.columns)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def find(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        """Return the number of the row that agrees with each of some rows. -1 for none.

        Parameters
        ----------
        keys : pyarrow.Table
            The columns to agree in, in their order.
        """
        hashes = xxhash64(keys.columns)
        numbers = np.full(len(keys), -1, np.int64)
        places = np.searchsorted(self._hashes, hashes)
        open_rows = np.arange(len(keys))
        # Rows of one hash lie side by side: there are hardly ever two.
        while len(open_rows):
            inside = places[open_rows] < len(self._hashes)
            open_rows = open_rows[inside]
            alike = self._hashes[places[open_rows]] == hashes[open_rows]
            open_rows = open_rows[alike]
            candidates = self._order[places[open_rows]]
            agree = self._agree(keys, open_rows, candidates)
            numbers[open_rows[agree]] = candidates[agree]
            open_rows = open_rows[~agree]
            places[open_rows] += 1
        return numbers

    def _agree(
        self, keys: pa.Table, rows: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        agree = np.ones(len(rows), bool)
        for column, other in zip(self._keys.columns, keys.columns, strict=True):
            pair = column.take(pa.array(candidates)), other.take(pa.array(rows)).cast(column.type)
            agree &= _equal(*pair)
        return agree


def _equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([x is not None and x == y for x, y in pairs], bool)
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_kleene(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return np.asarray(pc.fill_null(equal, False), bool)


class JoinRows:
    """Adds to each batch the columns of the rows of another table that agree with its own.

    Parameters
    ----------
    stage : Stage
        Of the other table.
    schema : pyarrow.Schema
        Of the other table.
    on : list of str
    own, new : list of str
        Columns of the batches, and of the other table, in the order of the result.
    """

    def __init__(
        self, stage: Stage, schema: pa.Schema, on: list[str], kept_names: list[str], new: list[str]
    ) -> None:
        self._stage, self._schema = stage, schema
        self._on, self._own, self._new = on, kept_names, new
        self._turn = threading.Lock()
        self._found: tuple[pa.Table, RowIndex] | None = None

    def _rows(self) -> tuple[pa.Table, RowIndex]:
        with self._turn:
            if self._found is None:
                batches = [batch for source in self._stage.sources() for batch in source()]
                rows = pa.Table.from_batches(batches, self._schema).combine_chunks()
                self._found = rows, RowIndex(rows, self._on)
            return self._found

    def __call__(self, batches: Batches) -> Batches:
        """Yield the batches with the columns of both. The other rows are read once."""
        for batch in batches:
            rows, index = self._rows()
            numbers = index.find(pa.Table.from_batches([batch.select(self._on)]))
            places = pa.array(numbers, mask=numbers < 0)
            added = pa.table(rows.select(self._new)).take(places).combine_chunks()
            columns = [*(batch.column(name) for name in self._own), *added.columns]
            yield from pa.table(columns, [*self._own, *self._new]).to_batches()
