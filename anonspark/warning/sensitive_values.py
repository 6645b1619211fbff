"""Sensitive values that differ in how they are written, and would meet a criterion by that."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from anonspark.configuration import Configuration
from anonspark.verification.merged import (
    MergedFigures,
    describe_merged,
    measure_merged,
    merge_values,
)
from anonspark.verification.sensitive import SensitiveValues, describe_values
from anonspark.warning.release_warning import ReleaseWarning

__all__ = ["sensitive_value_warnings", "warn_of_sensitive_values"]


def sensitive_value_warnings(
    sensitive: Sequence[SensitiveValues], configuration: Configuration
) -> list[ReleaseWarning]:
    """Warn of values of the input that say the same, or are missing, before anything is done.

    Parameters
    ----------
    sensitive : sequence of SensitiveValues
        Of the attributes that criteria are about.
    configuration : Configuration
    """
    found = []
    for attribute in sensitive:
        merged = merge_values(attribute, configuration.input.missing_markers)
        figures = {"values": merged.values, "merged_values": merged.merged}
        if merged.merged < merged.values:
            found.append(
                ReleaseWarning(
                    "equal_values",
                    f"its {merged.values:,} different values are {merged.merged:,} but for case, "
                    "blanks, Unicode form and markers of missing values, and each would count for "
                    "l-diversity and the other criteria; write equal values alike",
                    attribute.name,
                    figures,
                )
            )
        elif merged.has_missing:
            found.append(
                ReleaseWarning(
                    "missing_values",
                    "values are missing, and missing counts for l-diversity and the other criteria "
                    "as one more value; complete them, or ask for a larger l",
                    attribute.name,
                    figures,
                )
            )
    return found


def warn_of_sensitive_values(
    table: DataFrame,
    quasi_identifiers: Sequence[str],
    configuration: Configuration,
    staged: Sequence[SensitiveValues],
) -> list[ReleaseWarning]:
    """Say what a release would have of its criteria if values that say the same were one.

    Parameters
    ----------
    table : DataFrame
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns that form the classes.
    configuration : Configuration
    staged : sequence of SensitiveValues
        Of the whole input; it saves looking at attributes in which there is nothing to find.

    Notes
    -----
    No job where no value of the input says the same as another or is missing; else one that counts
    the published values of the attribute and one that measures, about as much as the measuring of
    its criteria.
    """
    found = []
    markers = configuration.input.missing_markers
    orders: Mapping[str, Sequence[str]] = configuration.sensitive_orders
    for attribute in staged:
        if merge_values(attribute, markers).is_plain:
            continue
        # What is told is about published records alone.
        published = describe_values(table, attribute.name, order=orders.get(attribute.name))
        values = None if published is None else merge_values(published, markers)
        if values is None or values.is_plain:
            continue
        criteria = [
            one for one in configuration.privacy.criteria if one.attribute == attribute.name
        ]
        figures = measure_merged(table, quasi_identifiers, criteria, values)
        told = describe_merged(figures)
        if told is not None:
            code, text = told
            found.append(ReleaseWarning(code, text, attribute.name, _figures(figures)))
    return found


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
