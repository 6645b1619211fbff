"""Machine learning on a release: what is learned, and how well models do that learned it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Engine, Table
from anonspark.engine.raw_columns import Reading, is_text, type_name
from anonspark.errors import ConfigurationError, DataError
from anonspark.utility.values import reading_of

_MOST_CLASSES = 100

LABEL = "label"
"""The column with what is to be learned."""


@dataclass(frozen=True)
class Target:
    """What is to be learned.

    Parameters
    ----------
    name : str
        A column that is published as it is.
    classes : tuple of str
        Its different values as texts, the most frequent in the original first.
    missing_markers : tuple of str
        Texts that mean missing.
    """

    name: str
    classes: tuple[str, ...]
    missing_markers: tuple[str, ...]

    def reading(self, table: Table) -> Reading:
        """Return how the texts of a table are read into column `LABEL`."""
        return _reading_of(table, self.name, self.missing_markers)

    def numbers(self, texts: pa.Array) -> pa.Array:
        """Return the number of each record's class, from 0, as float64.

        It is null for what is missing or none of the classes. Numbers are returned as they are.
        """
        if not is_text(texts.type):
            return texts
        classes = pa.array(self.classes, texts.type)
        return pc.index_in(texts, value_set=classes, skip_nulls=True).cast(pa.float64())


@dataclass(frozen=True)
class Score:
    """How well one model predicts.

    Parameters
    ----------
    trained_on : str
        ``release``, ``original`` or ``original_with_test``.
    learner : str
    accuracy : float
    f1 : float
        Of two classes that of the rarer one; of more the mean, weighted by their records.
    roc_auc : float or None
        Area under the curve; None for more than two classes.
    """

    trained_on: str
    learner: str
    accuracy: float
    f1: float
    roc_auc: float | None


def describe_target(original: Table, name: str, missing_markers: Sequence[str]) -> Target:
    """Find the classes of a target in the original.

    Parameters
    ----------
    original : Table
    name : str
        One of its columns.
    missing_markers : sequence of str

    Raises
    ------
    ConfigurationError
        If it is no category of 2 to 100 values.

    Notes
    -----
    One job; the different values are collected.
    """
    texts = original.read([_reading_of(original, name, missing_markers)]).select([LABEL])
    # One more than are allowed, and missing.
    found = texts.add_up([LABEL], count="records").gather(_MOST_CLASSES + 2)
    found = found.filter(pc.field(LABEL).is_valid())
    if not 2 <= found.num_rows <= _MOST_CLASSES:
        many = f"more than {_MOST_CLASSES}" if found.num_rows > _MOST_CLASSES else found.num_rows
        raise ConfigurationError(
            f"--target: column {name!r} has {many} different values; expected a category of 2 to "
            f"{_MOST_CLASSES}"
        )
    in_order = found.sort_by([("records", "descending"), (LABEL, "ascending")])
    return Target(name, tuple(in_order.column(LABEL).to_pylist()), tuple(missing_markers))


def _reading_of(table: Table, name: str, missing_markers: Sequence[str]) -> Reading:
    found = {field.name: field.type for field in table.schema}
    if name not in found:
        raise DataError(
            f"--target: column {name!r} is not among those of the table: "
            f"{', '.join(map(repr, found))}"
        )
    reading = reading_of(name, LABEL, found[name], "text", None, missing_markers)
    if reading is None:
        raise ConfigurationError(
            f"--target: column {name!r} has type {type_name(found[name])}; expected a category"
        )
    return reading


def train_and_test(
    engine: Engine, examples: Table, test: Table, target: Target, records: int, trained_on: str
) -> list[Score]:
    """Train each learner and score it.

    Parameters
    ----------
    engine : Engine
    examples, test : Table
        As :meth:`anonspark.engine.protocol.Engine.learn` takes them.
    target : Target
    records : int
        About how many examples there are.
    trained_on : str
        For the scores.

    Raises
    ------
    DataError
        If there is nothing to train with.

    Notes
    -----
    The jobs of :meth:`anonspark.engine.protocol.Engine.learn`.
    """
    found = engine.learn(examples, test, len(target.classes), records)
    if not found:
        raise DataError(
            f"--target: no record of the {trained_on.partition('_')[0]} has a value to learn "
            "from; choose another column"
        )
    return [
        Score(trained_on, learner, skill.accuracy, skill.f1, skill.roc_auc)
        for learner, skill in found.items()
    ]
