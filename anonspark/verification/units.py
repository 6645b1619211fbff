"""The people whom the records of each class are about, where ``privacy.unit`` tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text
from anonspark.engine.tasks import Batches

if TYPE_CHECKING:
    from anonspark.verification.claims import Claim

K_UNITS = "k units"
"""What the table of criteria calls it."""

_UNITS, _CLASSES = "units", "classes"


@dataclass(frozen=True)
class MeasuredUnits:
    """The people of the classes of a release.

    Parameters
    ----------
    unit : tuple of str
        The attributes that tell them apart.
    classes : mapping of int to int
        Classes of each number of people.
    not_published : tuple of str
        Of the attributes those without which the files do not show it: then the run counted.
    """

    unit: tuple[str, ...]
    classes: Mapping[int, int]
    not_published: tuple[str, ...] = ()

    @property
    def fewest(self) -> int:
        """People of the class that has the fewest."""
        return min(self.classes)

    def broken(self, k: int) -> list[str]:
        """Tell which promise is not kept, in one sentence at most."""
        if self.fewest >= k:
            return []
        return [
            f"the records of a class of the release are about {self.fewest:,} people, expected k = "
            f"{k} at least; the release must not be used"
        ]

    def warnings(self) -> list[str]:
        """Tell what the files do not prove, in one sentence at most."""
        if not self.not_published:
            return []
        return [
            f"k counts people, told apart by {_listed(self.unit)}; {_listed(self.not_published)} is"
            " not published, so the files prove that each class has k records, not that they are "
            "about k people: the run counted them before it published"
        ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def measure_units(data: Table, claim: Claim) -> MeasuredUnits | None:
    """Count the people of each class, or return what the run says of them.

    Parameters
    ----------
    data : Table
        Published records.
    claim : Claim

    Returns
    -------
    MeasuredUnits or None
        None where records count, or nobody says anything of people.

    Notes
    -----
    That of :func:`units_of_classes`, where the files tell people apart.
    """
    unit = tuple(claim.privacy.unit)
    hidden = tuple(name for name in unit if name not in claim.as_they_came)
    if not unit or (hidden and claim.units is None):
        return None
    if hidden:
        return MeasuredUnits(unit, claim.units or {}, hidden)
    return MeasuredUnits(unit, units_of_classes(data, claim.columns, unit))


@dataclass(frozen=True)
class _Trim:
    """Takes blanks off the ends of texts: two spellings of a number are one person."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            columns = [
                pc.ascii_trim(column, " ") if is_text(column.type) else column
                for column in batch.columns
            ]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


@dataclass(frozen=True)
class _Numbers:
    """Yields the numbers of people alone."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield batch.select([_UNITS])


def units_of_classes(data: Table, columns: Sequence[str], unit: Sequence[str]) -> dict[int, int]:
    """Count the people of each class in published records.

    Parameters
    ----------
    data : Table
    columns : sequence of str
        Those that form classes.
    unit : sequence of str
        Those that tell people apart, published as they came.

    Returns
    -------
    dict of int to int
        Classes of each number of people.

    Notes
    -----
    One job with two shuffles: of the different pairs of a class and a person, and of the classes.
    """
    classes = [f"class_{place}" for place in range(len(columns))]
    units = [f"person_{place}" for place in range(len(unit))]
    chosen = data.select(dict(zip([*classes, *units], [*columns, *unit], strict=True)))
    pairs = chosen.map_batches(_Trim(), chosen.schema).add_up([*classes, *units])
    numbers = pairs.add_up(classes, count=_UNITS)
    schema = pa.schema([numbers.schema.field(_UNITS)])
    found = numbers.map_batches(_Numbers(), schema).add_up([_UNITS], count=_CLASSES).gather()
    return dict(zip(found[_UNITS].to_pylist(), found[_CLASSES].to_pylist(), strict=True))
