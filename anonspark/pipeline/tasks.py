"""Create the input of a run's layers, and choose its model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonspark.config import Configuration
from anonspark.config.models import AutoOptions, MappingOptions
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.prepare.snapshot import Snapshot
from anonspark.models.model import Model, Task
from anonspark.models.registry import create_model
from anonspark.pipeline.context import RunContext
from anonspark.verification.proof.measures import SensitiveValues

if TYPE_CHECKING:
    from anonspark.models.choosing import Choice, Rival


def generalizer_of(
    configuration: Configuration, quasi_identifiers: tuple[QuasiIdentifier, ...]
) -> Generalizer:
    """Return how classes of quasi-identifiers are published."""
    return Generalizer(
        quasi_identifiers,
        configuration.output.style,
        tell_missing=configuration.missing == "category",
    )


def task_of(configuration: Configuration, generalizer: Generalizer, criteria: Criteria) -> Task:
    """Return the input of every model in a run."""
    execution = configuration.execution
    return Task(generalizer, criteria, execution.seed, execution.task_rows)


def first_model(
    configuration: Configuration, generalizer: Generalizer, criteria: Criteria
) -> Model:
    """Return the model as it is known without the data. Of ``auto``, the first tried."""
    options = configuration.model
    if isinstance(options, AutoOptions):
        from anonspark.models.choosing import candidates

        options = candidates(options.objective)[0]
    return create_model(options, task_of(configuration, generalizer, criteria))


def sensitive_values(criteria: Criteria) -> list[SensitiveValues]:
    """Return the sensitive values of the whole input as the verification knows them."""
    return [
        SensitiveValues(
            attribute.name,
            attribute.values,
            attribute.shares,
            attribute.parents,
            attribute.heights,
            as_text=attribute.as_text,
            is_ordered=True,
        )
        for attribute in criteria.sensitive
    ]


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
