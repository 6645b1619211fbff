"""An engine (:mod:`anonspark.engine.protocol`) of threads in one process, without Java."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa

from anonspark.config import Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.converted_files import read_converted
from anonspark.engine.foreign_formats import CONVERTED
from anonspark.engine.local import staged_files
from anonspark.engine.local.errors import FAILURES, reading_input, running_tasks, writing_output
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.given import schema_of_given, sources_of_given
from anonspark.engine.local.input import LocalInput
from anonspark.engine.local.opening import open_files
from anonspark.engine.local.running import Runner
from anonspark.engine.local.storage import Memory
from anonspark.engine.local.table import LocalTable, Resources
from anonspark.engine.local.writing import require_format
from anonspark.engine.memory import available_memory
from anonspark.engine.protocol import Model, Table
from anonspark.engine.raw_columns import WantedColumns
from anonspark.engine.reading_errors import TableAddress
from anonspark.engine.recognition import found_in_files, settled
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError
from anonspark.progress import Progress

# Of the memory that is available, what batches may take that wait for other tasks.
_WAITING_SHARE = 4

_CONTENTS = pa.schema([("path", pa.string()), ("sha256", pa.string()), ("tail", pa.binary())])


class LocalEngine:
    """Threads of this process as an :class:`anonspark.engine.protocol.Engine`.

    Parameters
    ----------
    threads : int or None
        Tasks at once. None for the processors that this process may use.
    waiting_bytes : int or None
        What batches that wait for other tasks may take in memory, beyond which they are written
        to the folder for temporary files. None for a quarter of what is available.
    """

    def __init__(self, threads: int | None = None, waiting_bytes: int | None = None) -> None:
        if waiting_bytes is None:
            waiting_bytes = available_memory() // _WAITING_SHARE
        self.resources = Resources(Runner(threads), Memory(waiting_bytes), LocalFiles())
        # Sources that a run has opened. It may look at one again, whose types took a whole reading.
        self._opened: list[tuple[object, LocalTable]] | None = None

    def cancel(self) -> None:
        """Have all tasks stop. None runs afterwards. For another thread."""
        self.resources.runner.cancel()

    @property
    def files(self) -> LocalFiles:
        """Files and directories of the local disk."""
        return self.resources.files

    @property
    def versions(self) -> dict[str, str]:
        """Nothing but what every release lists."""
        return {}

    def input_version(self, configuration: Configuration) -> dict[str, str]:
        """Return the options found in the files. Their formats keep no versions."""
        return found_in_files(self.files, configuration)

    def open_source(
        self,
        configuration: Configuration,
        *,
        for_tasks: bool = False,  # noqa: ARG002 - all is read in tasks
        skips_malformed: bool = False,
    ) -> LocalTable:
        """Open the table that a configuration names, as it lies there."""
        options = settled(self.files, configuration).input
        wanted = WantedColumns.of(configuration, skips_malformed=skips_malformed)
        source = (options.paths, options.format, options.options, wanted)
        for opened, table in self._opened or ():
            if opened == source:
                return table
        table = self.open_table(*source[:3], key="input.path", section="input", wanted=wanted)
        if self._opened is not None:
            self._opened.append((source, table))
        return table

    def open_input(
        self,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        given: Table | None = None,
    ) -> LocalInput:
        """Open a table of people."""
        if given is None:
            configuration = settled(self.files, configuration)
        table = self.open_source(configuration) if given is None else given
        files = self.files if given is None else None
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
        wanted: WantedColumns | None = None,
    ) -> LocalTable:
        """Open a table that lies beside a release."""
        if data_format.lower() in CONVERTED:
            address = TableAddress(tuple(paths), data_format.lower(), key, section)
            return self.wrap(read_converted(self.files, address, options, wanted))
        opened = open_files(
            self.files,
            paths,
            data_format,
            options,
            key=key,
            section=section,
            texts=texts,
            wanted=wanted,
        )
        return LocalTable.of_files(self, self.resources, opened.with_fields())

    def published(self, path: str, data_format: str) -> LocalTable:
        """Return a table that this program published."""
        opened = open_files(self.files, [path], data_format, {}, key="release")
        return LocalTable.of_files(self, self.resources, opened)

    def require_format(self, data_format: str) -> None:
        """Check, before any work, that tables can be published in a format."""
        require_format(data_format)

    def contents(
        self, directory: str, *, largest: int, tail: int, whole: Sequence[str] = ()
    ) -> LocalTable:
        """Return what is in the files below a directory, hidden ones left out."""
        root = self.files.local_path(directory)
        paths = [
            path
            for path, size in self.files.files_below(directory)
            if size <= largest
            and not any(part[0] in "._" for part in path.split("/"))
            # A pipe would be waited for.
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
        """Translate failures of tasks. Those that run when it is left early are waited for."""
        self._opened = []
        try:
            with running_tasks(progress), writing_output():
                yield
        finally:
            self._opened = None

    def staged(self, paths: Sequence[str], schema: pa.Schema) -> LocalTable:
        """Return what :meth:`LocalTable.stage` wrote to some directories."""
        folders = [Path(str(self.files.local_path(path))) for path in paths]
        return LocalTable(
            self, self.resources, schema, lambda: staged_files.sources(folders, schema)
        )

    def learn(self, examples: Table, classes: int, records: int) -> dict[str, Model]:  # noqa: ARG002
        """Train each learner of scikit-learn.

        Raises
        ------
        ConfigurationError
            If scikit-learn is not installed.
        """
        try:
            from anonspark.engine.local.learning import train
        except ImportError as error:
            raise ConfigurationError(
                "evaluate: models are trained by scikit-learn, which is not installed. Install "
                "anonspark[evaluate], or say --engine spark"
            ) from error
        return {**train(examples.collect(), classes)}

    def predict(self, test: Table, models: Mapping[str, Model]) -> Table:
        """Add what models predict of each record."""
        from anonspark.engine.local.learning import predict

        return predict(test, models)

    def wrap(self, rows: pa.Table) -> LocalTable:
        """Return a table that is in memory, of any size."""
        schema = schema_of_given(rows)
        sources = sources_of_given(rows, schema)
        return LocalTable(self, self.resources, schema, lambda: sources).with_fields()

    def table(self, rows: pa.Table) -> LocalTable:
        """Return a small table that is known already."""
        batches = rows.combine_chunks().to_batches()
        return LocalTable(self, self.resources, rows.schema, lambda: [lambda: iter(batches)])


def _content(place: str, path: str, tail: int) -> Batches:
    content = Path(place).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    yield pa.RecordBatch.from_pylist(
        [{"path": path, "sha256": digest, "tail": content[-tail:]}], _CONTENTS
    )
