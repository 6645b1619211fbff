"""The published records."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from anonspark.columns import CLASS_ID, HASH_KEY, payload_column, published_column
from anonspark.configuration import Configuration
from anonspark.generalize.classes import Generalizer
from anonspark.hidden import with_hidden_number

__all__ = ["published_names", "write_records"]


def published_names(configuration: Configuration, generalizer: Generalizer) -> list[str]:
    """Return the columns of the release in order: that of the configuration."""
    return [name for name, _ in _published_columns(configuration, generalizer)]


def _published_columns(
    configuration: Configuration, generalizer: Generalizer
) -> list[tuple[str, Column]]:
    columns = []
    for name, attribute in configuration.attributes.items():
        if attribute.role == "quasi_identifier":
            index = configuration.quasi_identifiers.index(name)
            columns += [
                (column.name, sf.col(published_column(place)))
                for place, column in enumerate(generalizer.columns())
                if column.attribute == index
            ]
        elif name in configuration.published_as_is:
            place = configuration.published_as_is.index(name)
            columns.append((name, sf.col(payload_column(place))))
    return columns


def write_records(
    finished: DataFrame, configuration: Configuration, generalizer: Generalizer, path: str
) -> None:
    """Write the records of all finished classes.

    Parameters
    ----------
    finished : DataFrame
        Staged records of finished classes.
    configuration : Configuration
    generalizer : Generalizer
    path : str
        Directory to write to.

    Notes
    -----
    One job without a shuffle. Every file is ordered by class and, inside a class, by a keyed hash
    of what is published of a record: the order tells nothing that the record does not.
    """
    columns = _published_columns(configuration, generalizer)
    keyed_hash = sf.xxhash64(HASH_KEY, *(column for _, column in columns))
    (
        with_hidden_number(finished, HASH_KEY, configuration.execution.seed)
        .sortWithinPartitions(CLASS_ID, keyed_hash)
        .select(*(column.alias(name) for name, column in columns))
        .write.format(configuration.output.format)
        .save(path)
    )
