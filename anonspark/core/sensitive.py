"""Sensitive attributes as numbers: their values in order, and each value's share of the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers


def comparable(values: pa.Array, *, as_text: bool) -> pa.Array:
    """Return values so that equal ones are equal to Arrow, too.

    Parameters
    ----------
    values : pyarrow.Array
    as_text : bool
        Whether they are compared as texts without blanks at their ends.
    """
    if pa.types.is_floating(values.type):
        # -0.0 and 0.0 are one value.
        values = pc.add(values, pa.scalar(0.0, values.type))
    return pc.utf8_trim_whitespace(values.cast(pa.string())) if as_text else values


@dataclass(frozen=True)
class SensitiveAttribute:
    """A sensitive attribute that a criterion is about.

    Parameters
    ----------
    name : str
        As configured.
    column : str
        Its staged column.
    values : pyarrow.Array
        Its different values in order. A null, which is a value of its own, comes last.
    counts : int64 ndarray of shape (values,)
        Records of the whole input with each value.
    parents, heights : int64 ndarray of shape (nodes,)
        Nodes of its hierarchy bottom up, the values first. Empty where it has none.
    as_text : bool
        Whether values are compared as texts without blanks at their ends, as those that a
        hierarchy or a declared order lists.
    """

    name: str
    column: str
    values: pa.Array
    counts: Integers
    parents: Integers
    heights: Integers
    as_text: bool = False

    @property
    def shares(self) -> Figures:
        """Share of each value in the whole input."""
        shares: Figures = self.counts / max(int(self.counts.sum()), 1)
        return shares

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Integers:
        """Return the place of each value among :attr:`values`.

        Raises
        ------
        ValueError
            If a value is none of them: the data changed after they were counted.
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        coded = pa.types.is_dictionary(column.type)
        values = comparable(column.dictionary if coded else column, as_text=self.as_text)
        places = pc.index_in(values, value_set=self.values)
        if coded:
            missing = pc.index_in(pa.nulls(1, self.values.type), value_set=self.values)[0]
            places = pc.if_else(column.is_null(), missing, places.take(column.indices))
        if places.null_count:
            raise ValueError("a sensitive value is unknown in the staged records")
        encoded: Integers = places.to_numpy(zero_copy_only=False).astype(np.int64)
        return encoded
