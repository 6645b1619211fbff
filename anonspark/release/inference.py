"""How the labels of another tool's release are to be read: from the labels and the raw columns."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.core.kinds import Kind
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.errors import DataError
from anonspark.release.regions import PublishedAttribute

_MASKED = r"^[^*]+\*+$"


def infer_attributes(
    data: DataFrame, names: Sequence[str], table: DataFrame
) -> tuple[PublishedAttribute, ...]:
    """Tell how a release without a manifest is read, for matching it with a raw table.

    Parameters
    ----------
    data : DataFrame
        Published records.
    names : sequence of str
        Quasi-identifiers; each is a column of the release, or two: ``<name>_min`` and
        ``<name>_max``.
    table : DataFrame
        Raw records, whose types say what the values are.

    Raises
    ------
    DataError
        If the raw table lacks a quasi-identifier.

    Notes
    -----
    One job, where a text column may hold masked codes such as ``160**``.
    """
    types = {field.name: field.dataType for field in table.schema}
    lacking = [name for name in names if name not in types]
    if lacking:
        raise DataError(
            f"the table to match with lacks the columns {', '.join(map(repr, lacking))}; it needs "
            "every quasi-identifier of the release, under its name"
        )
    published = {field.name: field.dataType for field in data.schema}
    texts = [name for name in names if isinstance(published.get(name), TEXT_TYPES)]
    masked: set[str] = set()
    if texts:
        row = data.agg(
            *(
                sf.max(sf.col(quoted(name)).rlike(_MASKED)).alias(f"masked_{place}")
                for place, name in enumerate(texts)
            )
        ).collect()[0]
        masked = {name for place, name in enumerate(texts) if row[f"masked_{place}"]}
    return tuple(_attribute(name, published, types[name], masked=name in masked) for name in names)


def _attribute(
    name: str, published: dict[str, st.DataType], raw: st.DataType, *, masked: bool
) -> PublishedAttribute:
    columns: tuple[str, ...] = (f"{name}_min", f"{name}_max")
    if name in published:
        columns = (name,)
    if f"{name}_missing" in published:
        columns += (f"{name}_missing",)
    style = "interval" if name in published else "bounds"
    if masked:
        return PublishedAttribute(name, "category", style, columns, rule="prefix")
    return PublishedAttribute(name, _kind(raw, published.get(name)), style, columns)


def _kind(raw: st.DataType, published: st.DataType | None) -> Kind:
    """Return what the values are; numbers that one of the tables calls texts are texts."""
    if isinstance(raw, st.BooleanType):
        return "boolean"
    if isinstance(raw, st.DateType):
        return "date"
    if isinstance(raw, (st.TimestampType, st.TimestampNTZType)):
        return "timestamp"
    if isinstance(raw, (st.FloatType, st.DoubleType)):
        return "float"
    if isinstance(raw, st.DecimalType) or isinstance(published, st.DecimalType):
        return "decimal"
    return "integer" if isinstance(raw, st.IntegralType) else "category"
