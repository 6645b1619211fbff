"""Records of an original as values of its attributes and classes of a target, read in tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.columns.values import read_values
from anonspark.engine.raw_columns import Reading
from anonspark.release.raw_values import comparable
from anonspark.utility.learning import Target, coded_values

Integers = npt.NDArray[np.int64]

_DENSE = 2**22

PART_BYTES = 2**25
"""Of so many bytes of records of a task together it is counted at once."""


def read_column(reading: Reading, records: pa.Table) -> tuple[pa.Array, pa.Array]:
    """Return the values of a column of some records, and which of them are missing."""
    return read_values(reading, records.column(reading.column))


def class_numbers(target: Target, reading: Reading, records: pa.Table) -> Integers:
    """Return the class of each record, int64 ndarray; to have none is one more of these."""
    coded = coded_values(records.column(reading.column))
    numbers = target.numbers(read_values(reading, coded.dictionary)[0])
    none = len(target.classes)
    of_values = pc.fill_null(numbers, float(none)).to_numpy(zero_copy_only=False)
    codes = pc.fill_null(coded.indices, len(of_values)).to_numpy(zero_copy_only=False)
    classes: Integers = np.append(of_values, none).astype(np.int64)[codes]
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
    """Reads what is asked for of records; in tasks, so that no engine hands them over twice.

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
        """Return the values by attribute, and the classes; to have none is one more of these."""
        classes = class_numbers(self.target, self.label, records)
        values: dict[int, pa.Array] = {}
        lacking = np.zeros(len(records), bool)
        for place, reading in self.readings.items():
            own, missing = read_column(reading, records)
            values[place] = comparable(own)
            if self.drops_missing:
                lacking |= np.asarray(missing)
        if lacking.any():
            kept = pa.array(~lacking)
            values = {place: own.filter(kept) for place, own in values.items()}
            classes = classes[~lacking]
        return values, classes
