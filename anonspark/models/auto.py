"""The model that is chosen for the table at hand: options, candidates, and what they would lose."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from anonspark.models.options import ModelOptions

__all__ = ["AutoOptions"]


class AutoOptions(ModelOptions):
    """Options of ``auto``, which tries models on a sample and takes the best one.

    Attributes
    ----------
    name : str
    objective : str
        What is to be small.
    """

    name: Literal["auto"] = Field(
        description=(
            "Which model makes the classes: auto tries smondrian, su-mondrian, u-canon and "
            "microaggregation on a sample and takes the one with the smallest loss; the manifest "
            "says which and why."
        ),
    )
    objective: Literal["gcp", "queries"] = Field(
        default="gcp",
        description=(
            "What is to be small: gcp is the certainty penalty; queries the median error of "
            "counting queries."
        ),
    )
