"""Names and types of the typed columns that stand beside labels where a release is read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import pyarrow as pa

from anonspark.labels.class_bounds import type_of_name
from anonspark.labels.regions import PublishedAttribute
from anonspark.release.manifest import Manifest

Typed = Literal["min", "max", "max_included", "mid", "missing", "set"]


def typed_names(
    attribute: PublishedAttribute, columns: Collection[str], *, is_opaque: bool, may_miss: bool
) -> dict[Typed, str]:
    """Name the typed columns that complete a quasi-identifier, by their content.

    A name is ``<name>_<content>``, with underscores behind it if a published column has it. With
    ``is_opaque`` labels are those of a hierarchy's file, whose meaning is not published. With
    ``may_miss`` values may be missing.

    >>> age = PublishedAttribute("age", "integer", "interval", ("age",))
    >>> typed_names(age, ["age", "AGE_MID"], is_opaque=False, may_miss=False)
    {'min': 'age_min', 'max': 'age_max', 'mid': 'age_mid_'}
    """
    names_in_use = {name.lower() for name in columns}

    def named(content: Typed) -> str:
        name = f"{attribute.name}_{content}"
        # Databases ignore case in names.
        while name.lower() in names_in_use:
            name += "_"
        return name

    contents = _contents(attribute, is_opaque=is_opaque, may_miss=may_miss)
    return {content: named(content) for content in contents}


def _contents(attribute: PublishedAttribute, *, is_opaque: bool, may_miss: bool) -> Sequence[Typed]:
    """List the contents of the typed columns of a quasi-identifier."""
    if attribute.style == "bounds" and attribute.rule is not None:
        # The set of its values is published.
        return ()
    if attribute.is_category:
        return () if is_opaque or attribute.style == "bounds" else ("set",)
    if attribute.is_code:
        return ()
    if attribute.rule is not None:
        half_open: tuple[Typed, ...] = ("max_included",) if attribute.rule == "intervals" else ()
        missing: tuple[Typed, ...] = ("missing",) if may_miss else ()
        return ("min", "max", *half_open, "mid", *missing)
    if attribute.style in ("bounds", "mean"):
        return ("mid",)
    return ("min", "max", "mid", *(("missing",) if may_miss else ()))


def has_unknown_labels(attribute: PublishedAttribute, manifest: Manifest) -> bool:
    """Return whether labels are those of a hierarchy of a file, which the release does not hold."""
    (described,) = (
        entry for entry in manifest.quasi_identifiers if entry["name"] == attribute.name
    )
    from_file = bool(described.get("hierarchy")) and attribute.rule is None
    return from_file and attribute.style != "bounds"


_PLAIN = ("int8", "int16", "int32", "int64", "float", "double", "date32[day]")


def raw_type_of(attribute: PublishedAttribute, schema: pa.Schema) -> pa.DataType | None:
    """Return the type of an attribute's ends, or None for categories and codes.

    It is the type of the raw column if that is known, and float64 for intervals of a rule.

    >>> age = PublishedAttribute("age", "integer", "interval", ("age",), "int8")
    >>> raw_type_of(age, pa.schema([]))
    DataType(int8)
    """
    if attribute.is_category or attribute.is_code:
        return None
    if attribute.rule is not None:
        return pa.date32() if attribute.rule == "calendar" else pa.float64()
    if attribute.columns[0] != attribute.name:
        return schema.field(attribute.columns[0]).type
    type_text = attribute.type or ""
    if type_text.startswith("timestamp"):
        return pa.timestamp("us", type_of_name(type_text).tz)
    if type_text in _PLAIN or type_text.startswith("decimal128("):
        return type_of_name(type_text)
    return {"integer": pa.int64(), "date": pa.date32()}.get(attribute.kind, pa.float64())
