"""What the rounds know of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    LongType,
    StructField,
    StructType,
)

from anonspark.columns import (
    CLASS_ID,
    CLASS_SUMMARY,
    FINISHED,
    published_column,
    quasi_identifier_column,
)
from anonspark.generalize.classes import Generalizer
from anonspark.models.options import ModelOptions
from anonspark.privacy.criteria import Criteria

__all__ = ["Model", "Round", "Task", "assigned_schema"]


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
        Their number; the table satisfies the criteria as a whole.
    number : int
        1, 2, ...
    last : bool
        Whether all groups are kept whole, so that no record is left over.
    """

    records: DataFrame
    rows: int
    number: int
    last: bool


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
        """Rounds at most: the last one leaves no record over."""

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

    @abstractmethod
    def anonymize(self, table: Round) -> DataFrame:
        """Anonymize one round's table.

        Parameters
        ----------
        table : Round

        Returns
        -------
        DataFrame
            Of :func:`assigned_schema`: every record exactly once, in a finished class, generalized,
            or left over with its raw values. Lazy; what it costs to make is told by the model.
        """


def assigned_schema(records: StructType, published: Sequence[StructField], d: int) -> StructType:
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
        Whether the record is finished; of finished ones the class, the published columns and, on
        one record a class, the class's figures, with the penalty of all records of the group that
        it was taken from; of records left over the raw quasi-identifiers. Everything else as
        staged.
    """
    raw = [records[quasi_identifier_column(index)] for index in range(d)]
    rest = [field for field in records if field.name not in {column.name for column in raw}]
    figures = [StructField("size", LongType()), StructField("whole_penalty", DoubleType())]
    for index, column in enumerate(raw):
        figures += [
            StructField(f"lowest_{index}", column.dataType),
            StructField(f"highest_{index}", column.dataType),
            StructField(f"penalty_{index}", DoubleType()),
            StructField(f"loss_{index}", DoubleType()),
        ]
    return StructType(
        [
            StructField(FINISHED, BooleanType()),
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
