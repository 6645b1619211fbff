"""Domains: the rows of an attribute's table of counts, which are declared and never looked up.

A value that occurs once would show by its mere presence, and so would an empty cell that is not
there. So every table has the rows of its domain, one for all other values, and one for missing
ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.columns.texts import parse, write
from anonspark.engine.columns.values import plain, read_values
from anonspark.engine.raw_columns import Reading, is_number, is_text

Integers = npt.NDArray[np.int64]

MOST_ROWS = 100_000
"""Rows of a table at most."""


@dataclass(frozen=True)
class Domain:
    """The rows of one attribute's table.

    Parameters
    ----------
    name : str
        The attribute.
    values : mapping of str to int
        Text of each declared value, without blanks around it, and its row.
    labels : tuple of str
        Of the rows, without those for other and missing values.
    edges : tuple of float
        Ascending: first value of each bin but the first one; empty where values are declared.
    """

    name: str
    values: Mapping[str, int] = field(default_factory=dict, repr=False)
    labels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()

    @classmethod
    def of_values(cls, name: str, values: Sequence[str]) -> Domain:
        """Return the domain of declared values."""
        return cls(name, {value: row for row, value in enumerate(values)}, tuple(values))

    @classmethod
    def of_groups(cls, name: str, groups: Mapping[str, str]) -> Domain:
        """Return the domain of groups, given that of each value."""
        labels = tuple(dict.fromkeys(groups.values()))
        rows = {label: row for row, label in enumerate(labels)}
        return cls(name, {value: rows[label] for value, label in groups.items()}, labels)

    @classmethod
    def of_edges(cls, name: str, edges: Sequence[float]) -> Domain:
        """Return the domain of bins: below the first edge, between edges, from the last one on."""
        ends = [str(int(one)) if float(one).is_integer() else repr(float(one)) for one in edges]
        between = [f"[{low}, {high})" for low, high in pairwise(ends)]
        labels = (f"below {ends[0]}", *between, f"from {ends[-1]}")
        return cls(name, {}, labels, tuple(edges))

    @property
    def has_values(self) -> bool:
        """Whether its rows are values, and no groups or bins."""
        return not self.edges and tuple(self.values) == self.labels

    @property
    def rows(self) -> int:
        """Rows of the table, those for other and missing values among them."""
        return len(self.labels) + 2

    @property
    def other(self) -> int:
        """The row of values that are not declared, or cannot be read."""
        return len(self.labels)

    @property
    def missing(self) -> int:
        """The row of missing values."""
        return len(self.labels) + 1

    @cached_property
    def _texts(self) -> pa.Array:
        return pa.array(list(self.values), pa.string())

    @cached_property
    def _rows(self) -> Integers:
        return np.array(list(self.values.values()), np.int64)

    def rows_of(self, column: pa.Array, markers: Sequence[str]) -> Integers:
        """Return the row of each value; there is none for which this is an error.

        Parameters
        ----------
        column : pyarrow.Array
            Of length n; of any type.
        markers : sequence of str
            Texts that mean missing.
        """
        column = plain(column)
        reading = Reading(self.name, self.name, None, ("", *markers))
        values, gone = read_values(reading, column)
        missing = np.asarray(gone.to_numpy(zero_copy_only=False), bool)
        rows = self._binned(values) if self.edges else self._declared(values)
        return np.where(missing, self.missing, rows)

    def _declared(self, values: pa.Array) -> Integers:
        texts = pc.ascii_trim(values if is_text(values.type) else write(values), " ")
        found = pc.index_in(texts.cast(pa.string()), value_set=self._texts)
        known = np.asarray(found.is_valid())
        places = pc.fill_null(found, 0).to_numpy(zero_copy_only=False)
        rows = self._rows if len(self._rows) else np.zeros(1, np.int64)
        return np.where(known, rows[places], self.other)

    def _binned(self, values: pa.Array) -> Integers:
        if is_text(values.type):
            numbers = parse(pc.ascii_trim(values, " ").cast(pa.string()), pa.float64())
        elif is_number(values.type):
            numbers = values.cast(pa.float64(), safe=False)
        else:
            return np.full(len(values), self.other, np.int64)
        read = np.asarray(numbers.is_valid())
        positions = pc.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False)
        bins = np.searchsorted(np.array(self.edges), positions, side="right")
        # Of texts, too: what is no number by its name is missing.
        bins = np.where(np.isnan(positions), self.missing, bins)
        return np.where(read, bins, self.other).astype(np.int64)
