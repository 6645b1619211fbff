"""Slow, obvious twins of the kernels, written down from the definitions alone.

Nothing here shares a line with the kernels, and nothing here is fast: plain recursion, sorting and
matrices of all distances. Tests that compare with these stay small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Figures = npt.NDArray[np.float64]
Group = tuple[int, ...]

DENSITY_OFFSET = 1e-10


@dataclass(frozen=True)
class Table:
    """What Mondrian is told of a table.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
    positions : float64 ndarray of shape (n, d)
    ranges : float64 ndarray of shape (d,)
        Global range of each attribute, never 0.
    hashes : int64 ndarray of shape (n,)
    """

    codes: Codes
    positions: Figures
    ranges: Figures
    hashes: Codes

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def attributes(self) -> range:
        return range(self.codes.shape[1])

    def records(self, group: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the content of a group's records: what tells two groups apart."""
        return tuple(sorted((*map(int, self.codes[i]), int(self.hashes[i])) for i in group))

    def taken(self, rows: Codes) -> Table:
        """Return the table of some rows, or of all of them in another order."""
        return Table(self.codes[rows], self.positions[rows], self.ranges, self.hashes[rows])


def strict_mondrian(table: Table, k: int, *, balanced: bool, cell: bool) -> list[Group]:
    """Return the groups of strict Mondrian (DESIGN 4.1)."""
    groups: list[Group] = []

    def split(records: list[int], low: Figures, high: Figures) -> None:
        boundary = None
        if len(records) >= 2 * k:
            low, high = low.copy(), high.copy()
            if not cell:
                low = table.positions[records].min(axis=0)
                high = table.positions[records].max(axis=0)
            allowed = list(table.attributes)
            while allowed and boundary is None:
                # max() returns the first of several equal ones: the first in configuration order.
                chosen = max(allowed, key=lambda j: (high[j] - low[j]) / table.ranges[j])
                low[chosen] = table.positions[records, chosen].min()
                high[chosen] = table.positions[records, chosen].max()
                boundary = strict_boundary(table.codes[records, chosen], k, balanced=balanced)
                if boundary is None:
                    allowed.remove(chosen)
        if boundary is None:
            groups.append(tuple(records))
            return
        left = [i for i in records if table.codes[i, chosen] < boundary]
        right = [i for i in records if table.codes[i, chosen] >= boundary]
        left_high, right_low = high.copy(), low.copy()
        left_high[chosen] = table.positions[left, chosen].max()
        right_low[chosen] = table.positions[right, chosen].min()
        split(left, low, left_high)
        split(right, right_low, high)

    split(list(range(len(table))), table.positions.min(axis=0), table.positions.max(axis=0))
    return groups


def strict_boundary(values: Codes, k: int, *, balanced: bool) -> int | None:
    """Return the smallest value of the right side of a strict cut, None if none is allowed."""
    ordered = sorted(int(value) for value in values)
    size = len(ordered)
    median = next(v for v in ordered if 2 * sum(other <= v for other in ordered) >= size)
    above = [value for value in ordered if value > median]
    candidates = [above[0]] if above else []
    if balanced:
        candidates = [median, *candidates]

    def left_size(boundary: int) -> int:
        return sum(value < boundary for value in ordered)

    allowed = [b for b in candidates if left_size(b) >= k and size - left_size(b) >= k]
    # The lower boundary comes first, and min() returns the first of several equally good ones.
    return min(allowed, key=lambda b: abs(2 * left_size(b) - size)) if allowed else None


def relaxed_mondrian(table: Table, k: int, *, cell: bool) -> list[Group]:
    """Return the groups of relaxed Mondrian (DESIGN 4.2, ties by the other attributes first).

    Records tied on the chosen attribute are shared out by the other attributes from the widest to
    the narrowest, then by their hash; records equal in all of this are interchangeable.
    """
    groups: list[Group] = []

    def split(records: list[int], low: Figures, high: Figures) -> None:
        if len(records) < max(2 * k, 2):
            groups.append(tuple(records))
            return
        own_low = table.positions[records].min(axis=0)
        own_high = table.positions[records].max(axis=0)
        if not cell:
            low, high = own_low, own_high
        widths = (high - low) / table.ranges
        varied = [j for j in table.attributes if len(set(table.codes[records, j].tolist())) > 1]
        order = sorted(table.attributes, key=lambda j: -widths[j])
        chosen = next((j for j in order if j in varied), 0)
        keys = [chosen, *(j for j in order if j != chosen)]
        ordered = sorted(
            records, key=lambda i: (*(int(table.codes[i, j]) for j in keys), int(table.hashes[i]))
        )
        left, right = ordered[: len(records) // 2], ordered[len(records) // 2 :]
        # Looked at, and so tightened: everything up to the attribute that is cut.
        looked_at = order[: order.index(chosen) + 1] if varied else order
        low, high = low.copy(), high.copy()
        low[looked_at], high[looked_at] = own_low[looked_at], own_high[looked_at]
        left_high, right_low = high.copy(), low.copy()
        left_high[chosen] = table.positions[left, chosen].max()
        right_low[chosen] = table.positions[right, chosen].min()
        split(left, low, left_high)
        split(right, right_low, high)

    split(list(range(len(table))), table.positions.min(axis=0), table.positions.max(axis=0))
    return groups


def distance_matrix(points: Figures) -> Figures:
    """Return all Euclidean distances."""
    differences = points[:, None, :] - points[None, :, :]
    return np.sqrt((differences**2).sum(axis=2))


def local_outlier_factors(points: Figures, neighbors: int) -> Figures:
    """Return the local outlier factor of each record (Breunig et al. 2000).

    The neighbourhood holds all other records within the k-distance, ties included; duplicates are
    records like others. Densities have scikit-learn's offset.
    """
    n = len(points)
    distances = distance_matrix(points)
    k_distance = np.empty(n)
    neighborhoods = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        k_distance[i] = sorted(distances[i, others])[neighbors - 1]
        neighborhoods.append([j for j in others if distances[i, j] <= k_distance[i]])
    density = np.empty(n)
    for i, near in enumerate(neighborhoods):
        density[i] = 1 / (np.maximum(k_distance[near], distances[i, near]).mean() + DENSITY_OFFSET)
    return np.array([density[near].mean() / density[i] for i, near in enumerate(neighborhoods)])


def round_to_33_bits(value: float) -> float:
    """Return the nearest float64 with a mantissa of 33 bits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(mantissa * 2**33), exponent - 33)


def separate_outliers(
    codes: Codes,
    normalized: Figures,
    hashes: Codes,
    group: Sequence[int],
    k: int,
    neighbors: int,
    factors: Callable[[Figures, int], Figures] = local_outlier_factors,
) -> list[int]:
    """Return the normal records of a group (DESIGN 4.4)."""
    if len(group) <= k:
        return list(group)
    ordered = sorted(group, key=lambda i: (*map(int, codes[i]), int(hashes[i])))
    points = normalized[ordered]
    scores = factors(points, min(neighbors, len(group) - 1))
    # Equal but for the rounding of sums is a tie, which content decides.
    reference = int(np.argmin([round_to_33_bits(score) for score in scores]))

    def nearness(place: int) -> tuple[bool, float, int]:
        same_point = bool((codes[ordered[place]] == codes[ordered[reference]]).all())
        return (
            not same_point,
            float(np.sqrt(((points[place] - points[reference]) ** 2).sum())),
            place,
        )

    return [ordered[place] for place in sorted(range(len(group)), key=nearness)[:k]]


def normalized_certainty_penalty(positions: Figures, ranges: Figures) -> float:
    """Return NCP of one class (DESIGN 4.6)."""
    return float(((positions.max(axis=0) - positions.min(axis=0)) / ranges).sum())


def global_certainty_penalty(
    positions: Figures, ranges: Figures, groups: Sequence[Sequence[int]]
) -> float:
    """Return ``gcp_total``: the sum of class size times NCP."""
    return sum(
        len(group) * normalized_certainty_penalty(positions[list(group)], ranges)
        for group in groups
    )


def discernibility(groups: Sequence[Sequence[int]]) -> int:
    """Return DM: the sum of squared class sizes."""
    return sum(len(group) ** 2 for group in groups)
