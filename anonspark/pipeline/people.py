"""Criteria that count people, measured in what is published before anything of it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.columns import CLASS_ID, UNIT, is_published
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.errors import GuaranteeError
from anonspark.pipeline.basis import Basis
from anonspark.pipeline.rounds import StagedRounds
from anonspark.pipeline.tasks import sensitive_values
from anonspark.verification.criteria import MeasuredCriterion
from anonspark.verification.people import (
    SharesOfPeople,
    measure_people,
    shares_of_people,
    unknown_people,
)

_TUPLE = "tuple"
_TUPLES = pa.schema([(CLASS_ID, pa.int64()), (_TUPLE, pa.int64())])


def measure_people_of_classes(
    rounds: StagedRounds, criteria: Criteria, rows: int
) -> list[MeasuredCriterion]:
    """Measure criteria that count people in the published tuples.

    Parameters
    ----------
    rounds : StagedRounds
    criteria : Criteria
        Of the whole input.
    rows : int
        Published records.

    Returns
    -------
    list of MeasuredCriterion
        In the order of the criteria.

    Notes
    -----
    Nothing that formed the classes is asked. Of each sensitive attribute a job with four shuffles:
    of the records by class, of the different triples of tuple, value and person, and of counts.
    """
    found: dict[Criterion, MeasuredCriterion] = {}
    tuples = _published_tuples(rounds)
    for place, attribute in enumerate(sensitive_values(criteria)):
        own = [one for one in criteria.criteria if one.attribute == attribute.name]
        column = criteria.sensitive[place].column
        records = rounds.finished.rows(CLASS_ID, UNIT, column)
        data = records.join(tuples, [CLASS_ID], small=False)
        data = data.select({_TUPLE: _TUPLE, "value": column, UNIT: UNIT})
        first, stop = criteria.first_value[place : place + 2]
        shares = SharesOfPeople(
            criteria.shares_of_people[first:stop], criteria.even_shares[first:stop]
        )
        measured = measure_people(data, [_TUPLE], attribute, own, shares, rows)
        found |= zip(own, measured, strict=True)
    return [found[one] for one in criteria.criteria]


def with_told_shares(
    measured: Sequence[MeasuredCriterion], basis: Basis, criteria: Criteria, rows: int
) -> list[MeasuredCriterion]:
    """Return what is told of criteria where values of records that were left out are withheld.

    Parameters
    ----------
    measured : sequence of MeasuredCriterion
        Of :func:`measure_people_of_classes`.
    basis : Basis
    criteria : Criteria
        Of the whole input.
    rows : int
        Published records.

    Notes
    -----
    Shares of the whole input would tell of those records: taken are those of the published ones,
    as large as they can be with so many more people. One job and :func:`measure_people`.
    """
    if basis.withheld is None:
        return list(measured)
    told = list(measured)
    for place, one in enumerate(told):
        if not one.criterion.is_distance:
            continue
        (values,) = (
            own for own in sensitive_values(basis.criteria) if own.name == one.criterion.attribute
        )
        (column,) = (
            own.column for own in criteria.sensitive if own.name == one.criterion.attribute
        )
        unknown = unknown_people(basis.withheld.uncertainty[values.name].share, rows)
        records = basis.rounds.finished.rows(CLASS_ID, UNIT, column)
        pairs = records.select({"value": column, UNIT: UNIT})
        shares = shares_of_people(pairs, values, unknown)
        data = records.join(_published_tuples(basis.rounds), [CLASS_ID], small=False)
        data = data.select({_TUPLE: _TUPLE, "value": column, UNIT: UNIT})
        asked = [one.criterion]
        (told[place],) = measure_people(data, [_TUPLE], values, asked, shares, rows)
    return told


def require_people(measured: Sequence[MeasuredCriterion]) -> None:
    """Check criteria that count people in the published tuples.

    Raises
    ------
    GuaranteeError
        If a class violates one: each class that was formed satisfies it, but those that are
        published alike are one class, which need not.
    """
    broken = [
        f"{one.violating_classes:,} published tuples, of {one.violating_records:,} records, "
        f"violate {one.criterion.describe()} on attribute {one.criterion.attribute!r}, where "
        "people are counted: classes that are published alike are one class, and people who are "
        "in several of them count once; nothing was published. Take a model whose classes are "
        "published apart (smondrian without hierarchies, full-domain), or weaken the criterion"
        for one in measured
        if one.violating_classes
    ]
    if broken:
        raise GuaranteeError("\n".join(broken))


def require_whole_order(criteria: Criteria, left_out: int) -> None:
    """Check that no records are left out where people are compared with an order of values.

    Raises
    ------
    GuaranteeError
        If some are: nobody else could tell from the files what the distance is measured from.
    """
    if criteria.asks_for_ranges and left_out:
        raise GuaranteeError(
            "privacy.t_closeness: found the ordered distance beside privacy.unit, and records that "
            "no round found a class for; expected all records to be published, for the distance "
            "could not be measured from the files; set model.residual to suppress, or choose "
            "another distance; nothing was published"
        )


@dataclass(frozen=True)
class _NameTuples:
    """Yields of each class the smallest name of those that are published alike."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            names = batch.column(CLASS_ID)
            owners = names.value_parent_indices()
            smallest = pa.table({"owner": owners, "name": names.flatten()}).group_by("owner")
            found = smallest.aggregate([("name", "min")]).sort_by("owner")["name_min"]
            columns = [names.flatten(), pc.take(found, owners).combine_chunks()]
            yield pa.RecordBatch.from_arrays(columns, schema=_TUPLES)


def _published_tuples(rounds: StagedRounds) -> Table:
    """Return the classes, and one name for those that are published alike."""
    labels = [name for name in rounds.classes.schema.names if is_published(name)]
    classes = rounds.classes.rows(CLASS_ID, *labels)
    residual = rounds.residual
    if residual is not None and residual.labels is not None:
        own = residual.labels.select([CLASS_ID, *labels]).cast(classes.schema)
        classes = classes.union(classes.engine.table(own))
    alike = classes.aggregate(labels, lists=[CLASS_ID]).select([CLASS_ID])
    return alike.map_batches(_NameTuples(), _TUPLES)
