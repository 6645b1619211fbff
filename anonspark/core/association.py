"""Measure the association with a target: the share of its uncertainty that a release removes.

For each attribute, by itself: the share of the target's entropy that its values remove, taken from
the original, and from a release. By Gibbs' inequality the second is not above the first, except for
the smoothing. It is below 0 if the release misleads. The formulas are in docs/algorithms.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.arrays import Figures, Integers

Floats = npt.NDArray[np.float64]

NEARLY = 0.95
"""Share of records for which a dependency must hold to be reported."""

WITHIN = 0.05
"""Share of a column's range by which a number may be missed that is given away nearly."""

_GAINED = 0.8
"""Share of the wrong guesses without the first column that it must correct."""

# These shares of the values, at either end, do not count for a column's range.
_OUTERMOST = 0.01


@dataclass(frozen=True)
class Dependency:
    """A column that gives another one away.

    ``holds`` is the share of records whose value of ``determines`` is the most frequent one of the
    records with the same value of ``column`` (1 - g3 of Kivinen and Mannila 1995): 1 if the first
    column determines the second. It is measured of ``records``: those that share their value of
    ``column`` with another one. ``within`` is the share of the second column's range by which the
    guess may miss, or None if it is the value itself.
    """

    column: str
    determines: str
    holds: float
    records: int
    within: float | None = None

    @property
    def exact(self) -> bool:
        """Return whether it holds for all records of the sample."""
        return self.holds == 1 and self.within is None

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {**self.__dict__, "exact": self.exact}


def find_dependencies(
    names: Sequence[str],
    codes: Sequence[Integers],
    determinants: Sequence[str],
    determined: Sequence[str] | None = None,
    numbers: Mapping[str, Floats] | None = None,
) -> list[Dependency]:
    """Find which columns of the ``determinants`` give which of the ``determined`` (None: all) away.

    ``codes`` (int64, each of shape (n,)) has the values of each column, from 0 up to below n. A
    missing value has a code of its column, too. ``numbers`` holds columns that are numbers, days or
    times, with NaN for missing values. Such a column is also given away if a guess is within
    :data:`WITHIN` of its range: the median of the records with the same value, or, if the values of
    a numeric determinant hardly repeat, the mean of its two neighbors in sorted order.

    A dependency must hold for at least :data:`NEARLY` of the records, and be right for many more
    than a single guess is. Values of its determinant repeat in at least half of the records.

    >>> zip_codes, cities = np.array([0, 1, 2, 0, 1, 2]), np.array([0, 0, 1, 0, 0, 1])
    >>> for dependency in find_dependencies(["zip", "city"], [zip_codes, cities], ["zip", "city"]):
    ...     print(dependency.column, dependency.determines, dependency.holds)
    zip city 1.0
    """
    by_name = dict(zip(names, codes, strict=True))
    numeric = numbers or {}
    dependencies = []
    for column in determinants:
        sizes = np.bincount(by_name[column])
        repeated = sizes[by_name[column]] > 1
        records = int(repeated.sum())
        repeats = bool(records) and 2 * records >= len(repeated)
        groups = by_name[column][repeated]
        for target in names if determined is None else determined:
            if target == column:
                continue
            dependency: Dependency | None = None
            if repeats:
                dependency = _exactly(column, target, groups, by_name[target][repeated])
            if dependency is None and target in numeric:
                if repeats:
                    dependency = _nearly(column, target, groups, numeric[target][repeated])
                elif column in numeric:
                    dependency = _by_neighbors(column, target, numeric, by_name[target])
            if dependency is not None:
                dependencies.append(dependency)
    return dependencies


def _exactly(first: str, second: str, groups: Integers, values: Integers) -> Dependency | None:
    """Return the dependency if the most frequent value of each group is nearly always right."""
    base = int(np.bincount(values).max())
    return _judged(first, second, most_frequent(groups, values), base, len(groups), None)


def _nearly(first: str, second: str, groups: Integers, numbers: Floats) -> Dependency | None:
    """Return the dependency if the median of each group is nearly always close."""
    present = ~np.isnan(numbers)
    if 2 * present.sum() < len(present):
        return None
    groups, numbers = groups[present], numbers[present]
    order = np.lexsort((numbers, groups))
    numbers, sizes = numbers[order], np.bincount(groups)
    ends = np.cumsum(sizes)
    sizes, ends = sizes[sizes > 0], ends[sizes > 0]
    # The median of odd groups, and the upper one of the two middle values of even groups.
    guesses = np.repeat(numbers[ends - 1 - sizes // 2], sizes)
    return _close(first, second, guesses, numbers)


def _by_neighbors(
    first: str, second: str, numbers: Mapping[str, Floats], codes: Integers
) -> Dependency | None:
    """Return the dependency if records with the next values of a number are nearly always close."""
    present = ~(np.isnan(numbers[first]) | np.isnan(numbers[second]))
    # Equal ones in no order that their values would decide.
    order = np.lexsort((codes[present] * 0x9E3779B1 % 2**32, numbers[first][present]))
    values = numbers[second][present][order]
    if len(values) < max(3, len(present) / 2):
        return None
    return _close(first, second, (values[:-2] + values[2:]) / 2, values[1:-1])


def _close(first: str, second: str, guesses: Floats, values: Floats) -> Dependency | None:
    """Return the dependency if guesses are nearly always within a small part of the range."""
    if not len(values):
        return None
    low, middle, high = np.quantile(
        values, (_OUTERMOST, 0.5, 1 - _OUTERMOST), method="inverted_cdf"
    )
    tolerance = WITHIN * (high - low)
    right, base = (int((np.abs(guess - values) <= tolerance).sum()) for guess in (guesses, middle))
    return _judged(first, second, right, base, len(values), WITHIN)


def _judged(
    first: str, second: str, right: int, base: int, records: int, within: float | None
) -> Dependency | None:
    """Return a dependency if it holds nearly, and is right far more often than one guess for all.

    ``right`` and ``base`` count the records of the right guesses: given the first column, and by
    one value for all.
    """
    if base == records or right < NEARLY * records or right - base < _GAINED * (records - base):
        return None
    return Dependency(first, second, right / records, records, within)


def most_frequent(groups: Integers, values: Integers) -> int:
    """Count the records that have the most frequent value of their group.

    >>> most_frequent(np.array([0, 0, 0, 1]), np.array([5, 5, 2, 3]))
    3
    """
    pairs, which = dense_codes(groups * (np.int64(values.max()) + 1) + values)
    counts = np.bincount(pairs)
    of_groups = which // (int(values.max()) + 1)
    best = np.zeros(int(groups.max()) + 1, np.int64)
    np.maximum.at(best, of_groups, counts)
    return int(best.sum())


def joined_codes(first: Integers, second: Integers) -> Integers:
    """Return codes of the pairs of two columns.

    >>> joined_codes(np.array([0, 0, 1]), np.array([2, 1, 2])).tolist()
    [0, 1, 2]
    """
    # The codes are below n * n, which 64 bits hold.
    return dense_codes(first * (np.int64(second.max(initial=0)) + 1) + second)[0]


def dense_codes(numbers: Integers) -> tuple[Integers, Integers]:
    """Return codes of numbers, from 0 on as they appear, and the number of each code.

    >>> codes, numbers = dense_codes(np.array([70, 50, 70]))
    >>> codes.tolist(), numbers.tolist()
    ([0, 1, 0], [70, 50])
    """
    coded = pa.array(numbers).dictionary_encode()
    codes: Integers = coded.indices.to_numpy().astype(np.int64)
    return codes, coded.dictionary.to_numpy()


QUANTILES = 20
"""Into so many parts the present values of numbers and times are divided."""

LEAST_ASSOCIATION = 0.001
"""Below this sum over all attributes nothing can be said to be lost."""


def removed_uncertainty(original: Integers, released: Figures, classes: Integers) -> float | None:
    """Return the share of a target's uncertainty that a table removes, at most 1.

    ``original`` (int64) and ``released`` (float64), of shape (bins, c), hold the original's records
    by value and class, counted exactly and as the release shows them. ``classes`` (int64, shape
    (c,)) holds the release's records by class. The result is 0 for a table without information, and
    None for a constant target. In each bin one more record is shared out by the release's shares of
    classes, so that no prediction is 0 (g and P in docs/algorithms.md, Association with a target).

    >>> original = np.array([[50, 0], [0, 50]])
    >>> round(removed_uncertainty(original, original.astype(float), np.array([50, 50])), 2)
    0.99
    """
    of_target = original.sum(axis=0)
    uncertainty = entropy(of_target)
    if uncertainty <= 0:
        return None
    records = int(of_target.sum())
    prior = (classes + 1) / (classes.sum() + len(classes))
    predicted = (released + prior) / (released.sum(axis=1, keepdims=True) + 1)
    occurs = original > 0
    # Exactly rounded sums: the order of bins decides no digit.
    terms = (original[occurs] / records) * np.log2(predicted[occurs])
    return 1 + math.fsum(terms.tolist()) / uncertainty


def entropy(counts: Integers | Figures) -> float:
    """Return the entropy of counts, in bits.

    >>> entropy(np.array([5, 5, 0]))
    1.0
    """
    shares = counts[counts > 0] / counts.sum()
    return -math.fsum((shares * np.log2(shares)).tolist())


def association_loss(before: Sequence[float | None], after: Sequence[float | None]) -> float | None:
    """Return the share of the association of all attributes that a release loses.

    ``before`` and ``after`` hold :func:`removed_uncertainty` of each attribute, by the original and
    by the release. The loss is 0 for the original itself, about 1 without any information, and more
    for a release that misleads. It is None if the original holds no information, or the target is
    constant.

    >>> association_loss([0.25, 0.25], [0.25, 0.0])
    0.5
    """
    total = math.fsum(value for value in before if value is not None)
    if total <= LEAST_ASSOCIATION:
        return None
    return 1 - math.fsum(value for value in after if value is not None) / total


# For a private choice scores are whole numbers, and adding one record changes those of all
# attributes by something in one common interval, whose width is documented with each.

UNITS = 256
"""Units of a whole score for a record."""

_BINARY_PLACES = 40


def gini_score(counts: Integers) -> int:
    """Sum, over rows, the squares of the cells by the records of the row, in 256ths.

    It is 0 to 256 times the records. One record more changes it by -256 to 256.

    >>> gini_score(np.array([[4, 0], [1, 1]])), gini_score(np.array([[2, 2]]))
    (1280, 512)
    """
    return sum(
        UNITS * sum(cell * cell for cell in row) // total
        for row in counts.tolist()
        if (total := sum(row))
    )


def information_score(counts: Integers, records_at_most: int | None = None) -> int:
    """Score a table by the negative entropy of the target given the row, times the records.

    The unit is 256ths of a bit. Rows of more than ``records_at_most`` records are scored by
    :func:`_capped_bits`, and None caps no row. One record more changes the score by at most
    :func:`width_of_information`, whatever the number of records.

    >>> information_score(np.array([[4, 0], [1, 1]]))
    -512
    """
    terms = []
    for row in counts.tolist():
        total = sum(row)
        if records_at_most is None or total <= records_at_most:
            terms += [cell * math.log2(cell) for cell in row if cell]
            terms += [-total * math.log2(total)] if total else []
        else:
            terms.append(-_capped_bits(row, _largest_change(records_at_most - 1)))
    return math.floor(UNITS * math.fsum(terms))


def _capped_bits(row: Sequence[int], limit: float) -> float:
    """Return the bits of the classes of a row, of which no record takes more than ``limit``.

    It is the fewest bits that any code of the classes takes whose words have ``limit`` bits at
    most: the rarest classes take so many each, the others their entropy. In each code one record
    more takes 0 to ``limit`` bits more, and so it does in the best code.
    """
    total, counted, logarithms = sum(row), 0, 0
    fewest = _exact(limit) * total
    for cell in sorted(filter(None, row), reverse=True):
        counted += cell
        logarithms += _exact(cell * math.log2(cell))
        bits = _exact(counted * math.log2(counted)) - logarithms + _exact(limit) * (total - counted)
        fewest = min(fewest, bits)
    return math.ldexp(fewest, -_BINARY_PLACES)


def _exact(bits: float) -> int:
    """Return a number of bits as a whole number, so that sums of many are not rounded."""
    return int(math.ldexp(bits, _BINARY_PLACES))


WIDTH_OF_GINI = 2 * UNITS
"""Width of the interval in which one record changes all scores of :func:`gini_score`."""


def width_of_information(records_at_most: int) -> int:
    """Return the width of :func:`information_score` with the same bound, for tables of any size."""
    return math.ceil(UNITS * _largest_change(records_at_most - 1)) + 2


def _largest_change(x: int) -> float:
    """Return (x + 1) log2(x + 1) - x log2 x."""
    return math.log2(x + 1) + x * math.log2(1 + 1 / x) if x else 0.0


def chi_square(counts: Figures | Integers) -> float:
    """Return chi-square of a table. Cells whose expectation is 0 are left out.

    >>> chi_square(np.array([[10, 0], [0, 10]])), chi_square(np.array([[5, 5], [5, 5]]))
    (20.0, 0.0)
    """
    total = counts.sum()
    if total <= 0:
        return 0.0
    # In whole numbers the products of many records would be beyond 64 bits.
    of_rows, of_columns = (counts.sum(axis=axis).astype(np.float64) for axis in (1, 0))
    expected = np.outer(of_rows, of_columns) / total
    valid = expected > 0
    return math.fsum(((counts[valid] - expected[valid]) ** 2 / expected[valid]).tolist())


def information_gain(counts: Figures | Integers) -> float:
    """Return the bits of information about the target in the rows of a table.

    >>> information_gain(np.array([[10, 0], [0, 10]]))
    1.0
    """
    total = counts.sum()
    if total <= 0:
        return 0.0
    rows = [count.sum() / total * entropy(count) for count in counts if count.sum() > 0]
    return entropy(counts.sum(axis=0)) - math.fsum(rows)


def cleaned(noisy: Integers, scale: float) -> Integers:
    """Make a noisy table usable for scores: no cell is below 0.

    Rows below the largest noise that is to be expected, from its ``scale``, become one last row.

    >>> cleaned(np.array([[40, 30], [1, -2], [0, 3]]), scale=5.0).tolist()
    [[40, 30], [1, 1]]
    """
    low = noisy.sum(axis=1) < scale * math.log(noisy.size)
    parts: Sequence[Integers] = [noisy[~low]]
    if low.any():
        parts = [*parts, noisy[low].sum(axis=0, keepdims=True)]
    return np.maximum(np.concatenate(parts), 0)
