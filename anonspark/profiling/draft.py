"""A configuration that is drafted from a profile: roles, types, hierarchies, criteria."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from anonspark.config.variables import escaped
from anonspark.core.criterion import proposed_l
from anonspark.core.recognition.names import unit_of_name, weight_of_name
from anonspark.core.recognition.values import DISEASE
from anonspark.errors import DataError
from anonspark.foreign_text import json_text
from anonspark.profiling.profile import MISSING_MARKERS, ColumnProfile, Profile
from anonspark.profiling.roles import NAMES_AND_PLACES
from anonspark.profiling.source import Source

Role = Literal["identifier", "quasi_identifier", "sensitive", "insensitive"]

_MEASURED = ("whole number", "number")
_MOST_CLASSES = 100
_MAY_MISS = 0.01
_TYPES = {
    "whole number": "number",
    "number": "number",
    "date": "date",
    "timestamp": "timestamp",
    "mixed": "text",
    "code": "text",
}


@dataclass(frozen=True)
class DraftedAttribute:
    """A line of the section ``attributes``.

    Parameters
    ----------
    name : str
    role : str or None
        None is a comment: not published.
    reason : str
    options : dict of str to str
        What stands beside the role, as YAML. Of one that is not published, beside that of a
        quasi-identifier.
    usable : bool
        Whether it could be a quasi-identifier.
    hint : str or None
        Another way to write it.
    """

    name: str
    role: Role | None
    reason: str
    options: dict[str, str] = field(default_factory=dict)
    hint: str | None = None
    usable: bool = True


@dataclass(frozen=True)
class Criterion:
    """A criterion of a sensitive attribute.

    Parameters
    ----------
    attribute : str
    l : int
        Different values of each class.
    reason : str
    """

    attribute: str
    l: int  # noqa: E741 - its name in the literature
    reason: str


@dataclass(frozen=True)
class Draft:
    """A configuration to be written.

    Parameters
    ----------
    source : Source
        With the options that its files are read with.
    rows : int
    attributes : list of DraftedAttribute
    k : int
    criteria : list of Criterion
    missing : str
    unit : str or None
    unit_reason : str
        What k counts by it.
    possible_units : tuple of str or None
        Without a unit, columns that may be one. None where each row is a person for sure.
    weights : str or None
        Column of sampling weights.
    output : str
    target : str or None
        Sensitive attribute that orders of categories can be learned from.
    missing_markers : tuple of str
        Texts that mean missing. None, if they are those of any table.
    """

    source: Source
    rows: int
    attributes: list[DraftedAttribute]
    k: int
    criteria: list[Criterion]
    missing: str
    unit: str | None
    unit_reason: str
    possible_units: tuple[str, ...] | None
    weights: str | None
    output: str
    target: str | None
    missing_markers: tuple[str, ...]


@dataclass(frozen=True)
class Answers:
    """What a person said. None takes what the profile proposes.

    Parameters
    ----------
    roles : mapping of str to str, or None
        Of each column that has one.
    k : int
    output : str
    unit : str or None
        Column that numbers people or households. None where each row is a person. It counts where
        there are roles.
    weighted : bool
        Whether quasi-identifiers get the weights of the profile.
    """

    roles: Mapping[str, Role] | None
    k: int
    output: str
    unit: str | None = None
    weighted: bool = False


def draft_configuration(profile: Profile, answers: Answers) -> Draft:
    """Draft a configuration from what a profile proposes, or a person answered."""
    roles = _roles(profile, answers)
    quasi = [column for column in profile.columns if roles[column.name][0] == "quasi_identifier"]
    unit = profile.unit if answers.roles is None else answers.unit
    people = next(
        (column.counts.distinct for column in profile.columns if column.name == unit), profile.rows
    )
    if people < answers.k:
        units = "rows" if unit is None else f"values of {unit}"
        raise DataError(
            f"DATA: {profile.source.path} has {people:,} {units}, and k = {answers.k:,} needs that "
            "many at least. Nothing was written. Take more records, or a smaller --k"
        )
    if not quasi:
        raise DataError(
            f"DATA: no column of {profile.source.path} can be proposed as a quasi-identifier, and "
            "a configuration needs one (each column is empty or the same everywhere, an "
            "identifier, a name, free text or of a type that is not judged). Nothing was written. "
            f"See anonspark profile {profile.source.path}, or choose the columns with --interactive"
        )
    weights_by_name = profile.weights([column.name for column in quasi]) if answers.weighted else {}
    attributes = []
    for column in profile.columns:
        role, reason = roles[column.name]
        if role is None:
            attributes.append(_left_out(column, reason, is_key=column.name in profile.keys))
            continue
        if role != "quasi_identifier":
            if role != "identifier":
                reason += _giving(column.name, profile, roles)
            attributes.append(DraftedAttribute(column.name, role, reason))
            continue
        attribute = _quasi_identifier(column, reason)
        if column.name in weights_by_name:
            attribute.options["weight"] = f"{weights_by_name[column.name]:g}"
        attributes.append(attribute)
    sensitive = [column for column in profile.columns if roles[column.name][0] == "sensitive"]
    identifiers = [
        column.name for column in profile.columns if roles[column.name][0] == "identifier"
    ]
    weights = (name for name in identifiers if weight_of_name(name) is not None)
    markers = profile.missing_markers
    lacking = sum(identifier.counts.missing for identifier in quasi)
    return Draft(
        source=_typed(profile.source),
        rows=profile.rows,
        attributes=attributes,
        k=answers.k,
        criteria=list(filter(None, (_criterion(column, profile.rows) for column in sensitive))),
        missing="category" if lacking > _MAY_MISS * profile.rows else "drop",
        unit=unit,
        unit_reason=_counting(unit),
        possible_units=profile.possible_units if answers.roles is None else None,
        # Of a person with several records each would count.
        weights=next(weights, None) if unit is None else None,
        output=answers.output,
        target=_target(sensitive, quasi),
        missing_markers=markers if markers != MISSING_MARKERS else (),
    )


def _counting(unit: str | None) -> str:
    """Say what k counts by a column."""
    named = None if unit is None else unit_of_name(unit)
    if named == "household":
        return "k counts households: so k people share what is published, and not one family"
    if named == "person":
        return "it repeats: k counts people, not their records"
    return "it repeats: k counts its values, not records. Take it out if they are no people"


def _roles(profile: Profile, answers: Answers) -> dict[str, tuple[Role | None, str]]:
    """Return the role of each column, and why."""
    roles: dict[str, tuple[Role | None, str]] = {}
    for column in profile.columns:
        if answers.roles is None or answers.roles.get(column.name) == column.role:
            roles[column.name] = column.role, column.reason
        else:
            roles[column.name] = answers.roles.get(column.name), "you said so"
    return roles


def _giving(name: str, profile: Profile, roles: Mapping[str, tuple[Role | None, str]]) -> str:
    """Say which quasi-identifiers a column gives away that is published as it is."""
    revealed = [
        dependency.determines
        for dependency in profile.dependencies
        if dependency.column == name and roles[dependency.determines][0] == "quasi_identifier"
    ]
    if not revealed:
        return ""
    return f". Gives {', '.join(revealed)} away: it reveals more than ranges do"


def _typed(source: Source) -> Source:
    """Return how the data are read: with types where they lose nothing."""
    if source.format != "csv":
        return source
    return replace(source, options={**source.options, "inferSchema": "true"})


def _quasi_identifier(column: ColumnProfile, reason: str) -> DraftedAttribute:
    options: dict[str, str] = {}
    hint = None
    is_text = column.type == "string"
    # What is not written in one form stays text where nobody says what it is.
    in_forms = column.kind in ("mixed", "number", "timestamp")
    type_needed = is_text and (column.counts.missing > 0 or in_forms)
    # Numbers with a fraction have other texts once they are read.
    is_code = column.looks_like in ("postal code", DISEASE) and column.kind != "number"
    length = column.length or 0
    if column.looks_like == DISEASE and is_code and column.kind != "whole number":
        if type_needed:
            options["type"] = "text"
        options["hierarchy"] = "{keep: [3, 1]}"
        reason += ". Published by its first three characters, or by the first"
    elif (is_code or column.kind == "code") and 2 <= length <= 10:
        if is_text:
            options["type"] = "text"
        options["hierarchy"] = f"{{prefix: {list(range(1, length))}}}"
        reason += ". Published with its last characters masked"
    elif column.are_names:
        options["type"] = "text"
        reason += ". Its numbers stand for names. If they have an order, take the type away"
    elif column.order:
        options = {"type": "text"} if column.kind == "mixed" else {}
        options["order"] = f"[{', '.join(map(json_text, escaped(list(column.order))))}]"
        reason += ". In this order, because letters would order its groups otherwise"
    elif type_needed and column.kind in _TYPES:
        options["type"] = _TYPES[column.kind]
    has_ends = options.get("type") != "text" and not options.keys() & {"hierarchy", "order"}
    if has_ends and column.grid is not None:
        options["grid"] = str(column.grid)
        reason += ". Ranges end on this grid"
    if is_code and is_text and "hierarchy" not in options:
        hint = "{role: quasi_identifier, hierarchy: {keep: [3, 1]}}  # three characters, then one"
    if column.kind == "date" and "hierarchy" not in options:
        kind = "type: date, " if "type" in options else ""
        hint = (
            f"{{role: quasi_identifier, {kind}hierarchy: {{calendar: [month, year, decade]}}}}"
            "  # whole months, years, decades"
        )
    if column.looks_like == "age" and column.kind in _MEASURED:
        kind = "type: number, " if "type" in options else ""
        hint = (
            f"{{role: quasi_identifier, {kind}hierarchy: {{intervals: [5, 10], top: 90}}}}"
            "  # the same steps for all, and 90+"
        )
    return DraftedAttribute(column.name, "quasi_identifier", reason, options, hint)


def _left_out(column: ColumnProfile, reason: str, *, is_key: bool) -> DraftedAttribute:
    """Draft a column that is left out, with the options it would need as a quasi-identifier."""
    usable = (
        column.kind not in ("nested", "empty", "other date", "other number")
        and column.looks_like not in ("free text", *NAMES_AND_PLACES)
        and column.counts.distinct > 1
    )
    options = _quasi_identifier(column, "").options if usable else {}
    if is_key and "hierarchy" not in options:
        # By its type it is no key.
        options.setdefault("type", "number" if column.kind in _MEASURED else "text")
    return DraftedAttribute(column.name, None, reason, options, usable=usable)


def _criterion(column: ColumnProfile, rows: int) -> Criterion | None:
    """Ask for different values in each class, as many as there are enough of."""
    values = column.counts.distinct
    largest = max(column.counts.largest, column.counts.missing) / max(rows, 1)
    least = proposed_l(values, largest)
    if least is None:
        return None
    return Criterion(column.name, least, f"{values:,} values, the largest {largest:.0%}")


def _target(sensitive: list[ColumnProfile], quasi: list[ColumnProfile]) -> str | None:
    """Return what orders of categories can be learned from, if there are any to be learned."""
    if not any(
        identifier.kind == "text" and identifier.counts.distinct > 2 for identifier in quasi
    ):
        return None
    for attribute in sensitive:
        if 2 <= attribute.counts.distinct <= _MOST_CLASSES:
            return attribute.name
    return None
