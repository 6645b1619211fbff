"""Define the ``evaluate`` section: additional measures."""

from __future__ import annotations

from pydantic import Field

from anonspark.config.fractions import Share
from anonspark.config.section import Section


class RiskOptions(Section):
    """From where on the risk of re-identification is called high, and how it is measured."""

    threshold: Share = 0.2
    """Highest acceptable probability to re-identify any one record."""

    at_risk: Share = 0.0
    """Acceptable share of records whose probability exceeds the threshold."""

    average: Share = 0.1
    """Acceptable share of records re-identified."""

    unique: Share = 0.0
    """Acceptable share of unique records."""

    weights: str | None = Field(default=None, min_length=1)
    """An attribute with sampling weights: how many people of the population each record stands for.
    It is published, or an identifier. Also measures the individual risk, an estimate: that from
    an outsider, who does not know who was sampled. It changes no class. null: not measured."""


class AssociationOptions(Section):
    """With what column association is measured."""

    target: str = Field(min_length=1)
    """A sensitive or insensitive attribute of 2 to 100 different values that quasi-identifiers
    predict."""


class EvaluateOptions(Section):
    """Additional measures."""

    compare_baseline: bool = False
    """Report what the same model loses without outlier handling, and the decision rules, also if
    the model has none. Models with rounds always report it."""

    information: bool = False
    """Also measure entropy and Kullback-Leibler divergence of the release. Costs some passes over
    the input for every quasi-identifier. Not for the style mean."""

    association: AssociationOptions | None = None
    """Also measure how well quasi-identifiers predict a target before and after. Costs some passes
    over the snapshot and one over the release. null: not measured."""

    risk: RiskOptions = RiskOptions()
    """From where on the risk of re-identification is called high."""
