"""Tables in this process's memory: pandas', polars' and Arrow's."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from anonspark.api.tables import as_arrow, as_kind_of
from anonspark.config import Configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.identifiers import with_texts_of_identifiers
from anonspark.engine.local.memory_tables import with_days
from anonspark.engine.protocol import Table
from anonspark.errors import ConfigurationError


@dataclass(frozen=True)
class LocalAdapter:
    """Tables of this process, as :class:`anonspark.api.adapters.Adapter`."""

    like: Any
    engine: LocalEngine = field(default_factory=LocalEngine)
    is_lazy = False

    def require_usable(self) -> None:
        """Do nothing: this process runs."""

    def make_staging(self) -> tuple[str, str]:
        """Return a temporary directory, as an address and as a path."""
        temporary = tempfile.mkdtemp(prefix="anonspark-")
        return temporary, temporary

    @contextmanager
    def tables(self, *frames: Any) -> Iterator[list[Any]]:
        """Yield tables in the form of the engine."""
        yield [
            None if frame is None else self.engine.wrap(with_days(as_arrow(frame)))
            for frame in frames
        ]

    @contextmanager
    def input(self, frame: Any, configuration: Configuration, _: str) -> Iterator[Table]:
        """Yield a table that is anonymized."""
        _require_engine(configuration)
        yield self.engine.wrap(with_days(as_arrow(frame, configuration), configuration))

    @contextmanager
    def source(
        self, frame: Any, configuration: Configuration | None, _: Collection[str | None]
    ) -> Iterator[Table]:
        """Yield a table, whose identifiers may be of types that no file has.

        For a plan and for select. No value decides a type, because its record may not show.
        """
        table: Table = self.engine.wrap(as_arrow(frame))
        if configuration is not None:
            _require_engine(configuration)
            table = with_texts_of_identifiers(table, configuration.identifiers)
        yield table

    def collect(self, path: str, data_format: str) -> pa.Table:
        """Return the table of a release."""
        return self.engine.published(path, data_format).collect()

    def read(self, path: str, data_format: str) -> Any:
        """Return the table of a release in the form of the caller's table."""
        return self.convert(self.collect(path, data_format))

    def convert(self, rows: pa.Table) -> Any:
        """Return a table of Arrow in the form of the caller's table."""
        return as_kind_of(rows, self.like)


def _require_engine(configuration: Configuration) -> None:
    if configuration.execution.engine == "spark":
        raise ConfigurationError(
            "execution.engine: found spark, but the given table is none of Spark's. Give "
            "spark.createDataFrame(table), or leave the key out"
        )


@contextmanager
def adapted(frame: Any, **_: bool) -> Iterator[LocalAdapter]:
    """Yield the adapter for the library of a table."""
    yield LocalAdapter(frame)
