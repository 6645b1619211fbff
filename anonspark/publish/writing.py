"""The published records."""

from __future__ import annotations

from anonspark.columns import payload_column, published_column
from anonspark.configuration import Configuration
from anonspark.generalize.classes import Generalizer
from anonspark.records import Records

__all__ = ["published_names", "write_records"]


def published_names(configuration: Configuration, generalizer: Generalizer) -> list[str]:
    """Return the columns of the release in order: that of the configuration."""
    return [name for name, _ in _published_columns(configuration, generalizer)]


def _published_columns(
    configuration: Configuration, generalizer: Generalizer
) -> list[tuple[str, str]]:
    """Return the name of each published column, and the staged one that holds it."""
    columns = []
    for name, attribute in configuration.attributes.items():
        if attribute.role == "quasi_identifier":
            index = configuration.quasi_identifiers.index(name)
            columns += [
                (column.name, published_column(place))
                for place, column in enumerate(generalizer.columns())
                if column.attribute == index
            ]
        elif name in configuration.published_as_is:
            place = configuration.published_as_is.index(name)
            columns.append((name, payload_column(place)))
    return columns


def write_records(
    finished: Records, configuration: Configuration, generalizer: Generalizer, path: str
) -> None:
    """Write the records of all finished classes.

    Parameters
    ----------
    finished : Records
        Records of finished classes, in the order of :func:`anonspark.models.model.finished_schema`.
    configuration : Configuration
    generalizer : Generalizer
    path : str
        Directory to write to.

    Notes
    -----
    One job without a shuffle or a sort.
    """
    columns = dict(_published_columns(configuration, generalizer))
    finished.named(columns).write.format(configuration.output.format).save(path)
