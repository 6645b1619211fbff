"""Whether another model would have lost much less: a look at a small sample, after a run."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from anonspark.config.models import MicroaggregationOptions, ModelOptions, MondrianOptions
from anonspark.errors import ConfigurationError
from anonspark.models.blockwise import BlockwiseModel
from anonspark.models.choosing import try_models
from anonspark.models.model import Task
from anonspark.models.registry import create_model
from anonspark.staged.records import Records

LEAST_ROWS = 5_000
"""Of smaller tables a sample tells nothing; and all models can be compared in seconds."""

RIVALS: tuple[ModelOptions, ...] = (
    MondrianOptions(name="su-mondrian"),
    MicroaggregationOptions(name="microaggregation"),
)
"""What is tried beside a model: the default, and the one that loses least of all as a rule. More
would take longer than a line is worth."""

_MOST_SAMPLED = 20_000
_LEAST_SAMPLED = 1_000
_CLASSES = 20
_ONE_IN = 1_000

_MUCH_LESS = 0.8
"""Up to this share of the loss another model is worth a line."""


@dataclass(frozen=True)
class Rival:
    """A model that loses much less than that of the run.

    Parameters
    ----------
    model : str
    override : str
        What ``--set`` takes to have it.
    share : float
        Of the run's loss, gcp, on the sample.
    rows : int
        Records of the sample.
    """

    model: str
    override: str
    share: float
    rows: int

    def describe(self) -> str:
        """Say it in a line."""
        return (
            f"{self.model} would lose about {1 - self.share:.0%} less (gcp, tried on {self.rows:,} "
            f"records): --set {shlex.quote(self.override)}"
        )


def find_rival(options: ModelOptions, task: Task, records: Records, rows: int) -> Rival | None:
    """Try the other models beside that of a run, on a small sample.

    Parameters
    ----------
    options : ModelOptions
        Of the model of the run.
    task : Task
    records : Records
        As staged.
    rows : int
        Their number.

    Returns
    -------
    Rival or None
        The one with the smallest loss; None if none loses much less, the model has another
        objective or forms no blocks, or the table is small or k is large for a sample.

    Notes
    -----
    One pass over the records and one task, which is given :func:`records_to_try` of them, by the
    keyed hash of their content, so that it depends on the table and the seed alone.
    """
    sampled = records_to_try(rows, task.criteria.k)
    if not sampled or getattr(options, "objective", "gcp") != "gcp":
        return None
    if not _forms_blocks(options, task):
        return None
    others = [one for one in RIVALS if one != options and _forms_blocks(one, task)]
    tried = (options, *others)
    losses, drawn = try_models(
        tried,
        task,
        records,
        share=sampled / rows,
        objective="gcp",
        only_if_satisfied=True,
    )
    if not losses or losses[0] <= 0:
        return None
    own, *rest = losses
    if not rest or min(rest) > _MUCH_LESS * own:
        return None
    best = others[rest.index(min(rest))]
    return Rival(best.name, _override(options, best), min(rest) / own, drawn)


def records_to_try(rows: int, k: int) -> int:
    """Return how many records of a table the models are tried on.

    Parameters
    ----------
    rows : int
        Records of the table.
    k : int

    Returns
    -------
    int
        One in 1,000, but 1,000 and 20 classes at least and 20,000 at most; 0 of a small table, and
        where 20 classes are more.
    """
    least = max(_LEAST_SAMPLED, _CLASSES * k)
    if rows < LEAST_ROWS or least > _MOST_SAMPLED:
        return 0
    return min(max(least, rows // _ONE_IN), _MOST_SAMPLED)


def _forms_blocks(options: ModelOptions, task: Task) -> bool:
    """Return whether a model takes the task, and can be tried on one block."""
    try:
        return isinstance(create_model(options, task), BlockwiseModel)
    except ConfigurationError:
        return False


def _override(own: ModelOptions, other: ModelOptions) -> str:
    """Return what replaces a model by another one, whose options the first may not have."""
    given = {"name": other.name, **other.model_dump(exclude_defaults=True, exclude={"name"})}
    replaces = own.model_dump(exclude_defaults=True).keys() - {"name"}
    if len(given) == 1 and not replaces:
        return f"model.name={other.name}"
    return f"model={{{', '.join(f'{name}: {value}' for name, value in given.items())}}}"
