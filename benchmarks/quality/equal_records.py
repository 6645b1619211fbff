"""The thesis' "optimized k-anonymity", which the package does not do.

Records of a class that are equal in all quasi-identifiers, and are at least k, keep their values;
what is left of the class is generalized alone, however few it is, so that classes smaller than k
are published. Made safe, a rest is empty or at least k.
"""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from quality.csv_tables import Texts

SEVEN = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex")
NUMBERS = ("age",)
_ROW = "row"

Tuple = tuple[str, ...]


@dataclass(frozen=True)
class EqualRecords:
    """What keeping equal records would do to the classes of smondrian.

    Parameters
    ----------
    classes : int
    below : int
        Records in classes smaller than k, as written.
    gcp : float
        Mean certainty penalty of a value, before.
    gcp_safe : float
        The same where rests are empty or at least k.
    """

    classes: int
    below: int
    gcp: float
    gcp_safe: float


def keep_equal_records(table: Texts, k: int, columns: Sequence[str] = SEVEN) -> EqualRecords:
    """Cut a table by smondrian, and let records keep their values where they are equal."""
    values = list(zip(*(table.column(name) for name in columns), strict=True))
    penalty = _Penalty(values, columns)
    below, before, after = 0, 0.0, 0.0
    classes = smondrian_classes(table, columns, k)
    for rows in classes:
        equal = Counter(values[row] for row in rows)
        left = sum(records for records in equal.values() if records < k)
        if 0 < left < k:
            below += left
        rest = {value: records for value, records in equal.items() if records < k}
        others = sorted((value for value in equal if value not in rest), key=equal.__getitem__)
        while 0 < sum(rest.values()) < k:
            # Every class has k records, so one is there.
            smallest = others.pop(0)
            rest[smallest] = equal[smallest]
        before += penalty.of(equal)
        after += penalty.of(rest)
    cells = len(values) * len(columns)
    return EqualRecords(len(classes), below, before / cells, after / cells)


def smondrian_classes(table: Texts, columns: Sequence[str], k: int) -> list[list[int]]:
    """Return the rows of each class of a release, of sets of neighbours in code point order."""
    attributes: dict[str, object] = {
        name: {"role": "quasi_identifier"} | ({"type": "number"} if name in NUMBERS else {})
        for name in columns
    }
    with tempfile.TemporaryDirectory(prefix="anonspark-equal-") as folder:
        path, release = Path(folder) / "table.csv", f"{folder}/release"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow((*columns, _ROW))
            own = zip(*(table.column(name) for name in columns), strict=True)
            writer.writerows((*each, f"row {place}") for place, each in enumerate(own))
        document = {
            "input": {"path": str(path), "format": "csv", "options": {"header": "true"}},
            # Published as it is, which nobody should do: here it tells who is in which class.
            "attributes": attributes | {_ROW: "insensitive"},
            "privacy": {"k": k},
            "model": {"name": "smondrian"},
            "output": {"path": release},
            "execution": {"seed": 2**40 + 1},
        }
        run(LocalEngine(), parse_configuration(document))
        published = pq.read_table(f"{release}/data").to_pylist()
    classes: dict[Tuple, list[int]] = {}
    for one in published:
        own_class = classes.setdefault(tuple(str(one[name]) for name in columns), [])
        own_class.append(int(one[_ROW].removeprefix("row ")))
    return list(classes.values())


class _Penalty:
    """Adds up the certainty penalties of classes: widths by the width of the table.

    Categories are as wide as their places in code point order are apart.
    """

    def __init__(self, values: Sequence[Tuple], columns: Sequence[str]) -> None:
        self._places: list[dict[str, float]] = []
        for name, column in zip(columns, zip(*values, strict=True), strict=True):
            texts = sorted(set(column))
            numbers = map(float, texts) if name in NUMBERS else range(len(texts))
            self._places.append(dict(zip(texts, map(float, numbers), strict=True)))
        self._widths = [max(one.values()) - min(one.values()) for one in self._places]

    def of(self, records: dict[Tuple, int]) -> float:
        """Return the penalty of one class, given how many records each tuple has."""
        if not records:
            return 0.0
        columns = zip(zip(*records, strict=True), self._places, self._widths, strict=True)
        widths = 0.0
        for own, places, whole in columns:
            found = [places[value] for value in own]
            widths += (max(found) - min(found)) / whole
        return sum(records.values()) * widths
