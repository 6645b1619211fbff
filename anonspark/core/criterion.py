"""One criterion beyond k, as the configuration and the messages know it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Criterion", "CriterionKind"]

CriterionKind = Literal[
    "distinct",
    "entropy",
    "recursive",
    "alpha",
    "equal distance",
    "ordered distance",
    "hierarchical distance",
]


@dataclass(frozen=True)
class Criterion:
    """One criterion beyond k, about one sensitive attribute.

    Every one of them is closed under union: two classes that satisfy it satisfy it together, so a
    table that violates it as a whole cannot be cut into classes that satisfy it.

    Parameters
    ----------
    attribute : str
        Name of the sensitive attribute.
    kind : CriterionKind
    bound : float
        l, alpha or t.
    c : float
        Of recursive (c, l)-diversity.
    """

    attribute: str
    kind: CriterionKind
    bound: float
    c: float = 0.0

    @property
    def is_distance(self) -> bool:
        """Whether it compares a class with the distribution of a whole table (t-closeness)."""
        return self.kind.endswith("distance")

    def describe(self) -> str:
        """Return the criterion in words, for messages and the table ``privacy``."""
        bound = f"{self.bound:g}"
        match self.kind:
            case "distinct" | "entropy":
                return f"{self.kind} l-diversity with l = {bound}"
            case "recursive":
                return f"recursive (c, l)-diversity with c = {self.c:g} and l = {bound}"
            case "alpha":
                return f"(alpha, k)-anonymity with alpha = {bound}"
            case _:
                return f"t-closeness with t = {bound} ({self.kind})"
