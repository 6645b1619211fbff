"""What the classes of a release tell of its sensitive attributes, whatever was required."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from anonspark.core.columns import UNIT
from anonspark.core.criterion import CRITERIA, MOST_VALUES, Criterion
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain, type_name
from anonspark.errors import DataError
from anonspark.verification.claims import (
    Claim,
)
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import (
    Holders,
    MeasuredCriterion,
    asked_of,
    measure_criteria,
    satisfies,
)
from anonspark.verification.homogeneity import homogeneity_of
from anonspark.verification.merged import (
    MergedFigures,
    describe_merged,
    merge_values,
)
from anonspark.verification.people import (
    measure_people,
    shares_of_people,
)
from anonspark.verification.sensitive import describe_values, describe_values_by
from anonspark.verification.sensitive_values import SensitiveValues
from anonspark.verification.units import people_of_records


@dataclass(frozen=True)
class SensitiveFigures:
    """What the worst class tells of a sensitive attribute, whatever was required.

    Parameters
    ----------
    attribute : str
    values : int or None
        Different values; None where there are more than 50,000, or their type has no values that
        can be compared, as lists have none; nothing else is measured then.
    worst : mapping of str to float
        Figures of the worst class under the names that
        :data:`anonspark.core.criterion.CRITERIA` has for them: ``distinct`` (the fewest different
        values), ``entropy`` (the smallest exponential of an entropy), ``recursive`` (what c must
        exceed for recursive (c, 2)-diversity; infinite where a class has one value), and so on.
        Distances from the whole release lack where values have no order, or no hierarchy is known.
    distinct_merged : int or None
        Distinct l, were values one that are equal but for what :func:`plain_spelling` passes over,
        and for markers of missing values.
    distinct_present : int or None
        The same where missing does not count.
    homogeneous_classes, homogeneous_records : int or None
        Classes that hold one value only, and their records: whoever is known to be in one of them
        is known to have that value (homogeneity attack).
    """

    attribute: str
    values: int | None
    worst: Mapping[str, float] = field(default_factory=dict)
    distinct_merged: int | None = None
    distinct_present: int | None = None
    homogeneous_classes: int | None = None
    homogeneous_records: int | None = None

    def as_dict(self) -> dict[str, str | float | None]:
        """Return all figures by name, None for those that were not measured."""
        names = [one.column for one in CRITERIA.values()]
        return {
            "attribute": self.attribute,
            "values": self.values,
            "distinct": self.worst.get("distinct"),
            "distinct_merged": self.distinct_merged,
            "distinct_present": self.distinct_present,
            **{name: self.worst.get(name) for name in names},
            "homogeneous_classes": self.homogeneous_classes,
            "homogeneous_records": self.homogeneous_records,
        }


Trials = Callable[[SensitiveValues], Sequence[Criterion]]
"""Names criteria that nobody requires, to see how many classes would violate them."""


@dataclass(frozen=True)
class MeasuredSensitive:
    """What was measured of the sensitive attributes of a release.

    Parameters
    ----------
    criteria : list of MeasuredCriterion
        Those that are required.
    figures : list of SensitiveFigures
        Of every sensitive attribute.
    warnings : list of str
        Of values that count as different and say the same.
    tried : list of MeasuredCriterion
        Those that nobody requires.
    """

    criteria: list[MeasuredCriterion]
    figures: list[SensitiveFigures]
    warnings: list[str]
    tried: list[MeasuredCriterion] = field(default_factory=list)


def measure_criteria_of_people(
    data: Table, claim: Claim, published: PublishedClasses
) -> list[MeasuredCriterion] | None:
    """Measure the criteria that are required by people, or return what the run says of them.

    Parameters
    ----------
    data : Table
        Published records.
    claim : Claim
    published : PublishedClasses
        Counted in them.

    Returns
    -------
    list of MeasuredCriterion or None
        None where they count records: nobody has several, or nobody says anything of people.

    Notes
    -----
    One job that counts people, and :func:`anonspark.verification.people.measure_people` for each
    sensitive attribute.
    """
    unit, required = claim.privacy.unit, claim.privacy.criteria
    if not unit or not required:
        return None
    told_apart = claim.people_columns
    if not told_apart:
        said = claim.criteria_of_people
        if said is None:
            return None
        unknown = next((one for one in required if one not in said), None)
        if unknown is not None:
            raise DataError(
                f"privacy: {unknown.describe()} on attribute {unknown.attribute!r} counts people, "
                "who are not published, and the run did not measure it; expected a criterion of "
                "the release's own configuration; remove it, or publish what privacy.unit names"
            )
        return [_as_said(one, said[one]) for one in required]
    found: dict[Criterion, MeasuredCriterion] = {}
    for name in dict.fromkeys(one.attribute for one in required):
        values = _describe(data, claim, name)
        if values is None:
            raise TypeError("an attribute of a criterion has few values")
        people = people_of_records(data, name, told_apart, claim.columns)
        if people.aggregate([UNIT]).count() == published.rows:
            return None
        own = [one for one in required if one.attribute == name]
        pairs = people.select(["value", UNIT])
        shares = shares_of_people(pairs, values, claim.left_out.rows)
        by = [one for one in people.schema.names if one not in ("value", UNIT)]
        found |= zip(own, measure_people(people, by, values, own, shares), strict=True)
    return [found[one] for one in required]


def _as_said(criterion: Criterion, figure: float) -> MeasuredCriterion:
    """Return what the run says, which is not counted again: how many classes is not known."""
    violating = 0 if satisfies(criterion, np.array([figure]))[0] else 1
    return MeasuredCriterion(criterion, figure, violating, 0)


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
        Is asked for every sensitive attribute; what it names is measured in the same pass.

    Raises
    ------
    DataError
        If an attribute cannot be measured by a criterion that is required.

    Notes
    -----
    Two jobs an attribute.
    """
    required = claim.privacy.criteria
    names = dict.fromkeys((*(one.attribute for one in required), *claim.sensitive))
    passed_over = _passed_over(data, claim)
    described = {
        name: None if name in passed_over else _describe(data, claim, name) for name in names
    }
    known = {name: values for name, values in described.items() if values is not None}
    by_kind = {name: _all_kinds(values, required) for name, values in known.items()}
    tried = [] if trials is None else [one for own in known.values() for one in trials(own)]
    of_all = [one for own in by_kind.values() for one in own.values()]
    asked = asked_of(dict.fromkeys((*required, *of_all, *tried)), known.values())
    merging = {
        name: (view, view.asked(_about_merged(claim, name)))
        for name, values in known.items()
        if not (view := merge_values(values, claim.missing_markers)).is_plain
    }
    found = iter(
        measure_criteria(
            data,
            claim.columns,
            [*asked, *(pair for _, pairs in merging.values() for pair in pairs)],
            claim.left_out.uncertainty,
            _holders(data, claim, known),
        )
    )
    measured = {criterion: next(found) for criterion, _ in asked}
    merged_figures = {
        name: one.figures([next(found) for _ in pairs]) for name, (one, pairs) in merging.items()
    }
    figures = []
    warnings = [f"attributes.{name}: {told}" for name, told in passed_over.items()]
    for name, values in described.items():
        merged = merged_figures.get(name)
        if values is None:
            figures.append(SensitiveFigures(name, None))
        else:
            own = [measured[one] for one in by_kind[name].values()]
            figures.append(_figures_of(values, own, measured[by_kind[name]["distinct"]], merged))
        homogeneity = homogeneity_of(values, rows, figures[-1].homogeneous_records)
        is_only = len(claim.sensitive) == 1
        for told in (
            None if merged is None else describe_merged(merged),
            homogeneity.warning(name, claim.privacy, is_only=is_only),
        ):
            if told is not None and name not in passed_over:
                warnings.append(f"attributes.{name}: {told[1]}")
    return MeasuredSensitive(
        [measured[one] for one in required], figures, warnings, [measured[one] for one in tried]
    )


def _passed_over(data: Table, claim: Claim) -> dict[str, str]:
    """Return the sensitive attributes that no criterion needs and nothing can measure, and why."""
    needed = {one.attribute for one in claim.privacy.criteria}
    types = {name: data.schema.field(name).type for name in claim.sensitive if name not in needed}
    return {
        name: f"has type {type_name(data_type)}, whose values cannot be compared, so that it is "
        "not measured what classes tell of it; make columns of its single values to know"
        for name, data_type in types.items()
        if not is_plain(data_type)
    }


def _holders(data: Table, claim: Claim, names: Iterable[str]) -> Holders | None:
    """Return what each holder has of attributes, where a column tells the holders apart."""
    if claim.holder is None:
        return None
    values = {}
    told: tuple[str | None, ...] = ()
    for name in names:
        by_holder = describe_values_by(
            data,
            name,
            claim.holder,
            order=claim.orders.get(name),
            hierarchy=_hierarchy_of(claim, name),
        )
        values[name], told = tuple(by_holder.values()), tuple(by_holder)
    return Holders(claim.holder, told, values)


def _hierarchy_of(claim: Claim, name: str) -> Hierarchy | None:
    """Return the hierarchy of an attribute, where a criterion measures by it."""
    asked = any(
        one.attribute == name and one.kind == "hierarchical distance"
        for one in claim.privacy.criteria
    )
    return claim.hierarchies[name] if asked else None


def _describe(data: Table, claim: Claim, name: str) -> SensitiveValues | None:
    """Return the values of an attribute; None where they are too many, and nothing needs them.

    Raises
    ------
    DataError
        If a criterion that is required cannot be measured.
    """
    kinds = {one.kind for one in claim.privacy.criteria if one.attribute == name}
    values = describe_values(
        data,
        name,
        order=claim.orders.get(name),
        hierarchy=_hierarchy_of(claim, name),
        left_out=claim.left_out.values,
    )
    if values is None and kinds:
        raise DataError(
            f"attributes.{name}: more than {MOST_VALUES:,} different values; l-diversity "
            "and t-closeness need an attribute whose values repeat; make it coarser"
        )
    if values is not None and "ordered distance" in kinds and not values.is_ordered:
        raise DataError(
            f"attributes.{name}: a text without an order, for which the ordered distance means "
            f"nothing; declare attributes.{name}.order, or choose another distance"
        )
    return values


def _all_kinds(values: SensitiveValues, required: Sequence[Criterion]) -> dict[str, Criterion]:
    """Return a criterion of every kind that the values have what it takes for."""
    name = values.name
    by_hierarchy = any(
        one.attribute == name and one.kind == "hierarchical distance" for one in required
    )
    has = {None: True, "order": values.is_ordered, "hierarchy": by_hierarchy}
    return {
        kind: Criterion(name, kind, *one.loosest)
        for kind, one in CRITERIA.items()
        if has[one.needs]
    }


def _about_merged(claim: Claim, name: str) -> list[Criterion]:
    """Return the criteria of an attribute that are measured were values one that say the same."""
    return [
        one
        for one in claim.privacy.criteria
        # A distance from all holders together is none of a union that tells them apart.
        if one.attribute == name and not (claim.holder and one.is_distance)
    ]


def _figures_of(
    values: SensitiveValues,
    measured: Sequence[MeasuredCriterion],
    distinct: MeasuredCriterion,
    merged: MergedFigures | None,
) -> SensitiveFigures:
    worst = {one.criterion.type.column: one.measured for one in measured}
    worst["distinct"] = fewest = int(distinct.measured)
    return SensitiveFigures(
        values.name,
        len(values.values),
        worst,
        distinct_merged=fewest if merged is None else merged.distinct,
        distinct_present=fewest if merged is None else merged.distinct_present,
        # Two different values at least: what violates it is homogeneous.
        homogeneous_classes=distinct.violating_classes,
        homogeneous_records=distinct.violating_records,
    )
