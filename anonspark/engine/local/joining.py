"""Join batches with another table, whose rows are looked up by their hashes."""

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
    """Finds rows by some of their columns, in which no two are equal. Nulls equal nothing.

    >>> index = RowIndex(pa.table({"city": ["Ashford", "Oakport"]}), ["city"])
    >>> index.find(pa.table({"city": ["Oakport", None]})).tolist()
    [1, -1]
    """

    def __init__(self, rows: pa.Table, on: Sequence[str]) -> None:
        self._keys = rows.select(on).combine_chunks()
        hashes = xxhash64(self._keys.columns)
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def find(self, keys: pa.Table) -> npt.NDArray[np.int64]:
        """Return the index of the row that equals each key, or -1 if none does, int64 (keys,).

        The keys have the same columns in the same order.
        """
        hashes = xxhash64(keys.columns)
        numbers = np.full(len(keys), -1, np.int64)
        at = np.searchsorted(self._hashes, hashes)
        open_rows = np.arange(len(keys))
        # Rows with equal hashes are adjacent, and there are hardly ever two.
        while len(open_rows):
            open_rows = open_rows[at[open_rows] < len(self._hashes)]
            open_rows = open_rows[self._hashes[at[open_rows]] == hashes[open_rows]]
            candidates = self._order[at[open_rows]]
            are_equal = self._are_equal(keys, open_rows, candidates)
            numbers[open_rows[are_equal]] = candidates[are_equal]
            open_rows = open_rows[~are_equal]
            at[open_rows] += 1
        return numbers

    def _are_equal(
        self, keys: pa.Table, rows: npt.NDArray[np.int64], candidates: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Return which of some keys are equal to the candidates, pair by pair."""
        are_equal = np.ones(len(rows), bool)
        for column, other in zip(self._keys.columns, keys.columns, strict=True):
            pair = column.take(pa.array(candidates)), other.take(pa.array(rows)).cast(column.type)
            are_equal &= _equal(*pair)
        return are_equal


def _equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return which pairs are equal. NaN equals itself, and null equals nothing."""
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([x is not None and x == y for x, y in pairs], bool)
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        equal = pc.or_kleene(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return np.asarray(pc.fill_null(equal, False), bool)


class JoinRows:
    """Adds the columns of the row of another table that is equal to each row in some columns.

    ``stage`` and ``schema`` are those of the other table. ``names`` are columns of the batches, and
    ``new`` those of the other table, in the order of the result.
    """

    def __init__(
        self, stage: Stage, schema: pa.Schema, on: list[str], names: list[str], new: list[str]
    ) -> None:
        self._stage, self._schema = stage, schema
        self._on, self._names, self._new = on, names, new
        self._lock = threading.Lock()
        self._indexed: tuple[pa.Table, RowIndex] | None = None

    def _rows(self) -> tuple[pa.Table, RowIndex]:
        """Return the rows of the other table with their index, which is built once."""
        with self._lock:
            if self._indexed is None:
                batches = [batch for source in self._stage.sources() for batch in source()]
                rows = pa.Table.from_batches(batches, self._schema).combine_chunks()
                self._indexed = rows, RowIndex(rows, self._on)
            return self._indexed

    def __call__(self, batches: Batches) -> Batches:
        """Yield the batches with the columns of both."""
        for batch in batches:
            rows, index = self._rows()
            numbers = index.find(pa.Table.from_batches([batch.select(self._on)]))
            indices = pa.array(numbers, mask=numbers < 0)
            added = pa.table(rows.select(self._new)).take(indices).combine_chunks()
            columns = [*(batch.column(name) for name in self._names), *added.columns]
            yield from pa.table(columns, [*self._names, *self._new]).to_batches()
