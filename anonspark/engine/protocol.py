"""Define an engine: tables of Arrow batches, spread over tasks, and few verbs.

A verb is lazy unless it names a job. A function that is handed to a verb travels to the tasks: it
holds plain values only, it gets the batches of one task at a time, and the same batches in any
order and any division have to give the same rows. Tasks may run again, or twice at the same time.

An error in a task loses its text, which may quote a record, unless it is an
:class:`anonspark.errors.AnonsparkError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from anonspark.config import Attribute, Configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import Kind
from anonspark.engine.files import Files, PublishedFile
from anonspark.engine.raw_columns import Reading, WantedColumns
from anonspark.engine.tasks import Batches
from anonspark.progress import Progress

OnBatches = Callable[[Batches], Batches]
"""A function over the batches of one task."""

TASK = "task"
"""Column of 32-bit integers that names the task of each row for :meth:`Table.repartition`."""

ROW_GROUP_BYTES = 16 * 2**20
"""About the size of a row group of a staged file. A reader holds a whole one in memory."""


class Table(Protocol):
    """Rows in Arrow columns, spread over tasks."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine to which the table belongs."""
        ...

    def map_batches(self, function: OnBatches, schema: pa.Schema) -> Table:
        """Apply a function to the batches of each task. No shuffle.

        Parameters
        ----------
        function : callable
            Gets texts decoded, unless it has a true attribute ``takes_dictionaries``: then columns
            of texts may be dictionaries.
        schema : pyarrow.Schema
            The schema of the batches that the function yields.
        """
        ...

    def repartition(self, function: OnBatches, schema: pa.Schema, tasks: int) -> Table:
        """Apply a function that names a task for each of its rows, and send each row to its task.

        Parameters
        ----------
        function : callable
            Yields rows with a column :data:`TASK`, from 0 to below ``tasks``.
        schema : pyarrow.Schema
            The schema of the batches that the function yields.
        tasks : int
            Number of tasks, at least 1.

        Returns
        -------
        Table
            The rows of the same schema, in which :data:`TASK` has any values. One shuffle of all
            rows.
        """
        ...

    def group(self, by: Sequence[str], tasks: int) -> Table:
        """Bring rows that are equal in some columns into one task. One shuffle of all rows."""
        ...

    def aggregate(
        self,
        by: Sequence[str],
        *,
        count: str | None = None,
        sums: Sequence[str] = (),
        least: Sequence[str] = (),
        most: Sequence[str] = (),
        hashes: str | None = None,
        lists: Sequence[str] = (),
    ) -> Table:
        """Return one row for each group of rows that are equal in some columns.

        Parameters
        ----------
        by : sequence of str
            The columns of the groups. Without any the whole table is one group. Nulls are equal to
            each other, and texts if their bytes are.
        count : str or None
            Name of a column for the number of rows of each group.
        sums, least, most : sequence of str
            Columns of which the sum, the smallest or the largest value is taken. Nulls do not
            count: a group of nulls gives null.
        hashes : str or None
            A column of 64-bit integers. The result has its exact sum, a ``decimal128(38, 0)``, in
            ``<name>_sum``, and the exclusive or of its values in ``<name>_xor``.
        lists : sequence of str
            Columns whose values are collected to lists, all in the same, arbitrary order.

        Returns
        -------
        Table
            The columns of ``by``, then the others in the order of the arguments. One shuffle of a
            row for each group of each task, or of all rows for lists.
        """
        ...

    def join(self, other: Table, on: Sequence[str], *, small: bool) -> Table:
        """Add the columns of another table's row that is equal in some columns, or nulls.

        Parameters
        ----------
        other : Table
            A table of which at most one row is equal to each of this table's.
        on : sequence of str
            The columns to compare.
        small : bool
            Whether every task can hold the other table. If not, both are shuffled once.
        """
        ...

    def select(self, names: Sequence[str] | Mapping[str, str]) -> Table:
        """Return some columns, also under new names: a mapping has the old name of each.

        No shuffle.
        """
        ...

    def read(self, readings: Sequence[Reading], carried: Sequence[str] = ()) -> Table:
        """Return the values of raw columns as readings declare them, and which are missing.

        Parameters
        ----------
        readings : sequence of Reading
            How columns are read, of types for which
            :func:`~anonspark.engine.raw_columns.is_readable` holds.
        carried : sequence of str
            Columns that are added unchanged.

        Returns
        -------
        Table
            The columns ``name`` and ``missing`` of each reading, then the carried ones. No shuffle.
        """
        ...

    def without(self, flags: Sequence[str]) -> Table:
        """Leave out rows in which one of some columns of booleans is true. No shuffle."""
        ...

    def with_hashes(
        self,
        hashes: Mapping[str, Sequence[str]],
        key: int | None = None,
        *,
        nulls: bool = True,
        like: pa.Schema | None = None,
    ) -> Table:
        """Add columns of 64-bit hashes of other columns. No shuffle.

        Parameters
        ----------
        hashes : mapping of str to sequence of str
            The columns that each new column hashes, by Spark's xxHash64 of the key, the columns and
            whether each of them is null.
        key : int or None
            A signed integer of 64 bits, which must not appear in any plan, log or event.
        nulls : bool
            Whether to hash which columns are null. If not, a null is passed over: a value and a
            null have the hash of a null and that value. Excludes ``key`` and ``like``.
        like : pyarrow.Schema or None
            A schema to whose types values are cast first, so that hashes of tables with other types
            can be compared. A value that a cast would change gets a hash that no value of the type
            has. Types have to be readable, see
            :func:`~anonspark.engine.raw_columns.is_readable`, or equal. Excludes ``key``.
        """
        ...

    def union(self, other: Table) -> Table:
        """Return the rows of both tables, which have the same columns. No shuffle."""
        ...

    def except_all(self, other: Table) -> Table:
        """Leave out as many copies of each row as another table has. One shuffle of both."""
        ...

    def persist(self) -> Table:
        """Return the same table, which keeps its rows from the first job to :meth:`unpersist`."""
        ...

    def unpersist(self) -> None:
        """Free the rows of a table that :meth:`persist` returned. Does nothing for others."""
        ...

    def count(self) -> int:
        """Return the number of rows. One job."""
        ...

    def collect(self, most: int | None = None) -> pa.Table:
        """Return all rows, which have to fit into memory, or some of them. One job.

        Parameters
        ----------
        most : int or None
            Limit of rows, no matter which. None for all.
        """
        ...

    def stage(self, path: str) -> None:
        """Write the rows to a new directory, for :meth:`Engine.staged`. One job.

        Nobody reads the directory if this process is killed meanwhile.
        """
        ...

    def stage_parts(
        self, path: str, part: str, parts: Sequence[str], sums: Sequence[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Write the rows to a new directory, with a directory for each part. One job.

        Parameters
        ----------
        path : str
            The new directory.
        part : str
            The column that names the part of each row. It is not written.
        parts : sequence of str
            All values of that column. A part is read at ``path/column=part``.
        sums : sequence of str
            Columns to add up meanwhile.

        Returns
        -------
        mapping of str to mapping of str to int, Decimal or None
            The sums of each part, or None for those of nulls alone.
        """
        ...

    def publish(
        self, data_format: str, release: str, directory: str, aside: str
    ) -> list[PublishedFile]:
        """Write the rows as files that any program can read. One job, and others that list them.

        A task that has rows writes one file, in the order of its rows. In Parquet each batch is a
        row group. The files are named and ordered by the numbers of the tasks.

        Parameters
        ----------
        data_format : str
            One for which :meth:`Engine.require_format` does not raise.
        release : str
            The release's directory.
        directory : str
            A new directory, relative to the release's.
        aside : str
            Directory to write to before files get their names.
        """
        ...


@dataclass(frozen=True)
class InputColumn:
    """The reading of one quasi-identifier.

    Parameters
    ----------
    name : str
        Name of the attribute.
    attribute : Attribute
        The attribute as configured.
    kind : Kind
        What its values are.
    undeclared_text : bool
        Whether the values are texts without a declared type.
    declared : str or None
        The type that was declared, or that its hierarchy needs.
    hierarchy : Hierarchy or None
        The hierarchy of its file, or None if it has none.
    brought_order : tuple of str
        Texts in the order that the table brings, used or not. Empty if it brings none.
    """

    name: str
    attribute: Attribute
    kind: Kind
    undeclared_text: bool
    declared: str | None = None
    hierarchy: Hierarchy | None = None
    brought_order: tuple[str, ...] = ()


class Input(Protocol):
    """An opened table of people: the columns that will be read, and the passes that read them."""

    @property
    def columns(self) -> Sequence[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        ...

    @property
    def names(self) -> Sequence[str] | None:
        """All columns of the table, or None if only a plan of Spark knows them."""
        ...

    @property
    def records(self) -> Table:
        """The records that stay under the policy for missing values, as they are staged. Lazy.

        Columns are named by :mod:`anonspark.core.columns`.
        """
        ...

    def open_records(self, names: Sequence[str], *, whole: bool) -> AbstractContextManager[Table]:
        """Return columns of the records that stay, for the jobs inside of the ``with`` block.

        Parameters
        ----------
        names : sequence of str
            Staged columns, or identifiers, which are not staged.
        whole : bool
            Whether a pass before showed that every row of the input is a record that stays: then no
            other column is read.
        """
        ...

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values. One pass over the input.

        Returns
        -------
        mapping
            ``rows``, ``kept`` (rows that stay), and ``blank_rows``, which neither counts. For the
            quasi-identifier of index i ``missing_i``, ``invalid_i`` and ``infinite_i``. For texts
            ``numeric_i`` and the estimate ``distinct_i``. For others ``lowest_i`` and
            ``highest_i`` of the records that stay, as numbers (decimals as texts, with the number
            of their decimal places in ``places_i``).
        """
        ...

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that stay, with their hashes, and count. One pass over the input.

        Parameters
        ----------
        path : str
            A new directory, for the batches and other files of the engine.
        pack : callable
            Takes a task's records, with :data:`~anonspark.core.columns.RECORD_HASH` and
            :data:`~anonspark.core.columns.PAYLOAD_HASH`, and yields the batches to write.
        schema : pyarrow.Schema
            The schema of these batches.
        seed : int
            Key of the hashes.
        """
        ...


OpenRecords = Callable[[Sequence[str]], AbstractContextManager[Table]]
OpenInput = Callable[[Configuration, Mapping[str, Hierarchy]], Input]
"""Opens the table of a configuration, with the hierarchies of attributes that files define."""


@dataclass(frozen=True)
class Staged:
    """The result and counts of :meth:`Input.stage`.

    Parameters
    ----------
    path : str
        Directory of the batches, for :meth:`Engine.staged`.
    schema : pyarrow.Schema
        The schema of the records.
    counts : mapping
        The counts of :meth:`Input.inspect`.
    fingerprint : str
        Equal for inputs that hold the same records in any order. Depends on the seed.
    """

    path: str
    schema: pa.Schema
    counts: Mapping[str, Any]
    fingerprint: str


class Model(Protocol):
    """A trained learner of an engine. Only this engine knows its content."""

    @property
    def classes(self) -> int:
        """Number of classes to predict."""
        ...


class NamedTable(Protocol):
    """A table of a catalog, to which the records of releases are written."""

    def require_writable(self) -> None:
        """Check that records can be appended, or replaced.

        Raises
        ------
        DataError
            If it is no name.
        ConfigurationError
        """
        ...

    def read(self) -> Table:
        """Return the records of the partition, without its columns. Lazy.

        Raises
        ------
        DataError
            If it is no name, or there is no such table.
        """
        ...

    def write(self, records: Table, note: Mapping[str, str]) -> bool:
        """Write records in one commit, which says so of itself. One job.

        Parameters
        ----------
        records : Table
        note : mapping of str to str
            Names the run by its first two entries, and then the records. A table without commits
            has the last one as a property.

        Returns
        -------
        bool
            Whether records were written. False if a commit says that it has done so before.

        Raises
        ------
        DataError, ConfigurationError, PublishingError
            The table is as it was. One without commits may lack records until they are written.
        """
        ...


class Engine(Protocol):
    """An engine, which opens and creates tables."""

    @property
    def files(self) -> Files:
        """Files and directories, as the tasks see them."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of the engine's libraries by their names, for the manifest."""
        ...

    def input_version(self, configuration: Configuration) -> Mapping[str, str]:
        """Return options that read the input as it is now, whatever is written to it afterwards.

        Returns
        -------
        mapping of str to str
            Options for :meth:`anonspark.config.Configuration.with_input`: the version, if the
            format keeps versions, and options that the files show and the configuration does not
            set (:func:`anonspark.engine.recognition.found_in_files`).

        Raises
        ------
        DataError
            If no table is there, or it cannot be read.
        ConfigurationError
            If it is not certain whether a CSV file has a header.
        """
        ...

    def open_source(
        self,
        configuration: Configuration,
        *,
        for_tasks: bool = False,
        skips_malformed: bool = False,
    ) -> Table:
        """Open the table that a configuration names, with all of its raw columns.

        Parameters
        ----------
        configuration : Configuration
            The configuration, with paths, format and options.
        for_tasks : bool
            Whether functions over batches will read chosen columns: an engine from which rows take
            a long way to such functions may let these read whole files.
        skips_malformed : bool
            Whether to pass over lines of CSV that are no record. Else one is an error.

        Returns
        -------
        Table
            A lazy table. The fields of its structs are columns, too: see
            :func:`anonspark.engine.struct_fields.with_struct_fields`.

        Raises
        ------
        DataError
            If no table is there, it cannot be read, or a file lacks a column.
        ConfigurationError
            If the format is not known or refuses its options.
        """
        ...

    def open_input(
        self,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        source: Table | None = None,
    ) -> Input:
        """Open a table of people.

        Parameters
        ----------
        configuration : Configuration
            The configuration, with the attributes.
        hierarchies : mapping of str to Hierarchy
            The hierarchies of attributes that files define.
        source : Table or None
            The table, or None for the one that the configuration names.

        Raises
        ------
        DataError
            If no table is there, it cannot be read, or its columns are not those of the attributes.
        ConfigurationError
            If the format is not known or refuses its options.
        """
        ...

    def reading(
        self, paths: tuple[str, ...], key: str = "input.path: "
    ) -> AbstractContextManager[None]:
        """Translate failures of reading tables inside of a ``with`` block.

        Parameters
        ----------
        paths : tuple of str
            The paths that are read, for the message.
        key : str
            The key or argument that named them, with a colon.

        Raises
        ------
        DataError
            If files vanished, are damaged, or cannot be reached.
        """
        ...

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
    ) -> Table:
        """Open a table of any files.

        Parameters
        ----------
        paths : sequence of str
            Files, directories and patterns.
        data_format : str
            A data source of Spark.
        options : mapping of str to str
            Options of the format.
        key : str
            The key or argument that named the paths, for messages.
        section : str or None
            The configuration's section with format and options, or None if they are not from one.
        texts : sequence of str
            Columns that are read as texts if only values show types.
        selection : WantedColumns or None
            Columns that each file has to have, or None to check no file.

        Returns
        -------
        Table
            A lazy table, but formats without a schema (CSV, JSON) may take a job to infer it. The
            fields of its structs are columns, too, as of :meth:`open_source`.

        Raises
        ------
        DataError
            If a path does not exist or cannot be opened in this format, or a file lacks a column.
        ConfigurationError
            If the format is not known, or refuses its options.
        """
        ...

    def published(self, path: str, data_format: str) -> Table:
        """Open a table that this program published. Lazy."""
        ...

    def named_table(
        self, name: str, partition: Mapping[str, str], *, replaces: bool = False
    ) -> NamedTable:
        """Return a table of a catalog, which need not be there.

        Parameters
        ----------
        name : str
            As SQL writes it: ``catalog.schema.name``.
        partition : mapping of str to str
            Columns that a release has not, and the values of its records in them.
        replaces : bool
            Whether records that are written replace those of the partition, or are appended.

        Raises
        ------
        ConfigurationError
            If the engine has no catalogs.
        """
        ...

    def require_format(self, data_format: str) -> None:
        """Check, before any work, that tables can be published in a format.

        Raises
        ------
        ConfigurationError
            If they cannot.
        """
        ...

    def contents(
        self, directory: str, *, largest: int, tail: int, whole: Sequence[str] = ()
    ) -> Table:
        """Read the files below a directory, without hidden ones. Lazy.

        Parameters
        ----------
        directory : str
            The directory, which may have directories in it.
        largest : int
            Limit of bytes. Larger files are left out.
        tail : int
            Number of bytes at the end of each file.
        whole : sequence of str
            Beginnings of paths. Of these files the tail has every byte.

        Returns
        -------
        Table
            The columns ``path`` (relative to the directory), ``sha256`` (of the whole file, in
            hexadecimal digits) and ``tail``.
        """
        ...

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Errors of the engine itself, whose texts may quote records."""
        ...

    def running(self, run_id: str, progress: Progress) -> AbstractContextManager[None]:
        """Run the jobs of a ``with`` block as one piece of work.

        An error stops the tasks of the block, and waits for their end. An engine with an interface
        shows the stage there.

        Parameters
        ----------
        run_id : str
            Name of the work.
        progress : Progress
            The stages of the work.

        Raises
        ------
        EnvironmentProblem
            If memory ran out, executors were lost, or workers are not like this process.
        TaskFailure
            If a task failed again and again for another reason.
        PublishingError
            If a disk is full.
        """
        ...

    def staged(self, paths: Sequence[str], schema: pa.Schema) -> Table:
        """Open what :meth:`Table.stage` wrote to some directories. Lazy.

        Parameters
        ----------
        paths : sequence of str
            At least one directory.
        schema : pyarrow.Schema
            The columns to read, so that no file is opened for its schema. A column that a file
            lacks is null.
        """
        ...

    def learn(self, examples: Table, classes: int, records: int) -> Mapping[str, Model]:
        """Train each learner of the engine.

        Parameters
        ----------
        examples : Table
            Columns ``features``, lists of float64 of one length, and ``label``, the number of a
            class from 0, as float64.
        classes : int
            Number of classes, at least 2.
        records : int
            About how many examples there are, which decides the number of tasks.

        Returns
        -------
        mapping of str to Model
            The models by the learners' names: logistic regression, random forest and, for two
            classes, gradient-boosted trees. Empty without examples. The same examples in any order
            give the same models but for the last digits of sums.

        Notes
        -----
        One shuffle of the examples, which are kept meanwhile. Many jobs: about 100 passes over the
        examples for the regression, and one for each level of the trees.
        """
        ...

    def predict(self, test: Table, models: Mapping[str, Model]) -> Table:
        """Add the predictions of models for each record. Lazy, no shuffle.

        Parameters
        ----------
        test : Table
            Records with the column ``features`` of the examples.
        models : mapping of str to Model
            Models of :meth:`learn`, by the name of the column for the number of the class, as
            float64. A column ``<name> probability`` has the probability of class 1 of two, and 0
            for more classes.
        """
        ...

    def table(self, rows: pa.Table) -> Table:
        """Hand over a small table of this process. No job."""
        ...
