"""Drift: how far figures of a release have moved since the last run of the same job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from anonspark.errors import GuaranteeError
from anonspark.layers.evaluate.withholding import least_count


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
        The last run; None where there is none.
    """

    metric: str
    found: float | None
    before: float | None
    max: float
    run_id: str | None

    @property
    def change(self) -> float | None:
        """Absolute difference as a share of the figure before; None where one is missing."""
        if self.found is None or self.before is None:
            return None
        if self.found == self.before:
            return 0.0
        return abs(self.found - self.before) / abs(self.before) if self.before else float("inf")

    def describe(self) -> str | None:
        """Tell how far the figure is out of its bound, None where it is within."""
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


def _number(figure: Any) -> float | None:
    return None if figure is None else float(figure)


def require_no_drift(drifts: list[Drift]) -> None:
    """Check that no figure has moved further than its bound.

    Raises
    ------
    GuaranteeError
        Naming every figure that has.
    """
    failed = [told for told in (drift.describe() for drift in drifts) if told is not None]
    if failed:
        raise GuaranteeError(
            "\n".join(failed)
            + "\nnothing was published; find out what has changed, and raise the bound for one run "
            "if it is right, for instance with --set metrics.drift.NAME=BOUND"
        )
