"""Measure a sensitive attribute in the classes of a release, one figure a class.

A criterion is measured by one function, whether it counts records or people. Every function takes
all classes at once and costs time and memory in proportion to the different values of the classes,
never classes times values of the domain.

Figures are rounded: a class exactly at a bound may come out on either side of it by some 1e-12
(``hierarchical_distance`` and ``ordered_distance`` of large domains: 1e-10). Compare with a
tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Figures, Integers
from anonspark.core.criterion import Criterion

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True)
class SensitiveValues:
    """The different values of a sensitive attribute, with their shares, order and hierarchy.

    ``values`` are in order. A null, which is a value of its own, comes last. ``shares`` of all
    records is float64 of shape (values,). ``parents`` and ``heights`` are int64 of shape (nodes,):
    the nodes of its hierarchy bottom up, the values first, or empty without one. ``as_text`` says
    whether values are compared as texts without blanks at their ends, ``is_ordered`` whether the
    order means something: that of numbers and times, and what was declared.
    """

    name: str
    values: pa.Array
    shares: Figures
    parents: Integers
    heights: Integers
    as_text: bool
    is_ordered: bool

    def encode(self, column: pa.Array) -> Integers:
        """Return the index of each value among :attr:`values`, int64 of shape (n,).

        Raises ValueError if a value is none of them: the files changed while they were read.
        """
        if pa.types.is_floating(column.type):
            column = pc.add(column, pa.scalar(0.0, column.type))
        if self.as_text:
            column = pc.utf8_trim_whitespace(column.cast(pa.string()))
        codes = pc.index_in(column, value_set=self.values)
        if codes.null_count:
            raise ValueError("a sensitive value appeared while the release was read")
        return codes.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Uncertainty:
    """The part of an attribute's distribution in the input that a release does not show.

    ``share`` is the largest share of the records with other values than thought: no distance of
    t-closeness differs by more. ``values`` counts the different ones of the whole input, of which
    the release may lack some.
    """

    share: float
    values: int


@dataclass(frozen=True)
class PeopleOfClasses:
    """The people of each class, where a person may have several values in it.

    ``number`` and ``records`` are int64 of shape (classes,): different people, and records.
    ``classes``, ``values`` and ``owners`` are int64 of shape (pairs,): of values that few people of
    a class have, who they are. Classes ascend.
    """

    number: Integers
    records: Integers
    classes: Integers
    values: Integers
    owners: Integers


@dataclass(frozen=True)
class ValueCounts:
    """The counts of each value of a sensitive attribute in each class.

    Parameters
    ----------
    classes : int64 ndarray of shape (pairs,)
        Number of the class, from 0 without gaps, ascending.
    values : int64 ndarray of shape (pairs,)
        Code of the value, 0 to m - 1, ascending inside a class, each at most once.
    counts : int64 ndarray of shape (pairs,)
        Records of the class with this value, at least 1, or people who have it.
    people : PeopleOfClasses or None
        None if records count.

    Raises
    ------
    ValueError
        If the arrays are not such a table: a bug of the caller.

    Examples
    --------
    >>> table = ValueCounts(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3, 1, 4]))
    >>> table.sizes.tolist(), table.shares.tolist()
    ([4, 4], [0.75, 0.25, 1.0])
    """

    classes: Integers
    values: Integers
    counts: Integers
    people: PeopleOfClasses | None = None

    def __post_init__(self) -> None:
        shapes = {self.classes.shape, self.values.shape, self.counts.shape}
        if len(shapes) != 1 or self.classes.ndim != 1:
            raise ValueError("classes, values and counts differ in shape")
        if not len(self.classes):
            return
        steps = np.diff(self.classes)
        if self.classes[0] != 0 or steps.min(initial=0) < 0 or steps.max(initial=0) > 1:
            raise ValueError("classes are not numbered from 0 without gaps, in order")
        if (np.diff(self.values)[steps == 0] <= 0).any():
            raise ValueError("values of a class are not in order, or occur twice")
        if self.values.min() < 0 or self.counts.min() < 1:
            raise ValueError("a value is negative, or its count is not positive")

    @cached_property
    def starts(self) -> Integers:
        """The index of each class's first pair, int64 of shape (classes,)."""
        first = np.ones(len(self.classes), bool)
        first[1:] = self.classes[1:] != self.classes[:-1]
        return np.flatnonzero(first)

    @cached_property
    def sizes(self) -> Integers:
        """Records of each class, or its people, int64 ndarray of shape (classes,)."""
        return self.total(self.counts) if self.people is None else self.people.number

    @property
    def records(self) -> Integers:
        """Records of each class, int64 ndarray of shape (classes,)."""
        return self.sizes if self.people is None else self.people.records

    @cached_property
    def shares(self) -> Figures:
        """Share of each pair in its class, float64 ndarray of shape (pairs,), in (0, 1]."""
        return self.counts / self.sizes[self.classes]

    def total(self, figures: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Add up one figure a pair in each class."""
        return np.add.reduceat(figures, self.starts)

    def running(self, counts: Integers) -> Integers:
        """Return the sum of counts of a class from its first pair up to each."""
        sums = np.cumsum(counts)
        sums -= (sums - counts)[self.starts][self.classes]
        return sums


def distinct_values(table: ValueCounts) -> Integers:
    """Return the number of different values of each class, at least 1 (distinct l-diversity).

    >>> table = ValueCounts(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3, 1, 4]))
    >>> distinct_values(table).tolist()
    [2, 1]
    """
    return np.diff(table.starts, append=len(table.classes))


def matched_values(table: ValueCounts, people: PeopleOfClasses, most: int) -> Integers:
    """Count the values of each class that different people can have, one each, up to ``most``.

    ``people`` has the people of values that fewer than ``most`` people have.
    """
    matched = np.bincount(table.classes[table.counts >= most], minlength=len(table.starts))
    bounds = np.searchsorted(people.classes, np.arange(len(matched) + 1))
    for index in np.flatnonzero(matched < most):
        pairs = slice(bounds[index], bounds[index + 1])
        by_value: dict[int, list[int]] = {}
        for value, owner in zip(
            people.values[pairs].tolist(), people.owners[pairs].tolist(), strict=True
        ):
            by_value.setdefault(value, []).append(owner)
        owners: dict[int, int] = {}
        for value in by_value:
            if matched[index] + len(owners) >= most:
                break
            _find_owner(value, by_value, owners, set())
        matched[index] += len(owners)
    return np.minimum(matched, most)


def _find_owner(
    value: int, by_value: Mapping[int, list[int]], owners: dict[int, int], tried: set[int]
) -> bool:
    """Find an owner of a value, who may give up another value that finds another owner.

    >>> owners = {7: 0}
    >>> _find_owner(1, {0: [7, 8], 1: [7]}, owners, set()), owners
    (True, {7: 1, 8: 0})
    """
    for owner in by_value[value]:
        if owner in tried:
            continue
        tried.add(owner)
        if owner not in owners or _find_owner(owners[owner], by_value, owners, tried):
            owners[owner] = value
            return True
    return False


def entropy(table: ValueCounts) -> Figures:
    """Return the entropy of each class, in nats. Its exponential is the effective l.

    It reaches from 0 to the logarithm of the number of different values, which it equals to the
    last bit if all values are equally frequent.

    >>> table = ValueCounts(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([2, 2, 4]))
    >>> np.exp(entropy(table)).tolist()
    [2.0, 1.0]
    """
    # Only the ratios matter; without their common divisor equal counts are ones, whose logarithms
    # are exactly 0.
    divisors = np.gcd.reduceat(table.counts, table.starts)
    counts = table.counts // divisors[table.classes]
    sizes = table.total(counts)
    weighted = table.total(counts * np.log(counts))
    return np.maximum(np.log(sizes) - weighted / sizes, 0.0)


def recursive_c(table: ValueCounts, least: int) -> Figures:
    """Return the c that recursive (c, l)-diversity must exceed in each class, for l = ``least``.

    It is r_1 / (r_l + r_(l+1) + ... + r_m), counts sorted from the largest, and infinite if a class
    has fewer than l values. A class is (c, l)-diverse if this is smaller than c, strictly.

    >>> table = ValueCounts(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3, 1, 4]))
    >>> recursive_c(table, 2).tolist()
    [3.0, inf]
    """
    # Sorted inside each class, so `table.starts` stays valid.
    counts = table.counts[np.lexsort((-table.counts, table.classes))]
    ranks = np.arange(len(counts)) - table.starts[table.classes]
    tails = table.total(np.where(ranks >= least - 1, counts, 0))
    with np.errstate(divide="ignore"):
        ratios: Figures = counts[table.starts] / tails
    return ratios


def largest_share(table: ValueCounts) -> Figures:
    """Return the share of the most frequent value of each class, in (0, 1] ((alpha, k)-anonymity).

    >>> table = ValueCounts(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3, 1, 4]))
    >>> largest_share(table).tolist()
    [0.75, 1.0]
    """
    return np.maximum.reduceat(table.counts, table.starts) / table.sizes


def equal_distance(table: ValueCounts, reference: Figures) -> Figures:
    """Return the distance of each class from a distribution where all values are equally far apart.

    It is 1/2 of the sum of abs(p - q), in [0, 1]. ``reference`` has the shares q of the domain's m
    values, sum 1.

    >>> table = ValueCounts(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([3, 1, 4]))
    >>> equal_distance(table, np.array([0.25, 0.75])).tolist()
    [0.5, 0.25]
    """
    # Both sum to 1, so that half of the sum is what exceeds the reference: values that a class
    # lacks need not be looked at.
    more = table.total(np.maximum(table.shares - reference[table.values], 0.0))
    distances: Figures = np.minimum(more, 1.0)
    return distances


def maximum_distance(table: ValueCounts, reference: Figures) -> Figures:
    """Return the largest difference between the shares of a value in each class and elsewhere.

    It is the largest abs(p - q) over all values of the domain, in [0, 1]. ``reference`` has the
    shares q of the domain's m values, sum 1.

    >>> table = ValueCounts(np.array([0]), np.array([0]), np.array([4]))
    >>> maximum_distance(table, np.array([0.25, 0.75])).tolist()
    [0.75]
    """
    # Of the values that a class lacks, the most frequent one differs most: the first by rank.
    frequent = np.argsort(-reference, kind="stable")
    ranks = np.argsort(frequent, kind="stable")[table.values]
    ranks = ranks[np.lexsort((ranks, table.classes))]
    positions = np.arange(len(ranks)) - table.starts[table.classes]
    first = table.total((ranks == positions).astype(np.int64))
    lacking = np.append(reference[frequent], 0.0)[first]
    present = np.maximum.reduceat(np.abs(table.shares - reference[table.values]), table.starts)
    largest: Figures = np.maximum(present, lacking)
    return largest


def ordered_distance(table: ValueCounts, reference: Figures) -> Figures:
    """Return the earth mover's distance of each class from a distribution over ordered values.

    It is 1 / (m - 1) times the sum over i of abs((p_1 - q_1) + ... + (p_i - q_i)), in [0, 1], and 0
    for a domain of one value. ``reference`` has the shares q in the order of the domain, sum 1.

    O(pairs * log m) time, O(pairs + m) memory. Between two values of a class the sum of its shares
    is constant and that of the reference grows, so they cross at most once, and prefix sums give
    either side.

    >>> table = ValueCounts(np.array([0]), np.array([0]), np.array([4]))
    >>> ordered_distance(table, np.array([0.5, 0.0, 0.5])).tolist()
    [0.5]
    """
    domain = len(reference)
    classes = len(table.starts)
    if domain <= 1:
        return np.zeros(classes)
    below = np.cumsum(reference)
    area = np.concatenate([[0.0], np.cumsum(below)])
    level = table.running(table.counts) / table.sizes[table.classes]
    # One segment from each value of a class to the next, the last one to the end of the domain.
    stops = np.full(len(level), domain, np.int64)
    has_next = table.classes[1:] == table.classes[:-1]
    stops[:-1][has_next] = table.values[1:][has_next]
    middle = np.clip(np.searchsorted(below, level), table.values, stops)
    sums = level * (middle - table.values) - (area[middle] - area[table.values])
    sums += (area[stops] - area[middle]) - level * (stops - middle)
    # Before its first value the class's sum is 0, so the difference is the reference's.
    total = table.total(sums) + area[table.values[table.starts]]
    distances: Figures = np.clip(total / (domain - 1), 0.0, 1.0)
    return distances


def hierarchical_distance(
    table: ValueCounts, reference: Figures, parents: Integers, heights: npt.NDArray[np.number]
) -> Figures:
    """Return the earth mover's distance of each class over a hierarchy (Li et al. 2007).

    It is the sum of height(N) / H * min(pos_extra(N), neg_extra(N)) over the inner nodes N, where H
    is the height of the root, in [0, 1]. The values of ``table`` are the leaves, ``reference`` has
    their shares q, sum 1. ``parents`` is int64 of shape (nodes,), -1 for the one root: the leaves
    are the nodes 0 to m - 1, parents come after their children. ``heights`` are the levels of the
    nodes, 0 for leaves, at most that of the root. Raises ValueError for other arrays.

    O(pairs * levels) time, O(pairs + nodes) memory: a node below which a class has no value costs
    nothing, for all its children lack there.

    >>> table = ValueCounts(np.array([0]), np.array([0]), np.array([4]))
    >>> parents, heights = np.array([2, 2, -1]), np.array([0, 0, 1])
    >>> hierarchical_distance(table, np.array([0.5, 0.5]), parents, heights).tolist()
    [0.5]
    """
    nodes, domain = len(parents), len(reference)
    inner = np.arange(nodes - 1)
    if (
        domain > nodes
        or len(heights) != nodes
        or parents[-1] != -1
        or (parents[:-1] <= np.maximum(inner, domain - 1)).any()
    ):
        raise ValueError("not a tree whose parents come after their children, the root last")
    ranks, mass = _ranks_and_mass(reference, parents)
    distances = np.zeros(len(table.starts))
    weights = heights / max(heights[-1], 1)
    # One entry for each node of a class that holds a record: its records, and its surplus.
    keys, counts = table.classes * nodes + table.values, table.counts
    surplus = np.maximum(table.shares - mass[table.values], 0.0)
    for rank in range(1, ranks[-1] + 1):
        members = keys % nodes
        rises = ranks[parents[members]] == rank
        above, held, below = _merged(
            (keys - members + parents[members])[rises], counts[rises], surplus[rises]
        )
        owners, members = np.divmod(above, nodes)
        excess = np.maximum(held / table.sizes[owners] - mass[members], 0.0)
        # Mass moves inside a node: the surplus of its children without that of the node itself.
        moved = weights[members] * np.maximum(below - excess, 0.0)
        distances += np.bincount(owners, moved, len(distances))
        keys, counts, surplus = (
            np.concatenate([waiting[~rises], reached])
            for waiting, reached in ((keys, above), (counts, held), (surplus, excess))
        )
    return np.minimum(distances, 1.0)


def relative_gain(table: ValueCounts, reference: Figures, unknown: float = 0.0) -> Figures:
    """Return the largest relative gain in frequency of a value, for each class.

    It is the largest (p - q) / q over the values of the class, at least 0, and infinite if a class
    has a value that the distribution lacks (basic beta-likeness, Cao and Karras 2012). ``unknown``
    is the share of the records behind the distribution whose values are unknown: the figure is then
    the least possible.

    >>> table = ValueCounts(np.array([0]), np.array([0]), np.array([4]))
    >>> relative_gain(table, np.array([0.25, 0.75])).tolist()
    [3.0]
    """
    largest = reference[table.values] * (1.0 - unknown) + unknown
    with np.errstate(divide="ignore"):
        ratios = table.shares / largest
    return np.maximum(np.maximum.reduceat(ratios, table.starts) - 1.0, 0.0)


def _ranks_and_mass(reference: Figures, parents: Integers) -> tuple[Integers, Figures]:
    """Return the longest path from each node down to a leaf, and the share of its leaves.

    >>> ranks, mass = _ranks_and_mass(np.array([0.5, 0.5]), np.array([2, 2, -1]))
    >>> ranks.tolist(), mass.tolist()
    ([0, 0, 1], [0.5, 0.5, 1.0])
    """
    nodes, domain = len(parents), len(reference)
    ranks = np.zeros(nodes, np.int64)
    mass = np.zeros(nodes)
    mass[:domain] = reference
    if nodes > 1:
        # Leaves are done at once; inner nodes are few.
        ranks[parents[:domain]] = 1
        np.add.at(mass, parents[:domain], reference)
    for node in range(domain, nodes - 1):
        ranks[parents[node]] = max(ranks[parents[node]], ranks[node] + 1)
        mass[parents[node]] += mass[node]
    return ranks, mass


def _merged(
    keys: Integers, counts: Integers, surplus: Figures
) -> tuple[Integers, Integers, Figures]:
    """Add up the counts and surpluses of each key, in the order of the keys.

    >>> keys, counts = np.array([5, 2, 5]), np.array([1, 2, 3])
    >>> [column.tolist() for column in _merged(keys, counts, np.ones(3))]
    [[2, 5], [2, 4], [1.0, 2.0]]
    """
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts, surplus = (np.add.reduceat(column[order], starts) for column in (counts, surplus))
    return keys[starts], counts, surplus


Measure = Callable[[ValueCounts, SensitiveValues, Criterion, Uncertainty | None], Figures]
"""Takes the table of the classes, the attribute, the criterion, and what is not known of the
attribute or None. Returns one figure a class, float64 ndarray of shape (classes,)."""


def _distinct(
    table: ValueCounts, _: SensitiveValues, criterion: Criterion, __: Uncertainty | None
) -> Figures:
    """Count the different values of each class, or those of different people."""
    if table.people is not None:
        return matched_values(table, table.people, int(criterion.bound)).astype(np.float64)
    return distinct_values(table).astype(np.float64)


def _ordered_distance(
    table: ValueCounts, attribute: SensitiveValues, _: Criterion, uncertainty: Uncertainty | None
) -> Figures:
    """Return the ordered distance, or the least that it can be among more values."""
    figures = ordered_distance(table, attribute.shares)
    if uncertainty is None:
        return figures
    # With more values between the same ones each step counts less.
    domain = len(attribute.shares)
    return figures * (domain - 1) / max(uncertainty.values - 1, domain - 1, 1)


MEASURES: Mapping[str, Measure] = {
    "distinct": _distinct,
    "entropy": lambda table, *_: np.exp(entropy(table)),
    "recursive": lambda table, _, criterion, __: recursive_c(table, int(criterion.bound)),
    "alpha": lambda table, *_: largest_share(table),
    "equal distance": lambda table, attribute, *_: equal_distance(table, attribute.shares),
    "ordered distance": _ordered_distance,
    "hierarchical distance": lambda table, attribute, *_: hierarchical_distance(
        table, attribute.shares, attribute.parents, attribute.heights
    ),
    "maximum distance": lambda table, attribute, *_: maximum_distance(table, attribute.shares),
    "beta": lambda table, attribute, _, uncertainty: relative_gain(
        table, attribute.shares, 0.0 if uncertainty is None else uncertainty.share
    ),
}
"""By kind of criterion, without those of other packages."""


def measure_of(criterion: Criterion) -> Measure:
    """Return the function that measures a criterion. One of another package has its own."""
    return criterion.type.measure or MEASURES[criterion.kind]
