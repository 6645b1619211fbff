"""A release and its columns in words: what the manifest says, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.grids import grid_text
from anonspark.core.labels import divider_of
from anonspark.foreign_text import code_span
from anonspark.labels.regions import PublishedAttribute, published_attributes
from anonspark.labels.typed_names import has_unknown_labels
from anonspark.release.manifest import Manifest


@dataclass(frozen=True)
class AboutColumn:
    """The role of a published column's attribute, and its meaning in Markdown."""

    role: str
    meaning: str


def title_of(manifest: Manifest) -> str:
    """Return a line that says what a release is.

    >>> title_of(Manifest({"configuration": {"privacy": {"k": 5}}}))
    'Anonymized records, k = 5'
    """
    return f"Anonymized records, k = {manifest.k}"


def promises(manifest: Manifest) -> list[str]:
    """List what every class of a release keeps, a sentence each.

    >>> promises(Manifest({"configuration": {"privacy": {"k": 5}}}))[0][:59]
    'Every combination of published quasi-identifiers is that of'
    """
    privacy = PrivacyOptions.model_validate(
        dict(manifest.configuration["privacy"]) | {"delta_presence": None}
    )
    whom = "people" if privacy.unit else "records"
    sentences = ["k = 1 protects no one: every record may be a class alone."] * (privacy.k == 1)
    sentences += [
        f"Every combination of published quasi-identifiers is that of at least {privacy.k} {whom}"
        " (k-anonymity)."
    ]
    criteria = privacy.criteria
    sentences += [f"{code_span(c.attribute)}: {c.describe()} in every class." for c in criteria]
    protected = {criterion.attribute for criterion in criteria if not criterion.demands_nothing}
    return sentences + [
        f"{code_span(name)}: no criterion was asked for, as l-diversity. A class may show the "
        "value of everybody in it."
        for name in manifest.with_role("sensitive")
        if name not in protected
    ]


def about_columns(manifest: Manifest, schema: pa.Schema) -> Mapping[str, AboutColumn]:
    """Describe each published column, by name."""
    about: dict[str, AboutColumn] = {}
    for attribute in published_attributes(manifest):
        for column in attribute.columns:
            about[column] = AboutColumn("quasi_identifier", _meaning(attribute, column, manifest))
    pseudonyms = manifest.configuration.get("output", {}).get("pseudonyms") or {}
    for name in pseudonyms.values():
        about[name] = AboutColumn("pseudonym", "the same for all records about one person")
    for name in schema.names:
        if name not in about:
            role = str((manifest.attributes.get(name) or {}).get("role", "insensitive"))
            about[name] = AboutColumn(role, "published as it was")
    return about


def _meaning(attribute: PublishedAttribute, column: str, manifest: Manifest) -> str:
    """Describe a column of a quasi-identifier."""
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
    example = f"[low{divider_of(attribute.kind)}high]"
    return f"label: a value, or the range of {name} in the class, as {example}"


def type_of(arrow_type: pa.DataType) -> str:
    """Return the name that data packages have for the values of a type, whatever engine wrote them.

    >>> type_of(pa.decimal128(9, 2)), type_of(pa.timestamp("us"))
    ('number', 'datetime')
    """
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
