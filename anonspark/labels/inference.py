"""Infer how the labels of another tool's release are read, from labels and raw columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.labels import Kind
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text
from anonspark.engine.tasks import Batches
from anonspark.engine.values.column_plans import kind_of
from anonspark.errors import DataError
from anonspark.labels.regions import PublishedAttribute

_MASKED = r"^[^*]+\*+$"


def infer_attributes(
    data: Table, names: Sequence[str], raw: pa.Schema
) -> tuple[PublishedAttribute, ...]:
    """Infer how to read a release without a manifest, to match it with raw records of a schema.

    Each quasi-identifier is a column of the release, or two: ``<name>_min`` and ``<name>_max``. The
    types of the raw columns decide what the values are. One job if a text column may hold masked
    codes such as ``160**``. Raises DataError if the raw table lacks a quasi-identifier.
    """
    types = {field.name: field.type for field in raw}
    lacking = [name for name in names if name not in types]
    if lacking:
        raise DataError(
            f"the table to match with lacks the columns {', '.join(map(repr, lacking))}. It needs "
            "every quasi-identifier of the release, under its name"
        )
    published = {field.name: field.type for field in data.schema}
    texts = [name for name in names if name in published and is_text(published[name])]
    codes: set[str] = set()
    if texts:
        schema = pa.schema([(name, pa.bool_()) for name in texts])
        has_masks = data.select(texts).map_batches(_FindMasks(schema), schema).collect()
        codes = {name for name in texts if pc.any(has_masks[name]).as_py()}
    return tuple(_attribute(name, published, types[name], masked=name in codes) for name in names)


@dataclass(frozen=True)
class _FindMasks:
    """Finds the columns of a task that hold masked codes."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        """Yield a row for each batch: whether each column has a masked code."""
        for batch in batches:
            masked = [
                pc.any(pc.match_substring_regex(column, _MASKED), min_count=0)
                for column in batch.columns
            ]
            yield pa.record_batch([pa.array([flag.as_py()]) for flag in masked], schema=self.schema)


def _attribute(
    name: str, published: dict[str, pa.DataType], raw: pa.DataType, *, masked: bool
) -> PublishedAttribute:
    """Describe a quasi-identifier by the types of its published and its raw column.

    >>> _attribute("zip", {"zip": pa.string()}, pa.string(), masked=True).rule
    'prefix'
    """
    columns: tuple[str, ...] = (f"{name}_min", f"{name}_max")
    if name in published:
        columns = (name,)
    if f"{name}_missing" in published:
        columns += (f"{name}_missing",)
    style = "interval" if name in published else "bounds"
    if masked:
        return PublishedAttribute(name, "category", style, columns, rule="prefix")
    # The few digits of a float of 32 bits are another number in 64 bits.
    type_text = str(raw) if pa.types.is_float32(raw) else None
    return PublishedAttribute(name, _kind(raw, published.get(name)), style, columns, type_text)


def _kind(raw: pa.DataType, published: pa.DataType | None) -> Kind:
    """Return what the values are. Numbers are texts if one of the tables has them as texts.

    >>> _kind(pa.int64(), pa.string()), _kind(pa.int64(), pa.decimal128(5, 2))
    ('integer', 'decimal')
    """
    kind = kind_of(raw) or "category"
    if published is not None and pa.types.is_decimal(published):
        return "decimal" if kind in ("integer", "category") else kind
    return kind
