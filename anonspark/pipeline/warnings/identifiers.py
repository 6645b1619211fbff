"""Identifiers that several records share: k counts records, and would count fewer people."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.config import Configuration
from anonspark.core.columns import HASH_KEY, identifier_column
from anonspark.engine.spark.hidden import with_hidden_number
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.engine.spark.value_sizes import ValueSizes, count_value_sizes
from anonspark.pipeline.warnings.release_warning import ReleaseWarning

_DIGITS = 3


def identifier_hashes(
    table: DataFrame, configuration: Configuration, *key: Column
) -> dict[str, Column]:
    """Return a hash of each identifier, null where it is missing.

    Parameters
    ----------
    table : DataFrame
        With the columns that :func:`anonspark.core.columns.identifier_column` names.
    configuration : Configuration
        Its ``input.missing_markers`` are no identifiers.
    *key : Column
        Hashed first.
    """
    markers = [marker.strip() for marker in configuration.input.missing_markers]
    hashes = {}
    for index, name in enumerate(configuration.identifiers):
        value = sf.col(identifier_column(index))
        data_type = table.schema[identifier_column(index)].dataType
        if not _hashable(data_type):
            continue
        missing = value.isNull()
        if isinstance(data_type, TEXT_TYPES):
            value = value.cast("string")
            missing = missing | sf.trim(value).isin(["", *markers])
        elif isinstance(data_type, (st.FloatType, st.DoubleType)):
            missing = missing | sf.isnan(value)
        hashes[name] = sf.when(~missing, sf.xxhash64(*key, value))
    return hashes


def with_numbers_for_identifiers(table: DataFrame, configuration: Configuration) -> DataFrame:
    """Return a table without identifiers that tells as well which of its records share one.

    Parameters
    ----------
    table : DataFrame
        See :func:`anonspark.engine.spark.reading.select_attributes`, with identifiers.
    configuration : Configuration

    Returns
    -------
    DataFrame
        The same columns. Identifiers are hashes with a key that is drawn here and kept nowhere, so
        that nobody can try names against them; null where they are missing. Lazy, no shuffle.
    """
    names = {identifier_column(place): name for place, name in enumerate(configuration.identifiers)}
    keyed = with_hidden_number(table, HASH_KEY, secrets.randbits(64) - 2**63)
    hashes = identifier_hashes(table, configuration, sf.col(HASH_KEY))
    nothing = sf.lit(None).cast("long")
    return keyed.select(
        *(
            hashes.get(names[column], nothing).alias(column) if column in names else column
            for column in table.columns
        )
    )


def _hashable(data_type: st.DataType) -> bool:
    """Return whether Spark can hash the values of a type."""
    if isinstance(data_type, st.ArrayType):
        return _hashable(data_type.elementType)
    if isinstance(data_type, st.StructType):
        return all(_hashable(field.dataType) for field in data_type)
    return isinstance(data_type, (st.AtomicType, *TEXT_TYPES))


def count_identifiers(
    identified: DataFrame | None, configuration: Configuration, records: int
) -> dict[str, ValueSizes]:
    """Count how many records share each identifier.

    Parameters
    ----------
    identified : DataFrame or None
        The identifiers of the records that are kept; None where there are none.
    configuration : Configuration
    records : int
        Number of the records.

    Notes
    -----
    The job of :func:`anonspark.engine.spark.value_sizes.count_value_sizes`. Nothing of an
    identifier is written anywhere but, hashed, in the files of the shuffle.
    """
    if identified is None:
        return {}
    hashes = identifier_hashes(identified, configuration)
    return count_value_sizes(identified, hashes, records, all_different=True)


def identifier_warnings(sizes: Mapping[str, ValueSizes], k: int) -> list[ReleaseWarning]:
    """Warn of identifiers that occur in several records.

    Parameters
    ----------
    sizes : mapping of str to ValueSizes
        Of the identifiers.
    k : int

    Returns
    -------
    list of ReleaseWarning
        The figures are rounded, and about k identifiers or records at least: shares that stand for
        fewer than k records are None.
    """
    found = []
    for name, own in sizes.items():
        repeated = own.counted - own.records_below(2)
        if not repeated:
            continue
        share = _rounded_share(repeated, own.records, k)
        many = own.size_of_many(k)
        many = many if many is not None and many > 1 else None
        shown = f"fewer than k = {k:,} records" if share is None else f"about {100 * share:.3g} %"
        shown += "" if share is None else " of the records"
        text = f"the identifier of {shown} is that of another record, too"
        if many is not None:
            text += f" (k = {k:,} identifiers have {many:,} records or more)"
        text += (
            ": k counts records. Where one identifier is one person, a class of k records is of "
            "fewer than k people; bring the table to one row for each person first"
        )
        found.append(
            ReleaseWarning(
                "identifier_repeats",
                text,
                name,
                {
                    "repeated_share": share,
                    "records_of_k_identifiers": many,
                    "missing_share": _rounded_share(own.records - own.counted, own.records, k),
                    "exact": own.is_exact,
                },
            )
        )
    return found


def withheld_warnings(sizes: Mapping[str, ValueSizes]) -> list[ReleaseWarning]:
    """Return what is published in place of warnings about identifiers where records were left out.

    Nobody knows any more which identifiers belong to them, and nothing may be told of them. So it
    is the same whatever was found.
    """
    return [
        ReleaseWarning(
            "identifier_not_told",
            "records were left out, so whether identifiers repeat is told in the log of the run "
            "alone: k counts records, and may count fewer people",
            name,
        )
        for name in sizes
    ]


def _rounded_share(some: int, records: int, k: int) -> float | None:
    """Return a share of multiples of k records; None where it stands for fewer than k."""
    if 0 < some < k:
        return None
    return round(min(k * int(some / k + 0.5) / records, 1.0), _DIGITS)
