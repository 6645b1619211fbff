"""Slow, obvious twins of the kernels, written down from the definitions alone.

Nothing here shares a line with the kernels, and nothing here is fast: plain recursion, sorting,
fractions and matrices of all distances. Tests that compare with these stay small. At the end stands
what the tests of several kernels share: tables and criteria that Hypothesis draws, and Adult.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from data_sets import ADULT
from drawn_numbers import among, of, of_few, one_of, some_hashes, wide
from hypothesis import strategies as st

from anonspark.core.criteria import Criteria, SensitiveAttribute
from anonspark.core.criterion import Criterion
from anonspark.kernels.paths import child_path, priority

Codes = npt.NDArray[np.int64]
Figures = npt.NDArray[np.float64]
Group = tuple[int, ...]

DENSITY_OFFSET = 1e-10


def most_values_with_people(pairs: Sequence[tuple[int, int]]) -> int:
    """Return how many values can have a person of their own, by trying all ways."""
    values, people = sorted({v for v, _ in pairs}), sorted({u for _, u in pairs})
    places = [*people, *[-1] * len(values)]
    return max(
        sum((v, u) in pairs for v, u in zip(values, chosen, strict=True))
        for chosen in set(permutations(places, len(values)))
    )


@dataclass(frozen=True)
class Table:
    """What the kernels are told of a table.

    Parameters
    ----------
    codes : int64 ndarray of shape (n, d)
    positions : float64 ndarray of shape (n, d)
    origins : float64 ndarray of shape (d,)
        Smallest position of each attribute in the whole input.
    units : float64 ndarray of shape (d,)
        Difference of positions that counts as 1: its range there by its weight, never 0.
    hashes : int64 ndarray of shape (n,)
    values : int64 ndarray of shape (n, s)
        Sensitive values, those of all attributes numbered through.
    """

    codes: Codes
    positions: Figures
    origins: Figures
    units: Figures
    hashes: Codes
    values: Codes

    def node(self, path: int) -> tuple[Any, ...]:
        """Return what kernels that cut are told of the whole table as a node."""
        low, high = self.positions.min(axis=0), self.positions.max(axis=0)
        whole = (self.codes, self.positions, self.units, self.hashes, self.values)
        return (*whole, low, high, np.uint64(path))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def attributes(self) -> range:
        return range(self.codes.shape[1])

    @property
    def normalized(self) -> Figures:
        """Positions for distances: the whole input spans 0 to the weight."""
        return np.ascontiguousarray((self.positions - self.origins) / self.units)

    def records(self, group: Sequence[int]) -> tuple[tuple[int, ...], ...]:
        """Return the content of a group's records: what tells two groups apart."""
        content = np.column_stack([self.codes, self.hashes, self.values])
        return tuple(sorted(tuple(content[i].tolist()) for i in group))

    def taken(self, rows: Codes) -> Table:
        """Return the table of some rows, or of all of them in another order."""
        return Table(
            self.codes[rows],
            self.positions[rows],
            self.origins,
            self.units,
            self.hashes[rows],
            self.values[rows],
        )


# Criteria -----------------------------------------------------------------------------------------


def satisfies_criterion(
    criterion: Criterion, attribute: SensitiveAttribute, counts: Sequence[int]
) -> bool:
    """Return whether a group satisfies a criterion, from its records with each value.

    Exact: in fractions, and the entropy without a logarithm. A bound is the fraction that was
    meant, so that 0.3 is three tenths.
    """
    bound = Fraction(criterion.bound).limit_denominator(10**6)
    size, whole = sum(counts), int(attribute.counts.sum())
    descending = sorted((count for count in counts if count), reverse=True)
    p = [Fraction(count, size) for count in counts]
    q = [Fraction(count, whole) for count in attribute.counts.tolist()]
    match criterion.kind:
        case "distinct":
            return len(descending) >= bound
        case "entropy":
            # -sum(p log p) >= log l, to the power of the size.
            return Fraction(size**size, math.prod(n**n for n in descending)) >= bound**size
        case "recursive":
            c = Fraction(criterion.c).limit_denominator(10**6)
            return descending[0] < c * sum(descending[int(bound) - 1 :])
        case "alpha":
            return max(p) <= bound
        case "equal distance":
            return equal_distance(p, q) <= bound
        case "ordered distance":
            return ordered_distance(p, q) <= bound
        case "hierarchical distance":
            return hierarchical_distance(p, q, attribute) <= bound
        case "maximum distance":
            return max(abs(a - b) for a, b in zip(p, q, strict=True)) <= bound
        case "beta":
            return all(a <= (1 + bound) * b for a, b in zip(p, q, strict=True))


def equal_distance(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """Return the distance of distributions over values that are equally far apart."""
    return sum((abs(a - b) for a, b in zip(p, q, strict=True)), Fraction(0)) / 2


def ordered_distance(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """Return the earth mover's distance of distributions over ordered values."""
    running = [abs(sum(p[: i + 1]) - sum(q[: i + 1])) for i in range(len(p))]
    return sum(running, Fraction(0)) / max(len(p) - 1, 1)


def hierarchical_distance(
    p: Sequence[Fraction], q: Sequence[Fraction], attribute: SensitiveAttribute
) -> Fraction:
    """Return the earth mover's distance of distributions over the leaves of a hierarchy."""
    parents = attribute.parents.tolist()
    heights = [Fraction(height) for height in attribute.heights.tolist()]

    def children(node: int) -> list[int]:
        return [child for child, parent in enumerate(parents) if parent == node]

    def extra(node: int) -> Fraction:
        if node < len(p):
            return p[node] - q[node]
        return sum((extra(child) for child in children(node)), Fraction(0))

    total = Fraction(0)
    for node in range(len(p), len(parents)):
        extras = [extra(child) for child in children(node)]
        positive = sum((value for value in extras if value > 0), Fraction(0))
        negative = sum((-value for value in extras if value < 0), Fraction(0))
        total += heights[node] / heights[-1] * min(positive, negative)
    return total


def counts_of_values(criteria: Criteria, values: Codes) -> list[list[int]]:
    """Return, for each sensitive attribute, how many of some records have each value."""
    counts, first = [], 0
    for index, attribute in enumerate(criteria.sensitive):
        domain = len(attribute.counts)
        column = values[:, index].tolist()
        counts.append([column.count(first + value) for value in range(domain)])
        first += domain
    return counts


def violated_criteria(criteria: Criteria, counts: Sequence[Sequence[int]]) -> list[int]:
    """Return the places of the criteria beyond k that a group violates."""
    names = [attribute.name for attribute in criteria.sensitive]
    own = [names.index(criterion.attribute) for criterion in criteria.criteria]
    return [
        place
        for place, (criterion, s) in enumerate(zip(criteria.criteria, own, strict=True))
        if not satisfies_criterion(criterion, criteria.sensitive[s], counts[s])
    ]


def may_be_a_group(criteria: Criteria, values: Codes, records: Sequence[int]) -> bool:
    """Return whether records satisfy k and all other criteria."""
    if len(records) < criteria.k or not records:
        return False
    counts = counts_of_values(criteria, values[list(records)])
    return not violated_criteria(criteria, counts)


# Cuts ---------------------------------------------------------------------------------------------


def strict_mondrian(table: Table, criteria: Criteria, *, balanced: bool, cell: bool) -> list[Group]:
    """Return the groups of strict Mondrian (docs/algorithms.md).

    Where criteria beyond k refuse the boundaries beside the median of every attribute, the balanced
    rule goes on to the further ones.
    """
    groups: list[Group] = []

    def sides(records: list[int], attribute: int, boundary: int) -> tuple[list[int], list[int]]:
        left = [i for i in records if table.codes[i, attribute] < boundary]
        right = [i for i in records if table.codes[i, attribute] >= boundary]
        return left, right

    def allowed_cut(records: list[int], attribute: int, boundary: int) -> bool:
        return all(
            may_be_a_group(criteria, table.values, side)
            for side in sides(records, attribute, boundary)
        )

    def split(records: list[int], low: Figures, high: Figures) -> None:
        boundary = None
        if len(records) >= 2 * criteria.k:
            low, high = low.copy(), high.copy()
            if not cell:
                low = table.positions[records].min(axis=0)
                high = table.positions[records].max(axis=0)
            allowed = list(table.attributes)
            looked_at: list[int] = []
            while allowed and boundary is None:
                # max() returns the first of several equal ones: the first in configuration order.
                chosen = max(allowed, key=lambda j: (high[j] - low[j]) / table.units[j])
                low[chosen] = table.positions[records, chosen].min()
                high[chosen] = table.positions[records, chosen].max()
                looked_at.append(chosen)
                # The best of the boundaries that may be used.
                candidates = strict_boundaries(table.codes[records, chosen], balanced=balanced)
                useful = (b for b in candidates if allowed_cut(records, chosen, b))
                boundary = next(useful, None)
                if boundary is None:
                    allowed.remove(chosen)
            while balanced and criteria.criteria and looked_at and boundary is None:
                chosen = looked_at.pop(0)
                candidates = further_boundaries(table.codes[records, chosen])
                useful = (b for b in candidates if allowed_cut(records, chosen, b))
                boundary = next(useful, None)
        if boundary is None:
            groups.append(tuple(records))
            return
        left, right = sides(records, chosen, boundary)
        left_high, right_low = high.copy(), low.copy()
        left_high[chosen] = table.positions[left, chosen].max()
        right_low[chosen] = table.positions[right, chosen].min()
        split(left, low, left_high)
        split(right, right_low, high)

    split(list(range(len(table))), table.positions.min(axis=0), table.positions.max(axis=0))
    return groups


def strict_boundaries(values: Codes, *, balanced: bool) -> list[int]:
    """Return the smallest values of the right side of a strict cut, the best one first."""
    ordered = sorted(int(value) for value in values)
    size = len(ordered)
    median = next(v for v in ordered if 2 * sum(other <= v for other in ordered) >= size)
    above = [value for value in ordered if value > median]
    candidates = [above[0]] if above else []
    if balanced:
        candidates = [median, *candidates]

    def left_size(boundary: int) -> int:
        return sum(value < boundary for value in ordered)

    # The lower boundary comes first, and of several equally good ones it stays there.
    return sorted(candidates, key=lambda b: abs(2 * left_size(b) - size))


def further_boundaries(values: Codes) -> list[int]:
    """Return the boundaries beside the values that divide some into 128 parts, the best first.

    Each is the smallest value of the right side, as those of :func:`strict_boundaries`.
    """
    ordered = sorted(int(value) for value in values)
    size = len(ordered)
    candidates = set()
    for part in range(1, 128):
        value = ordered[math.ceil(Fraction(size * part, 128)) - 1]
        candidates |= {value, *[other for other in ordered if other > value][:1]}

    def left_size(boundary: int) -> int:
        return sum(value < boundary for value in ordered)

    return sorted(sorted(candidates), key=lambda b: abs(2 * left_size(b) - size))


def relaxed_mondrian(table: Table, criteria: Criteria, *, cell: bool) -> list[Group]:
    """Return the groups of relaxed Mondrian (ties by the other attributes first).

    Records tied on the chosen attribute are shared out by the other attributes from the widest to
    the narrowest, then by their hash; records equal in all of this are interchangeable. If a half
    violates a criterion, the next attribute is tried.
    """
    groups: list[Group] = []

    def split(records: list[int], low: Figures, high: Figures) -> None:
        if len(records) < max(2 * criteria.k, 2):
            groups.append(tuple(records))
            return
        own_low = table.positions[records].min(axis=0)
        own_high = table.positions[records].max(axis=0)
        if not cell:
            low, high = own_low, own_high
        widths = (high - low) / table.units
        varied = [j for j in table.attributes if len(set(table.codes[records, j].tolist())) > 1]
        order = sorted(table.attributes, key=lambda j: -widths[j])
        # Where all records are equal any attribute will do: the tie order decides alone.
        for chosen in [j for j in order if j in varied] or [0]:
            keys = [chosen, *(j for j in order if j != chosen)]
            ordered = sorted(
                records,
                key=lambda i: (*(int(table.codes[i, j]) for j in keys), int(table.hashes[i])),
            )
            left, right = ordered[: len(records) // 2], ordered[len(records) // 2 :]
            if all(may_be_a_group(criteria, table.values, side) for side in (left, right)):
                break
        else:
            groups.append(tuple(records))
            return
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


def canon(table: Table, criteria: Criteria, path: int, *, spread: bool) -> dict[int, Group]:
    """Return the groups of Canon by their names (docs/algorithms.md).

    The names of nodes and the order of a draw are what :mod:`anonspark.kernels.paths` says.
    """
    groups: dict[int, Group] = {}
    points = table.normalized

    def draw(records: Sequence[int], salt: int, most: int) -> list[int]:
        by_priority = {int(priority(table.hashes[i], np.uint64(salt))): i for i in records}
        return [by_priority[own] for own in sorted(by_priority)[:most]]

    def distance(a: int, b: int) -> float:
        total = 0.0
        for difference in (points[a] - points[b]).tolist():
            total += difference * difference
        return math.sqrt(total)

    def spread_of(candidate: int, samples: Sequence[int]) -> float:
        distances = [distance(sample, candidate) for sample in samples]
        median = sorted(distances)[len(distances) // 2]
        total = 0.0
        for own in distances:
            total += abs(own - median)
        return total

    def split(records: Sequence[int], node: int) -> None:
        candidates: list[int] = []
        if len(records) >= max(2 * criteria.k, 2):
            candidates = draw(records, child(node, 2), 30)
        if candidates and spread:
            samples = draw(records, child(node, 3), 100)
            candidates = sorted(candidates, key=lambda i: -spread_of(i, samples))
        for candidate in candidates[:10]:
            ordered = sorted(
                records,
                key=lambda i: (
                    int(distance(i, candidate) * 2**44),
                    *table.codes[i].tolist(),
                    int(table.hashes[i]),
                ),
            )
            left, right = ordered[: len(records) // 2], ordered[len(records) // 2 :]
            if all(may_be_a_group(criteria, table.values, side) for side in (left, right)):
                split(left, child(node, 0))
                split(right, child(node, 1))
                return
        groups[node] = tuple(records)

    def child(node: int, side: int) -> int:
        return int(child_path(np.uint64(node), np.uint64(side)))

    split(range(len(table)), path)
    return groups


# Outliers -----------------------------------------------------------------------------------------


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


def neighbor_distance_sums(points: Figures, neighbors: int) -> Figures:
    """Return the sum of the distances from each record to its nearest other records."""
    sums = []
    for i, distances in enumerate(distance_matrix(points)):
        others = [distance for j, distance in enumerate(distances.tolist()) if j != i]
        sums.append(sum(sorted(others)[:neighbors]))
    return np.array(sums)


def separate_outliers(
    table: Table,
    group: Sequence[int],
    criteria: Criteria,
    neighbors: int,
    scores: Callable[[Figures, int], Figures] = local_outlier_factors,
) -> list[int]:
    """Return the normal records of a group (docs/algorithms.md, Separation)."""
    if len(group) <= criteria.k:
        return list(group)
    codes = table.codes
    ordered = sorted(group, key=lambda i: (*map(int, codes[i]), int(table.hashes[i])))
    points = table.normalized[ordered]
    found = scores(points, min(neighbors, len(group) - 1))
    # Equal but for the rounding of sums is a tie, which content decides.
    reference = int(np.argmin([round_to_33_bits(score) for score in found]))

    def nearness(place: int) -> tuple[bool, float, int]:
        same_point = bool((codes[ordered[place]] == codes[ordered[reference]]).all())
        return (
            not same_point,
            float(np.sqrt(((points[place] - points[reference]) ** 2).sum())),
            place,
        )

    nearest = [ordered[place] for place in sorted(range(len(group)), key=nearness)]
    prefixes = (nearest[:size] for size in range(criteria.k, len(group)))
    shortest = (own for own in prefixes if may_be_a_group(criteria, table.values, own))
    return next(shortest, nearest)


# Figures ------------------------------------------------------------------------------------------


def normalized_certainty_penalty(positions: Figures, ranges: Figures) -> float:
    """Return NCP of one class (docs/algorithms.md, Metrics)."""
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


# What the tests share -----------------------------------------------------------------------------

INT64 = np.iinfo(np.int64)


def k_alone(k: int) -> Criteria:
    """Return the criteria of a table whose only criterion is k."""
    return Criteria(k)


def no_values(n: int) -> Codes:
    """Return the sensitive values of records that no criterion looks at."""
    return np.empty((n, 0), np.int64)


def table_of(
    columns: Sequence[npt.NDArray[np.generic]],
    hashes: Codes,
    *,
    values: Codes | None = None,
    weights: Sequence[float] | None = None,
) -> Table:
    """Code columns of integers as themselves, columns of floats by their rank."""
    codes = [
        np.unique(column, return_inverse=True)[1] if column.dtype.kind == "f" else column
        for column in columns
    ]
    positions = np.stack([column.astype(np.float64) for column in columns], axis=1)
    ranges = positions.max(axis=0) - positions.min(axis=0)
    ranges = np.where(ranges > 0, ranges, 1.0)
    units = ranges / (1.0 if weights is None else np.array(weights))
    return Table(
        np.ascontiguousarray(np.stack(codes, axis=1), np.int64),
        np.ascontiguousarray(positions),
        positions.min(axis=0),
        # A range of denormal numbers may be too small to be divided.
        np.where(units > 0, units, ranges),
        hashes.astype(np.int64),
        no_values(len(hashes)) if values is None else values,
    )


def content_hashes(*parts: npt.NDArray[np.int64]) -> Codes:
    """Return hashes that tell all contents of records apart, and nothing else."""
    rows = np.column_stack(parts).astype(np.int64)
    digests = [hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in rows]
    return np.array([int.from_bytes(one, "little", signed=True) for one in digests], np.int64)


_column = one_of(
    of(0, 1, 2),
    of(-3, -2, -1, 0, 1, 2, 3),
    of(0, 0, 0, 0, 7, 99),
    lambda draw, n: wide(draw, n, 51),
    of(-5),
    of(0.0, 0.1, 0.2, 0.30000000000000004),
    of_few(st.floats(-1e9, 1e9)),
    lambda draw, n: wide(draw, n, 54) / 2**23,
    of(-1e300, -1e-300, 0.0, 5e-324, 1e300),
)
_columns = st.integers(1, 4)
_weights = st.sampled_from([1.0, 1.0, 0.25, 3.0])
_names = st.sampled_from([("disease",), ("disease", "income")])
_one_or_two, _one_to_three, _one_to_six = st.integers(1, 2), st.integers(1, 3), st.integers(1, 6)


@st.composite
def tables(draw: st.DrawFn, most: int = 60) -> Table:
    """Draw a table of records with many ties, some of them of equal hashes."""
    n = draw(st.integers(1, most))
    d = draw(_columns)
    columns = [_column(draw, n) for _ in range(d)]
    return table_of(columns, some_hashes(draw, n), weights=[draw(_weights) for _ in range(d)])


@st.composite
def criteria_and_values(draw: st.DrawFn, n: int) -> tuple[Criteria, Codes]:
    """Draw sensitive values of n records, and criteria that all of them satisfy beside k."""
    attributes, columns = [], []
    first = 0
    for name in draw(_names):
        domain = draw(_one_to_six)
        column = among(draw, n, range(domain))
        counts = np.bincount(column, minlength=domain) + among(draw, domain, range(3))
        attributes.append(draw(sensitive_attributes(name, counts)))
        columns.append(column + first)
        first += domain
    k = draw(_one_to_six)
    criteria = [draw(criterion_about(attributes)) for _ in range(draw(_one_to_three))]
    values = np.ascontiguousarray(np.stack(columns, axis=1))
    wanted = Criteria(k, tuple(criteria), tuple(attributes))
    violated = violated_criteria(wanted, counts_of_values(wanted, values))
    kept = tuple(one for place, one in enumerate(criteria) if place not in violated)
    return Criteria(k, kept, tuple(attributes)), values


@st.composite
def tables_and_criteria(draw: st.DrawFn, most: int = 60) -> tuple[Table, Criteria]:
    """Draw a table, and criteria that it satisfies as a whole if it has k records.

    Hashes are those of whole contents, some of which occur more than once.
    """
    table = draw(tables(most))
    n = len(table)
    criteria, values = draw(criteria_and_values(n))
    hashes = content_hashes(table.codes, values, among(draw, n, range(2)))
    return replace(table, hashes=hashes, values=values), criteria


@st.composite
def sensitive_attributes(
    draw: st.DrawFn, name: str, counts: npt.NDArray[np.int64]
) -> SensitiveAttribute:
    """Draw a hierarchy over the values of a sensitive attribute."""
    parents, heights = draw(trees(len(counts)))
    return attribute_of(name, counts.tolist(), parents, heights)


def attribute_of(
    name: str, counts: Sequence[int], parents: Sequence[int] = (), heights: Sequence[int] = ()
) -> SensitiveAttribute:
    """Return a sensitive attribute from its records in the whole input with each value."""
    return SensitiveAttribute(
        name,
        name,
        pa.array(range(len(counts))),
        np.array(counts, np.int64),
        np.array(parents, np.int64),
        np.array(heights, np.int64),
    )


@st.composite
def trees(draw: st.DrawFn, leaves: int) -> tuple[list[int], list[int]]:
    """Draw parents and heights: some nodes get a parent, until only the root is left."""
    parents, heights = [-1] * leaves, [0] * leaves
    orphans = list(range(leaves))
    while len(orphans) > 1 or len(parents) == 1:
        taken = among(draw, len(orphans), [False, True])
        chosen = [node for node, own in zip(orphans, taken, strict=True) if own]
        chosen = chosen if len(chosen) > 1 else orphans
        for child in chosen:
            parents[child] = len(parents)
        orphans = [node for node in orphans if node not in chosen] + [len(parents)]
        heights.append(max(heights[child] for child in chosen) + draw(_one_or_two))
        parents.append(-1)
    return parents, heights


BOUNDS: dict[str, tuple[float, ...]] = {
    "distinct": (1, 2, 3, 4),
    "entropy": (1, 1.5, 2, 2.5, 3),
    "recursive": (1, 2, 3),
    "alpha": (0.25, 0.4, 0.5, 2 / 3, 0.75, 1),
    "equal distance": (0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9),
    "ordered distance": (0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9),
    "hierarchical distance": (0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9),
    "maximum distance": (0.05, 0.1, 0.2, 0.25, 1 / 3, 0.5, 0.9),
    "beta": (0.1, 0.25, 1 / 3, 0.5, 1, 2, 5),
}
_kinds = st.sampled_from(list(BOUNDS))
_bounds = {kind: st.sampled_from(bounds) for kind, bounds in BOUNDS.items()}
_cs = st.sampled_from([0.5, 1.0, 1.1, 2.0, 3.5])


@st.composite
def criterion_about(draw: st.DrawFn, attributes: Sequence[SensitiveAttribute]) -> Criterion:
    """Draw a criterion about one of some sensitive attributes."""
    kind = draw(_kinds)
    attribute = attributes[draw(_one_to_six) % len(attributes)]
    c = draw(_cs) if kind == "recursive" else math.nan
    return Criterion(attribute.name, kind, draw(_bounds[kind]), c)


def table_under(criterion: Criterion, n: int) -> tuple[Table, Criteria]:
    """Return a table whose sensitive values go with the quasi-identifiers, and k = 3 with more.

    The values of the attribute ``s`` lie in a hierarchy. Many cuts that k allows violate a
    criterion, and many vantage points are of no use.
    """
    random = np.random.default_rng(3)
    age = random.integers(17, 91, n)
    value = np.minimum(age // 20 + random.integers(0, 3, n), 5) - age.min() // 20
    columns = [age, random.integers(0, 12, n), random.normal(size=n)]
    hashes = random.integers(INT64.min, INT64.max, n)
    table = table_of(columns, hashes, values=value[:, None].astype(np.int64))
    counts = np.bincount(value, minlength=6).tolist()
    hierarchy = ([6, 6, 7, 7, 7, 8, 9, 9, 9, -1], [0, 0, 0, 0, 0, 0, 1, 1, 1, 2])
    return table, Criteria(3, (criterion,), (attribute_of("s", counts, *hierarchy),))


def one_of_each_kind(distance: float) -> list[Criterion]:
    """Return criteria of all kinds on the attribute ``s``; ``distance`` bounds those of trees."""
    return [
        Criterion("s", "distinct", 3),
        Criterion("s", "entropy", 2.5),
        Criterion("s", "recursive", 2, 1.1),
        Criterion("s", "alpha", 0.5),
        Criterion("s", "equal distance", 0.2),
        Criterion("s", "ordered distance", distance),
        Criterion("s", "hierarchical distance", distance),
        Criterion("s", "maximum distance", 0.2),
    ]


def sizes_of_halving(n: int, k: int) -> list[int]:
    """Return the group sizes of every method that halves as long as k allows it."""
    return (
        [n]
        if n < max(2 * k, 2)
        else [*sizes_of_halving(n // 2, k), *sizes_of_halving(-(-n // 2), k)]
    )


@lru_cache(maxsize=1)
def read_adult(path: Path) -> Table:
    """Read Adult with its five numeric quasi-identifiers; every record has a hash of its own."""
    with path.open(encoding="utf-8") as file:
        rows = [
            [int(row[name]) for name in ADULT.quasi_identifiers] for row in csv.DictReader(file)
        ]
    columns = np.array(rows, np.int64)
    hashes = np.random.default_rng(0).integers(INT64.min, INT64.max, len(columns))
    return table_of(list(columns.T), hashes)


def slow_matching(choices: list[list[int]], room: list[int]) -> int:
    """Match points with places, one augmenting path at a time."""
    taken: list[list[int]] = [[] for _ in room]

    def find_place(point: int, seen: set[int]) -> bool:
        for place in choices[point]:
            if place in seen:
                continue
            seen.add(place)
            if len(taken[place]) < room[place]:
                taken[place].append(point)
                return True
            for slot, other in enumerate(taken[place]):
                if find_place(other, seen):
                    taken[place][slot] = point
                    return True
        return False

    return sum(find_place(point, set()) for point in range(len(choices)))


def xxhash64_of_bytes(data: bytes, seed: int) -> int:
    """Return the xxHash64 of bytes, as its specification has it."""
    whole = 2**64 - 1
    prime_1, prime_2, prime_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
    prime_4, prime_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5

    def rotated(value: int, bits: int) -> int:
        value &= whole
        return (value << bits | value >> (64 - bits)) & whole

    def mixed(lane: int, word: int) -> int:
        return rotated(lane + word * prime_2, 31) * prime_1 & whole

    rest, state = data, seed + prime_5
    if len(data) >= 32:
        lanes = [seed + prime_1 + prime_2, seed + prime_2, seed, seed - prime_1]
        while len(rest) >= 32:
            words = [int.from_bytes(rest[8 * i : 8 * i + 8], "little") for i in range(4)]
            lanes = [mixed(lane, word) for lane, word in zip(lanes, words, strict=True)]
            rest = rest[32:]
        state = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            state = (state & whole ^ mixed(0, lane)) * prime_1 + prime_4
    state = state + len(data) & whole
    while len(rest) >= 8:
        word = int.from_bytes(rest[:8], "little")
        state = rotated(state ^ mixed(0, word), 27) * prime_1 + prime_4 & whole
        rest = rest[8:]
    if len(rest) >= 4:
        half = int.from_bytes(rest[:4], "little")
        state = rotated(state ^ half * prime_1, 23) * prime_2 + prime_3 & whole
        rest = rest[4:]
    for byte in rest:
        state = rotated(state ^ byte * prime_5, 11) * prime_1 & whole
    state = (state ^ state >> 33) * prime_2 & whole
    state = (state ^ state >> 29) * prime_3 & whole
    return state ^ state >> 32
