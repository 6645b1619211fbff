"""The sensitive attributes that criteria are about: their values and how often each occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.criteria import Counts, Criteria, SensitiveAttribute, comparable
from anonspark.core.criterion import Criterion
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.tasks import Batches
from anonspark.engine.values.value_texts import plain
from anonspark.errors import DataError, GuaranteeError
from anonspark.staged.records import Records, Rows

# Tasks count every value of every node, and the driver adds them up.
_MOST_VALUES = 50_000

_NUMBERS = pa.schema([("number", pa.int64()), ("count", pa.int64())])


def describe_criteria(
    records: Records | Rows,
    privacy: PrivacyOptions,
    columns: Mapping[str, str],
    orders: Mapping[str, Sequence[str]],
    hierarchies: Mapping[str, Hierarchy],
) -> Criteria:
    """Return the criteria of every class, with the sensitive values of the whole input.

    ``columns`` names the column of each sensitive attribute, and ``orders`` and ``hierarchies``
    belong to those that have one. Raises DataError if an attribute has too many different values,
    or its order or hierarchy lacks some. One job and one shuffle of counts for each sensitive
    attribute of a criterion. The counts of its values, at most 50,000, are collected.
    """
    criteria = privacy.criteria
    names = list(dict.fromkeys(criterion.attribute for criterion in criteria))
    sensitive = tuple(
        _describe(
            records,
            name,
            columns[name],
            criteria,
            orders.get(name),
            hierarchies.get(name),
        )
        for name in names
    )
    return Criteria(privacy.k, criteria, sensitive)


def _describe(
    records: Records | Rows,
    name: str,
    column: str,
    criteria: Sequence[Criterion],
    declared_order: Sequence[str] | None,
    hierarchy: Hierarchy | None,
) -> SensitiveAttribute:
    """Describe a sensitive attribute by the order or hierarchy that its criteria need.

    ``declared_order`` is that of the configuration, or None. One job, which collects the values.
    Raises DataError for too many values, and for values without a place in the hierarchy or order.
    """
    where = f"attributes.{name}"
    values, counts = _values_and_counts(records, column)
    if len(values) > _MOST_VALUES:
        raise DataError(
            f"{where}: more than {_MOST_VALUES:,} different values. l-diversity and t-closeness "
            "need an attribute whose values repeat. Make it coarser"
        )
    kinds = {criterion.kind for criterion in criteria if criterion.attribute == name}
    no_nodes = (np.zeros(0, np.int64),) * 2
    if "hierarchical distance" in kinds and hierarchy is not None:
        missing = int(counts[values.is_null().to_numpy(zero_copy_only=False)].sum())
        if missing:
            raise DataError(
                f"{where}: {missing:,} values are missing, for which its hierarchy has no place. "
                "Complete them, or choose another distance than hierarchical"
            )
        values, counts = _in_order(values, counts, hierarchy.leaves, f"{where}.hierarchy")
        tree = hierarchy.tree()
        nodes = tree.parents, tree.heights
        return SensitiveAttribute(name, column, values, counts, *nodes, as_text=True)
    if declared_order is not None:
        values, counts = _in_order(values, counts, declared_order, f"{where}.order")
        return SensitiveAttribute(name, column, values, counts, *no_nodes, as_text=True)
    if "ordered distance" in kinds and pa.types.is_string(values.type):
        raise DataError(
            f"{where}: a text without an order, for which the ordered distance means nothing. "
            f"Declare {where}.order, or choose another distance"
        )
    return SensitiveAttribute(name, column, values, counts, *no_nodes)


def _values_and_counts(records: Records | Rows, column: str) -> tuple[pa.Array, Counts]:
    """Return the values of a column, in their order, nulls last, and how often each occurs.

    One value more than there may be is enough.
    """
    # A plain type, so that texts differ as they do in the release: without a collation.
    schema = pa.schema([("value", records.schema.field(column).type), ("count", pa.int64())])
    count = _CountEach(schema)
    counted = records.map_batches(count, schema, [column])
    counts = counted.aggregate(["value"], sums=["count"]).collect(_MOST_VALUES + 1)
    counts = counts.sort_by("value")
    return counts["value"].combine_chunks(), counts["count"].to_numpy()


@dataclass(frozen=True)
class _CountEach:
    """Counts the different values of a column in each batch."""

    schema: pa.Schema

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            values, counts = batch.column(0).value_counts().flatten()
            yield pa.RecordBatch.from_arrays([plain(values), counts], schema=self.schema)


def _in_order(
    values: pa.Array, counts: Counts, order: Sequence[str], where: str
) -> tuple[pa.Array, Counts]:
    """Return the listed values, missing last, and how often each occurs."""
    texts = comparable(values, as_text=True).to_pylist()
    listed: list[str | None] = list(dict.fromkeys(value.strip() for value in order))
    if None in texts:
        listed.append(None)
    indices = {value: index for index, value in enumerate(listed)}
    if not indices.keys() >= set(texts):
        raise DataError(f"{where}: lacks some of the column's different values. List all of them")
    in_order = np.zeros(len(listed), np.int64)
    for value, count in zip(texts, counts.tolist(), strict=True):
        in_order[indices[value]] += count
    return pa.array(listed, pa.string()), in_order


def require_satisfiable(criteria: Criteria) -> None:
    """Raise GuaranteeError if the whole input violates a criterion: then no classes satisfy it."""
    counts = [attribute.counts for attribute in criteria.sensitive]
    if not counts:
        return
    violated = criteria.violated_by(int(counts[0].sum()), counts)
    if violated is not None:
        by_name = {attribute.name: attribute.counts for attribute in criteria.sensitive}
        number = np.count_nonzero(by_name[violated.attribute])
        values = "1 value" if number == 1 else f"{number:,} different values"
        raise GuaranteeError(
            f"privacy: the whole input violates {violated.describe()} on attribute "
            f"{violated.attribute!r}, which has {values}. So no classes of it can satisfy the "
            "criterion. Lower its bound, or remove it (in Python l=None). Nothing was published"
        )


@dataclass(frozen=True)
class _CountValues:
    """Counts the sensitive values of one partition in a Python worker."""

    criteria: Criteria

    takes_dictionaries: ClassVar[bool] = True

    def __call__(self, batches: Batches) -> Batches:
        counts = np.zeros(int(self.criteria.first_value[-1]), np.int64)
        for batch in batches:
            for first, attribute in zip(
                self.criteria.first_value, self.criteria.sensitive, strict=False
            ):
                numbers = attribute.encode(batch.column(attribute.column))
                counts += np.bincount(first + numbers, minlength=len(counts))
        present = np.flatnonzero(counts)
        arrays = [pa.array(present, pa.int64()), pa.array(counts[present])]
        yield pa.RecordBatch.from_arrays(arrays, schema=_NUMBERS)


def count_values(records: Records, criteria: Criteria) -> list[Counts]:
    """Count the staged records with each value of each sensitive attribute.

    One job with one shuffle of counts, which are collected. None if k is the only criterion.
    """
    if not criteria.sensitive:
        return []
    names = [attribute.column for attribute in criteria.sensitive]
    counted = records.map_batches(_CountValues(criteria), _NUMBERS, names)
    numbers = counted.aggregate(["number"], sums=["count"]).collect()
    counts = np.zeros(int(criteria.first_value[-1]), np.int64)
    counts[numbers["number"].to_numpy()] = numbers["count"].to_numpy()
    return np.split(counts, criteria.first_value[1:-1])
