"""Warn of sensitive values that differ in spelling, are missing, or need a criterion."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import payload_column
from anonspark.core.criterion import MOST_VALUES
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain, is_text
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import ValueSizes
from anonspark.verification.proof.classes import PublishedClasses
from anonspark.verification.proof.homogeneity import MISSING_VALUES, Homogeneity
from anonspark.verification.proof.measures import SensitiveValues
from anonspark.verification.proof.sensitive import describe_values


def plain_spelling(text: str) -> str:
    """Return a text without case, blanks, invisible signs and punctuation.

    Punctuation stays between digits, and `+`, `-` and `*` at the end, as in `HIV-` or `A*`. A text
    that only has punctuation stays.

    >>> [plain_spelling(text) for text in ("Flu ", "HIV-", "J45.0", "--")]
    ['flu', 'hiv-', 'j45.0', '-']
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    shown = "".join(
        sign
        for sign in folded
        if not sign.isspace() and unicodedata.category(sign) not in ("Cc", "Cf")
    )
    last = len(shown) - 1
    plain = (
        sign
        for index, sign in enumerate(shown)
        if not unicodedata.category(sign).startswith("P")
        or (index == last and sign in "-*")
        or (0 < index < last and (shown[index - 1] + shown[index + 1]).isdecimal())
    )
    return "".join(plain) or shown


def sensitive_value_warnings(
    rows: Table,
    configuration: Configuration,
    sensitive: Sequence[SensitiveValues],
    sizes: Mapping[str, ValueSizes],
) -> Iterator[ReleaseWarning]:
    """Warn of values of the input that are spelled differently, or are missing.

    ``rows`` holds the sensitive attributes of the kept records under staged names. ``sensitive``
    are the attributes of criteria, the only ones whose missing values matter. ``sizes`` are those
    of all unchanged attributes. One small job for each other sensitive attribute with texts, of at
    most 50,000 different values.
    """
    required = {item.name for item in sensitive}
    attributes = list(sensitive)
    for index, name in enumerate(configuration.published_as_is):
        column = payload_column(index)
        if (
            name in configuration.sensitive
            and name not in required
            and is_text(rows.schema.field(column).type)
            and sizes[name].values <= MOST_VALUES
            and (described := describe_values(rows, column)) is not None
        ):
            attributes.append(replace(described, name=name))
    markers = {"", *map(plain_spelling, configuration.input.missing_markers)}
    for attribute in attributes:
        # A declared order may list values that do not occur.
        values = attribute.values.filter(pa.array(attribute.shares > 0)).to_pylist()
        plain = {
            plain_spelling(value) if isinstance(value, str) else value if value == value else None
            for value in values
        }
        missing = plain & {None, *markers}
        merged = len(plain - missing) + bool(missing)
        figures = {"values": len(values), "merged_values": merged}
        if merged < len(values):
            yield ReleaseWarning(
                "equal_values",
                f"its {len(values):,} different values are {merged:,} but for case, blanks, "
                "punctuation and markers of missing values, and each would count for l-diversity "
                "and the other criteria. Write equal values alike",
                attribute.name,
                figures,
            )
        elif missing and attribute.name in required:
            yield ReleaseWarning("missing_values", MISSING_VALUES, attribute.name, figures)


def warn_of_sensitive_values(
    table: Table,
    configuration: Configuration,
    sizes: Mapping[str, ValueSizes],
    published: PublishedClasses,
) -> Iterator[ReleaseWarning]:
    """Warn of attributes with fewer values than it seems, or without a criterion, in a release.

    ``sizes`` are those of the published columns, and ``published`` are the classes.
    """
    criteria = configuration.privacy.criteria
    counting = {criterion.attribute for criterion in criteria if criterion.type.counts_values}
    for name in filter(counting.__contains__, configuration.sensitive):
        if missing := published.missing.get(name):
            yield ReleaseWarning("missing_values", MISSING_VALUES, name, {"records": missing})
    forbidden = {criterion.attribute for criterion in criteria if criterion.forbids_one_value}
    measured = {
        name: _homogeneity(
            sizes[name],
            comparable=is_plain(table.schema.field(name).type),
            missing=published.missing[name],
            homogeneous=published.homogeneous.get(name),
        )
        for name in configuration.sensitive
        if name not in forbidden
    }
    yield from _privacy_warnings(configuration, measured)


def _homogeneity(
    sizes: ValueSizes, *, comparable: bool, missing: int = 0, homogeneous: int | None = None
) -> Homogeneity:
    """Return what counts of its values show of an attribute. A missing value is one of them.

    ``missing`` counts records without a value, and ``comparable`` whether values can be compared.
    """
    values = sizes.values - bool(missing)
    if not comparable or values > MOST_VALUES:
        return Homogeneity(sizes.records, None)
    largest = max(sizes.sizes, default=0) / max(sizes.records, 1)
    return Homogeneity(sizes.records, values, largest, homogeneous)


def privacy_warnings_of_input(
    rows: Table, configuration: Configuration, sizes: Mapping[str, ValueSizes]
) -> Iterator[ReleaseWarning]:
    """Warn of attributes without a criterion, before there are classes.

    ``rows`` holds the sensitive attributes of the kept records under staged names.
    """
    schema = rows.schema
    measured = {
        name: _homogeneity(
            sizes[name], comparable=is_plain(schema.field(payload_column(index)).type)
        )
        for index, name in enumerate(configuration.published_as_is)
        if name in configuration.sensitive
    }
    return _privacy_warnings(configuration, measured)


def _privacy_warnings(
    configuration: Configuration, measured: Mapping[str, Homogeneity]
) -> Iterator[ReleaseWarning]:
    if configuration.privacy.k == 1:
        text = (
            "privacy.k is 1: every record may be a class alone, and no one is protected. Only "
            "compare with this release, and publish one with a larger k"
        )
        yield ReleaseWarning("no_protection", text)
    is_only = len(configuration.sensitive) == 1
    for name in filter(measured.__contains__, configuration.sensitive):
        warning = measured[name].warning(name, configuration.privacy, is_only=is_only)
        if warning is not None:
            yield ReleaseWarning(
                *warning, name, {"homogeneous_records": measured[name].homogeneous}
            )
