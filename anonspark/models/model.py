"""What the rounds know of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from anonspark.columns import (
    CLASS_ID,
    CLASS_SUMMARY,
    PART,
    Part,
    published_column,
    quasi_identifier_column,
)
from anonspark.generalize.classes import ClassFigures, Generalizer
from anonspark.models.options import ModelOptions
from anonspark.privacy.criteria import Criteria
from anonspark.privacy.criterion import Criterion

__all__ = ["Anonymized", "Model", "Round", "Task", "result_batch", "result_schema", "summaries"]


@dataclass(frozen=True)
class Task:
    """What every model is told, whatever its options.

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
    records : DataFrame
        Staged records (see :mod:`anonspark.columns`).
    rows : int
        Their number.
    number : int
        1, 2, ...
    last : bool
        Whether it is the last one: all groups are kept whole, so that no record is left over, or
        only for good.
    tell : callable
        Takes what the model is at, in a few words, for whoever waits.
    """

    records: DataFrame
    rows: int
    number: int
    last: bool
    tell: Callable[[str], None] = lambda _: None


@dataclass(frozen=True)
class Anonymized:
    """What a model makes of one round's table.

    Parameters
    ----------
    rows : DataFrame
        Of :func:`result_schema`: every record exactly once, in a finished class, generalized, or
        left over with its raw values; and one row a finished class. Lazy; what it costs to make is
        told by the model.
    levels : mapping of str to int or None
        Level of the hierarchy that each quasi-identifier was recoded to, where it is one level for
        the whole table.
    release : callable
        Frees what was kept on the cluster for the rows, once they are written.
    """

    rows: DataFrame
    levels: Mapping[str, int] | None = None
    release: Callable[[], None] = lambda: None


class Model(ABC):
    """A way to anonymize.

    Parameters
    ----------
    options : ModelOptions
        The configuration's ``model`` section, of the model's own ``options_class``.
    task : Task
        What every model is told.
    """

    options_class: ClassVar[type[ModelOptions]]

    @abstractmethod
    def __init__(self, options: ModelOptions, task: Task) -> None: ...

    @property
    @abstractmethod
    def rounds(self) -> int:
        """Rounds at most."""

    @property
    def minimum_gain(self) -> float:
        """Relative gain below which a round is the last one; 0 for never."""
        return 0.0

    @property
    @abstractmethod
    def staged_ties(self) -> bool:
        """Whether a cut may run between records that are equal in every column.

        Such records then need occurrence numbers wherever a table is larger than one task.
        """

    @property
    def leaves_residual(self) -> bool:
        """Whether records may be left over for good, which are then suppressed.

        Where not, the last round leaves no record over, and only tables that satisfy the criteria
        as a whole get a round.
        """
        return False

    @property
    def nodes(self) -> int | None:
        """Nodes of the lattice that a round searches; None for models that cut a tree."""
        return None

    def keeps(self, criterion: Criterion) -> bool:  # noqa: ARG002
        """Return whether every class keeps a criterion as measured against the whole input."""
        return True

    @abstractmethod
    def anonymize(self, table: Round) -> Anonymized | None:
        """Anonymize one round's table.

        Returns
        -------
        Anonymized or None
            None where no class can be made of it; only of a model that leaves a residual, and not
            in the first round.
        """

    def suppress(self, records: DataFrame) -> DataFrame | None:
        """Return the rows of records without a class, or None where they are not published.

        Parameters
        ----------
        records : DataFrame
            Staged records that no round found a class for.

        Returns
        -------
        DataFrame or None
            Of :func:`result_schema`, lazy.
        """
        raise NotImplementedError(f"{type(self).__name__} leaves no record over")


def result_schema(records: StructType, published: Sequence[StructField], d: int) -> StructType:
    """Return the schema of a round's result.

    Parameters
    ----------
    records : StructType
        Schema of the staged records.
    published : sequence of StructField
        Columns of the release that tell of quasi-identifiers.
    d : int
        Quasi-identifiers.

    Returns
    -------
    StructType
        The part that a row belongs to; of finished records the class and the published columns; of
        records left over the raw quasi-identifiers; of both everything else as staged. Of classes
        their figures, with the penalty of all records of the group that each was taken from.
    """
    raw = [records[quasi_identifier_column(index)] for index in range(d)]
    rest = [field for field in records if field.name not in {column.name for column in raw}]
    figures = [StructField("size", LongType()), StructField("whole_penalty", DoubleType())]
    for index, column in enumerate(raw):
        figures += [
            StructField(f"lowest_{index}", column.dataType),
            StructField(f"highest_{index}", column.dataType),
            StructField(f"level_{index}", LongType()),
            StructField(f"penalty_{index}", DoubleType()),
            StructField(f"loss_{index}", DoubleType()),
        ]
    return StructType(
        [
            StructField(PART, StringType()),
            StructField(CLASS_ID, LongType()),
            StructField(CLASS_SUMMARY, StructType(figures)),
            *(
                StructField(published_column(index), column.dataType)
                for index, column in enumerate(published)
            ),
            *(StructField(column.name, column.dataType) for column in raw),
            *rest,
        ]
    )


def result_batch(
    schema: pa.Schema, rows: int, part: Part, columns: Mapping[str, pa.Array]
) -> pa.RecordBatch:
    """Return a batch of a round's result: given columns, and nulls.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of :func:`result_schema`.
    rows : int
    part : Part
        Which part all rows belong to.
    columns : mapping of str to pyarrow.Array
    """
    given = {PART: pa.repeat(part.value, rows), **columns}
    return pa.RecordBatch.from_arrays(
        [
            given[field.name] if field.name in given else pa.nulls(rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def summaries(
    figures: ClassFigures, whole_penalties: npt.NDArray[np.float64], data_type: pa.StructType
) -> pa.StructArray:
    """Return the figures of classes as :func:`result_schema` has them.

    Parameters
    ----------
    figures : ClassFigures
    whole_penalties : float64 ndarray of shape (classes,)
        Penalty of the group that each class was taken from.
    data_type : pyarrow.StructType
    """
    arrays = [pa.array(figures.sizes), pa.array(whole_penalties)]
    for index in range(figures.penalties.shape[1]):
        arrays += [
            figures.lowest[index],
            figures.highest[index],
            pa.array(figures.levels[:, index]),
            pa.array(figures.penalties[:, index]),
            pa.array(figures.losses[:, index]),
        ]
    return pa.StructArray.from_arrays(arrays, fields=list(data_type))
