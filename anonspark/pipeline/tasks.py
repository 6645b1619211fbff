"""Create the input of a run's layers from the configuration and the findings in the data."""

from __future__ import annotations

from anonspark.config import Configuration
from anonspark.config.models import AutoOptions
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.layers.generalize.classes import Generalizer
from anonspark.models.model import Model, Task
from anonspark.models.registry import create_model
from anonspark.verification.proof.sensitive_values import SensitiveValues


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
