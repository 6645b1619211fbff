"""What the ``model`` section of every model has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from anonspark.configuration.problems import Finding
    from anonspark.configuration.schema import Attribute

__all__ = ["ModelOptions", "RoundOptions"]


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

    @property
    def has_rounds(self) -> bool:
        """Whether there can be more than one round."""
        return False

    def findings(self, attributes: Mapping[str, Attribute], style: str) -> list[Finding]:  # noqa: ARG002
        """Find what the model cannot work with.

        Parameters
        ----------
        attributes : mapping of str to Attribute
            The configured attributes.
        style : str
            ``output.style``.

        Returns
        -------
        list of Finding
            Located from the top of the configuration.
        """
        return []


class RoundOptions(ModelOptions):
    """Options of the models whose outliers go through further rounds.

    Attributes
    ----------
    rho : int
        Number of rounds.
    minimum_gain : float
        Smallest gain of a round for which another one is worth its time.
    separation : str
        Which records a group gives up.
    lof_neighbors : int or None
        Neighbours that a record is judged by, ``None`` for k - 1.
    reference : str
        Which record of a group the normal ones are nearest to.
    """

    rho: int = Field(
        default=5,
        ge=1,
        le=1000,
        description=(
            "Number of rounds at most; the last one keeps its groups whole. Only for models with "
            "outlier handling."
        ),
    )
    minimum_gain: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description=(
            "Stop with the round that lowers the certainty penalty by less than this share of what "
            "it would be without the round; 0 never stops early. Only for models with outlier "
            "handling."
        ),
    )
    separation: Literal["always", "paying"] = Field(
        default="paying",
        description=(
            "Which records a group gives up to the next round: paying those without which the "
            "release loses less, if there are any, and a round that does not lower the loss is "
            "undone; always all but the k nearest to its reference, in all rounds, as published. "
            "Only for models with outlier handling."
        ),
    )
    lof_neighbors: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description=(
            "Neighbours that a record is judged by; null means k - 1. Only for models with outlier "
            "handling."
        ),
    )
    reference: Literal["lof", "density"] = Field(
        default="lof",
        description=(
            "Which record of a group the normal ones are nearest to: lof takes the one with the "
            "smallest local outlier factor, as published; density the one with the smallest sum of "
            "distances to its neighbours. Only for models with outlier handling."
        ),
    )

    @property
    def handles_outliers(self) -> bool:
        """Whether outliers go through further rounds."""
        return False

    @property
    def has_rounds(self) -> bool:
        """Whether there can be more than one round."""
        return self.handles_outliers and self.rho > 1
