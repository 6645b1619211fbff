"""Measure the sensitive attributes in the classes of a release, without requirements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anonspark.core.columns import UNIT
from anonspark.core.criterion import CRITERIA, MOST_VALUES, Criterion
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain, type_name
from anonspark.errors import DataError
from anonspark.verification.claims.claim import Claim
from anonspark.verification.proof.criteria import (
    Holders,
    MeasuredCriterion,
    asked_of,
    finite,
    measure_criteria,
)
from anonspark.verification.proof.homogeneity import MISSING_VALUES, homogeneity_of
from anonspark.verification.proof.measures import SensitiveValues
from anonspark.verification.proof.sensitive import describe_values, describe_values_by
from anonspark.verification.proof.unit_criteria import measure_people, people_of_records


@dataclass(frozen=True)
class SensitiveFigures:
    """The figures of the worst class for a sensitive attribute, without requirements.

    Parameters
    ----------
    attribute : str
    values : int or None
        Different values. None where there are more than 50,000, or their type has no values that
        can be compared, as lists have none. Then nothing else is measured.
    worst : mapping of str to float
        Figures of the worst class under the names that
        :data:`anonspark.core.criterion.CRITERIA` has for them: ``distinct`` (the fewest different
        values), ``entropy`` (the smallest exponential of an entropy), ``recursive`` (what c must
        exceed for recursive (c, 2)-diversity, infinite where a class has one value), and so on.
        Distances from the whole release lack where values have no order, or no hierarchy is known.
    homogeneous_classes, homogeneous_records : int or None
        Classes that hold one value only, and their records: a person who is known to be in one of
        them is known to have that value (homogeneity attack).
    """

    attribute: str
    values: int | None
    worst: Mapping[str, float] = field(default_factory=dict)
    homogeneous_classes: int | None = None
    homogeneous_records: int | None = None

    def as_dict(self) -> dict[str, str | float | None]:
        """Return all figures by name, None for those that were not measured or are infinite."""
        names = [one.column for one in CRITERIA.values()]
        return {
            "attribute": self.attribute,
            "values": self.values,
            "distinct": self.worst.get("distinct"),
            **{name: finite(self.worst.get(name)) for name in names},
            "homogeneous_classes": self.homogeneous_classes,
            "homogeneous_records": self.homogeneous_records,
        }


Trials = Callable[[SensitiveValues], Sequence[Criterion]]
"""Names criteria that are not required, to see how many classes would violate them."""


@dataclass(frozen=True)
class MeasuredSensitive:
    """The measured figures of the sensitive attributes of a release.

    Parameters
    ----------
    criteria : list of MeasuredCriterion
        Those that are required.
    figures : list of SensitiveFigures
        Of every sensitive attribute.
    warnings : list of str
        Of missing values that count, and of classes with only one value.
    tried : list of MeasuredCriterion
        Those that are not required.
    of_people : bool
        Whether the criteria that are required count people.
    """

    criteria: list[MeasuredCriterion]
    figures: list[SensitiveFigures]
    warnings: list[str]
    tried: list[MeasuredCriterion]
    of_people: bool = False


def measure_sensitive(
    data: Table, claim: Claim, rows: int, trials: Trials | None = None
) -> MeasuredSensitive:
    """Measure the criteria that are required, and all figures of every sensitive attribute.

    Parameters
    ----------
    data : Table
        Published records.
    claim : Claim
    rows : int
        Their number.
    trials : callable or None
        Is asked for every sensitive attribute. What it names is measured in the same pass.

    Raises
    ------
    DataError
        If an attribute cannot be measured by a criterion that is required.

    Notes
    -----
    Two jobs an attribute. Where people count one that counts them, and for each attribute with a
    criterion :func:`anonspark.verification.proof.unit_criteria.measure_people`.
    """
    required = claim.privacy.criteria
    said = _said_of_people(claim)
    repeat = said is None and _people_repeat(data, claim, rows)
    names = dict.fromkeys((*(one.attribute for one in required), *claim.sensitive))
    parts = [_measure_attribute(data, claim, name, rows, trials, repeat) for name in names]
    criteria = {one.criterion: one for part in parts for one in part.criteria}
    return MeasuredSensitive(
        [criteria[one] for one in required] if said is None else said,
        [one for part in parts for one in part.figures],
        [one for part in parts for one in part.warnings],
        [one for part in parts for one in part.tried],
        of_people=repeat or said is not None,
    )


def _said_of_people(claim: Claim) -> list[MeasuredCriterion] | None:
    """Return the run's figures of criteria for people whom the files do not identify."""
    said = claim.of_people
    if not claim.privacy.unit or claim.people_columns or said is None:
        return None
    required = claim.privacy.criteria
    measured = {one.criterion: one for one in said}
    unknown = next((one for one in required if one not in measured), None)
    if unknown is not None:
        raise DataError(
            f"privacy: {unknown.describe()} on attribute {unknown.attribute!r} counts people, "
            "who are not published, and the run did not measure it. Expected a criterion of "
            "the release's own configuration. Remove it, or publish what privacy.unit names"
        )
    return [measured[one] for one in required]


def _people_repeat(data: Table, claim: Claim, rows: int) -> bool:
    """Return whether criteria are required, and a person has several records."""
    unit, criteria = claim.people_columns, claim.privacy.criteria
    if not (claim.privacy.unit and unit and criteria):
        return False
    people = people_of_records(data, criteria[0].attribute, unit, claim.columns)
    return people.aggregate([UNIT]).count() != rows


def _measure_attribute(
    data: Table, claim: Claim, name: str, rows: int, trials: Trials | None, repeat: bool
) -> MeasuredSensitive:
    """Measure an attribute. Its criteria count people where these repeat."""
    required = [one for one in claim.privacy.criteria if one.attribute == name]
    if (known := claim.values.get(name)) is not None:
        return MeasuredSensitive(
            _measure_required(data, claim, known, required, repeat), [], [], []
        )
    data_type = data.schema.field(name).type
    key = f"attributes.{name}"
    if not required and not is_plain(data_type):
        text = (
            f"{key}: has type {type_name(data_type)}, whose values cannot be compared, so what "
            "classes show of it is not measured. Make columns of its single values to measure it"
        )
        return MeasuredSensitive([], [SensitiveFigures(name, None)], [text], [])
    by_hierarchy = any(one.kind == "hierarchical distance" for one in required)
    hierarchy = claim.hierarchies[name] if by_hierarchy else None
    values = describe_values(
        data,
        name,
        order=claim.orders.get(name),
        hierarchy=hierarchy,
        left_out=claim.left_out.values,
    )
    found = MeasuredSensitive([], [SensitiveFigures(name, None)], [], [])
    if values is not None:
        _require_order(values, required)
        found = _measure_values(data, claim, values, required, trials)
        if repeat and required:
            of_people = _measure_required(data, claim, values, required, repeat)
            found = replace(found, criteria=of_people)
    elif required:
        raise DataError(
            f"{key}: more than {MOST_VALUES:,} different values. l-diversity "
            "and t-closeness need an attribute whose values repeat. Make it coarser"
        )
    homogeneity = homogeneity_of(values, rows, found.figures[0].homogeneous_records)
    warning = homogeneity.warning(name, claim.privacy, is_only=len(claim.sensitive) == 1)
    more = [] if warning is None else [warning[1]]
    return replace(found, warnings=[f"{key}: {text}" for text in (*found.warnings, *more)])


def _require_order(values: SensitiveValues, required: Sequence[Criterion]) -> None:
    if not values.is_ordered and any(one.kind == "ordered distance" for one in required):
        raise DataError(
            f"attributes.{values.name}: a text without an order, for which the ordered distance "
            f"means nothing. Declare attributes.{values.name}.order, or choose another distance"
        )


def _measure_required(
    data: Table,
    claim: Claim,
    values: SensitiveValues,
    required: Sequence[Criterion],
    repeat: bool,
) -> list[MeasuredCriterion]:
    """Measure criteria about an attribute. They count people where these repeat."""
    if not repeat:
        return measure_criteria(data, claim.columns, asked_of(required, [values]))
    people = people_of_records(data, values.name, claim.people_columns, claim.columns)
    by = [one for one in people.schema.names if one not in ("value", UNIT)]
    return measure_people(people, by, values, required)


def _measure_values(
    data: Table,
    claim: Claim,
    values: SensitiveValues,
    required: Sequence[Criterion],
    trials: Trials | None,
) -> MeasuredSensitive:
    """Measure what is required, what is tried, and every kind that there is what it takes for."""
    has = {None: True, "order": values.is_ordered, "hierarchy": len(values.parents) > 0}
    of_kinds = {
        kind: Criterion(values.name, kind, *one.loosest)
        for kind, one in CRITERIA.items()
        if has[one.needs]
    }
    tried = [] if trials is None else trials(values)
    asked = asked_of(dict.fromkeys((*required, *of_kinds.values(), *tried)), [values])
    measured = measure_criteria(
        data,
        claim.columns,
        asked,
        claim.left_out.uncertainty,
        _holders(data, claim, values),
    )
    found = {one.criterion: one for one in measured}
    distinct = found[of_kinds["distinct"]]
    fewest = int(distinct.measured)
    figures = SensitiveFigures(
        values.name,
        len(values.values),
        {one.type.column: found[one].measured for one in of_kinds.values()} | {"distinct": fewest},
        # Two different values at least: what violates it is homogeneous.
        distinct.violating_classes,
        distinct.violating_records,
    )
    warns = values.values.null_count and any(one.type.counts_values for one in required)
    return MeasuredSensitive(
        [found[one] for one in required],
        [figures],
        [MISSING_VALUES] if warns else [],
        [found[one] for one in tried],
    )


def _holders(data: Table, claim: Claim, values: SensitiveValues) -> Holders | None:
    """Return the figures of each holder for an attribute, where a column names the holder."""
    if claim.holder is None:
        return None
    name = values.name
    hierarchy = claim.hierarchies[name] if len(values.parents) else None
    by_holder = describe_values_by(
        data, name, claim.holder, order=claim.orders.get(name), hierarchy=hierarchy
    )
    return Holders(claim.holder, by_holder)
