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

    ``values`` counts the different ones, or is None if they are over 50,000 or cannot be compared,
    as lists: then nothing else is measured. ``worst`` has the names of
    :data:`anonspark.core.criterion.CRITERIA`: ``distinct`` (the fewest different values),
    ``entropy`` (the smallest exponential of an entropy), ``recursive`` (what c must exceed for
    recursive (c, 2)-diversity, infinite if a class has one value), and so on. Distances from the
    whole release lack if values have no order, or no hierarchy is known. The homogeneous classes
    hold one value only: who is known to be in one of them is known to have that value (homogeneity
    attack).
    """

    attribute: str
    values: int | None
    worst: Mapping[str, float] = field(default_factory=dict)
    homogeneous_classes: int | None = None
    homogeneous_records: int | None = None

    def as_dict(self) -> dict[str, str | float | None]:
        """Return all figures by name, None for those that were not measured or are infinite."""
        names = [criterion_type.column for criterion_type in CRITERIA.values()]
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

    ``criteria`` are those that are required, ``tried`` further ones. ``warnings`` are of missing
    values that count, and of classes with only one value. ``of_people`` says whether the required
    criteria count people.
    """

    criteria: list[MeasuredCriterion]
    figures: list[SensitiveFigures]
    warnings: list[str]
    tried: list[MeasuredCriterion]
    of_people: bool = False


def measure_sensitive(
    data: Table, claim: Claim, rows: int, trials: Trials | None = None
) -> MeasuredSensitive:
    """Measure the required criteria, and all figures of every sensitive attribute.

    ``rows`` is the number of records. ``trials`` names for every sensitive attribute further
    criteria to measure in the same pass. Raises DataError if a required criterion cannot be
    measured. Two jobs an attribute. If people count, one that counts them, and for each attribute
    with a criterion :func:`anonspark.verification.proof.unit_criteria.measure_people`.
    """
    required = claim.privacy.criteria
    of_run = _said_of_people(claim)
    people_repeat = of_run is None and _people_repeat(data, claim, rows)
    names = dict.fromkeys((*(item.attribute for item in required), *claim.sensitive))
    parts = [_measure_attribute(data, claim, name, rows, trials, people_repeat) for name in names]
    criteria = {item.criterion: item for part in parts for item in part.criteria}
    return MeasuredSensitive(
        [criteria[item] for item in required] if of_run is None else of_run,
        [item for part in parts for item in part.figures],
        [item for part in parts for item in part.warnings],
        [item for part in parts for item in part.tried],
        of_people=people_repeat or of_run is not None,
    )


def _said_of_people(claim: Claim) -> list[MeasuredCriterion] | None:
    """Return the run's figures of criteria for people whom the files do not identify."""
    of_run = claim.of_people
    if not claim.privacy.unit or claim.people_columns or of_run is None:
        return None
    required = claim.privacy.criteria
    measured = {figure.criterion: figure for figure in of_run}
    lacking = next((criterion for criterion in required if criterion not in measured), None)
    if lacking is not None:
        raise DataError(
            f"privacy: {lacking.describe()} on attribute {lacking.attribute!r} counts people, "
            "who are not published, and the run did not measure it. Expected a criterion of "
            "the release's own configuration. Remove it, or publish what privacy.unit names"
        )
    return [measured[criterion] for criterion in required]


def _people_repeat(data: Table, claim: Claim, rows: int) -> bool:
    """Return whether criteria are required, and a person has several records."""
    unit, criteria = claim.people_columns, claim.privacy.criteria
    if not (claim.privacy.unit and unit and criteria):
        return False
    people = people_of_records(data, criteria[0].attribute, unit, claim.columns)
    return people.aggregate([UNIT]).count() != rows


def _measure_attribute(
    data: Table, claim: Claim, name: str, rows: int, trials: Trials | None, people_repeat: bool
) -> MeasuredSensitive:
    """Measure an attribute. Its criteria count people if a person may have several records."""
    required = [criterion for criterion in claim.privacy.criteria if criterion.attribute == name]
    if (values_of_run := claim.values.get(name)) is not None:
        return MeasuredSensitive(
            _measure_required(data, claim, values_of_run, required, people_repeat), [], [], []
        )
    data_type = data.schema.field(name).type
    key = f"attributes.{name}"
    if not required and not is_plain(data_type):
        text = (
            f"{key}: has type {type_name(data_type)}, whose values cannot be compared, so what "
            "classes show of it is not measured. Make columns of its single values to measure it"
        )
        return MeasuredSensitive([], [SensitiveFigures(name, None)], [text], [])
    by_hierarchy = any(criterion.kind == "hierarchical distance" for criterion in required)
    hierarchy = claim.hierarchies[name] if by_hierarchy else None
    values = describe_values(
        data,
        name,
        order=claim.orders.get(name),
        hierarchy=hierarchy,
        left_out=claim.left_out.values,
    )
    measured = MeasuredSensitive([], [SensitiveFigures(name, None)], [], [])
    if values is not None:
        _require_order(values, required)
        measured = _measure_values(data, claim, values, required, trials)
        if people_repeat and required:
            of_people = _measure_required(data, claim, values, required, people_repeat)
            measured = replace(measured, criteria=of_people)
    elif required:
        raise DataError(
            f"{key}: more than {MOST_VALUES:,} different values. l-diversity "
            "and t-closeness need an attribute whose values repeat. Make it coarser"
        )
    homogeneity = homogeneity_of(values, rows, measured.figures[0].homogeneous_records)
    warning = homogeneity.warning(name, claim.privacy, is_only=len(claim.sensitive) == 1)
    added = [] if warning is None else [warning[1]]
    return replace(measured, warnings=[f"{key}: {text}" for text in (*measured.warnings, *added)])


def _require_order(values: SensitiveValues, required: Sequence[Criterion]) -> None:
    """Raise DataError if values without an order are to be compared by one."""
    if not values.is_ordered and "ordered distance" in {criterion.kind for criterion in required}:
        raise DataError(
            f"attributes.{values.name}: a text without an order, for which the ordered distance "
            f"means nothing. Declare attributes.{values.name}.order, or choose another distance"
        )


def _measure_required(
    data: Table,
    claim: Claim,
    values: SensitiveValues,
    required: Sequence[Criterion],
    people_repeat: bool,
) -> list[MeasuredCriterion]:
    """Measure criteria about an attribute. They count people if these have several records."""
    if not people_repeat:
        return measure_criteria(data, claim.columns, asked_of(required, [values]))
    people = people_of_records(data, values.name, claim.people_columns, claim.columns)
    by = [name for name in people.schema.names if name not in ("value", UNIT)]
    return measure_people(people, by, values, required)


def _measure_values(
    data: Table,
    claim: Claim,
    values: SensitiveValues,
    required: Sequence[Criterion],
    trials: Trials | None,
) -> MeasuredSensitive:
    """Measure required and tried criteria, and each kind for which the attribute is suitable."""
    is_known = {None: True, "order": values.is_ordered, "hierarchy": len(values.parents) > 0}
    of_kinds = {
        kind: Criterion(values.name, kind, *criterion.loosest)
        for kind, criterion in CRITERIA.items()
        if is_known[criterion.needs]
    }
    tried = [] if trials is None else trials(values)
    pairs = asked_of(dict.fromkeys((*required, *of_kinds.values(), *tried)), [values])
    measured = measure_criteria(
        data,
        claim.columns,
        pairs,
        claim.left_out.uncertainty,
        _holders(data, claim, values),
    )
    by_criterion = {criterion.criterion: criterion for criterion in measured}
    distinct = by_criterion[of_kinds["distinct"]]
    fewest = int(distinct.measured)
    figures = SensitiveFigures(
        values.name,
        len(values.values),
        {c.type.column: by_criterion[c].measured for c in of_kinds.values()} | {"distinct": fewest},
        # A class with fewer than two different values is homogeneous.
        distinct.violating_classes,
        distinct.violating_records,
    )
    warns = values.values.null_count and any(criterion.type.counts_values for criterion in required)
    return MeasuredSensitive(
        [by_criterion[criterion] for criterion in required],
        [figures],
        [MISSING_VALUES] if warns else [],
        [by_criterion[criterion] for criterion in tried],
    )


def _holders(data: Table, claim: Claim, values: SensitiveValues) -> Holders | None:
    """Return the values of an attribute for each holder, or None without a column of holders."""
    if claim.holder is None:
        return None
    name = values.name
    hierarchy = claim.hierarchies[name] if len(values.parents) else None
    by_holder = describe_values_by(
        data, name, claim.holder, order=claim.orders.get(name), hierarchy=hierarchy
    )
    return Holders(claim.holder, by_holder)
