"""How the labels of two releases are read, where a table of another tool is among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.kinds import Kind
from anonspark.engine.raw_columns import is_text
from anonspark.errors import DataError
from anonspark.release.inference import infer_attributes
from anonspark.release.regions import (
    Leaves,
    PublishedAttribute,
    UnreadableLabelError,
    leaves_by_label,
    read_label,
)
from anonspark.verification.opening import OpenedRelease

_MOST_LABELS = 1_000_000

_ARROW: Mapping[Kind, pa.DataType] = {
    "integer": pa.int64(),
    "decimal": pa.decimal128(38, 18),
    "float": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
    "category": pa.string(),
}

# Numbers before days, for none is both.
_TRIED: tuple[Kind, ...] = ("decimal", "date", "timestamp")


def attributes_of_all(
    releases: Sequence[OpenedRelease], original: pa.Schema | None
) -> list[tuple[PublishedAttribute, ...]]:
    """Return the quasi-identifiers of each release.

    Parameters
    ----------
    releases : sequence of OpenedRelease
    original : pyarrow.Schema or None
        Of the table that they were made of, if it is given.

    Notes
    -----
    Of a table without a manifest the labels show what the values were, unless the original or the
    manifest of another release tells: one job for each of its columns of texts.
    """
    told = {
        attribute.name: pa.float32() if attribute.type == "float" else _ARROW[attribute.kind]
        for release in releases
        for attribute in release.claim.attributes or ()
        if attribute.rule is None
    }
    if original is not None:
        told |= {field.name: field.type for field in original}
    for release in releases:
        for name in () if release.claim.attributes else release.claim.names:
            if name not in told:
                told[name] = _type_of_labels(name, releases)
    raw = pa.schema(list(told.items()))
    return [
        release.claim.attributes or infer_attributes(release.data, release.claim.names, raw)
        for release in releases
    ]


def leaves_of(release: OpenedRelease) -> dict[str, Leaves]:
    """Return what the labels of a release's hierarchies from files stand for."""
    return {name: leaves_by_label(one) for name, one in release.claim.hierarchies.items()}


def _type_of_labels(name: str, releases: Sequence[OpenedRelease]) -> pa.DataType:
    """Return the type of an attribute's values, by all labels of the releases that have it."""
    labels: list[str] = []
    for release in releases:
        types = {field.name: field.type for field in release.data.schema}
        column = name if name in types else f"{name}_min"
        if column not in types:
            continue
        if not is_text(types[column]):
            if not pa.types.is_nested(types[column]):
                return types[column]
            return pa.string()
        found = release.data.select({"label": column}).aggregate(["label"], count="records")
        table = found.collect(_MOST_LABELS + 1)
        if table.num_rows > _MOST_LABELS:
            raise DataError(
                f"{release.path}: column {name!r} has more than {_MOST_LABELS:,} different labels; "
                "give --original, which tells what they are"
            )
        labels += pc.drop_null(table["label"]).to_pylist()
    for kind in _TRIED:
        attribute = PublishedAttribute(name, kind, "interval", (name,))
        if _all_readable(labels, attribute):
            return _ARROW[kind]
    return pa.string()


def _all_readable(labels: Sequence[str], attribute: PublishedAttribute) -> bool:
    try:
        for label in labels:
            read_label(label, attribute)
    except UnreadableLabelError:
        return False
    return True
