"""Sensitive values that differ in how they are written, and would meet a criterion by that."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from anonspark.config import Configuration
from anonspark.core.columns import payload_column
from anonspark.core.criterion import MOST_VALUES
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain, is_text
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import ValueSizes
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import measure_criteria
from anonspark.verification.homogeneity import Homogeneity
from anonspark.verification.merged import (
    MergedFigures,
    describe_merged,
    merge_values,
)
from anonspark.verification.sensitive import describe_values
from anonspark.verification.sensitive_values import SensitiveValues


def sensitive_value_warnings(
    kept: Table,
    configuration: Configuration,
    sensitive: Sequence[SensitiveValues],
    sizes: Mapping[str, ValueSizes],
) -> Iterator[ReleaseWarning]:
    """Warn of values of the input that say the same, or are missing, before anything is done.

    Parameters
    ----------
    kept : Table
        The sensitive attributes of the records that are kept, under the names of staged columns.
    configuration : Configuration
    sensitive : sequence of SensitiveValues
        Of the attributes that criteria are about. Of these alone missing values matter.
    sizes : mapping of str to ValueSizes
        Of all attributes that are published as they are.

    Notes
    -----
    One small job for each other sensitive attribute with texts, of at most 50,000 different values.
    """
    required = {one.name for one in sensitive}
    columns = {
        name: payload_column(index) for index, name in enumerate(configuration.published_as_is)
    }
    others = []
    for name in _others(kept, configuration, required, sizes, columns):
        described = describe_values(kept, columns[name])
        if described is not None:
            others.append(replace(described, name=name))
    for attribute in (*sensitive, *others):
        merged = merge_values(attribute, configuration.input.missing_markers)
        figures = {"values": merged.values, "merged_values": merged.merged}
        if merged.merged < merged.values:
            yield ReleaseWarning(
                "equal_values",
                f"its {merged.values:,} different values are {merged.merged:,} but for case, "
                "blanks, punctuation, look-alike letters, forms of numbers and markers of "
                "missing values, and each would count for l-diversity and the other criteria. "
                "Write equal values alike",
                attribute.name,
                figures,
            )
        elif merged.has_missing and attribute.name in required:
            yield ReleaseWarning(
                "missing_values",
                "values are missing, and missing counts for l-diversity and the other criteria "
                "as one more value. Complete them, or ask for a larger l",
                attribute.name,
                figures,
            )


def _others(
    table: Table,
    configuration: Configuration,
    required: Collection[str],
    sizes: Mapping[str, ValueSizes],
    columns: Mapping[str, str],
) -> list[str]:
    """Return the sensitive attributes without a criterion whose texts are few enough to be read."""
    schema = table.schema
    return [
        name
        for name in configuration.sensitive
        if name not in required
        and is_text(schema.field(columns[name]).type)
        and sizes[name].values <= MOST_VALUES
    ]


def warn_of_sensitive_values(
    table: Table,
    quasi_identifiers: Sequence[str],
    configuration: Configuration,
    staged: Sequence[SensitiveValues],
    sizes: Mapping[str, ValueSizes],
    published: PublishedClasses,
) -> Iterator[ReleaseWarning]:
    """Warn of what a release has less of than it seems, or than its privacy should demand.

    Parameters
    ----------
    table : Table
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns that form the classes.
    configuration : Configuration
    staged : sequence of SensitiveValues
        Of the attributes that criteria are about, the values of the whole input. It saves looking
        at those in which there is nothing to find.
    sizes : mapping of str to ValueSizes
        Of the published columns.
    published : PublishedClasses
        The classes, and what came along with them.

    Notes
    -----
    For each sensitive attribute of texts without a criterion, or with a declared order, a small job
    that counts its values. None for the others if no value of the input says the same as another or
    is missing. Where there is something to find, one job that measures, about as much as the
    measuring of a criterion.
    """
    measured: dict[str, Homogeneity] = {}
    markers = configuration.input.missing_markers
    orders: Mapping[str, Sequence[str]] = configuration.sensitive_orders
    required = {one.name for one in staged}
    columns = {name: name for name in configuration.published_as_is}
    merging = {one.name for one in staged if not merge_values(one, markers).is_plain}
    merging.update(_others(table, configuration, required, sizes, columns))
    forbidden = {one.attribute for one in configuration.privacy.criteria if one.forbids_one_value}
    for name in configuration.sensitive:
        if name in forbidden and name not in merging:
            continue
        comparable = is_plain(table.schema.field(name).type)
        if name not in forbidden:
            measured[name] = _homogeneity(
                sizes[name],
                comparable=comparable,
                missing=published.missing[name],
                homogeneous=published.homogeneous.get(name),
            )
        values = None
        if comparable and (name in merging or name in orders):
            # What is told is about published records alone.
            values = describe_values(table, name, order=orders.get(name))
        if values is None or name not in merging:
            continue
        merged = merge_values(values, markers)
        if merged.is_plain:
            continue
        criteria = [one for one in configuration.privacy.criteria if one.attribute == name]
        asked = merged.asked(criteria)
        figures = merged.figures(measure_criteria(table, quasi_identifiers, asked))
        merged_warning = describe_merged(figures)
        if merged_warning is not None:
            code, text = merged_warning
            yield ReleaseWarning(code, text, name, _figures(figures))
    yield from _privacy_warnings(configuration, measured)


def _homogeneity(
    sizes: ValueSizes, *, comparable: bool, missing: int = 0, homogeneous: int | None = None
) -> Homogeneity:
    """Return what is known of an attribute, of whose values are counted how many occur how often.

    Parameters
    ----------
    sizes : ValueSizes
        Missing is one of the values.
    comparable : bool
        Whether values can be compared.
    missing : int
        Records without a value.
    homogeneous : int or None
    """
    values = sizes.values - bool(missing)
    if not comparable or values > MOST_VALUES:
        return Homogeneity(sizes.records, None)
    largest = max(sizes.sizes, default=0) / max(sizes.records, 1)
    return Homogeneity(sizes.records, values, largest, homogeneous)


def privacy_warnings_of_input(
    kept: Table, configuration: Configuration, sizes: Mapping[str, ValueSizes]
) -> Iterator[ReleaseWarning]:
    """Warn of what privacy does not demand, before there are classes.

    Parameters
    ----------
    kept : Table
        The sensitive attributes of the records that are kept, under the names of staged columns.
    configuration : Configuration
    sizes : mapping of str to ValueSizes
        Of all attributes that are published as they are.
    """
    schema = kept.schema
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
    for name in filter(measured.__contains__, configuration.sensitive):
        own = measured[name]
        more = own.warning(name, configuration.privacy, is_only=len(configuration.sensitive) == 1)
        if more is not None:
            yield ReleaseWarning(*more, name, {"homogeneous_records": own.homogeneous})


def _figures(figures: MergedFigures) -> dict[str, object]:
    return {
        "values": figures.values,
        "merged_values": figures.merged,
        "distinct": figures.distinct_published,
        "distinct_merged": figures.distinct,
        "distinct_present": figures.distinct_present,
        "criteria": [
            {
                "criterion": one.kind,
                "required": one.bound,
                "merged": None if math.isinf(measured) else measured,
            }
            for one, measured in figures.criteria.items()
        ],
    }
