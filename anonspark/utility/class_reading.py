"""Records of an original as values of its attributes and classes of a target, read in tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags, Integers
from anonspark.engine.raw_columns import Reading, is_text
from anonspark.engine.values.values import coded_values, read_values
from anonspark.release.raw_values import comparable
from anonspark.utility.learning import Target

_DENSE = 2**22

PART_BYTES = 2**25
"""Bytes of records of a task that are counted together."""


def read_column(reading: Reading, column: pa.ChunkedArray) -> tuple[pa.Array, Flags]:
    """Return the values of a column as numbers or texts that compare, and which are missing.

    Texts of a dictionary stay numbers of its different ones, of which several may be equal, and one
    null. No number is null.
    """
    if not pa.types.is_dictionary(column.type):
        values, missing = read_values(reading, column)
        return comparable(values), np.asarray(missing)
    texts, missing, codes = read_coded(reading, column)
    values = comparable(texts)
    coded = pa.DictionaryArray.from_arrays(pa.array(codes), values)
    return coded if is_text(values.type) else values.take(coded.indices), missing[codes]


def read_coded(
    reading: Reading, column: pa.ChunkedArray
) -> tuple[pa.Array, Flags, npt.NDArray[np.signedinteger]]:
    """Return values of a column, which of these are missing, and the place of each record's."""
    coded = coded_values(column)
    values, missing = read_values(reading, coded.dictionary)
    codes = pc.fill_null(coded.indices, len(values)).to_numpy(zero_copy_only=False)
    values = pa.concat_arrays([values, pa.nulls(1, values.type)])
    return values, np.append(np.asarray(missing), True), codes


def class_numbers(target: Target, reading: Reading, records: pa.Table) -> Integers:
    """Return the class of each record, int64 ndarray. To have none is one more of these."""
    texts, _, codes = read_coded(reading, records.column(reading.column))
    numbers = pc.fill_null(target.numbers(texts), float(len(target.classes)))
    classes: Integers = numbers.to_numpy(zero_copy_only=False).astype(np.int64)[codes]
    return classes


def count_values(
    encoded: pa.DictionaryArray, labels: Integers, classes: int
) -> tuple[pa.Array, Integers, Integers]:
    """Return different values with each of their classes, and the records of each such pair."""
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    values = len(encoded.dictionary)
    if values * classes <= _DENSE:
        every = count_pairs(codes, labels, values, classes).reshape(-1)
        some = np.flatnonzero(every)
        records = every[some]
    else:
        some, records = np.unique(codes * np.int64(classes) + labels, return_counts=True)
    return encoded.dictionary.take(pa.array(some // classes)), some % classes, records


def count_pairs(
    first: npt.NDArray[np.signedinteger], second: Integers, firsts: int, seconds: int
) -> Integers:
    """Return how many records have each pair of numbers, of shape (firsts, seconds)."""
    cells = first * np.int64(seconds)
    cells += second
    return np.bincount(cells, minlength=firsts * seconds).reshape(firsts, seconds)


@dataclass(frozen=True)
class ReadRecords:
    """Reads what is asked for of records. In tasks, so that no engine hands them over twice.

    Parameters
    ----------
    readings : mapping of int to Reading
        Of each attribute, by its place.
    target : Target
    label : Reading
        Of the target.
    drops_missing : bool
        Whether records with a missing value are left out.
    """

    readings: Mapping[int, Reading]
    target: Target
    label: Reading
    drops_missing: bool

    @property
    def columns(self) -> list[str]:
        """Columns that are read."""
        return list(
            dict.fromkeys([*(one.column for one in self.readings.values()), self.label.column])
        )

    def of(self, places: Collection[int]) -> ReadRecords:
        """Return who reads some attributes alone, if none of the others matters."""
        if self.drops_missing:
            return self
        some = {place: own for place, own in self.readings.items() if place in places}
        return replace(self, readings=some)

    def __call__(self, records: pa.Table) -> tuple[dict[int, pa.Array], Integers]:
        """Return the values by attribute, and the classes. To have none is one more of these.

        See :func:`read_column`.
        """
        classes = class_numbers(self.target, self.label, records)
        values: dict[int, pa.Array] = {}
        lacking = np.zeros(len(records), bool)
        for place, reading in self.readings.items():
            values[place], missing = read_column(reading, records.column(reading.column))
            if self.drops_missing:
                lacking |= missing
        if lacking.any():
            kept = pa.array(~lacking)
            values = {place: own.filter(kept) for place, own in values.items()}
            classes = classes[~lacking]
        return values, classes
