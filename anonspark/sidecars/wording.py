"""A release and its columns in words: what the manifest says, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.grids import grid_text
from anonspark.foreign_text import code_span
from anonspark.labels.regions import PublishedAttribute, published_attributes
from anonspark.labels.typed_names import has_unknown_labels
from anonspark.release.manifest import Manifest


@dataclass(frozen=True)
class AboutColumn:
    """The kind of a published column.

    Parameters
    ----------
    role : str
        Of its attribute.
    meaning : str
        One sentence, or the part of one, in Markdown.
    """

    role: str
    meaning: str


def title_of(manifest: Manifest) -> str:
    """Return what a release is, in a line."""
    return f"Anonymized records, k = {manifest.k}"


def promises(manifest: Manifest) -> list[str]:
    """Return what every class of a release keeps, a sentence each."""
    privacy = PrivacyOptions.model_validate(
        dict(manifest.configuration["privacy"]) | {"delta_presence": None}
    )
    whom = "people" if privacy.unit else "records"
    sentences = ["k = 1 protects no one: every record may be a class alone."] * (privacy.k == 1)
    sentences += [
        f"Every combination of published quasi-identifiers is that of at least {privacy.k} {whom}"
        " (k-anonymity)."
    ]
    sentences += [
        f"{code_span(one.attribute)}: {one.describe()} in every class." for one in privacy.criteria
    ]
    protected = {one.attribute for one in privacy.criteria if not one.demands_nothing}
    return sentences + [
        f"{code_span(name)}: no criterion was asked for, as l-diversity. A class may show the "
        "value of everybody in it."
        for name, one in manifest.attributes.items()
        if one["role"] == "sensitive" and name not in protected
    ]


def about_columns(manifest: Manifest, schema: pa.Schema) -> Mapping[str, AboutColumn]:
    """Return what each published column is, by name.

    Parameters
    ----------
    manifest : Manifest
    schema : pyarrow.Schema
        Of the published records.
    """
    found: dict[str, AboutColumn] = {}
    for one in published_attributes(manifest):
        for column in one.columns:
            found[column] = AboutColumn("quasi_identifier", _meaning(one, column, manifest))
    pseudonyms = manifest.configuration.get("output", {}).get("pseudonyms") or {}
    for name in pseudonyms.values():
        found[name] = AboutColumn("pseudonym", "the same for all records about one person")
    for name in schema.names:
        if name not in found:
            role = str((manifest.attributes.get(name) or {}).get("role", "insensitive"))
            found[name] = AboutColumn(role, "published as it was")
    return found


def _meaning(attribute: PublishedAttribute, column: str, manifest: Manifest) -> str:
    if column == manifest.holder_column:
        return "who held the record"
    name = code_span(attribute.name)
    if attribute.grid is not None:
        unmarked = _meaning(replace(attribute, grid=None), column, manifest)
        step = grid_text(attribute.grid)
        return f"{unmarked}. Ranges end on a grid of {step}"
    if column == f"{attribute.name}_missing":
        return f"whether {name} may be missing"
    if column == f"{attribute.name}_min":
        return f"smallest {name} of the class, included"
    if column == f"{attribute.name}_max":
        return f"largest {name} of the class, included"
    match attribute.rule:
        case "intervals":
            return f"label: a value or a half-open interval of {name}, as [20-25["
        case "calendar":
            return f"label: a day, month, quarter, year or decade of {name}"
        case "prefix":
            return f"label: a code whose last characters may be masked, as 061** ({name})"
        case "keep":
            return f"label: a code or the first characters of codes, as E11* ({name})"
    if has_unknown_labels(attribute, manifest):
        return f"label of a hierarchy of {name}: a value, or the group that holds it"
    if attribute.style == "bounds":
        return f"set of the values of {name} in the class. Null is missing"
    if attribute.style == "mean" and not attribute.is_category:
        return f"mean of {name} in the class"
    if attribute.is_category:
        return f"label: a value, or the set of the values of {name} in the class, as {{a, b}}"
    divider = "/" if attribute.kind in ("date", "timestamp") else "-"
    return f"label: a value, or the range of {name} in the class, as [low{divider}high]"


def type_of(arrow_type: pa.DataType) -> str:
    """Return what data packages call the values of a type, whatever engine wrote them."""
    types = pa.types
    if types.is_boolean(arrow_type):
        return "boolean"
    if types.is_integer(arrow_type):
        return "integer"
    if types.is_floating(arrow_type) or types.is_decimal(arrow_type):
        return "number"
    if types.is_date(arrow_type):
        return "date"
    if types.is_timestamp(arrow_type):
        return "datetime"
    if types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return "string"
    return "array" if types.is_list(arrow_type) else "any"
