"""An engine (:mod:`anonspark.engine.protocol`) of threads in one process, without Java."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files, FilesError
from anonspark.engine.local import staged_files
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.identifiers import with_texts_of_identifiers
from anonspark.engine.local.memory_tables import memory_schema, memory_sources
from anonspark.engine.local.opening import open_files
from anonspark.engine.local.running import Runner
from anonspark.engine.local.spill import Memory
from anonspark.engine.local.table import LocalTable, Resources
from anonspark.engine.local.writing import require_format
from anonspark.engine.memory import available_memory
from anonspark.engine.protocol import Engine, Model, NamedTable, Table
from anonspark.engine.raw_columns import WantedColumns, require_distinct, require_read
from anonspark.engine.reading_errors import unreadable, vanished
from anonspark.engine.recognition import found_in_files, settled
from anonspark.engine.struct_fields import whole_columns
from anonspark.engine.tasks import Batches, FailedTaskError
from anonspark.engine.values.column_plans import (
    PlannedColumn,
    plan_columns,
    require_columns,
    require_types,
)
from anonspark.engine.values.dictionary_orders import with_orders
from anonspark.engine.values.record_input import RecordInput
from anonspark.engine.values.value_validation import MOST_DISTINCT
from anonspark.errors import (
    LOWER_TASK_ROWS,
    ConfigurationError,
    EnvironmentProblem,
    PublishingError,
    TaskFailure,
    raise_if_limit_reached,
    refusal_of,
)
from anonspark.progress import Progress

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NO_SPACE_TEXTS = ("No space left on device", "Disk quota exceeded")

FAILURES = (FailedTaskError, pa.ArrowException)
"""Errors of tasks and Arrow. Their texts may quote records."""


def _is_full(error: BaseException) -> bool:
    """Return whether an error says that a disk is full."""
    number = getattr(error, "errno", None)
    return number in _NO_SPACE or any(text in str(error) for text in _NO_SPACE_TEXTS)


@contextmanager
def writing_output() -> Iterator[None]:
    """Raise PublishingError if a disk is full, or the system refuses to write."""
    try:
        yield
    except (OSError, *FAILURES) as error:
        if _is_full(error):
            raise PublishingError(
                "output.path: no space left on the device of the output or of the folder for "
                "temporary files (TMPDIR). Nothing was published. Free space there (a run needs "
                "about three times the size of its input) and run again"
            ) from error
        if isinstance(error, FilesError) or (isinstance(error, OSError) and error.strerror):
            raise PublishingError(
                f"output.path: nothing was published, because {refusal_of(error)}"
            ) from error
        raise


@contextmanager
def reading_input(paths: tuple[str, ...], key: str) -> Iterator[None]:
    """Translate errors that occur while paths are read. ``key`` names them, with a colon.

    Raises DataError if files vanished, are damaged, or cannot be reached, EnvironmentProblem for
    other refusals of the system, and PublishingError if the disk of the staging directory is full.
    """
    where = key + ", ".join(paths)
    with writing_output():
        try:
            yield
        except FileNotFoundError as error:
            raise vanished(where) from error
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, PermissionError) as error:
            raise unreadable(where) from error
        except OSError as error:
            if _is_full(error) or not error.strerror:
                raise
            raise EnvironmentProblem(refusal_of(error)) from error


@contextmanager
def running_tasks(progress: Progress) -> Iterator[None]:
    """Translate errors of tasks, with the stage that was running.

    Raises EnvironmentProblem if memory ran out, and TaskFailure if a task failed otherwise.
    """
    try:
        yield
    except (MemoryError, *FAILURES) as error:
        stage = progress.current or "between two stages"
        if isinstance(error, MemoryError) or "MemoryError" in str(error):
            raise EnvironmentProblem(
                f"{stage}: this process ran out of memory: {LOWER_TASK_ROWS}, or let a cluster "
                "do it (execution.engine: spark). Nothing was published"
            ) from error
        if _is_full(error):
            raise
        raise_if_limit_reached(error)
        kind = str(error).partition(" ")[0] if isinstance(error, FailedTaskError) else None
        raise TaskFailure(
            f"{stage}: a task failed with {kind or type(error).__name__}. Nothing was published. "
            "This is a bug of anonspark: please report it. --debug shows the details, which may "
            "contain data"
        ) from error


@dataclass(frozen=True)
class LocalInput(RecordInput):
    """An opened table as an :class:`anonspark.engine.protocol.Input`."""

    table: Table
    plans: tuple[PlannedColumn, ...]
    configuration: Configuration

    most_distinct: ClassVar[int] = MOST_DISTINCT

    @classmethod
    def of(
        cls,
        table: Table,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        files: Files | None = None,
    ) -> LocalInput:
        """Plan how the columns of attributes are read from a table.

        Raises DataError if columns are missing or ambiguous, or have types that cannot be
        published.
        """
        require_distinct(table.schema.names, configuration.attributes, "input")
        require_columns(table.schema, configuration)
        require_read(table.schema, configuration.attributes, "attributes.")
        table = with_texts_of_identifiers(table, configuration.identifiers)
        require_types(table.schema, configuration)
        plans = plan_columns(
            with_orders(table.schema, files, configuration), configuration, hierarchies
        )
        return cls(table, tuple(plans), configuration)

    @property
    def engine(self) -> Engine:
        """Return the engine that opened the table."""
        return self.table.engine

    @property
    def input_schema(self) -> pa.Schema:
        """Return the schema of the raw table."""
        return self.table.schema

    @property
    def names(self) -> Sequence[str]:
        """Return the columns of the table, without fields of structs."""
        return whole_columns(self.table.schema)

    def rows(self, names: Sequence[str]) -> Table:
        """Return some raw columns. Lazy."""
        return self.table.select(names)


# Batches that wait for other tasks may take a quarter of the available memory.
_WAITING_SHARE = 4

_CONTENTS = pa.schema([("path", pa.string()), ("sha256", pa.string()), ("tail", pa.binary())])


class LocalEngine:
    """Threads of this process as an :class:`anonspark.engine.protocol.Engine`.

    Runs as many tasks at the same time as there are ``threads``, or None for the processors that
    this process may use. Batches that wait for other tasks take at most ``waiting_bytes`` of
    memory, or None for a quarter of what is available. Others go to a temporary file.

    >>> engine = LocalEngine(threads=1)
    >>> people = engine.table(pa.table({"sex": ["m", "f", "m"], "visits": [1, 2, 3]}))
    >>> people.aggregate(["sex"], sums=["visits"]).collect().sort_by("sex").to_pylist()
    [{'sex': 'f', 'visits': 2}, {'sex': 'm', 'visits': 4}]
    """

    def __init__(self, threads: int | None = None, waiting_bytes: int | None = None) -> None:
        if waiting_bytes is None:
            waiting_bytes = available_memory() // _WAITING_SHARE
        self.resources = Resources(Runner(threads), Memory(waiting_bytes), LocalFiles())
        # Tables that a run has opened: inferring the types of a second one would read it again.
        self._opened: list[tuple[object, LocalTable]] | None = None

    def cancel(self) -> None:
        """Stop all tasks, from another thread. None runs afterwards."""
        self.resources.runner.cancel()

    @property
    def files(self) -> LocalFiles:
        """Files and directories of the local disk."""
        return self.resources.files

    @property
    def versions(self) -> dict[str, str]:
        """Return nothing: every release lists the versions of Python's libraries."""
        return {}

    def input_version(self, configuration: Configuration) -> dict[str, str]:
        """Return the options that files show. Their formats have no versions."""
        return found_in_files(self.files, configuration)

    def open_source(
        self,
        configuration: Configuration,
        *,
        for_tasks: bool = False,  # noqa: ARG002 - all is read in tasks
        skips_malformed: bool = False,
    ) -> LocalTable:
        """Open the table that a configuration names, with all of its raw columns."""
        options = settled(self.files, configuration).input
        selection = WantedColumns.of(configuration, skips_malformed=skips_malformed)
        source = (options.paths, options.format, options.options, selection)
        for opened, table in self._opened or ():
            if opened == source:
                return table
        table = self.open_table(*source[:3], key="input.path", section="input", selection=selection)
        if self._opened is not None:
            self._opened.append((source, table))
        return table

    def open_input(
        self,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        source: Table | None = None,
    ) -> LocalInput:
        """Open a table of people."""
        if source is None:
            configuration = settled(self.files, configuration)
        table = self.open_source(configuration) if source is None else source
        files = self.files if source is None else None
        return LocalInput.of(table, configuration, hierarchies, files)

    def reading(
        self, paths: tuple[str, ...], key: str = "input.path: "
    ) -> AbstractContextManager[None]:
        """Translate failures of reading tables inside of a ``with`` block."""
        return reading_input(paths, key)

    def open_table(
        self,
        paths: Sequence[str],
        data_format: str,
        options: Mapping[str, str],
        *,
        key: str,
        section: str | None = None,
        texts: Sequence[str] = (),
        selection: WantedColumns | None = None,
    ) -> LocalTable:
        """Open a table of any files."""
        opened = open_files(
            self.files,
            paths,
            data_format,
            options,
            key=key,
            section=section,
            texts=texts,
            selection=selection,
        )
        return LocalTable.of_files(self, self.resources, opened.with_fields())

    def published(self, path: str, data_format: str) -> LocalTable:
        """Open a table that this program published."""
        opened = open_files(self.files, [path], data_format, {}, key="release")
        return LocalTable.of_files(self, self.resources, opened)

    def named_table(self, name: str, *_: object, **__: object) -> NamedTable:
        """Refuse: there are no catalogs."""
        text = f"{name}: only a catalog of Spark knows tables by name. Name spark as the engine"
        raise ConfigurationError(text)

    def require_format(self, data_format: str) -> None:
        """Check, before any work, that tables can be published in a format."""
        require_format(data_format)

    def contents(
        self, directory: str, *, largest: int, tail: int, whole: Sequence[str] = ()
    ) -> LocalTable:
        """Read the visible files below a directory."""
        root = self.files.local_path(directory)
        paths = [
            path
            for path, size in self.files.files_below(directory)
            if size <= largest
            and not any(part[0] in "._" for part in path.split("/"))
            # Reading a pipe would wait for its writer.
            and Path(root, path).is_file()
        ]
        sources = [
            partial(_content, f"{root}/{path}", path, 0 if path.startswith(tuple(whole)) else tail)
            for path in paths
        ]
        return LocalTable(self, self.resources, _CONTENTS, lambda: sources)

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Errors of tasks and of Arrow."""
        return FAILURES

    @contextmanager
    def running(self, run_id: str, progress: Progress) -> Iterator[None]:  # noqa: ARG002
        """Translate errors of tasks. An error waits for the tasks that still run."""
        self._opened = []
        try:
            with running_tasks(progress), writing_output():
                yield
        finally:
            self._opened = None

    def staged(self, paths: Sequence[str], schema: pa.Schema) -> LocalTable:
        """Open what :meth:`LocalTable.stage` wrote to some directories."""
        folders = [Path(str(self.files.local_path(path))) for path in paths]
        return LocalTable(
            self, self.resources, schema, lambda: staged_files.sources(folders, schema)
        )

    def learn(self, examples: Table, classes: int, records: int) -> dict[str, Model]:  # noqa: ARG002
        """Train each learner of scikit-learn. Raises ConfigurationError if it is not installed."""
        try:
            from anonspark.engine.local.learning import train
        except ImportError as error:
            raise ConfigurationError(
                "evaluate: models are trained by scikit-learn, which is not installed. Install "
                "anonspark[evaluate], or say --engine spark"
            ) from error
        return {**train(examples.collect(), classes)}

    def predict(self, test: Table, models: Mapping[str, Model]) -> Table:
        """Add the predictions of models for each record."""
        from anonspark.engine.local.learning import predict

        return predict(test, models)

    def wrap(self, rows: pa.Table) -> LocalTable:
        """Open a table in memory, of any size, with the types of a file's."""
        schema = memory_schema(rows)
        sources = memory_sources(rows, schema)
        return LocalTable(self, self.resources, schema, lambda: sources).with_fields()

    def table(self, rows: pa.Table) -> LocalTable:
        """Hand over a small table of this process."""
        batches = rows.combine_chunks().to_batches()
        return LocalTable(self, self.resources, rows.schema, lambda: [lambda: iter(batches)])


def _content(local_path: str, path: str, tail: int) -> Batches:
    """Yield the hash of a file, and the end of its content."""
    content = Path(local_path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    yield pa.RecordBatch.from_pylist(
        [{"path": path, "sha256": digest, "tail": content[-tail:]}], _CONTENTS
    )
