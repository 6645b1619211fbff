"""Identifiers that several records share: k counts records, and would count fewer people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import identifier_column
from anonspark.core.recognition.names import may_tell_people_apart, meaning_of, unit_of_name
from anonspark.core.rounded_shares import rounded_share
from anonspark.engine.protocol import OpenRecords, Table
from anonspark.engine.raw_columns import Reading, is_hashable, is_time
from anonspark.pipeline.repeats import Counts, repeat_text
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes

_PLACES = ("coordinates", "street address")


def read_identifiers(
    table: Table, configuration: Configuration, carried: Sequence[str] = ()
) -> tuple[Table, dict[str, CountedColumn]]:
    """Return the identifiers of records, and which of them are missing. Lazy.

    Parameters
    ----------
    table : Table
        With the columns that :func:`anonspark.core.columns.identifier_column` names.
    configuration : Configuration
        Its ``input.missing_markers`` are no identifiers.
    carried : sequence of str
        Columns to be taken along.

    Returns
    -------
    table : Table
    columns : dict of str to CountedColumn
        Of each identifier that may be a person. Others, and those of types that have no hash, are
        passed over.
    """
    schema = table.schema
    readings = {}
    for index, name in enumerate(configuration.identifiers):
        column = identifier_column(index)
        if name != configuration.evaluate.risk.weights and _may_be_person(
            name, schema.field(column).type
        ):
            markers = ("", *configuration.input.missing_markers)
            readings[name] = Reading(column, column, None, markers)
    columns = {
        name: CountedColumn(reading.name, reading.missing) for name, reading in readings.items()
    }
    return table.read(list(readings.values()), carried), columns


def _may_be_person(name: str, data_type: pa.DataType) -> bool:
    """Return whether an identifier may number people: a longitude, a day or an address does not."""
    meaning = meaning_of(name)
    if is_time(data_type) or (meaning is not None and meaning.kind in _PLACES):
        return False
    if pa.types.is_floating(data_type):
        return unit_of_name(name) is not None or may_tell_people_apart(name)
    return is_hashable(data_type)


def count_identifiers(
    open_records: OpenRecords, configuration: Configuration, records: int
) -> dict[str, ValueSizes]:
    """Count how many records share each identifier.

    Parameters
    ----------
    open_records : callable
        Opens columns of the records that are kept.
    configuration : Configuration
        If it identifies people, nothing is counted: k counts people.
    records : int
        Number of the records.

    Notes
    -----
    The job of :func:`anonspark.pipeline.warnings.value_sizes.count_value_sizes`. Nothing of an
    identifier is written anywhere but, hashed, in the files of the shuffle.
    """
    names = [identifier_column(index) for index in range(len(configuration.identifiers))]
    if not names or configuration.privacy.unit:
        return {}
    with open_records(names) as identified:
        table, columns = read_identifiers(identified, configuration)
        return count_value_sizes(table, columns, records) if columns else {}


def identifier_warnings(sizes: Mapping[str, ValueSizes], k: int) -> Iterator[ReleaseWarning]:
    """Warn of identifiers that occur in several records.

    Parameters
    ----------
    sizes : mapping of str to ValueSizes
        Of the identifiers.
    k : int

    Returns
    -------
    iterator of ReleaseWarning
        The figures are rounded, and about k identifiers or records at least: shares that stand for
        fewer than k records are None.
    """
    for name, size in sizes.items():
        repeated = size.counted - size.records_below(2)
        if not repeated:
            continue
        share = rounded_share(repeated, size.records, k)
        many = size.size_of_many(k)
        many = many if many is not None and many > 1 else None
        shown = f"fewer than k = {k:,} records" if share is None else f"about {100 * share:.3g}%"
        shown += "" if share is None else " of the records"
        text = f"the identifier of {shown} is that of another record, too"
        if many is not None:
            text += f" (k = {k:,} identifiers have {many:,} records or more)"
        text += (
            ": k counts records. Where one identifier is one person, a class of k records is of "
            "fewer than k people. Name the column that identifies people in privacy.unit, so that "
            "k counts people"
        )
        yield ReleaseWarning(
            "identifier_repeats",
            text,
            name,
            {
                "repeated_share": share,
                "records_of_k_identifiers": many,
                "missing_share": rounded_share(size.records - size.counted, size.records, k),
                "exact": size.is_exact,
            },
            f" ({repeat_text(name, Counts.of(size), k, is_identifier=True)})",
        )


def withheld_warnings(sizes: Mapping[str, ValueSizes]) -> list[ReleaseWarning]:
    """Return what is published in place of warnings about identifiers where records were left out.

    It is no longer known which identifiers belong to them, and nothing may be published about them.
    So it is the same whatever was found.
    """
    return [
        ReleaseWarning(
            "identifier_not_told",
            "records were left out, so only the log of the run says whether identifiers repeat. k "
            "counts records, and may count fewer people",
            name,
        )
        for name in sizes
    ]
