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
    """A figure and its bounds.

    ``metric`` is its name in the configuration. ``found`` is None if the run has no such figure,
    which is out of all bounds; a figure equal to a bound is within. ``withheld`` figures are not
    published, because they count fewer than k records, but ``within`` judges them.

    >>> GateResult("gcp", 0.31, None, 0.25).describe()
    'gates.gcp: found 0.31, expected at most 0.25, 0.06 less'
    """

    metric: str
    found: float | None
    min: float | None
    max: float | None
    withheld: bool = False
    within: bool = True

    def describe(self) -> str | None:
        """Describe by how much the figure is out of bounds, or return None if it is within."""
        if self.withheld:
            return None if self.within else self._describe_withheld()
        if self.found is None:
            return f"gates.{self.metric}: this run has no such figure. Remove the gate"
        # Written so that NaN is out of all bounds.
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
        """Return the k that keeps a bound on the highest risk, and how to write a rounded bound."""
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
    """Look up the figures of all gates, and compare them with their bounds.

    A gate is named by a column of the table ``summary``, ``attributes.<name>.<column>`` or
    ``risk.<attacker>.<column>``. ``summary`` is the row of that table, ``attributes`` and ``risk``
    are rows of theirs. Rows of ``risk`` count if they are about the whole release. ``counted`` are
    exact figures that the tables may withhold.

    >>> (result,) = check_gates({"gcp": Gate(max=0.25)}, {"gcp": 0.2}, [], [])
    >>> result.found, result.describe()
    (0.2, None)
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
    """Raise GuaranteeError that names every figure out of its bounds, if any."""
    failed = [problem for problem in (gate.describe() for gate in gates) if problem is not None]
    if failed:
        raise GuaranteeError(
            "\n".join(failed)
            + "\nnothing was published. Weaken the gates, or choose another model or k"
        )


@dataclass(frozen=True)
class Drift:
    """A figure and that of the last run.

    ``metric`` is a column of the table ``summary``, and ``max`` its largest relative change.
    ``found`` is None if this run has no such figure, and ``before`` if the last run has none, or
    there is no last run, ``run_id``.

    >>> Drift("rows_in", 130.0, 100.0, 0.1, "night-7").change
    0.3
    """

    metric: str
    found: float | None
    before: float | None
    max: float
    run_id: str | None

    @property
    def change(self) -> float | None:
        """Absolute difference as a share of the figure before, or None if one is absent."""
        if self.found is None or self.before is None:
            return None
        if self.found == self.before:
            return 0.0
        return abs(self.found - self.before) / abs(self.before) if self.before else float("inf")

    def describe(self) -> str | None:
        """Return how far the figure is out of its bound, or None if it is within."""
        # Written so that NaN is out of its bound.
        if self.change is None or self.change <= self.max:
            return None
        return (
            f"metrics.drift.{self.metric}: found {self.found:g} after {self.before:g} in run "
            f"{self.run_id}, a relative change of {self.change:.3g}, expected at most {self.max:g}"
        )

    def is_sure(self, less: int) -> bool:
        """Return whether a count is out of its bound even if it is up to ``less`` smaller."""
        if self.found is None or self.before is None:
            return False
        nearest = min(max(self.before, self.found - less), self.found)
        return replace(self, found=nearest).describe() is not None


def measure_drift(
    bounds: Mapping[str, float], summary: Mapping[str, Any], before: Mapping[str, Any] | None
) -> list[Drift]:
    """Compare the bounded figures with those of the last run.

    ``before`` is the row of the last comparable run, or None without one. A withheld count is
    compared by its smallest possible value.
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
    """Raise GuaranteeError that names every figure that moved further than its bound, if any."""
    failed = [problem for problem in (drift.describe() for drift in drifts) if problem is not None]
    if failed:
        raise GuaranteeError(
            "\n".join(failed)
            + "\nnothing was published. Find out what has changed. If it is right, allow it with "
            "--set metrics.drift.NAME=BOUND, also in the next run if that has the usual figures"
        )
