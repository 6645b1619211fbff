"""The models that a configuration can name: each of ours has one line here."""

from __future__ import annotations

from anonspark.config.models import ModelOptions, foreign_model
from anonspark.models.full_domain import FullDomain
from anonspark.models.microaggregation import Canon, Microaggregation
from anonspark.models.model import Model, Task
from anonspark.models.mondrian import Mondrian

_MODELS: tuple[type[Model], ...] = (Mondrian, Canon, Microaggregation, FullDomain)


def create_model(options: ModelOptions, task: Task) -> Model:
    """Return the model that a configuration names.

    Parameters
    ----------
    options : ModelOptions
        The configuration's ``model`` section; of ``auto`` what was chosen.
    task : Task
        What every model is told.
    """
    for model in _MODELS:
        if model.options_class is type(options):
            return model(options, task)
    foreign: type[Model] = foreign_model(options.name)
    return foreign(options, task)
