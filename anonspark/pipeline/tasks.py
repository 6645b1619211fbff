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
    from anonspark.models.choosing import Alternative, Choice


def generalizer_of(
    configuration: Configuration, quasi_identifiers: tuple[QuasiIdentifier, ...]
) -> Generalizer:
    """Return how classes of quasi-identifiers are published."""
    return Generalizer(
        quasi_identifiers,
        configuration.output.style,
        shows_missing=configuration.missing == "category",
    )


def task_of(configuration: Configuration, generalizer: Generalizer, criteria: Criteria) -> Task:
    """Return the input of every model in a run."""
    execution = configuration.execution
    return Task(generalizer, criteria, execution.seed, execution.task_rows)


def first_model(
    configuration: Configuration, generalizer: Generalizer, criteria: Criteria
) -> Model:
    """Return the model that is known without the data: of ``auto`` the first that is tried."""
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
    """The model of a run, and why it was chosen, or None if the configuration names it."""

    model: Model
    choice: Choice | None


def compare_models(context: RunContext, snapshot: Snapshot) -> Alternative | None:
    """Log a model that would have lost much less, and return it, or None.

    It is in no file of the release. None is tried if ``compares`` is off, or the model was chosen
    as the best. Costs those of `find_better_model`.
    """
    configuration = context.configuration
    options = configuration.model
    if not context.compares or isinstance(options, AutoOptions | MappingOptions):
        return None
    # Late: it imports all models.
    from anonspark.models.choosing import find_better_model

    with context.progress.stage("compare models"):
        generalizer = generalizer_of(configuration, snapshot.quasi_identifiers)
        task = task_of(configuration, generalizer, snapshot.criteria)
        rival = find_better_model(options, task, snapshot.records, snapshot.rows)
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
    """Return the model of a run: that of ``make_model``, or that of the configuration.

    ``auto`` costs what choosing one does. Raises ConfigurationError if the model refuses the
    quasi-identifiers or the criteria.
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
