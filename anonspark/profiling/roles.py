"""Propose a role for each column, with the reason, for a person to correct.

Up to eight quasi-identifiers are proposed. Of other columns those of unknown meaning stay
unpublished.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anonspark.core.association import Dependency
from anonspark.core.recognition.names import (
    Meaning,
    is_key_name,
    may_be_unit_name,
    may_number_people,
    says_body,
    unit_of_name,
    weight_of_name,
)
from anonspark.core.recognition.values import DISEASE
from anonspark.engine.csv_beginning import POSITIONAL
from anonspark.pipeline.repeats import Counts, looks_like_key, units_first

Role = Literal["identifier", "quasi_identifier", "sensitive"]
Weighs = Literal["body", "record", "neither"]

MOST_QUASI_IDENTIFIERS = 8
MOST_SENSITIVE = 4

_NEARLY_ALL = 0.95
_MOSTLY_MISSING = 0.5
_MOST_CATEGORIES = 100_000
# Of criteria; see anonspark.core.criteria.
_MOST_SENSITIVE_VALUES = 50_000
_SURE = 0.99

# Values of these kinds are no keys of people.
_MEASURES = ("number", "date", "timestamp", "boolean")

_PERSONAL = {
    "e-mail address", "IBAN", "payment card", "UUID", "hash", "phone number", "street address",
    "coordinates", "name of a person", "network address",
}  # fmt: skip

NAMES_AND_PLACES = ("name of a person", "street address", "coordinates")
"""Values that name a person but are no keys: people share them, and have several records. So a
column of them is left out instead of being an identifier."""

# The names that pandas and R give to a column with the names of rows.
_INDEX = re.compile(r"Unnamed: ?\d+|__index_level_\d+__|row_?names", re.IGNORECASE)

_TO_CONVERT = ("other date", "other number")


@dataclass(frozen=True)
class Proposal:
    """The role that is proposed for a column, or None to leave it out.

    ``reason`` is for a person, and has no value of the data. ``is_name`` says whether the values
    are names or addresses of people, ``is_weight`` whether they may be sampling weights.
    """

    role: Role | None
    reason: str
    is_name: bool = False
    is_weight: bool = False


@dataclass(frozen=True)
class Described:
    """A column as far as its role depends on it.

    Parameters
    ----------
    kind : str
        See :class:`anonspark.profiling.profile.ColumnProfile`.
    meaning : Meaning or None
        The meaning of the name.
    form : str or None
        What the values look like.
    rows, missing, distinct, unique, few, largest, infinite : int
        See :class:`anonspark.profiling.counting.ColumnCounts`.
    separation : float
        Share of all pairs of records of the sample that differ in the column.
    remedy_for_days : str
        How to read days that are not written as 2026-01-31.
    length : int or None
        How many letters nearly all values have, or None if their lengths differ.
    numbers_things : bool
        Whether the values are texts or whole numbers, as those of keys.
    weighs : {"body", "record", "neither"} or None
        What numbers may be the weight of by their values: those of a body are below 700 and have
        one decimal at most, those of a record are not missing or negative. None if the name is not
        that of a weight.
    """

    name: str
    kind: str
    meaning: Meaning | None
    form: str | None
    rows: int
    missing: int
    distinct: int
    unique: int
    few: int
    largest: int
    infinite: int
    separation: float
    remedy_for_days: str = "convert them"
    length: int | None = None
    numbers_things: bool = True
    weighs: Weighs | None = None

    @property
    def looks_like(self) -> str | None:
        """Return the meaning of the values or, if these have no known form, of the name."""
        return self.form or (self.meaning.kind if self.meaning else None)

    @property
    def present(self) -> int:
        """Return the number of rows that have a value."""
        return self.rows - self.missing


def propose_roles(
    columns: Sequence[Described],
    dependencies: Sequence[Dependency] = (),
) -> dict[str, Proposal]:
    """Propose a role for each column, in their order.

    A quasi-identifier that another one gives away by a dependency is left out.
    """
    roles = {column.name: _alone(column) for column in columns}
    # If other columns have names, one without is the index that pandas or R wrote.
    is_named = [POSITIONAL.fullmatch(column.name) is None for column in columns]
    for name, has_name in zip(roles, is_named, strict=True):
        if _INDEX.fullmatch(name) or (any(is_named) and not has_name):
            roles[name] = Proposal("identifier", "an index of rows, as R and pandas write it")
    keys = keys_among(columns)
    for name, counts in keys.items():
        if roles[name].role != "identifier" and not roles[name].is_name:
            roles[name] = _of_people(name, counts)
    roles |= _weights(columns)
    by_name = {column.name: column for column in columns}
    ranked = sorted(
        (column for column in columns if roles[column.name].role == "quasi_identifier"),
        key=lambda column: column.meaning.rank if column.meaning else 0,
    )
    chosen = _chosen(ranked, roles, dependencies)
    possible = [
        column for column in columns if column.name not in keys and not roles[column.name].is_weight
    ]
    _fill_up(chosen, possible, roles, dependencies)
    sensitive = [name for name, proposal in roles.items() if proposal.role == "sensitive"]
    for name in sensitive[MOST_SENSITIVE:]:
        roles[name] = Proposal(
            None, f"{roles[name].reason}. Criteria of more than {MOST_SENSITIVE} columns cost much"
        )
    return {name: roles[name] for name in by_name}


def keys_among(columns: Sequence[Described]) -> dict[str, Counts]:
    """Return the columns that number people or households by their names, or look so by counts."""
    counts = {
        column.name: Counts(column.present, column.distinct, column.largest)
        for column in columns
        if column.numbers_things and column.form is None
    }
    rows = columns[0].rows if columns else 0
    return {name: count for name, count in counts.items() if looks_like_key(name, count, rows)}


def unit_of(columns: Sequence[Described], roles: Mapping[str, Proposal]) -> str | None:
    """Return the column that identifies people who have several records, or None if none does."""
    # An identifier that hardly repeats does so by accident, unless its name is that of a unit.
    repeated = {
        column.name: column.distinct < _NEARLY_ALL * column.rows and is_key_name(column.name)
        for column in columns
        if roles[column.name].role == "identifier"
        and column.distinct < column.present == column.rows
    }
    named = [name for name in units_first(keys_among(columns)) if name in repeated]
    return next(iter([*named, *(name for name, is_key in repeated.items() if is_key)]), None)


def _of_people(name: str, counts: Counts) -> Proposal:
    """Propose a column that numbers people by its name as an identifier, but not one by counts."""
    if not may_be_unit_name(name):
        reason = f"{counts.values:,} values in {counts.records:,} rows, as a number of people has"
        return Proposal(None, reason)
    units = "households" if unit_of_name(name) == "household" else "people"
    return Proposal("identifier", f"by its name it numbers {units}, and it repeats")


def _weights(columns: Sequence[Described]) -> dict[str, Proposal]:
    """Propose sampling weights as identifiers, because evaluate.risk.weights accepts these.

    The weight of a body is a column like others. If a name may mean both, the column is left out,
    and a person decides.
    """
    has_bodies = any(says_body(column.name) for column in columns)
    proposals = {}
    for column in columns:
        is_named = weight_of_name(column.name)
        if column.weighs is None or (has_bodies and not is_named):
            continue
        use = f"evaluate: {{risk: {{weights: {column.name}}}}}, if each row is another person"
        proposals[column.name] = (
            Proposal("identifier", f"by its name a sampling weight, for {use}", is_weight=True)
            if column.weighs == "record" or (is_named and column.weighs == "body")
            else Proposal(
                None, f"may be a sampling weight: then identifier, and {use}", is_weight=True
            )
        )
    return proposals


def _alone(column: Described) -> Proposal:
    """Propose a role by the name and the values of a column alone."""
    for rule in (_unusable, _identifier, _named):
        proposal = rule(column)
        if proposal is None:
            continue
        if proposal.role == "identifier" and column.looks_like in NAMES_AND_PLACES:
            return Proposal(None, f"{proposal.reason}. Never published", is_name=True)
        return proposal
    unknown = "meaning unknown"
    if column.kind in _TO_CONVERT:
        return Proposal(None, f"{unknown}, and {_conversion(column)}")
    if _is_shared_by_few(column):
        return Proposal(None, f"{unknown}, and hardly a value of it is shared by k records")
    return Proposal(None, unknown)


def _conversion(column: Described) -> str:
    """Say how to convert values of a form that is not read."""
    if column.kind == "other date":
        return f"days are not written as 2026-01-31: {column.remedy_for_days}"
    return "numbers are not written as 1234.5: convert them"


def _is_shared_by_few(column: Described) -> bool:
    """Return whether nearly all values are as rare as those of a key, which ranges do not hide.

    A set of texts names who is in it; a range of numbers does not.
    """
    is_text = column.kind in ("text", "code", "mixed")
    return is_text and column.few >= _NEARLY_ALL * column.present > 0


def _unusable(column: Described) -> Proposal | None:
    """Propose to leave a column out that cannot be published, or None if it can."""
    if column.kind == "nested":
        return Proposal(None, "an array, a map or binary: not judged, not published")
    if column.present == 0:
        return Proposal(None, "it has no values")
    if column.distinct == 1:
        return Proposal(None, "all records have the same value")
    return None


def _identifier(column: Described) -> Proposal | None:
    """Propose an identifying column as an identifier, or to leave it out, or return None."""
    form, kind, meaning = column.form, column.kind, column.meaning
    is_measure = kind in (*_MEASURES, *_TO_CONVERT)
    if form == "free text":
        return Proposal(None, "free text, which may name people")
    if form is not None and (form in _PERSONAL or form.startswith("identity number")):
        is_other = meaning is not None and meaning.role != "identifier"
        if not (form == "name of a person" and (is_other or 5 * column.distinct < column.present)):
            return Proposal("identifier", f"values look like: {form}")
    if meaning is not None and meaning.role == "identifier":
        if column.distinct <= 5 < column.present:
            return Proposal(None, f"the name says {meaning.kind}, of which it has few values")
        if meaning.kind == "free text":
            return Proposal(None, "the name says free text, which may name people")
        return Proposal("identifier", f"the name says: {meaning.kind}")
    if meaning is not None and meaning.role == "quasi_identifier":
        return None
    if _is_diagnosis(column):
        return None
    if is_key_name(column.name) and 5 * column.distinct >= column.present and kind != "number":
        return Proposal("identifier", "the name is that of a key, and there are many values")
    enough = _SURE if kind == "whole number" else _NEARLY_ALL
    if not is_measure and column.unique >= enough * column.present:
        return Proposal(
            "identifier", f"{column.unique / column.present:.0%} of its records have a unique value"
        )
    return None


def _is_diagnosis(column: Described) -> bool:
    """Return whether values are codes or names of diseases, which are no keys of people."""
    if column.kind not in ("text", "code") or may_number_people(column.name):
        return False
    if column.meaning is not None:
        return column.meaning.kind == "diagnosis"
    return column.form == DISEASE


def _named(column: Described) -> Proposal | None:
    """Propose a role by the meaning of a column, or return None if that is unknown."""
    if column.meaning is not None:
        reason, role = f"the name says: {column.meaning.kind}", column.meaning.role
    elif _is_diagnosis(column):
        reason, role = f"values look like: {column.form}", "sensitive"
    else:
        return None
    if column.kind in _TO_CONVERT:
        return Proposal(None, f"{reason}, but {_conversion(column)}")
    if role == "sensitive":
        is_number = column.kind in ("number", "whole number")
        if column.distinct > _MOST_SENSITIVE_VALUES and not is_number:
            return Proposal(None, f"{reason}, but has more values than criteria take")
        if column.largest > _NEARLY_ALL * column.rows:
            share = column.largest / column.rows
            return Proposal(None, f"{reason}, but {share:.1%} of all records have one value")
        if 2 * column.unique > column.present:
            if is_number:
                return Proposal(
                    "quasi_identifier", f"{reason}, but single values would single people out"
                )
            return Proposal(None, f"{reason}, but its values single people out")
        return Proposal("sensitive", reason)
    if column.missing > _MOSTLY_MISSING * column.rows:
        return Proposal(None, f"{reason}, but {column.missing / column.rows:.0%} of it is missing")
    obstacle = _obstacle(column)
    if obstacle is not None:
        return Proposal(None, f"{reason}, but {obstacle}")
    return Proposal("quasi_identifier", reason)


def _obstacle(column: Described) -> str | None:
    """Return why a column cannot be a quasi-identifier, or None if it can."""
    if column.infinite:
        return "some numbers are infinite"
    if column.kind in ("text", "code", "mixed") and column.distinct > _MOST_CATEGORIES:
        return f"has {column.distinct:,} different texts"
    return None


def _chosen(
    candidates: Sequence[Described], roles: dict[str, Proposal], dependencies: Sequence[Dependency]
) -> list[str]:
    """Choose up to eight quasi-identifiers in order, unless chosen ones give them away."""
    chosen: list[str] = []
    has_birth = any(
        column.meaning and column.meaning.kind == "date of birth" and _is_when(column)
        for column in candidates
    )
    for column in candidates:
        revealing = _given_away(column.name, chosen, dependencies)
        if revealing is not None:
            roles[column.name] = Proposal(None, f"{revealing} gives it away")
        elif has_birth and column.meaning is not None and column.meaning.kind == "age":
            roles[column.name] = Proposal(None, "the date of birth gives it away")
        elif len(chosen) >= MOST_QUASI_IDENTIFIERS:
            roles[column.name] = Proposal(
                None,
                f"{roles[column.name].reason}. Each of more than {MOST_QUASI_IDENTIFIERS} "
                "quasi-identifiers makes all others coarser",
            )
        else:
            chosen.append(column.name)
    return chosen


def _is_when(column: Described) -> bool:
    """Return whether values are days or years."""
    kind = column.kind
    return kind in ("date", "timestamp") or (kind == "whole number" and column.length == 4)


def _given_away(name: str, chosen: Sequence[str], dependencies: Sequence[Dependency]) -> str | None:
    """Return which chosen column gives another one away, or None if none does."""
    for dependency in dependencies:
        if (
            dependency.determines == name
            and dependency.column in chosen
            and dependency.holds >= _SURE
        ):
            return dependency.column
    return None


def _fill_up(
    chosen: list[str],
    columns: Sequence[Described],
    roles: dict[str, Proposal],
    dependencies: Sequence[Dependency],
) -> None:
    """Choose columns of unknown meaning, the most separating first, until there are eight."""
    candidates = [
        column
        for column in columns
        if roles[column.name].role is None
        and column.meaning is None
        and column.form is None
        and column.kind not in ("nested", "mixed", *_TO_CONVERT)
        and column.distinct > 1
        and column.missing <= _MOSTLY_MISSING * column.rows
        and not _is_shared_by_few(column)
        and _obstacle(column) is None
    ]
    for column in sorted(candidates, key=lambda column: -column.separation):
        revealing = _given_away(column.name, chosen, dependencies)
        if revealing is not None:
            roles[column.name] = Proposal(None, f"meaning unknown, and {revealing} gives it away")
        elif len(chosen) == MOST_QUASI_IDENTIFIERS:
            roles[column.name] = Proposal(
                None, f"meaning unknown, and there are {MOST_QUASI_IDENTIFIERS} others"
            )
        else:
            chosen.append(column.name)
            roles[column.name] = Proposal(
                "quasi_identifier",
                f"meaning unknown. Differs in {column.separation:.0%} of all pairs",
            )
