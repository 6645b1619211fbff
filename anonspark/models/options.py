"""What the ``model`` section of every model has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ModelOptions"]


class ModelOptions(BaseModel):
    """Base of the options of all models.

    A model declares its own options in a subclass, narrows ``name`` to the names that it answers
    to, and gives every field a ``description``: the messages of the configuration and the JSON
    Schema for editors are made from them.

    Attributes
    ----------
    name : str
        The name of the model, as the registry knows it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(description="Which model makes the classes.")
