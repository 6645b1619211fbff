"""Decision rules A, B and C: whether a model with outlier handling beats itself without."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DecisionRules", "decide"]


@dataclass(frozen=True)
class DecisionRules:
    """1 where a figure is smaller with outlier handling than without, else 0 (DESIGN 4.6).

    Parameters
    ----------
    a : int
        Discernibility metric.
    b : int
        Mean class size.
    c : int
        Global certainty penalty.
    """

    a: int
    b: int
    c: int


def decide(
    discernibility: tuple[int, int],
    mean_class_size: tuple[float, float],
    certainty_penalty: tuple[float, float],
) -> DecisionRules:
    """Compare figures with and without outlier handling, in this order in each pair."""
    return DecisionRules(
        *(
            int(with_rounds < without)
            for with_rounds, without in (discernibility, mean_class_size, certainty_penalty)
        )
    )
