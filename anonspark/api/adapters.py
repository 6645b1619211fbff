"""Choose what does the work of a program, this process or Spark, and propose what it leaves out."""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, Protocol

import pyarrow as pa
from narwhals.dependencies import is_into_series

from anonspark.api.arguments import sensitive_of, whole_number
from anonspark.api.tables import is_of_spark, no_table
from anonspark.config import Configuration
from anonspark.engine.choice import Work, choose_engine
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import is_plain
from anonspark.errors import ConfigurationError, EnvironmentProblem
from anonspark.verification.proof.homogeneity import homogeneity_of
from anonspark.verification.proof.sensitive import describe_values


class Adapter(Protocol):
    """An engine that takes the tables of a program, and returns such tables."""

    @property
    def engine(self) -> Engine:
        """The engine that works."""

    @property
    def is_lazy(self) -> bool:
        """Whether tables that were read are useless when the files are gone."""

    def require_usable(self) -> None:
        """Raise an error if the engine has ended."""

    def make_staging(self) -> tuple[str, str]:
        """Return a temporary directory, as an address and as a path of this machine."""

    def tables(self, *frames: Any) -> AbstractContextManager[list[Any]]:
        """Yield tables in the form of the engine, None as None."""

    def input(
        self, frame: Any, configuration: Configuration, path: str
    ) -> AbstractContextManager[Table]:
        """Yield a table that is anonymized. Records that have to be written go below the path."""

    def source(
        self, frame: Any, configuration: Configuration | None, names: Collection[str | None]
    ) -> AbstractContextManager[Table]:
        """Yield a table of which at least the named columns are used."""

    def collect(self, path: str, data_format: str) -> pa.Table:
        """Return the table of a release in the form of Arrow."""

    def read(self, path: str, data_format: str) -> Any:
        """Return the table of a release in the form of the caller's table."""

    def convert(self, rows: pa.Table) -> Any:
        """Return a table of Arrow in the form of the caller's table."""


def adapter_for(*inputs: object, written: tuple[str, ...] = ()) -> AbstractContextManager[Adapter]:
    """Open the adapter for tables, or for paths to be read or written. None counts as absent.

    Spark is imported only if it is used. Raises ConfigurationError if tables of Spark and others
    are mixed.
    """
    tables = [table for table in inputs if table is not None and not isinstance(table, str)]
    of_spark = [is_of_spark(table) for table in tables]
    if any(of_spark) and not all(of_spark):
        raise ConfigurationError(
            "tables: found DataFrames of Spark together with others. Expected all of one kind. "
            "Give spark.createDataFrame(table) for those that are not"
        )
    if tables:
        name = "spark" if of_spark[0] else "local"
    else:
        paths = tuple(path for path in inputs if isinstance(path, str))
        name = choose_engine("auto", Work(paths, written), None).name
    module: Any = importlib.import_module(f"anonspark.api.{name}")
    opened: AbstractContextManager[Adapter] = module.adapted(tables[0] if tables else None)
    return opened


def adapter_for_table(table: object) -> AbstractContextManager[Adapter]:
    """Open the adapter for a table in memory, or refuse None, paths and columns."""
    if table is None or isinstance(table, str | os.PathLike) or is_into_series(table):
        raise no_table(table)
    return adapter_for(table)


@contextmanager
def opened(*inputs: object, written: tuple[str, ...] = ()) -> Iterator[tuple[Engine, list[Any]]]:
    """Yield the engine for tables and paths, and these in its form. See :func:`adapter_for`."""
    texts = [as_text(value) for value in inputs]
    frames = [None if isinstance(text, str) else text for text in texts]
    with (
        adapter_for(*texts, written=written) as adapter,
        adapter.tables(*frames) as tables,
    ):
        contents = [
            text if table is None else table for text, table in zip(texts, tables, strict=True)
        ]
        yield adapter.engine, contents


def remove_files(adapter: Adapter, path: str, temporary: str | None = None) -> None:
    """Remove a path, and a temporary directory of this machine."""
    try:
        adapter.require_usable()
    except EnvironmentProblem:
        pass  # what could remove the path has ended
    else:
        adapter.engine.files.delete(path)
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def staged(
    adapter: Adapter, staging: str | None, name: str
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield a new path in the staging directory, and the function that removes it. Errors do so.

    Without a staging directory a temporary one is made, which is removed with the path, whose last
    part begins with ``name``.
    """
    temporary = None
    if staging is None:
        staging, temporary = adapter.make_staging()
        # At exit and not earlier, because lazy DataFrames of the release may outlive it.
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    path = f"{staging.rstrip('/')}/{name}-{uuid.uuid4().hex[:12]}"

    remove = partial(remove_files, adapter, path, temporary)
    try:
        yield path, remove
    except BaseException:
        remove()
        raise


def as_text(value: Any) -> Any:
    """Return a path as a text, and everything else unchanged."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


PROPOSED: Final = "proposed"
"""Stands for the l that ``anonspark init`` would propose."""


def with_diversity(
    document: Mapping[str, Any],
    roles: Mapping[str, str],
    l: int | str | None,  # noqa: E741 - its name in the literature
    table: Any,
    adapter: Adapter,
) -> dict[str, object]:
    """Add l-diversity of every sensitive attribute to a configuration made of keywords.

    None adds nothing. A proposed l costs one job over ``table`` for each sensitive column. Raises
    ConfigurationError if l is no number of values, or nothing is sensitive.
    """
    if l is None or (l == PROPOSED and "sensitive" not in roles.values()):
        return dict(document)
    names = sensitive_of(roles, "l")
    if l == PROPOSED:
        with adapter.tables(table) as (data,):
            bounds = _proposed(data, names)
    else:
        bounds = dict.fromkeys(names, whole_number("l", l, 2))
    criteria = [{"attribute": name, "l": bound} for name, bound in bounds.items()]
    return {**document, "privacy": {**document["privacy"], "l_diversity": criteria}}


def _proposed(table: Table, names: list[str]) -> dict[str, int]:
    """Return the l that is proposed for each column, without columns that cannot have one."""
    schema = table.schema
    # Columns that cannot be anonymized are refused later, with all other mistakes.
    sound = [
        name
        for name in names
        if schema.names.count(name) == 1 and is_plain(schema.field(name).type)
    ]
    l_of = {
        name: homogeneity_of(describe_values(table, name), 0, None).proposed_l for name in sound
    }
    return {name: bound for name, bound in l_of.items() if bound is not None}
