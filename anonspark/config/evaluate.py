"""Define the ``evaluate`` section: additional measures."""

from __future__ import annotations

from pydantic import Field

from anonspark.config.section import Section


class RiskOptions(Section):
    """From where on the risk of re-identification is called high.

    Attributes
    ----------
    threshold : float
        Highest acceptable probability of any record (tau).
    at_risk : float
        Acceptable share of the records above it (alpha).
    average : float
        Acceptable average probability (lambda).
    unique : float
        Acceptable share of unique records (chi, omega).
    """

    threshold: float = Field(
        default=0.2,
        ge=0.0,
        le=1.0,
        description="Highest acceptable probability to re-identify any one record.",
    )
    at_risk: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="Acceptable share of records whose probability exceeds the threshold.",
    )
    average: float = Field(
        default=0.1, ge=0.0, le=1.0, description="Acceptable share of records re-identified."
    )
    unique: float = Field(
        default=0.0, ge=0.0, le=1.0, description="Acceptable share of unique records."
    )


class AssociationOptions(Section):
    """With what column association is measured.

    Attributes
    ----------
    target : str
        An attribute that is published as it is.
    """

    target: str = Field(
        min_length=1,
        description=(
            "A sensitive or insensitive attribute of 2 to 100 different values that "
            "quasi-identifiers tell of."
        ),
    )


class EvaluateOptions(Section):
    """Additional measures.

    Attributes
    ----------
    compare_baseline : bool
        Whether models without outlier handling also report the figures of the decision rules.
    information : bool
        Whether entropy and Kullback-Leibler divergence are measured, too.
    association : AssociationOptions or None
        With what association is measured. None where it is not.
    risk : RiskOptions
        From where on the risk of re-identification is called high.
    """

    compare_baseline: bool = Field(
        default=False,
        description=(
            "Tell what the same model loses without outlier handling, and the decision rules, also "
            "where the model has none. Models with rounds tell it in any case."
        ),
    )
    information: bool = Field(
        default=False,
        description=(
            "Also measure entropy and Kullback-Leibler divergence of the release. Costs some "
            "passes over the input for every quasi-identifier. Not for the style mean."
        ),
    )
    association: AssociationOptions | None = Field(
        default=None,
        description=(
            "Also measure what quasi-identifiers tell of a target before and after. Costs some "
            "passes over the snapshot and one over the release. null: not measured."
        ),
    )
    risk: RiskOptions = Field(
        default=RiskOptions(),
        description="From where on the risk of re-identification is called high.",
    )
