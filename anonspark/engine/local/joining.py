"""A join as a function over batches: the rows of another table are looked up by their values."""

from __future__ import annotations

import threading

import pyarrow as pa

from anonspark.engine.local.matching import RowIndex
from anonspark.engine.local.stages import Stage
from anonspark.engine.tasks import Batches


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
        self, stage: Stage, schema: pa.Schema, on: list[str], own: list[str], new: list[str]
    ) -> None:
        self._stage, self._schema = stage, schema
        self._on, self._own, self._new = on, own, new
        self._turn = threading.Lock()
        self._found: tuple[pa.Table, RowIndex] | None = None

    def _rows(self) -> tuple[pa.Table, RowIndex]:
        with self._turn:
            if self._found is None:
                batches = [one for source in self._stage.sources() for one in source()]
                rows = pa.Table.from_batches(batches, self._schema).combine_chunks()
                self._found = rows, RowIndex(rows, self._on)
            return self._found

    def __call__(self, batches: Batches) -> Batches:
        """Yield the batches with the columns of both; the other rows are read once."""
        for batch in batches:
            rows, index = self._rows()
            found = index.find(pa.Table.from_batches([batch.select(self._on)]))
            places = pa.array(found, mask=found < 0)
            added = pa.table(rows.select(self._new)).take(places).combine_chunks()
            columns = [*(batch.column(name) for name in self._own), *added.columns]
            yield from pa.table(columns, [*self._own, *self._new]).to_batches()
