"""What an engine offers: tables of Arrow batches that are spread over tasks, and few verbs.

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
from anonspark.core.kinds import Kind
from anonspark.engine.files import Files, PublishedFile
from anonspark.engine.tasks import Batches

OnBatches = Callable[[Batches], Batches]
"""A function over the batches of one task."""

TASK = "task"
"""Column of 32-bit integers in which :meth:`Table.send` finds the task of each row."""

ROW_GROUP_BYTES = 16 * 2**20
"""What a row group of a staged file has, more or less: a reader holds one as a whole."""


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
        """Apply a function to the batches of each task; no shuffle.

        Parameters
        ----------
        function : callable
        schema : pyarrow.Schema
            Of the batches that it yields.
        """
        ...

    def send(self, function: OnBatches, schema: pa.Schema, tasks: int) -> Table:
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
            Of the same schema; what is in :data:`TASK` then is the engine's own. One shuffle of
            all rows.
        """
        ...

    def group(self, by: Sequence[str], tasks: int) -> Table:
        """Bring rows that are equal in some columns into one task; one shuffle of all rows."""
        ...

    def add_up(
        self,
        by: Sequence[str],
        *,
        sums: Sequence[str] = (),
        least: Sequence[str] = (),
        most: Sequence[str] = (),
    ) -> Table:
        """Return one row for all rows that are equal in some columns.

        Parameters
        ----------
        by : sequence of str
            None for one row of the whole table. Nulls are equal.
        sums, least, most : sequence of str
            Columns to add up, and to take the smallest and the largest value of; nulls do not
            count, and without a value the result is null.

        Returns
        -------
        Table
            Of ``by`` and then these columns. One shuffle of the different rows of each task.
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
            Whether every task can hold the other table; else one shuffle of both.
        """
        ...

    def select(self, names: Sequence[str]) -> Table:
        """Return some columns; no shuffle."""
        ...

    def with_hash(self, name: str, columns: Sequence[str], key: int) -> Table:
        """Add a column of 64-bit hashes of other columns; no shuffle.

        Parameters
        ----------
        name : str
            Of the new column.
        columns : sequence of str
            What is hashed: xxHash64 as Spark has it, of the key, the columns and whether each of
            them is null.
        key : int
            Of 64 bits, signed. It appears in no plan, log or event.
        """
        ...

    def union(self, other: Table) -> Table:
        """Return the rows of both tables, of the same columns; no shuffle."""
        ...

    def keep(self) -> Table:
        """Return the same table, whose rows are kept once they are made, until :meth:`release`."""
        ...

    def release(self) -> None:
        """Free the rows of a table that :meth:`keep` returned; of others nothing is to free."""
        ...

    def count(self) -> int:
        """Return the number of rows; one job."""
        ...

    def gather(self, most: int | None = None) -> pa.Table:
        """Return all rows, which have to be few; one job.

        Parameters
        ----------
        most : int or None
            Rows at most, no matter which; None for all.
        """
        ...

    def stage(self, path: str) -> None:
        """Write the rows to a new directory, for :meth:`Engine.staged`; one job.

        A directory that was begun by a process that was killed is never read.
        """
        ...

    def stage_parts(
        self, path: str, part: str, parts: Sequence[str], sums: Sequence[str]
    ) -> Mapping[str, Mapping[str, Any]]:
        """Write the rows to a new directory, each part to a directory of its own; one job.

        Parameters
        ----------
        path : str
        part : str
            The column that says which part a row belongs to; it is not written.
        parts : sequence of str
            All that can stand there. A part is read at ``path/column=part``.
        sums : sequence of str
            Columns to add up meanwhile.

        Returns
        -------
        mapping of str to mapping of str to int, Decimal or None
            The sums of each part; None where it has no value.
        """
        ...

    def publish(self, data_format: str, release: str, directory: str, aside: str) -> Published:
        """Write the rows as files that anybody can read; one job, and others that list them.

        Parameters
        ----------
        data_format : str
        release : str
            The release's directory.
        directory : str
            To write to, relative to the release's; must not exist. A task that has rows makes one
            file, whose rows have its order; of Parquet each batch makes a row group. The files are
            named and ordered by the numbers of the tasks.
        aside : str
            Directory to write to before files get their names.
        """
        ...


@dataclass(frozen=True)
class Published:
    """What :meth:`Table.publish` has written.

    Parameters
    ----------
    files : list of PublishedFile
    slowly_because_of : str or None
        The setting or the type of column for which rows had to be handed over one by one.
    """

    files: list[PublishedFile]
    slowly_because_of: str | None = None


@dataclass(frozen=True)
class InputColumn:
    """How one quasi-identifier is read.

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
    """

    name: str
    attribute: Attribute
    kind: Kind
    undeclared_text: bool
    declared: str | None = None
    hierarchy: Hierarchy | None = None


class Input(Protocol):
    """A table of people as it was opened: what will be read of it, and the passes that do."""

    @property
    def columns(self) -> Sequence[InputColumn]:
        """The quasi-identifiers, in configuration order."""
        ...

    @property
    def kept(self) -> Table:
        """The records that stay under the policy for missing values, as they are staged; lazy.

        Columns are named by :mod:`anonspark.core.columns`.
        """
        ...

    @property
    def identified(self) -> Table:
        """The same with their identifiers, which are not staged; lazy."""
        ...

    def inspect(self) -> Mapping[str, Any]:
        """Count what can be wrong with the values; one pass over the input.

        Returns
        -------
        mapping
            ``rows`` and ``kept``; and for the quasi-identifier of index i ``missing_i``,
            ``invalid_i`` and ``infinite_i``; of texts ``numeric_i`` and, about, ``distinct_i``; of
            others ``lowest_i`` and ``highest_i`` as plain numbers (decimals as texts, with their
            ``places_i``), of all records that are kept.
        """
        ...

    def stage(self, path: str, pack: OnBatches, schema: pa.Schema, seed: int) -> Staged:
        """Write the records that are kept, with their hashes, and count; one pass over the input.

        Parameters
        ----------
        path : str
            A new directory.
        pack : callable
            Takes a task's records, with :data:`~anonspark.core.columns.RECORD_HASH` and
            :data:`~anonspark.core.columns.PAYLOAD_HASH`.
        schema : pyarrow.Schema
            Of the batches that it yields, which are written.
        seed : int
            Key of the hashes.
        """
        ...


@dataclass(frozen=True)
class Staged:
    """What :meth:`Input.stage` wrote and counted.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the records.
    found : mapping
        Of :meth:`Input.inspect`.
    fingerprint : str
        Tells whether two inputs hold the same records; depends on the seed, not on their order.
    """

    schema: pa.Schema
    found: Mapping[str, Any]
    fingerprint: str


class Engine(Protocol):
    """What opens and makes tables."""

    @property
    def files(self) -> Files:
        """Files and directories, as the tasks see them."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Versions of what it is made of, by their names, for the manifest."""
        ...

    def open_input(
        self,
        configuration: Configuration,
        hierarchies: Mapping[str, Hierarchy],
        given: Table | None = None,
    ) -> Input:
        """Open a table of people.

        Parameters
        ----------
        configuration : Configuration
        hierarchies : mapping of str to Hierarchy
            Of the attributes whose hierarchy comes from a file.
        given : Table or None
            The table; None opens what the configuration names.

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

    def staged(self, paths: Sequence[str], schema: pa.Schema) -> Table:
        """Return what :meth:`Table.stage` wrote to some directories.

        Parameters
        ----------
        paths : sequence of str
            At least one.
        schema : pyarrow.Schema
            The columns to read; no file is asked for its own.
        """
        ...

    def table(self, rows: pa.Table) -> Table:
        """Return a small table that is known already; no job."""
        ...
