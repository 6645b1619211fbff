"""The models that a configuration can name: a new model is its module and one line here."""

from __future__ import annotations

from typing import get_args

from anonspark.models.auto import AutoOptions
from anonspark.models.canon import Canon
from anonspark.models.full_domain import FullDomain
from anonspark.models.microaggregation import Microaggregation
from anonspark.models.model import Model, Task
from anonspark.models.mondrian import Mondrian
from anonspark.models.options import ModelOptions

__all__ = ["create_model", "options_classes"]

_MODELS: tuple[type[Model], ...] = (Mondrian, Canon, Microaggregation, FullDomain)


def _models_by_name() -> dict[str, type[Model]]:
    return {
        name: model
        for model in _MODELS
        for name in get_args(model.options_class.model_fields["name"].annotation)
    }


def options_classes() -> dict[str, type[ModelOptions]]:
    """Return the options class of every accepted model name.

    Returns
    -------
    dict
        Model name to options class, in the order in which messages list the names.
    """
    named = {name: model.options_class for name, model in _models_by_name().items()}
    return {**named, "auto": AutoOptions}


def create_model(options: ModelOptions, task: Task) -> Model:
    """Return the model that a configuration names.

    Parameters
    ----------
    options : ModelOptions
        The configuration's ``model`` section; of ``auto`` what was chosen.
    task : Task
        What every model is told.
    """
    return _models_by_name()[options.name](options, task)
