"""Writing the tables of a release: each task that has rows makes a file."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from anonspark.engine.files import PublishedFile
from anonspark.engine.local.writing import write_orc, write_parquet
from anonspark.engine.protocol import Published
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError

if TYPE_CHECKING:
    from anonspark.engine.local.table import LocalTable

_WRITERS = {"parquet": write_parquet, "orc": write_orc}


def require_format(data_format: str) -> None:
    """Check that tables can be published in a format.

    Raises
    ------
    ConfigurationError
    """
    if data_format not in _WRITERS:
        raise ConfigurationError(
            f"output.format: found {data_format!r}, which the local engine does not write; "
            f"expected {' or '.join(_WRITERS)}; choose one of them, or set execution.engine to "
            "spark"
        )


def publish_tasks(
    table: LocalTable, data_format: str, release: str, directory: str, aside: str
) -> Published:
    """Write a table; see :meth:`anonspark.engine.protocol.Table.publish`."""
    files = table.resources.files
    own_aside = f"{aside}/{directory}"
    files.make_directory(own_aside)
    write = _WRITERS[data_format]

    def written(number: int, batches: Batches) -> PublishedFile | None:
        first = next((one for one in batches if len(one)), None)
        if first is None:
            return None
        path = f"{files.local_path(own_aside)}/{number:05d}"
        return write(chain([first], batches), table.schema, path)

    told = table.resources.runner.run(table.sources(), written)
    files.make_directory(f"{release}/{directory}")
    published = []
    for number, one in enumerate(filter(None, told)):
        name = f"{directory}/part-{number:05d}.{data_format}"
        files.rename(f"{own_aside}/{one.path.rpartition('/')[2]}", f"{release}/{name}")
        published.append(replace(one, path=name))
    files.delete(own_aside)
    return Published(published)
