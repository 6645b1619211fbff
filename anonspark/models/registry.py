"""The models that a configuration can name: each of ours has one line here."""

from __future__ import annotations

from importlib import import_module

from anonspark.config.models import (
    CanonOptions,
    FullDomainOptions,
    MicroaggregationOptions,
    ModelOptions,
    MondrianOptions,
    foreign_model,
)
from anonspark.models.model import Model, Task

# Module and class; a run imports its own model alone.
_MODELS: dict[type[ModelOptions], tuple[str, str]] = {
    MondrianOptions: ("mondrian", "Mondrian"),
    CanonOptions: ("microaggregation", "Canon"),
    MicroaggregationOptions: ("microaggregation", "Microaggregation"),
    FullDomainOptions: ("full_domain", "FullDomain"),
}


def create_model(options: ModelOptions, task: Task) -> Model:
    """Return the model of a ``model`` section. For ``auto``, pass the chosen options."""
    model: type[Model]
    if (ours := _MODELS.get(type(options))) is not None:
        model = getattr(import_module(f"anonspark.models.{ours[0]}"), ours[1])
    else:
        model = foreign_model(options.name)
    return model(options, task)
