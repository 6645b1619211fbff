"""Privacy criteria of a group of records, from the counts of its sensitive values."""

from __future__ import annotations

import importlib
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from anonspark.errors import ConfigurationError
from anonspark.kernels.compiling import NUMBA_PATCHES, kernel
from anonspark.kernels.people import BY_PEOPLE, match_values
from anonspark.kernels.signatures import boolean, float64, int64, types, void

LEAST_ADDRESS = 4096
"""No function lies below. A smaller number is a constant of a kernel."""


class AddressCall:
    """The call of a C function by its address in the body of a kernel.

    It takes the address, six whole numbers and a real number. The function gets these numbers, and
    returns a whole number.
    """

    @cached_property
    def _numba_type_(self) -> Any:
        # What Numba asks where the body of a kernel names it.
        return importlib.import_module(NUMBA_PATCHES).type_of_address_call()


call_address = AddressCall()


DISTINCT, ENTROPY, RECURSIVE, LARGEST_SHARE = 0, 1, 2, 3
EQUAL_DISTANCE, ORDERED_DISTANCE, HIERARCHICAL_DISTANCE = 4, 5, 6
RELATIVE_GAIN, MAXIMUM_DISTANCE = 7, 8

# Larger than any input, and exact in 64 bits.
_MOST_RECORDS = 2.0**53

TOLERANCE = 1e-12
"""Tolerance for the rounding of sums, where a bound is met exactly."""


class Requirements(NamedTuple):
    """The requirements of every group, as plain arrays for the kernels.

    The values of all sensitive attributes are numbered through: those of the first attribute, then
    those of the second, and so on. So are the nodes of their hierarchies. If criteria count people,
    the different pairs of a value and a person take the place of the values, in this order in each
    attribute, and people are the last attribute.

    Attributes
    ----------
    k : int
        Smallest group size.
    kinds : int64 ndarray of shape (r,)
        One of this module's constants for each requirement beyond k, plus
        :data:`~anonspark.kernels.people.BY_PEOPLE` if it counts people. For a criterion of another
        package the address of its function, see :func:`_judge_elsewhere`.
    attributes : int64 ndarray of shape (r,)
        The sensitive attribute that it is about.
    bounds : float64 ndarray of shape (r, 2)
        l (and c), the largest share, t, or beta.
    certain : int64 ndarray of shape (r,)
        Larger groups satisfy the requirement for certain, and are not judged.
    first_value : int64 ndarray of shape (s + 1,)
        Where the values of each sensitive attribute begin.
    shares : float64 ndarray of shape (values,)
        Share of each value in the whole input, or zeros for pairs.
    paired_values, paired_people : int64 ndarray of shape (pairs,)
        Value and person of each pair. Empty if records are counted.
    first_node : int64 ndarray of shape (s + 1,)
        Where the nodes of each attribute's hierarchy begin. An attribute may have no nodes.
    parents : int64 ndarray of shape (nodes,)
        Parent of each node, counted from the attribute's first one. Leaves are the values in
        order, parents come after their children, -1 for the root.
    heights : float64 ndarray of shape (nodes,)
        Levels from each node down to the leaves.
    """

    k: int
    kinds: npt.NDArray[np.int64]
    attributes: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.float64]
    certain: npt.NDArray[np.int64]
    first_value: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    paired_values: npt.NDArray[np.int64]
    paired_people: npt.NDArray[np.int64]
    first_node: npt.NDArray[np.int64]
    parents: npt.NDArray[np.int64]
    heights: npt.NDArray[np.float64]


REQUIREMENTS = types.NamedTuple(
    (
        int64,
        int64[::1],
        int64[::1],
        float64[:, ::1],
        int64[::1],
        int64[::1],
        float64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        int64[::1],
        float64[::1],
    ),
    Requirements,
)
"""Numba's type of :class:`Requirements`."""


@kernel(int64(int64[:, ::1], int64[::1], int64, int64, int64[::1], int64[::1], int64))
def count_values(values, order, start, stop, counts, present, distinct):
    """Add records to counts of sensitive values.

    Parameters
    ----------
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    order : int64 ndarray
        Records. ``order[start:stop]`` are counted.
    start, stop : int
    counts : int64 ndarray of shape (values,)
        Updated in place.
    present : int64 ndarray of shape (values,)
        Its first ``distinct`` entries name the values with a count. Extended in place.
    distinct : int

    Returns
    -------
    int
        ``distinct`` with the new values.

    Examples
    --------
    >>> counts, present = np.zeros(3, np.int64), np.zeros(3, np.int64)
    >>> count_values(np.array([[2], [0], [2]]), np.arange(3), 0, 3, counts, present, 0)
    2
    >>> counts.tolist(), present[:2].tolist()
    ([1, 0, 2], [2, 0])
    """
    for i in range(start, stop):
        for s in range(values.shape[1]):
            value = values[order[i], s]
            if counts[value] == 0:
                present[distinct] = value
                distinct += 1
            counts[value] += 1
    return distinct


@kernel(void(int64[::1], int64[::1], int64))
def clear_counts(counts, present, distinct):
    """Set the counts of the present values back to 0."""
    for i in range(distinct):
        counts[present[i]] = 0


@kernel(float64(REQUIREMENTS, int64, int64[::1], int64))
def _hierarchical_distance(requirements, attribute, counts, size):
    first, stop = requirements.first_value[attribute], requirements.first_value[attribute + 1]
    start = requirements.first_node[attribute]
    nodes = requirements.first_node[attribute + 1] - start
    extra = np.zeros(nodes, np.float64)
    positive = np.zeros(nodes, np.float64)
    negative = np.zeros(nodes, np.float64)
    for value in range(first, stop):
        extra[value - first] = counts[value] / size - requirements.shares[value]
    distance = 0.0
    root_height = requirements.heights[start + nodes - 1]
    for node in range(nodes):
        distance += (
            requirements.heights[start + node] / root_height * min(positive[node], negative[node])
        )
        parent = requirements.parents[start + node]
        if parent >= 0:
            extra[parent] += extra[node]
            positive[parent] += max(extra[node], 0.0)
            negative[parent] += max(-extra[node], 0.0)
    return distance


@kernel(boolean(REQUIREMENTS, int64))
def all_certain(requirements, size):
    """Return whether a group of a size satisfies all requirements beyond k, whatever it holds."""
    certain = True
    for r in range(requirements.kinds.shape[0]):
        certain = certain and size > requirements.certain[r]
    return certain


@kernel(types.Tuple((boolean, int64))(REQUIREMENTS, int64, int64[::1], int64))
def _judge_pairs(requirements, index, pairs, people):
    """Judge the different values of a group of people by its pairs of a value and a person."""
    values = requirements.paired_values[pairs]
    different = 0
    for i in range(pairs.shape[0]):
        if i == 0 or values[i] != values[i - 1]:
            different += 1
    least = int64(requirements.bounds[index, 0])
    matched = min(different, people)
    if matched >= least:
        matched = match_values(values, requirements.paired_people[pairs], least).shape[0]
    return matched >= least, least - matched


@kernel(int64(REQUIREMENTS, int64, int64[::1], int64[::1], int64))
def _judge_elsewhere(requirements, index, counts, values, size):
    """Return how many records a group lacks by a criterion of another package, 0 if it holds.

    The function gets the addresses of codes and counts of the values that are present, their
    number, the address of the shares of all values, their number, the group's size, and the bound:
    :mod:`anonspark.core.criteria`.
    """
    attribute = requirements.attributes[index]
    first, stop = requirements.first_value[attribute], requirements.first_value[attribute + 1]
    codes = values - first
    present = counts[values]
    shares = requirements.shares[first:stop]
    missing = call_address(
        requirements.kinds[index],
        codes.ctypes.data,
        present.ctypes.data,
        codes.shape[0],
        shares.ctypes.data,
        stop - first,
        size,
        requirements.bounds[index, 0],
    )
    if missing < 0:
        raise ConfigurationError(
            "privacy: the function of a criterion of another package failed for a group, as the "
            "log says. Correct the package, or ask for another criterion"
        )
    return missing


@kernel(types.Tuple((int64, int64))(REQUIREMENTS, int64[::1], int64[::1], int64, int64))
def judge(requirements, counts, present, distinct, size):
    """Return the first requirement beyond k that a group violates, and how many records would help.

    Parameters
    ----------
    requirements : Requirements
    counts, present, distinct
        Counts of the group's sensitive values, see :func:`count_values`. ``present`` is sorted in
        place.
    size : int
        Records of the group, at least 1.

    Returns
    -------
    requirement : int
        -1 if all are satisfied.
    missing : int
        Records, at least 1, that must be added before that requirement can be satisfied. 0 if all
        are satisfied.

    Notes
    -----
    One more record changes a share, and so each of the distances, by at most 1 / (size + 1).
    O(values present), for all distances but the equal one O(all values). Sums run over the values
    in order, so they do not depend on the order of the records. Definitions: docs/algorithms.md.
    """
    if requirements.kinds.shape[0] == 0:
        return -1, 0
    present[:distinct].sort()
    for r in range(requirements.kinds.shape[0]):
        if size > requirements.certain[r]:
            continue
        kind = requirements.kinds[r]
        attribute = requirements.attributes[r]
        bound = requirements.bounds[r, 0]
        first, stop = requirements.first_value[attribute], requirements.first_value[attribute + 1]
        low = np.searchsorted(present[:distinct], first)
        high = np.searchsorted(present[:distinct], stop)
        values = present[low:high]
        missing = 1
        if kind >= LEAST_ADDRESS:
            missing = _judge_elsewhere(requirements, r, counts, values, size)
            holds = missing == 0
        elif kind >= BY_PEOPLE:
            first = requirements.first_value[requirements.first_value.shape[0] - 2]
            people = distinct - np.searchsorted(present[:distinct], first)
            holds, missing = _judge_pairs(requirements, r, values, people)
        elif kind == DISTINCT:
            holds = high - low >= bound
            missing = int64(bound) - (high - low)
        elif kind == ENTROPY:
            entropy = 0.0
            for value in values:
                share = counts[value] / size
                entropy -= share * np.log(share)
            holds = entropy >= np.log(bound) - TOLERANCE
        elif kind == RECURSIVE:
            descending = np.empty(high - low, np.int64)
            for i in range(high - low):
                descending[i] = -counts[values[i]]
            descending.sort()
            tail = 0
            for i in range(int64(bound) - 1, high - low):
                tail -= descending[i]
            # A quotient, because the product may round up to the count.
            holds = tail > 0 and -descending[0] / tail < requirements.bounds[r, 1]
        elif kind == LARGEST_SHARE:
            largest = 0
            for value in values:
                largest = max(largest, counts[value])
            holds = largest / size <= bound + TOLERANCE
            missing = int64((largest / size - bound) * size)
        elif kind == RELATIVE_GAIN:
            holds = True
            for value in values:
                most = (1.0 + bound) * requirements.shares[value]
                if counts[value] / size > most * (1.0 + TOLERANCE):
                    holds = False
                    # So many records would make the value rare enough; one that the whole input
                    # lacks always is too frequent.
                    if most > 0.0:
                        needed = min(counts[value] / most, _MOST_RECORDS)
                        missing = max(missing, int64(needed) - size)
        else:
            distance = 0.0
            if kind == EQUAL_DISTANCE:
                # Half the sum of all differences is the sum of the positive ones.
                for value in values:
                    distance += max(counts[value] / size - requirements.shares[value], 0.0)
            elif kind == ORDERED_DISTANCE:
                difference = 0.0
                for value in range(first, stop):
                    difference += counts[value] / size - requirements.shares[value]
                    distance += abs(difference)
                distance /= max(stop - first - 1, 1)
            elif kind == MAXIMUM_DISTANCE:
                for value in range(first, stop):
                    distance = max(distance, abs(counts[value] / size - requirements.shares[value]))
            else:
                distance = _hierarchical_distance(requirements, attribute, counts, size)
            holds = distance <= bound + TOLERANCE
            missing = int64((distance - bound) * size)
        if not holds:
            # One less, because the figure may be rounded up.
            return r, max(missing - 1, 1)
    return -1, 0


@kernel(int64(REQUIREMENTS, int64[::1], int64[::1], int64, int64))
def first_unsatisfied(requirements, counts, present, distinct, size):
    """Return the first requirement beyond k that a group violates, or -1 if it satisfies all.

    Parameters and cost: :func:`judge`.
    """
    return judge(requirements, counts, present, distinct, size)[0]


@kernel(boolean(REQUIREMENTS, int64[:, ::1], int64[::1], int64, int64, int64[::1], int64[::1]))
def group_satisfies(requirements, values, order, start, stop, counts, present):
    """Return whether ``order[start:stop]`` satisfies k and all other requirements.

    Parameters
    ----------
    requirements : Requirements
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    order : int64 ndarray
    start, stop : int
    counts, present : int64 ndarray of shape (values,)
        Working memory. ``counts`` is all 0 before and after.
    """
    if stop - start < requirements.k:
        return False
    if all_certain(requirements, stop - start):
        return True
    distinct = count_values(values, order, start, stop, counts, present, 0)
    violated = first_unsatisfied(requirements, counts, present, distinct, stop - start)
    clear_counts(counts, present, distinct)
    return violated < 0


@kernel(
    boolean(REQUIREMENTS, int64[:, ::1], int64[::1], int64, int64, int64, int64[::1], int64[::1])
)
def both_sides_satisfy(requirements, values, order, start, middle, stop, counts, present):
    """Return whether a cut at ``middle`` is allowed. See :func:`group_satisfies`."""
    return group_satisfies(
        requirements, values, order, start, middle, counts, present
    ) and group_satisfies(requirements, values, order, middle, stop, counts, present)


class Checker(NamedTuple):
    """The requirements of groups, and the working memory of a judgement.

    Attributes
    ----------
    requirements : Requirements
    counts, present : int64 ndarray of shape (values,)
        ``counts`` is all 0 before and after each judgement.
    """

    requirements: Requirements
    counts: npt.NDArray[np.int64]
    present: npt.NDArray[np.int64]


CHECKER = types.NamedTuple((REQUIREMENTS, int64[::1], int64[::1]), Checker)
"""Numba's type of :class:`Checker`."""


@kernel(CHECKER(REQUIREMENTS))
def checker_of(requirements):
    """Return the requirements with new working memory."""
    values = requirements.shares.shape[0]
    return Checker(requirements, np.zeros(values, np.int64), np.empty(values, np.int64))


@kernel(boolean(CHECKER, int64[:, ::1], int64[::1], int64, int64, int64))
def satisfies_after(checker, values, members, size, leaving, entering):
    """Return whether a group satisfies the criteria beyond k after an exchange of records.

    Parameters
    ----------
    checker : Checker
    values : int64 ndarray of shape (n, s)
        Number of each record's sensitive values.
    members : int64 ndarray of shape (at least size,)
        Records of the group before.
    size : int
        Their number before.
    leaving : int
        Index in ``members`` of the record that leaves, or -1.
    entering : int
        Record that enters, or -1.

    Notes
    -----
    O(size) and the cost of :func:`judge`.
    """
    requirements, counts, present = checker
    after = size - int64(leaving >= 0) + int64(entering >= 0)
    if all_certain(requirements, after):
        return True
    distinct = 0
    for i in range(size):
        if i != leaving:
            distinct = count_values(values, members, i, i + 1, counts, present, distinct)
    if entering >= 0:
        record = np.full(1, entering)
        distinct = count_values(values, record, 0, 1, counts, present, distinct)
    violated = first_unsatisfied(requirements, counts, present, distinct, after)
    clear_counts(counts, present, distinct)
    return violated < 0
