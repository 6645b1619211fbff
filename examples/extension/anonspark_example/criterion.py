"""The toy criterion: the share of the two most frequent values of a class."""

import numpy as np

from anonspark.core.criteria import GroupValues
from anonspark.core.criterion import CriterionType, Option
from anonspark.verification.proof.measures import ValueCounts


def records_lacking(group: GroupValues, bound: float) -> int:
    """Return how many records a group lacks at least, 0 where it satisfies the criterion."""
    share = np.sort(group.counts)[-2:].sum() / group.size
    # A bound that is met exactly may be missed by rounding.
    return 0 if share <= bound + 1e-12 else max(int((share - bound) * group.size), 1)


def two_largest_shares(table: ValueCounts, *_) -> np.ndarray:
    """Return the share of the two most frequent values of each class."""
    order = np.lexsort((-table.shares, table.classes))
    ranks = np.arange(len(order)) - table.starts[table.classes]
    shares = np.where(ranks < 2, table.shares[order], 0.0)
    return np.add.reduceat(shares, table.starts)


TWO_LARGEST = CriterionType(
    "two_largest",
    records_lacking,
    "at most {bound:g} of a class with its two most frequent values",
    "largest share of two values in a class",
    "at most",
    column="two_largest",
    title="two largest",
    short="share of two values",
    option=Option(
        "TwoLargest",
        "The largest share of two sensitive values in a class.",
        "share",
        {"gt": 0.0, "le": 1.0},
        "Largest share of any two values in a class, up to 1.",
        "Largest share of two sensitive values in every class; one or a list.",
    ),
    measure=two_largest_shares,
)
