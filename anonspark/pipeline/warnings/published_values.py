"""Warn of values: identifiers that repeat, values that single out, disguised texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.columns import identifier_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.figure_text import rounded_share, share_of_records
from anonspark.core.recognition.disguised import disguise_of, letters_misorder
from anonspark.core.recognition.names import (
    MOST_NAMES,
    may_number_names,
    may_number_people,
    meaning_of,
    unit_of_name,
)
from anonspark.core.warning_codes import WarningCode
from anonspark.engine.protocol import OpenRecords, Table
from anonspark.engine.raw_columns import Reading, is_hashable, is_time
from anonspark.pipeline.repeats import Counts, repeat_text
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.pipeline.warnings.value_sizes import CountedColumn, ValueSizes, count_value_sizes

_PLACES = ("coordinates", "street address")


def read_identifiers(
    table: Table, configuration: Configuration, carried: Sequence[str] = ()
) -> tuple[Table, dict[str, CountedColumn]]:
    """Read those identifiers of records that may be people, and whether they are missing. Lazy.

    ``table`` has the columns that :func:`anonspark.core.columns.identifier_column` names, and keeps
    ``carried`` ones. ``input.missing_markers`` are no identifiers. Identifiers of types without a
    hash are skipped.
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
        return unit_of_name(name) is not None or may_number_people(name)
    return is_hashable(data_type)


def count_identifiers(
    open_records: OpenRecords, configuration: Configuration, records: int
) -> dict[str, ValueSizes]:
    """Count how many records share each identifier. Nothing if k counts people.

    ``open_records`` opens columns of the kept records. Takes the job of `count_value_sizes`. Values
    of identifiers are written only as hashes, in the files of the shuffle.
    """
    names = [identifier_column(index) for index in range(len(configuration.identifiers))]
    if not names or configuration.privacy.unit:
        return {}
    with open_records(names) as identified:
        table, columns = read_identifiers(identified, configuration)
        return count_value_sizes(table, columns, records) if columns else {}


def identifier_warnings(sizes: Mapping[str, ValueSizes], k: int) -> Iterator[ReleaseWarning]:
    """Warn of identifiers that occur in several records.

    The figures are rounded, and are about at least k identifiers or records. Shares of fewer than k
    records are None.
    """
    for name, size in sizes.items():
        repeated = size.counted - size.records_below(2)
        if not repeated:
            continue
        share = rounded_share(repeated, size.records, k)
        size_of_k = size.size_of_many(k)
        size_of_k = size_of_k if size_of_k is not None and size_of_k > 1 else None
        shown = f"fewer than k = {k:,} records" if share is None else f"about {100 * share:.3g}%"
        shown += "" if share is None else " of the records"
        text = f"the identifier of {shown} is that of another record, too"
        if size_of_k is not None:
            text += f" (k = {k:,} identifiers have {size_of_k:,} records or more)"
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
                "records_of_k_identifiers": size_of_k,
                "missing_share": rounded_share(size.records - size.counted, size.records, k),
                "exact": size.is_exact,
            },
            f" ({repeat_text(name, Counts.of(size), k, is_identifier=True)})",
        )


def withheld_warnings(sizes: Mapping[str, ValueSizes]) -> list[ReleaseWarning]:
    """Return what is published instead of warnings about identifiers if records were left out.

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


# If this share of the records has rare values, a column may be an identifier.
_IDENTIFIES = 0.5


def published_value_warnings(
    sizes: Mapping[str, ValueSizes], configuration: Configuration
) -> Iterator[ReleaseWarning]:
    """Warn of columns, published as they are, with values that fewer than k records have.

    Figures are counts of the table: in a release everyone can count them.
    """
    k = configuration.privacy.k
    for name, size in sizes.items():
        rare = size.records_below(max(k, 2))
        if not rare:
            continue
        unique = size.records_below(2)
        role = configuration.attributes[name].role
        fewer = f"shared by fewer than k = {k:,} records" if k > 1 else "that no other record has"
        text = (
            f"published as it is ({role}): {share_of_records(rare, size.records, k)} have a rare "
            f"value ({fewer})"
        )
        if unique and k > 1:
            text += f", {share_of_records(unique, size.records, k)} one that no other record has"
        text += ". An attacker who knows it of a person finds the record, whatever its class. "
        identifies = rare >= _IDENTIFIES * size.records
        if identifies:
            text += (
                "Is it an identifier? Give it that role, or leave it out. Is it a measurement, an "
                "income for instance? Make it coarser, or a quasi_identifier"
            )
        else:
            text += "If others can know it, make it coarser, or a quasi_identifier"
        yield ReleaseWarning(
            "column_identifies" if identifies else "rare_values",
            text,
            name,
            {
                "records": size.records,
                "values": size.values,
                "unique_records": unique,
                "unique_share": unique / size.records,
                "records_below_k": rare,
                "share_below_k": rare / size.records,
                "exact": size.is_exact,
            },
        )


def exact_end_warnings(
    quasi_identifiers: Sequence[QuasiIdentifier], configuration: Configuration, records: int
) -> Iterator[ReleaseWarning]:
    """Warn of ranges that end at values of records, and of sets of such values. Means have no ends.

    A column of texts counts if it has more than half as many categories as there are ``records``.
    """
    names = configuration.output.style != "mean" and [
        identifier.name
        for identifier in quasi_identifiers
        if not identifier.is_category
        and identifier.grid is None
        and identifier.lowest < identifier.highest
    ]
    if names:
        yield ReleaseWarning(
            "exact_ends",
            f"ranges of {', '.join(map(repr, names))} end at values of the records, so that each "
            "end is the value of a person. Let them end on a grid: attributes.<name>.grid takes a "
            "step, a unit such as month, or auto. Exact ends are for comparisons alone",
        )
    for identifier in quasi_identifiers:
        is_listed = 2 * len(identifier.categories) > records and identifier.hierarchy is None
        # Days and numbers that are texts have a warning of their own.
        if is_listed and disguise_of(identifier.categories) in (None, "number"):
            yield ReleaseWarning(
                "exact_ends",
                "most records have a value of their own, so a class is a list that shows who is in "
                "it. Make it an identifier, leave it out, or declare a hierarchy",
                identifier.name,
            )


_CODES = (
    "by its name its few numbers are codes that stand for names, but a class publishes them as a "
    "range, and joins codes that have nothing in common. Declare its type as text. If the numbers "
    "have an order, declare it as number"
)
_TEXTS = "are texts, so a class publishes an alphabetical list of them"


def text_value_warnings(
    quasi_identifiers: Sequence[QuasiIdentifier], configuration: Configuration
) -> Iterator[ReleaseWarning]:
    """Warn of texts that are days or numbers, of codes, and of groups that the alphabet misorders.

    Values are not examined if an order or hierarchy is declared, nor their form if the type is.
    """
    for identifier in quasi_identifiers:
        declared = configuration.attributes[identifier.name]
        if (
            identifier.kind in ("integer", "decimal", "float")
            and (declared.type, declared.range, identifier.scale) == (None, None, 0)
            and 2 <= identifier.range < MOST_NAMES
            and may_number_names(identifier.name)
        ):
            yield ReleaseWarning("codes_as_numbers", _CODES, identifier.name)
        has_order = declared.order or list(identifier.categories or ()) != sorted(
            identifier.categories or ()
        )
        if identifier.kind != "category" or has_order or declared.hierarchy:
            continue
        disguise = disguise_of(identifier.categories)
        # The reader of the input has logged texts that are plain numbers.
        if disguise and disguise != "number" and declared.type is None:
            kind = "numbers" if disguise.endswith("number") else "days"
            code: WarningCode = "text_numbers" if kind == "numbers" else "text_days"
            remedy = _remedy(disguise, configuration)
            text = f"nearly all of its values are {kind}, but they {_TEXTS}. {remedy}"
            yield ReleaseWarning(code, text, identifier.name)
        elif disguise is None and letters_misorder(identifier.categories):
            yield ReleaseWarning(
                "order_of_letters",
                f"its values {_TEXTS}, but they are groups that letters order wrongly, so a "
                "class may join groups that are far apart. List all groups from the lowest to "
                f"the highest as attributes.{identifier.name}.order, or give it a hierarchy",
                identifier.name,
            )


def _remedy(disguise: str, configuration: Configuration) -> str:
    """Name the option that reads them as days and numbers."""
    if disguise in ("date", "timestamp"):
        return f"Declare its type as {disguise}"
    if disguise == "other number":
        return "Convert them to numbers that are written as 1234.5"
    options = {name.lower(): value for name, value in configuration.input.options.items()}
    is_tried = "dateformat" in options and options.get("inferschema", "").lower() == "true"
    if configuration.input.format.lower() != "csv" or is_tried:
        return "Convert them to days that are written as 2026-01-31"
    return (
        "Set input.options.dateFormat to the form that they have, such as dd.MM.yyyy, and "
        "input.options.inferSchema to true, or convert them to days that are written as 2026-01-31"
    )
