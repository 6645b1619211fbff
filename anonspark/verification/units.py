"""The people whom the records of each class are about, where ``privacy.unit`` tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.columns import UNIT
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text
from anonspark.engine.tasks import Batches

if TYPE_CHECKING:
    from anonspark.verification.claims import Claim

_UNITS, _CLASSES = "units", "classes"
_CLASS, _RECORDS = "class", "records"


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
    with_criteria : bool
        Whether criteria beyond k count people, too.
    agreeing : mapping of int to int or None
        Groups of each number of people who have as many records as each other in every class; None
        where the files do not tell which records are of one person.
    """

    unit: tuple[str, ...]
    classes: Mapping[int, int]
    not_published: tuple[str, ...] = ()
    with_criteria: bool = False
    agreeing: Mapping[int, int] | None = None

    @property
    def fewest_agreeing(self) -> int | None:
        """People who agree with somebody in the classes of all records, at least; with him."""
        return None if self.agreeing is None else min(self.agreeing)

    @property
    def alone(self) -> int | None:
        """People who agree with nobody else in the classes of all their records."""
        return None if self.agreeing is None else self.agreeing.get(1, 0)

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
        counted = "k and the criteria beyond it count" if self.with_criteria else "k counts"
        return [
            f"{counted} people, told apart by {_listed(self.unit)}; {_listed(self.not_published)} "
            "is not published, so the files prove that each class has k records, not that they are "
            "about k people: the run counted them before it published"
        ]


def people_of_records(data: Table, attribute: str, unit: Sequence[str], by: Sequence[str]) -> Table:
    """Return classes, values and whom records are about, told by a hash.

    Parameters
    ----------
    data : Table
        Published records.
    attribute : str
        A sensitive one.
    unit : sequence of str
        Attributes that tell people apart, published as they came.
    by : sequence of str
        Columns that form classes.

    Returns
    -------
    Table
        ``class_0`` and so on, ``value`` and :data:`~anonspark.core.columns.UNIT`.
    """
    classes = {f"class_{place}": name for place, name in enumerate(by)}
    people = {f"person_{place}": name for place, name in enumerate(unit)}
    chosen = data.select({**classes, "value": attribute, **people})
    trimmed = chosen.map_batches(_Trim(tuple(people)), chosen.schema)
    hashed = trimmed.with_hashes({UNIT: list(people)}, 0)
    return hashed.select([*classes, "value", UNIT])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def measure_units(
    data: Table, claim: Claim, counted: Mapping[int, int] | None
) -> MeasuredUnits | None:
    """Count the people of each class, or return what the run says of them.

    Parameters
    ----------
    data : Table
        Published records.
    claim : Claim
    counted : mapping of int to int or None
        Classes of each number of people, as the run counted them; None where it did not.

    Returns
    -------
    MeasuredUnits or None
        None where records count, or nobody says anything of people.

    Notes
    -----
    That of :func:`units_of_classes`, where the files tell people apart.
    """
    unit, told_apart = tuple(claim.privacy.unit), claim.people_columns
    if not unit:
        return None
    if told_apart:
        agreeing = people_who_agree(data, claim.columns, told_apart)
        classes = units_of_classes(data, claim.columns, told_apart)
        return MeasuredUnits(unit, classes, agreeing=agreeing)
    if counted is None:
        return None
    hidden = tuple(name for name in unit if name not in claim.as_they_came)
    return MeasuredUnits(unit, counted, hidden)


@dataclass(frozen=True)
class _Trim:
    """Takes blanks off the ends of texts: two spellings of a number are one person."""

    names: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            columns = [
                pc.ascii_trim(column, " ")
                if name in self.names and is_text(column.type)
                else column
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


@dataclass(frozen=True)
class _Numbers:
    """Yields the numbers of people alone."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield batch.select([_UNITS])


def people_who_agree(data: Table, columns: Sequence[str], unit: Sequence[str]) -> dict[int, int]:
    """Count the people who have as many records as each other in every class.

    Parameters
    ----------
    data : Table
        Published records.
    columns : sequence of str
        Those that form classes.
    unit : sequence of str
        Those that tell people apart.

    Returns
    -------
    dict of int to int
        Groups of each number of people.

    Notes
    -----
    One job with three shuffles: of people, of what their records add up to, and of groups. Who has
    the same classes is told by number, exact sum and exclusive or of 64-bit hashes of them.
    """
    classes = [f"class_{place}" for place in range(len(columns))]
    units = [f"person_{place}" for place in range(len(unit))]
    chosen = data.select(dict(zip([*classes, *units], [*columns, *unit], strict=True)))
    trimmed = chosen.map_batches(_Trim(tuple(chosen.schema.names)), chosen.schema)
    hashed = trimmed.with_hashes({_CLASS: classes}, 0).select([_CLASS, *units])
    people = hashed.aggregate(units, count=_RECORDS, hashes=_CLASS)
    alike = [_RECORDS, f"{_CLASS}_sum", f"{_CLASS}_xor"]
    groups = people.select(alike).aggregate(alike, count=_UNITS).select([_UNITS])
    found = groups.aggregate([_UNITS], count=_CLASSES).collect()
    return dict(zip(found[_UNITS].to_pylist(), found[_CLASSES].to_pylist(), strict=True))


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
    pairs = chosen.map_batches(_Trim((*classes, *units)), chosen.schema).aggregate(
        [*classes, *units]
    )
    numbers = pairs.aggregate(classes, count=_UNITS)
    schema = pa.schema([numbers.schema.field(_UNITS)])
    found = numbers.map_batches(_Numbers(), schema).aggregate([_UNITS], count=_CLASSES).collect()
    return dict(zip(found[_UNITS].to_pylist(), found[_CLASSES].to_pylist(), strict=True))
