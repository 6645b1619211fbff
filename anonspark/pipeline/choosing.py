"""The model of a run: the one that the configuration names, or the best of several on a sample."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonspark.config.models import AutoOptions, MappingOptions
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.models.model import Model, Task
from anonspark.models.registry import create_model
from anonspark.pipeline.context import RunContext
from anonspark.pipeline.tasks import generalizer_of, task_of

if TYPE_CHECKING:
    from anonspark.models.choosing import Choice, Rival

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class ChosenModel:
    """The model of a run.

    Parameters
    ----------
    model : Model
    choice : Choice or None
        Why it was chosen. None where the configuration names it.
    """

    model: Model
    choice: Choice | None


def look_for_rival(context: RunContext, snapshot: Snapshot) -> Rival | None:
    """Look whether another model would have lost much less. Costs: `find_rival`.

    Parameters
    ----------
    context : RunContext
    snapshot : Snapshot

    Returns
    -------
    Rival or None
        None if it is not needed, and for a model that was chosen as the best. It is in the log, and
        in no file of the release.
    """
    configuration = context.configuration
    options = configuration.model
    if not context.compares or isinstance(options, AutoOptions | MappingOptions):
        return None
    # Late: it imports all models.
    from anonspark.models.choosing import find_rival

    with context.progress.stage("compare models"):
        generalizer = generalizer_of(configuration, snapshot.quasi_identifiers)
        task = task_of(configuration, generalizer, snapshot.criteria)
        rival = find_rival(options, task, snapshot.records, snapshot.rows)
    if rival is not None:
        _LOGGER.info("%s", rival.describe())
    return rival


ModelMaker = Callable[[Task], Model]
"""Makes a model that no configuration names."""


def choose(
    context: RunContext,
    snapshot: Snapshot,
    generalizer: Generalizer,
    make_model: ModelMaker | None = None,
) -> ChosenModel:
    """Return the model of a run. ``auto`` costs what choosing one does.

    Parameters
    ----------
    context : RunContext
    snapshot : Snapshot
    generalizer : Generalizer
    make_model : callable or None
        Makes the model, whatever the configuration names.

    Raises
    ------
    ConfigurationError
        If the model refuses the quasi-identifiers or the criteria.
    """
    options = context.configuration.model
    task = task_of(context.configuration, generalizer, snapshot.criteria)
    if make_model is not None:
        return ChosenModel(make_model(task), None)
    if not isinstance(options, AutoOptions):
        return ChosenModel(create_model(options, task), None)
    from anonspark.models.choosing import choose_model

    with context.progress.stage("choose a model", rows=snapshot.rows):
        choice = choose_model(options, task, snapshot.records, snapshot.rows)
    _LOGGER.info("%s", choice.describe())
    return ChosenModel(create_model(choice.options, task), choice)
