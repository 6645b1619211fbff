"""The different values of a sensitive attribute, with their shares, order and hierarchy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers


@dataclass(frozen=True)
class SensitiveValues:
    """The different values of a sensitive attribute.

    Parameters
    ----------
    name : str
        Of the attribute and its published column.
    values : pyarrow.Array
        In order. A null, which is a value of its own, comes last.
    shares : float64 ndarray of shape (values,)
        Of all records, those with each value.
    parents, heights : int64 ndarray of shape (nodes,)
        Nodes of its hierarchy bottom up, the values first. Empty where it has none.
    as_text : bool
        Whether values are compared as texts without blanks at their ends.
    is_ordered : bool
        Whether the order means something: numbers, times, and what was declared.
    """

    name: str
    values: pa.Array
    shares: Figures
    parents: Integers
    heights: Integers
    as_text: bool
    is_ordered: bool

    def encode(self, column: pa.Array) -> Integers:
        """Return the place of each value among :attr:`values`.

        Raises
        ------
        ValueError
            If a value is none of them: the files changed while they were read.
        """
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))
        if self.as_text:
            column = pc.utf8_trim_whitespace(column.cast(pa.string()))
        places = pc.index_in(column, value_set=self.values)
        if places.null_count:
            raise ValueError("a sensitive value appeared while the release was read")
        return places.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]
