"""Quality gates and drift: bounds on figures, outside of which a release is not published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from anonspark.config.gates import Gate
from anonspark.core.figure_text import k_of
from anonspark.errors import GuaranteeError
from anonspark.layers.evaluate.small_counts import least_count
from anonspark.release.derived_manifest import figures_of_gates


@dataclass(frozen=True)
class GateResult:
    """A figure beside its bounds.

    Parameters
    ----------
    metric : str
        As the configuration names it.
    found : float or None
        None where the run has no such figure, which is out of all bounds.
    min, max : float or None
        The bounds. A figure equal to one of them is within.
    withheld : bool
        Whether the run has the figure and does not publish it, because it is of fewer than k
        records.
    within : bool
        Of a figure that is withheld: whether it is within the bounds.
    """

    metric: str
    found: float | None
    min: float | None
    max: float | None
    withheld: bool = False
    within: bool = True

    def describe(self) -> str | None:
        """Return by how much the figure is out of bounds, or None if it is within."""
        if self.withheld:
            return None if self.within else self._describe_withheld()
        if self.found is None:
            return f"gates.{self.metric}: this run has no such figure. Remove the gate"
        # So written that a figure that is not a number is out of all bounds.
        if self.min is not None and not self.found >= self.min:
            return (
                f"gates.{self.metric}: found {self.found:g}, expected at least {self.min:g}, "
                f"{self.min - self.found:g} more"
            )
        if self.max is not None and not self.found <= self.max:
            return (
                f"gates.{self.metric}: found {self.found:g}, expected at most {self.max:g}, "
                f"{self.found - self.max:g} less{self._needed_k(self.found, self.max)}"
            )
        return None

    def _needed_k(self, risk: float, bound: float) -> str:
        """Return which k keeps a bound on the highest risk, and how a rounded one is written."""
        k = k_of(bound)
        if self.metric != "risk.prosecutor.highest" or k < 2:
            return ""
        # One in eleven is meant by 0.09.
        is_rounded = risk < 1.02 * bound and k_of(risk) == k - 1
        rounded = f"; 1/{k - 1} is written '1/{k - 1}'" if is_rounded else ""
        return f". {bound:g} needs k = {k:,}{rounded}"

    def _describe_withheld(self) -> str:
        bounds = (("at least", self.min), ("at most", self.max))
        expected = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return (
            f"gates.{self.metric}: found a number that is withheld because it counts fewer than k "
            f"records. Expected {expected}"
        )


def check_gates(
    gates: Mapping[str, Gate],
    summary: Mapping[str, Any],
    attributes: Sequence[Mapping[str, Any]],
    risk: Sequence[Mapping[str, Any]],
    counted: Mapping[str, float] = MappingProxyType({}),
) -> list[GateResult]:
    """Look up the figures of all gates.

    Parameters
    ----------
    gates : mapping of str to Gate
        Metric to bounds: a column of the table ``summary``, ``attributes.<name>.<column>`` or
        ``risk.<attacker>.<column>``.
    summary : mapping
        The row of the table.
    attributes, risk : sequence of mapping
        The rows of the tables. Of ``risk`` those of the whole release count.
    counted : mapping of str to float
        Of figures that the tables may withhold: what they are.
    """
    figures = figures_of_gates(summary, attributes, risk)
    results = []
    for metric, gate in gates.items():
        result = GateResult(metric, figures.get(metric), gate.min, gate.max)
        if result.found is None and metric in counted:
            within = replace(result, found=float(counted[metric])).describe() is None
            result = replace(result, withheld=True, within=within)
        results.append(result)
    return results


def _number(figure: Any) -> float | None:
    return None if figure is None else float(figure)


def require_passed(gates: Sequence[GateResult]) -> None:
    """Check that all figures are within their bounds.

    Raises
    ------
    GuaranteeError
        Naming every figure that is not.
    """
    failed = [problem for problem in (gate.describe() for gate in gates) if problem is not None]
    if failed:
        raise GuaranteeError(
            "\n".join(failed)
            + "\nnothing was published. Weaken the gates, or choose another model or k"
        )


@dataclass(frozen=True)
class Drift:
    """A figure beside that of the last run.

    Parameters
    ----------
    metric : str
        A column of the table ``summary``.
    found : float or None
        None where this run has no such figure.
    before : float or None
        None where the last run has no such figure, or there is no last run.
    max : float
        Largest relative change.
    run_id : str or None
        The last run. None where there is none.
    """

    metric: str
    found: float | None
    before: float | None
    max: float
    run_id: str | None

    @property
    def change(self) -> float | None:
        """Absolute difference as a share of the figure before. None where one is missing."""
        if self.found is None or self.before is None:
            return None
        if self.found == self.before:
            return 0.0
        return abs(self.found - self.before) / abs(self.before) if self.before else float("inf")

    def describe(self) -> str | None:
        """Return how far the figure is out of its bound, or None if it is within."""
        # So written that a figure that is not a number is out of its bound.
        if self.change is None or self.change <= self.max:
            return None
        return (
            f"metrics.drift.{self.metric}: found {self.found:g} after {self.before:g} in run "
            f"{self.run_id}, a relative change of {self.change:.3g}, expected at most {self.max:g}"
        )

    def is_sure(self, less: int) -> bool:
        """Return whether a count is out of its bound even if it were smaller by some records.

        Parameters
        ----------
        less : int
            At most so many records.
        """
        if self.found is None or self.before is None:
            return False
        nearest = min(max(self.before, self.found - less), self.found)
        return replace(self, found=nearest).describe() is not None


def measure_drift(
    bounds: Mapping[str, float], summary: Mapping[str, Any], before: Mapping[str, Any] | None
) -> list[Drift]:
    """Put the figures that have a bound beside those of the last run.

    Parameters
    ----------
    bounds : mapping of str to float
        Column of the table ``summary`` to its largest relative change.
    summary : mapping
        The row of this run.
    before : mapping or None
        The row of the last run that can be compared, None where there is none.

    Notes
    -----
    A count that is withheld is compared by the least that it can be.
    """
    earlier: Mapping[str, Any] = before or {}
    return [
        Drift(
            name,
            _number(least_count(summary, name)),
            _number(least_count(earlier, name)),
            bound,
            earlier.get("run_id"),
        )
        for name, bound in bounds.items()
    ]


def require_no_drift(drifts: list[Drift]) -> None:
    """Check that no figure has moved further than its bound.

    Raises
    ------
    GuaranteeError
        Naming every figure that has.
    """
    failed = [problem for problem in (drift.describe() for drift in drifts) if problem is not None]
    if failed:
        raise GuaranteeError(
            "\n".join(failed)
            + "\nnothing was published. Find out what has changed, and raise the bound for one run "
            "if it is right, for instance with --set metrics.drift.NAME=BOUND"
        )
