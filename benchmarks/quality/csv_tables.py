"""Public tables as columns of texts, in the order of their files."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MISSING = "?"
MAMMOGRAPHIC = "mammographic_masses.csv"
HOUSING = "california_housing.csv"
MAMMOGRAPHIC_SHA256 = "2ed8bb60a517f631256d218a4885c56ef196d41023c63307ab40d69985be3b4a"
"""Of the lines without the header; copies with 5 for the outlier BI-RADS = 55 have another."""
ADULT_FILES = ("adult_raw.csv", "adult_test.csv")
"""Training and test file, missing values included."""


@dataclass(frozen=True)
class Texts:
    """A table whose values are all taken as texts.

    Parameters
    ----------
    names : tuple of str
    rows : list of tuple of str
    """

    names: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def column(self, name: str) -> list[str]:
        """Return the values of a column."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def complete(self) -> Texts:
        """Leave out rows with a missing value: listwise deletion."""
        return Texts(self.names, [row for row in self.rows if MISSING not in row])


def read_texts(*paths: Path) -> Texts:
    """Read files with the same header, one under another."""
    names: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = []
    for path in paths:
        with path.open(newline="") as file:
            first, *others = csv.reader(file)
        if names and tuple(first) != names:
            raise ValueError(f"{path}: has another header than the file before")
        names = tuple(first)
        rows += map(tuple, others)
    return Texts(names, rows)


def read_mammographic(data: Path) -> Texts:
    """Read the mammographic masses, all 961 of them, and see that it is the original file.

    Raises
    ------
    ValueError
        If it is one of the changed copies.
    """
    path = data / MAMMOGRAPHIC
    _, _, lines = path.read_bytes().partition(b"\n")
    if hashlib.sha256(lines).hexdigest() != MAMMOGRAPHIC_SHA256:
        raise ValueError(f"{path}: the lines are not those of UCI's file 161")
    return read_texts(path)


def read_adult(data: Path) -> Texts:
    """Read both files of Adult, 48,842 records."""
    return read_texts(*(data / name for name in ADULT_FILES))


def lacking(data: Path, names: Sequence[str]) -> list[str]:
    """Return which files are not there."""
    return [name for name in names if not (data / name).exists()]
