"""Define the interface of a model, as the rounds use it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pyarrow as pa

from anonspark.config.models import ModelOptions
from anonspark.core.arrays import Figures, Integers
from anonspark.core.columns import (
    CLASS_ID,
    PART,
    PAYLOAD_HASH,
    PENALTY,
    SUBJECT,
    UNIT,
    WEIGHT,
    WHOLE_PENALTY,
    WHOLE_SQUARES,
    Part,
    is_payload,
)
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.engine.protocol import Table
from anonspark.kernels.paths import child_path, root_path
from anonspark.layers.generalize.classes import ClassFigures, Generalizer
from anonspark.layers.generalize.figures import class_rows, exact_sums, penalties_of_classes
from anonspark.staged.records import PACKED, Packer, Records


@dataclass(frozen=True)
class Task:
    """The input that every model gets, for all options.

    Parameters
    ----------
    generalizer : Generalizer
        The quasi-identifiers and how classes of them are published.
    criteria : Criteria
        What every class of every round satisfies.
    seed : int
        Mixed into every choice that is random by its nature.
    task_rows : int
        Records that one task takes.
    """

    generalizer: Generalizer
    criteria: Criteria
    seed: int
    task_rows: int


@dataclass(frozen=True)
class Round:
    """One round's table.

    Parameters
    ----------
    records : Records
        Records as staged (see :mod:`anonspark.core.columns`).
    rows : int
        Number of the records.
    number : int
        Number of the round: 1, 2, ...
    last : bool
        Whether it is the last one: all groups are kept whole, so that no record is left over, or
        only for good.
    trial : bool
        Whether it is run again to be published: only what finished classes lose and the records
        left over are needed now.
    price : float
        Price of round 1, see :class:`Anonymized`. 0 in round 1.
    report : callable
        Gets the current step of the model, in a few words, for the progress line.
    note_block : callable
        Takes the records of a block that is far larger than usual, because it cannot be cut,
        before a task gets it.
    """

    records: Records
    rows: int
    number: int
    last: bool
    trial: bool = False
    price: float = 0.0
    report: Callable[[str], None] = lambda _: None
    note_block: Callable[[int], None] = lambda _: None


@dataclass(frozen=True)
class Anonymized:
    """The result of a model for one round's table.

    Parameters
    ----------
    rows : Table
        Rows of :data:`RESULT`: batches of finished records, generalized, and of records left over
        with their raw values, every record in exactly one, and batches of the finished classes.
        Lazy. The model documents its costs.
    levels : mapping of str to int or None
        Level of the hierarchy that each quasi-identifier was recoded to, or None unless it is one
        level for the whole table.
    release : callable
        Frees what was kept on the cluster for the rows, once they are written.
    price : float
        What a record loses on average in the groups of round 1 as they were cut.
    """

    rows: Table
    levels: Mapping[str, int] | None = None
    release: Callable[[], None] = lambda: None
    price: float = 0.0


class Model(ABC):
    """A way to anonymize.

    Parameters
    ----------
    options : ModelOptions
        The configuration's ``model`` section, of the model's ``options_class``.
    task : Task
        The input of every model.
    """

    options_class: ClassVar[type[ModelOptions]]

    @abstractmethod
    def __init__(self, options: ModelOptions, task: Task) -> None: ...

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Largest number of rounds."""

    @property
    def minimum_gain(self) -> float:
        """Relative gain below which a round is the last one, or 0 for never."""
        return 0.0

    @property
    def undoes_rounds(self) -> bool:
        """Return whether a round that does not lower the loss is undone."""
        return False

    @property
    def tries_first_round(self) -> bool:
        """Return whether the first round of several is likely to be run again as the last one."""
        return False

    @property
    def leaves_residual(self) -> bool:
        """Return whether records may be left over for good, which are then suppressed.

        If not, the last round leaves no record over, and only tables that satisfy the criteria as a
        whole get a round.
        """
        return False

    @property
    def suppression_limit(self) -> float:
        """Share of the records that may be left out in whole classes, once all rounds are done.

        Above 0, finished records are staged with their codes and :data:`RECORD_LOSS`.
        """
        return 0.0

    @property
    def nodes(self) -> int | None:
        """Nodes of the lattice that a round searches, or None for models that cut a tree."""
        return None

    def keeps(self, criterion: Criterion) -> bool:  # noqa: ARG002
        """Return whether every class keeps a criterion as measured against the whole input."""
        return True

    def left_over_schema(self, records: pa.Schema) -> pa.Schema:
        """Return the schema of the records that a round leaves over, from that of its table."""
        return records

    @abstractmethod
    def anonymize(self, table: Round) -> Anonymized | None:
        """Anonymize one round's table.

        Returns
        -------
        Anonymized or None
            None if no class is possible. Only a model that leaves a residual may return it, and not
            in the first round.
        """

    def close(self) -> None:  # noqa: B027
        """Free what was kept on the cluster between rounds. Most models keep nothing."""

    def suppress(self, records: Records) -> Suppressed | None:
        """Return records without a class as published, or None if they are not published.

        Parameters
        ----------
        records : Records
            Records that no round found a class for.
        """
        raise NotImplementedError(f"{type(self).__name__} leaves no record over")


@dataclass(frozen=True)
class Suppressed:
    """Records that no round found a class for, as they are published.

    Parameters
    ----------
    records : Records
        Records of :func:`finished_schema`, all of one class. Lazy.
    labels : pyarrow.Table
        One row: the name of the class, and what all of them have in the columns of the release that
        describe quasi-identifiers. Columns as of
        :func:`anonspark.layers.generalize.figures.class_schema`.
    """

    records: Records
    labels: pa.Table


def finished_schema(records: pa.Schema) -> pa.Schema:
    """Return the schema of finished records: the columns that are published unchanged.

    It has, in any order: the name of the record's class and the payload's keyed hash, which decide
    its position in the release and reveal nothing that is not published (see
    :mod:`anonspark.layers.publish.file_assignment`); the payload; the person, if people are counted
    or a ledger is kept; and the sampling weight if that is not published. What a class has in
    common is staged with the class.

    >>> staged = pa.schema([("payload_0", pa.string()), ("code_0", pa.int8())])
    >>> finished_schema(staged).names
    ['class_id', 'hash_of_payload', 'payload_0']
    """
    names = (UNIT, SUBJECT, WEIGHT)
    fields = (field for field in records if is_payload(field.name) or field.name in names)
    return pa.schema([(CLASS_ID, pa.int64()), (PAYLOAD_HASH, pa.int64()), *fields])


def suppressed_class(seed: int) -> int:
    """Return the name of the class of the records that no round found a class for.

    It is like those of other classes: a position must not reveal that a record was left over.
    """
    # Rounds are numbered from 1.
    name = np.uint64(child_path(root_path(seed % 2**64, 0), 0))
    return int(name.view(np.int64))


RESULT = pa.schema(
    [
        pa.field(PART, pa.string()),
        *PACKED,
        pa.field(PENALTY, pa.decimal128(38, 15)),
        pa.field(WHOLE_PENALTY, pa.decimal128(38, 15)),
        pa.field(WHOLE_SQUARES, pa.decimal128(38, 0)),
    ]
)
"""A round's result: the part that a batch belongs to, the batch, and what its classes lose.

Records are as staged where they are left over, and of :func:`finished_schema` where their classes
are finished. Classes are of :func:`anonspark.layers.generalize.figures.class_schema`."""


def result_batch(
    part: Part, packed: Mapping[str, pa.Array], sums: Mapping[str, Decimal] = MappingProxyType({})
) -> pa.RecordBatch:
    """Return a batch as a row of a round's result.

    Parameters
    ----------
    part : Part
    packed : mapping of str to pyarrow.Array
        A result of :meth:`anonspark.staged.records.Packer.pack`.
    sums : mapping of str to Decimal
        What the classes of a batch lose.
    """
    packed = {PART: pa.array([part.value]), **packed}
    arrays = [
        packed[field.name] if field.name in packed else pa.array([sums.get(field.name)], field.type)
        for field in RESULT
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RESULT)


@dataclass(frozen=True)
class WholeGroups:
    """Figures of classes if the groups that they were taken from were kept whole.

    ``sizes`` (int64) and ``penalties`` (float64), what each adds to ``gcp_total``, have one element
    for each class.
    """

    sizes: Integers
    penalties: Figures


def class_batch(
    packer: Packer,
    number: int,
    identifiers: pa.Array,
    figures: ClassFigures,
    published: Sequence[pa.Array],
    weights: Sequence[float],
    whole: WholeGroups | None = None,
) -> pa.RecordBatch:
    """Return finished classes as a row of a round's result.

    Parameters
    ----------
    packer : Packer
    number : int
        The round.
    identifiers : pyarrow.Int64Array of shape (classes,)
        Names of the classes.
    figures : ClassFigures
    published : sequence of pyarrow.Array of shape (classes,)
        The columns of the release that describe quasi-identifiers.
    weights : sequence of float
        Weights of the quasi-identifiers.
    whole : WholeGroups or None
        The groups that the classes were taken from, or None if classes are whole groups.
    """
    penalties = penalties_of_classes(figures, weights)
    if whole is None:
        whole = WholeGroups(figures.sizes, penalties)
    packed = packer.pack(class_rows(number, identifiers, figures, published))
    return result_batch(Part.CLASSES, packed, sums_of_classes(penalties, whole))


def sums_of_classes(penalties: Figures, whole: WholeGroups) -> dict[str, Decimal]:
    """Return what classes lose, and what their groups would lose if they were kept whole.

    >>> whole = WholeGroups(np.array([2, 3]), np.array([0.5, 1.0]))
    >>> sums = sums_of_classes(np.array([0.25, 0.5]), whole)
    >>> [float(value) for value in sums.values()]
    [0.75, 1.5, 13.0]
    """
    (penalty,) = exact_sums(penalties)
    (whole_penalty,) = exact_sums(whole.penalties)
    sizes, groups = np.unique(whole.sizes, return_counts=True)
    squares = sum(size * size * n for size, n in zip(sizes.tolist(), groups.tolist(), strict=True))
    return {PENALTY: penalty, WHOLE_PENALTY: whole_penalty, WHOLE_SQUARES: Decimal(squares)}
