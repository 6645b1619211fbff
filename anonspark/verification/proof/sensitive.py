"""The values of a sensitive attribute as the published files show them, without the anonymizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.criterion import MOST_VALUES
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain, is_text, type_name
from anonspark.errors import DataError
from anonspark.verification.claims.left_out import listed_values
from anonspark.verification.proof.measures import SensitiveValues


def describe_values(
    data: Table,
    name: str,
    *,
    order: Sequence[str] | None = None,
    hierarchy: Hierarchy | None = None,
    left_out: pa.Table | None = None,
) -> SensitiveValues | None:
    """Count the different values of a sensitive attribute, or return None for more than 50,000.

    The order of a hierarchy takes precedence over a declared one. ``left_out`` has the columns
    ``attribute``, ``value`` (as text) and ``records``: its values count as well. Raises DataError
    if values of the column's type cannot be compared, or order or hierarchy lack values. One job
    and one shuffle of counts. The values and their counts are collected.
    """
    _require_comparable(data, name)
    counted = data.select({"value": name}).aggregate(["value"], count="records")
    table = counted.collect(MOST_VALUES + 1)
    if left_out is not None:
        table = _with_left_out(table, left_out.filter(pc.field("attribute") == name))
    if table.num_rows > MOST_VALUES:
        return None
    return _described(name, table, order, hierarchy)


def describe_values_by(
    data: Table,
    name: str,
    by: str,
    *,
    order: Sequence[str] | None = None,
    hierarchy: Hierarchy | None = None,
) -> dict[str | None, SensitiveValues]:
    """Count the different values of a sensitive attribute for each value of a column, in order.

    Parameters are those of :func:`describe_values`, which found few enough values. One job and one
    shuffle of counts. The values of each group and their counts are collected.
    """
    _require_comparable(data, name)
    counted = data.select({"by": by, "value": name}).aggregate(["by", "value"], count="records")
    table = counted.collect()
    groups: list[str | None] = table["by"].unique().to_pylist()
    values_by_group = {}
    for group in sorted(groups, key=lambda value: (value is None, value)):
        is_member = pc.is_null(table["by"]) if group is None else pc.equal(table["by"], group)
        members = table.filter(is_member).drop_columns("by")
        values_by_group[group] = _described(name, members, order, hierarchy)
    return values_by_group


def _require_comparable(data: Table, name: str) -> None:
    """Raise DataError if the values of a column cannot be compared."""
    data_type = data.schema.field(name).type
    if not is_plain(data_type):
        raise DataError(
            f"{name}: has type {type_name(data_type)}, whose values cannot be compared. "
            "A sensitive attribute is a number, date, timestamp, boolean or text"
        )


def _described(
    name: str, table: pa.Table, order: Sequence[str] | None, hierarchy: Hierarchy | None
) -> SensitiveValues:
    """Put counted values into the order of the attribute, with their shares.

    >>> table = pa.table({"value": [7, 3], "records": [1, 3]})
    >>> described = _described("pay", table, None, None)
    >>> described.values.to_pylist(), described.shares.tolist()
    ([3, 7], [0.75, 0.25])
    """
    data_type = table.schema.field("value").type
    # Missing values last, as :class:`SensitiveValues` has them.
    table = table.take(pc.sort_indices(table, [("value", "ascending")]))
    values = table.column("value").combine_chunks()
    counts = table.column("records").to_numpy().astype(np.int64)
    no_nodes = np.zeros(0, np.int64)
    parents, heights = no_nodes, no_nodes
    listed = order
    if hierarchy is not None:
        tree = hierarchy.tree()
        parents, heights, listed = tree.parents, tree.heights, hierarchy.leaves
    if listed is not None:
        key = f"attributes.{name}.{'order' if hierarchy is None else 'hierarchy'}"
        values, counts = _as_listed(key, values, counts, listed)
    return SensitiveValues(
        name=name,
        values=values,
        shares=counts / max(int(counts.sum()), 1),
        parents=parents,
        heights=heights,
        as_text=listed is not None,
        is_ordered=listed is not None or not is_text(data_type),
    )


def _with_left_out(table: pa.Table, left_out: pa.Table) -> pa.Table:
    """Return values and counts together with those of records left out, which are texts."""
    values = listed_values(left_out, table.schema.field("value").type)
    more = pa.table([values, left_out["records"].cast(pa.int64())], table.schema.names)
    values_twice = pa.concat_tables([table, more], promote_options="permissive")
    added = values_twice.group_by("value").aggregate([("records", "sum")])
    return added.rename_columns(["value", "records"])


def _as_listed(
    key: str, values: pa.Array, counts: Integers, listed: Sequence[str]
) -> tuple[pa.Array, Integers]:
    """Return the listed values, missing last, and how often each occurs. Others are an error."""
    texts: list[Any] = pc.utf8_trim_whitespace(values.cast(pa.string())).to_pylist()
    order: list[str | None] = list(dict.fromkeys(value.strip() for value in listed))
    if None in texts:
        order.append(None)
    index_by_value = {value: index for index, value in enumerate(order)}
    lacking = sum(text not in index_by_value for text in texts)
    if lacking:
        raise DataError(
            f"{key}: lacks {lacking:,} of the {len(texts):,} different values of the release. "
            "Complete it"
        )
    in_order = np.zeros(len(order), np.int64)
    np.add.at(in_order, [index_by_value[text] for text in texts], counts)
    return pa.array(order, pa.string()), in_order
