"""Decide whether outlier handling paid: rules A, B and C, and those of rho-Gain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Baseline:
    """A release without outlier handling: the first round's groups, kept whole.

    Parameters
    ----------
    classes : int
    discernibility : int
        ``dm``.
    certainty_penalty : float
        ``gcp_total``.
    mean_class_size : float
    """

    classes: int
    discernibility: int
    certainty_penalty: float
    mean_class_size: float


@dataclass(frozen=True)
class DecisionRules:
    """1 where a figure is smaller with outlier handling than without, else 0.

    See docs/algorithms.md, Decision rules.

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


@dataclass(frozen=True)
class GainRules:
    """Rules on whether rounds after the first one paid (Vural 2017, 3-1 to 3-3).

    Parameters
    ----------
    utility : int
        1 where there are not fewer classes and not more records without one.
    risk : int
        1 where the highest risk did not rise. The thesis prints it the other way round.
    """

    utility: int
    risk: int

    @property
    def gain(self) -> int:
        """1 where both hold: success."""
        return self.utility * self.risk


def decide_gain(before: tuple[int, int, int], after: tuple[int, int, int]) -> GainRules:
    """Compare the first round with all rounds.

    Parameters
    ----------
    before, after : tuple of int
        Classes, records without a class, and records of the smallest class.
    """
    (classes, outliers, smallest), (classes_after, outliers_after, smallest_after) = before, after
    return GainRules(
        utility=int(classes <= classes_after and outliers >= outliers_after),
        risk=int(smallest_after >= smallest),
    )
