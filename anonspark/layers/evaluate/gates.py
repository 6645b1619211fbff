"""Quality gates: bounds on figures, outside of which a release is not published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from anonspark.config.gates import Gate
from anonspark.errors import GuaranteeError


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
        The bounds; a figure equal to one of them is within.
    withheld : bool
        Whether the run has the figure and does not tell it: it is of fewer than k records.
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
        """Tell by how much the figure is out of bounds, None where it is within."""
        if self.withheld:
            return None if self.within else self._describe_withheld()
        if self.found is None:
            return f"gates.{self.metric}: this run has no such figure; remove the gate"
        # So written that a figure that is not a number is out of all bounds.
        if self.min is not None and not self.found >= self.min:
            return (
                f"gates.{self.metric}: found {self.found:g}, expected at least {self.min:g}, "
                f"{self.min - self.found:g} more"
            )
        if self.max is not None and not self.found <= self.max:
            return (
                f"gates.{self.metric}: found {self.found:g}, expected at most {self.max:g}, "
                f"{self.found - self.max:g} less"
            )
        return None

    def _describe_withheld(self) -> str:
        bounds = (("at least", self.min), ("at most", self.max))
        expected = " and ".join(f"{word} {one:g}" for word, one in bounds if one is not None)
        return (
            f"gates.{self.metric}: found a number that is withheld, for it tells of fewer than k "
            f"records; expected {expected}"
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
        The rows of the tables; of ``risk`` those of the whole release count.
    counted : mapping of str to float
        Of figures that the tables may withhold: what they are.
    """
    figures: dict[str, Any] = dict(summary)
    for row in attributes:
        figures |= {f"attributes.{row['attribute']}.{name}": row[name] for name in row}
    for row in risk:
        if row.get("round") is None:
            figures |= {f"risk.{row['attacker']}.{name}": row[name] for name in row}
    results = []
    for metric, gate in gates.items():
        result = GateResult(metric, _number(figures.get(metric)), gate.min, gate.max)
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
    failed = [told for told in (gate.describe() for gate in gates) if told is not None]
    if failed:
        raise GuaranteeError(
            "\n".join(failed)
            + "\nnothing was published; weaken the gates, or choose another model or k"
        )
