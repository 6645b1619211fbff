"""The section ``gates``: bounds on figures, outside of which nothing is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from pydantic import Field, model_validator

from anonspark.config.problems import Finding, found, impossible, nearest
from anonspark.config.section import Section
from anonspark.core.schemas import (
    ATTRIBUTES_SCHEMA,
    RISK_SCHEMA,
    SUMMARY_SCHEMA,
    figures_of,
)

__all__ = ["Gate", "summary_figures", "unmeasured", "unusable_gates"]

_ATTACKERS = ("prosecutor", "journalist", "marketer")

# No figures of quality: they were configured, or are known when all is done.
_NO_METRICS = ("k", "rho", "seconds", "round", "position", "weight", "height", "threshold")

_OF_INFORMATION = ("entropy", "kl_divergence")
_OF_BASELINE = ("baseline_", "rule_a", "rule_b", "rule_c")

# What the marketer, who aims at all records, has no figure of.
_OF_ONE_RECORD = ("highest", "at_risk", "lowest", "at_highest", "at_lowest", "unique")


class Gate(Section):
    """Bounds on a figure.

    Attributes
    ----------
    min : float or None
    max : float or None
    """

    # Nothing is below or above what is not a number.
    min: float | None = Field(
        default=None, allow_inf_nan=False, description="Smallest figure that is published."
    )
    max: float | None = Field(
        default=None, allow_inf_nan=False, description="Largest figure that is published."
    )

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        findings = []
        if self.min is None and self.max is None:
            findings.append(
                Finding((), "found neither min nor max; expected at least one of them; add it")
            )
        elif self.min is not None and self.max is not None and self.min > self.max:
            findings.append(
                Finding(
                    ("min",),
                    f"found {found(self.min)}, more than max; expected at most max; correct one",
                )
            )
        if findings:
            raise impossible(findings)
        return self


def unusable_gates(
    gates: Mapping[str, Gate],
    quasi_identifiers: Sequence[str],
    *,
    information: bool,
    baseline: bool,
) -> list[Finding]:
    """Find gates on what is no figure, or is not measured.

    Parameters
    ----------
    gates : mapping of str to Gate
    quasi_identifiers : sequence of str
    information : bool
        Whether entropy and divergence are measured.
    baseline : bool
        Whether the model without outlier handling is measured.
    """
    known = tuple(_metrics(quasi_identifiers))
    findings = []
    for name in gates:
        missing = unmeasured(name, information=information, baseline=baseline)
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near!r}?" if near else ""
            text = (
                f"found {found(name)}, which is no figure of a release; expected a number of the "
                "table summary, attributes.<quasi-identifier>.<figure> or "
                f"risk.<attacker>.<figure>{hint or '; see docs/output.md'}"
            )
        elif missing is not None:
            text = missing
        else:
            continue
        findings.append(Finding(("gates", name), text))
    return findings


def unmeasured(name: str, *, information: bool, baseline: bool) -> str | None:
    """Tell what to set for a figure to be measured, None where it is measured.

    Parameters
    ----------
    name : str
        As a gate names it.
    information : bool
        Whether entropy and divergence are measured.
    baseline : bool
        Whether the model without outlier handling is measured.
    """
    own = name.rpartition(".")[2]
    key = None
    if own in _OF_INFORMATION and not information:
        key = "evaluate.information"
    elif own.startswith(_OF_BASELINE) and not baseline:
        key = "evaluate.compare_baseline"
    return None if key is None else f"found {found(name)}, which is not measured; set {key} to true"


def summary_figures() -> list[str]:
    """Return the columns of the table ``summary`` that are figures of a release."""
    return [name for name in figures_of(SUMMARY_SCHEMA) if name not in _NO_METRICS]


def _metrics(quasi_identifiers: Sequence[str]) -> Iterator[str]:
    """Return everything that a gate may be about."""
    yield from summary_figures()
    for name in quasi_identifiers:
        for figure in figures_of(ATTRIBUTES_SCHEMA):
            if figure not in _NO_METRICS:
                yield f"attributes.{name}.{figure}"
    for attacker in _ATTACKERS:
        for figure in figures_of(RISK_SCHEMA):
            own = attacker != "marketer" or figure not in _OF_ONE_RECORD
            if own and figure not in _NO_METRICS:
                yield f"risk.{attacker}.{figure}"
