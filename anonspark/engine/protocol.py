"""Define what an engine offers: tables of Arrow batches, spread over tasks, and few verbs.

A table is lazy unless a verb says otherwise. A function that is handed to a verb travels to the
tasks: it holds plain values only, it gets the batches of one task at a time, and the same batches
in any order and any division have to give the same rows. Tasks may run again or twice at a time.

Whatever goes wrong in a task loses the text of its error, which may quote a record, unless it is
an :class:`anonspark.errors.AnonsparkError`.
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
"""Column of 32-bit integers in which :meth:`Table.repartition` finds the task of each row."""

ROW_GROUP_BYTES = 16 * 2**20
"""About the size of a row group of a staged file: a reader holds one as a whole."""


class Table(Protocol):
    """Rows in Arrow columns, spread over tasks."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine that the table is of."""
        ...

    def map_batches(self, function: OnBatches, schema: pa.Schema) -> Table:
        """Apply a function to the batches of each task. No shuffle.

        Parameters
        ----------
        function : callable
            Texts are no dictionaries, unless it has an attribute ``takes_dictionaries`` that is
            true: then they may be.
        schema : pyarrow.Schema
            Of the batches that it yields.
        """
        ...

    def repartition(self, function: OnBatches, schema: pa.Schema, tasks: int) -> Table:
        """Apply a function that names a task for each of its rows, and hand every row to its task.

        Parameters
        ----------
        function : callable
            Its rows have a column :data:`TASK`, from 0 up to below ``tasks``.
        schema : pyarrow.Schema
            Of the batches that it yields.
        tasks : int
            At least 1.

        Returns
        -------
        Table
            Of the same schema. What is in :data:`TASK` then is the engine's own. One shuffle of
            all rows.
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
        """Return one row for all rows that are equal in some columns.

        Parameters
        ----------
        by : sequence of str
            None for one row of the whole table. Nulls are equal, texts are if their bytes are.
        count : str or None
            Name of a column with the number of these rows.
        sums, least, most : sequence of str
            Columns to add up, and to take the smallest and the largest value of. Nulls do not
            count, and without a value the result is null.
        hashes : str or None
            A column of 64-bit integers: its exact sum, a ``decimal128(38, 0)``, is in
            ``<name>_sum``, and the exclusive or of its values in ``<name>_xor``.
        lists : sequence of str
            Columns whose values become a list each, in any order, which is the same for all.

        Returns
        -------
        Table
            Of ``by`` and then these columns. One shuffle of the different rows of each task, with
            lists of all rows.
        """
        ...

    def join(self, other: Table, on: Sequence[str], *, small: bool) -> Table:
        """Add the columns of the row of another table that agrees in some columns, or nulls.

        Parameters
        ----------
        other : Table
            At most one row agrees with each of this table.
        on : sequence of str
        small : bool
            Whether every task can hold the other table, else one shuffle of both.
        """
        ...

    def select(self, names: Sequence[str] | Mapping[str, str]) -> Table:
        """Return some columns, or by their new names the columns that get them. No shuffle."""
        ...

    def read(self, readings: Sequence[Reading], carried: Sequence[str] = ()) -> Table:
        """Return the values of raw columns as they are read, and which of them are missing.

        Parameters
        ----------
        readings : sequence of Reading
            Of columns for whose types :func:`~anonspark.engine.raw_columns.is_readable` holds.
        carried : sequence of str
            Columns to be taken along as they are.

        Returns
        -------
        Table
            Of each reading the columns ``name`` and ``missing``, then those carried. No shuffle.
        """
        ...

    def without(self, flags: Sequence[str]) -> Table:
        """Return the rows in which none of some columns of booleans is true. No shuffle."""
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
            Of each new column what is hashed: xxHash64 as Spark has it, of the key, the columns and
            whether each of them is null.
        key : int or None
            Of 64 bits, signed. It appears in no plan, log or event.
        nulls : bool
            Whether it is hashed which columns are null. Else a null is passed over: a value and a
            null hash as a null and that value do. There is neither ``key`` nor ``like`` then.
        like : pyarrow.Schema or None
            Hashes of two tables can be compared if both are made with one schema, to whose types
            the values are cast. A value that this would change hashes as no value of that type
            does. Types have to be readable, see :func:`~anonspark.engine.raw_columns.is_readable`,
            or equal. There is no key then.
        """
        ...

    def union(self, other: Table) -> Table:
        """Return the rows of both tables, of the same columns. No shuffle."""
        ...

    def except_all(self, other: Table) -> Table:
        """Return the rows but as many equal ones as another table has. One shuffle of both."""
        ...

    def persist(self) -> Table:
        """Return the same table, whose rows stay once they are made, until :meth:`unpersist`."""
        ...

    def unpersist(self) -> None:
        """Free the rows of a table that :meth:`persist` returned. Of others nothing is to free."""
        ...

    def count(self) -> int:
        """Return the number of rows. One job."""
        ...

    def collect(self, most: int | None = None) -> pa.Table:
        """Return all rows, which have to be few. One job.

        Parameters
        ----------
        most : int or None
            Rows at most, no matter which. None for all.
        """
        ...

    def stage(self, path: str) -> None:
        """Write the rows to a new directory, for :meth:`Engine.staged`. One job.

        A directory that was begun by a process that was killed is never read.
        """
        ...

    def stage_parts(
        self, path: str, part: str, parts: Sequence[str], sums: Sequence[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Write the rows to a new directory, each part to a directory of its own. One job.

        Parameters
        ----------
        path : str
        part : str
            The column that says which part a row belongs to. It is not written.
        parts : sequence of str
            All that can stand there. A part is read at ``path/column=part``.
        sums : sequence of str
            Columns to add up meanwhile.

        Returns
        -------
        mapping of str to mapping of str to int, Decimal or None
            The sums of each part. None where it has no value.
        """
        ...

    def publish(
        self, data_format: str, release: str, directory: str, aside: str
    ) -> list[PublishedFile]:
        """Write the rows as files that any program can read. One job, and others that list them.

        Parameters
        ----------
        data_format : str
        release : str
            The release's directory.
        directory : str
            To write to, relative to the release's. Must not exist. A task that has rows makes one
            file, whose rows have its order. Of Parquet each batch makes a row group. The files are
            named and ordered by the numbers of the tasks.
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
        Attribute name.
    attribute : Attribute
        As configured.
    kind : Kind
        What its values are.
    undeclared_text : bool
        Whether it is text of which nothing was declared.
    declared : str or None
        The type that was declared, or that its hierarchy needs.
    hierarchy : Hierarchy or None
        What its hierarchy's file says, if it has one.
    brought_order : tuple of str
        Texts in the order that the table brings, used or not. Empty where it brings none.
    """

    name: str
    attribute: Attribute
    kind: Kind
    undeclared_text: bool
    declared: str | None = None
    hierarchy: Hierarchy | None = None
    brought_order: tuple[str, ...] = ()


class Input(Protocol):
    """A table of people as it was opened: what will be read of it, and the passes that do."""

    @property
    def columns(self) -> Sequence[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        ...

    @property
    def names(self) -> Sequence[str] | None:
        """The columns of the table, asked for or not. None where a plan decides on them."""
        ...

    @property
    def kept(self) -> Table:
        """The records that stay under the policy for missing values, as they are staged. Lazy.

        Columns are named by :mod:`anonspark.core.columns`.
        """
        ...

    def open_records(self, names: Sequence[str], *, whole: bool) -> AbstractContextManager[Table]:
        """Return columns of the records that stay, for the jobs inside of the ``with`` block.

        Parameters
        ----------
        names : sequence of str
            As they are staged, and identifiers, which are not staged.
        whole : bool
            Whether every row of the input is a record that stays, as a pass before has found: then
            no other column is read.
        """
        ...

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values. One pass over the input.

        Returns
        -------
        mapping
            ``rows`` and ``kept``, and ``blank_rows``, which are none of them. For the
            quasi-identifier of index i ``missing_i``, ``invalid_i`` and ``infinite_i``. For texts
            ``numeric_i`` and, about, ``distinct_i``. For others ``lowest_i`` and ``highest_i`` as
            plain numbers (decimals as texts, with their ``places_i``), of all records that are
            kept.
        """
        ...

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count. One pass over the input.

        Parameters
        ----------
        path : str
            A new directory, for the batches and what else the engine needs there.
        pack : callable
            Takes a task's records, with :data:`~anonspark.core.columns.RECORD_HASH` and
            :data:`~anonspark.core.columns.PAYLOAD_HASH`.
        schema : pyarrow.Schema
            Of the batches that it yields, which are written.
        seed : int
            Key of the hashes.
        """
        ...


OpenRecords = Callable[[Sequence[str]], AbstractContextManager[Table]]
OpenInput = Callable[[Configuration, Mapping[str, Hierarchy]], Input]
"""Opens a table of people, given the hierarchies that come from files."""


@dataclass(frozen=True)
class Staged:
    """The result and counts of :meth:`Input.stage`.

    Parameters
    ----------
    path : str
        Where the batches are, for :meth:`Engine.staged`.
    schema : pyarrow.Schema
        Of the records.
    found : mapping
        Of :meth:`Input.inspect`.
    fingerprint : str
        Equal for two inputs that hold the same records. Depends on the seed, not on their order.
    """

    path: str
    schema: pa.Schema
    found: Mapping[str, Any]
    fingerprint: str


class Model(Protocol):
    """A learner of an engine that was trained. What it holds is known to its engine alone."""

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
        """Versions of what it is made of, by their names, for the manifest."""
        ...

    def input_version(self, configuration: Configuration) -> Mapping[str, str]:
        """Return options that read the input as it is now, whatever is written to it afterwards.

        Returns
        -------
        mapping of str to str
            For :meth:`anonspark.config.Configuration.with_input`: the version of a format that
            keeps versions, and options found in the files where the configuration does not set them
            (:func:`anonspark.engine.recognition.found_in_files`).

        Raises
        ------
        DataError
            If there is no table, or it cannot be read.
        ConfigurationError
            If a CSV file may have a header, and may have none.
        """
        ...

    def open_source(
        self,
        configuration: Configuration,
        *,
        for_tasks: bool = False,
        skips_malformed: bool = False,
    ) -> Table:
        """Open the table that a configuration names, as it lies there.

        Parameters
        ----------
        configuration : Configuration
        for_tasks : bool
            Whether columns that are chosen of it go to functions over batches: an engine whose rows
            take a long way there may hand over files as a whole.
        skips_malformed : bool
            Whether lines of CSV that are no record are passed over, each by itself, and none is an
            error.

        Returns
        -------
        Table
            Lazy. The fields of its structs are columns, too: see
            :func:`anonspark.engine.struct_fields.with_struct_fields`.

        Raises
        ------
        DataError
            If there is none, it cannot be read, or a file lacks a column.
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
        hierarchies : mapping of str to Hierarchy
            Of the attributes whose hierarchy comes from a file.
        source : Table or None
            The table. None opens what the configuration names.

        Raises
        ------
        DataError
            If there is none, it cannot be read, or its columns are not those of the attributes.
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
            What is read, for the message.
        key : str
            What named them, with a colon.

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
        """Open a table that lies beside a release.

        Parameters
        ----------
        paths : sequence of str
        data_format : str
        options : mapping of str to str
            Of the format.
        key : str
            What named the paths, for messages.
        section : str or None
            The configuration's section with format and options. None where they were found
            otherwise.
        texts : sequence of str
            Columns that are read as texts, where only the values show the types.
        selection : WantedColumns or None
            What each file has to have. None asks no file.

        Returns
        -------
        Table
            Lazy. Formats without a schema (CSV, JSON) may take a job to infer it. The fields of its
            structs are columns, too, as of :meth:`open_source`.

        Raises
        ------
        DataError
            If a path does not exist or cannot be opened in this format, or a file lacks a column.
        ConfigurationError
            If the format is not known, or does not take its options.
        """
        ...

    def published(self, path: str, data_format: str) -> Table:
        """Return a table that this program published. Lazy."""
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
        """
        ...

    def contents(
        self, directory: str, *, largest: int, tail: int, whole: Sequence[str] = ()
    ) -> Table:
        """Return what is in the files below a directory, hidden ones left out. Lazy.

        Parameters
        ----------
        directory : str
        largest : int
            Bytes of a file. Larger ones are left out.
        tail : int
            Bytes at the end of each.
        whole : sequence of str
            Beginnings of paths. Of these files the tail has every byte.

        Returns
        -------
        Table
            ``path`` (relative to the directory), ``sha256`` (of the whole file, in hexadecimal
            digits) and ``tail``.
        """
        ...

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Errors of the engine itself, whose texts may quote records."""
        ...

    def running(self, run_id: str, progress: Progress) -> AbstractContextManager[None]:
        """Run what is in a ``with`` block as one piece of work.

        If it is left early its tasks are stopped, and waited for. Where the engine shows what it is
        at, it shows the stage.

        Parameters
        ----------
        run_id : str
        progress : Progress

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
        """Return what :meth:`Table.stage` wrote to some directories.

        Parameters
        ----------
        paths : sequence of str
            At least one.
        schema : pyarrow.Schema
            The columns to read. No file is asked for its own. What a file lacks is null.
        """
        ...

    def learn(self, examples: Table, classes: int, records: int) -> Mapping[str, Model]:
        """Train each learner of the engine.

        Parameters
        ----------
        examples : Table
            ``features``, lists of float64 of one length, and ``label``, the number of a class from
            0, as float64.
        classes : int
            At least 2.
        records : int
            About how many examples there are: with them grows the number of tasks.

        Returns
        -------
        mapping of str to Model
            Of each learner by its name: logistic regression, random forest and, for two classes,
            gradient-boosted trees. Empty without examples. The same examples in any order give the
            same models but for the last digits of sums.

        Notes
        -----
        One shuffle of the examples, which are kept meanwhile. Many jobs: about 100 passes over the
        examples for the regression, one for each level of the trees.
        """
        ...

    def predict(self, test: Table, models: Mapping[str, Model]) -> Table:
        """Add what models predict of each record.

        Parameters
        ----------
        test : Table
            With a column ``features``, as the examples have it.
        models : mapping of str to Model
            Of :meth:`learn`, by the name of the column for the number of the class, as float64.
            Beside it stands ``<name> probability``: of two classes that of class 1, of more 0.

        Returns
        -------
        Table
            Lazy. No shuffle.
        """
        ...

    def table(self, rows: pa.Table) -> Table:
        """Return a small table that is known already. No job."""
        ...
