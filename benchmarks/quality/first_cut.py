"""The partitioner behind the thesis' printed counts, which depends on the order of the rows.

It cuts the values of a category in the order of their first appearance. The product forbids that;
:mod:`anonspark.kernels.mondrian` does not do it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence

from quality.csv_tables import Texts

Predicate = Callable[[Sequence[int]], bool]

OPTIMIZED = "optimized"
"""The criterion of lists by k alone, of which equal records keep their values."""


def first_cut_lists(table: Texts, columns: Sequence[str], allowed: Predicate) -> list[list[int]]:
    """Cut a table into lists of rows.

    Parameters
    ----------
    table : Texts
    columns : sequence of str
        All are categories, cut in this order where they have equally many values.
    allowed : callable
        Whether a list of rows may be a part.

    Returns
    -------
    list of list of int
        Row numbers, in the order in which lists were finished.
    """
    values = [table.column(name) for name in columns]
    waiting = deque([list(range(len(table.rows)))])
    finished = []
    while waiting:
        rows = waiting.popleft()
        parts = _first_cut(values, rows, allowed)
        if parts is None:
            finished.append(rows)
        else:
            waiting.extend(parts)
    return finished


def _first_cut(
    values: Sequence[Sequence[str]], rows: list[int], allowed: Predicate
) -> tuple[list[int], list[int]] | None:
    seen = [list(dict.fromkeys(column[row] for row in rows)) for column in values]
    for place in sorted(range(len(values)), key=lambda one: -len(seen[one])):
        left_values = set(seen[place][: len(seen[place]) // 2])
        if not left_values:
            continue
        column = values[place]
        left = [row for row in rows if column[row] in left_values]
        right = [row for row in rows if column[row] not in left_values]
        if allowed(left) and allowed(right):
            return left, right
    return None


def at_least(k: int) -> Predicate:
    """Allow lists of at least k rows."""
    return lambda rows: len(rows) >= k


def with_values(k: int, values: int, target: Sequence[str]) -> Predicate:
    """Allow those with at least so many different values of the target, too."""
    return lambda rows: len(rows) >= k and len({target[row] for row in rows}) >= values


def close_to_table(k: int, t: float, target: Sequence[str]) -> Predicate:
    """Allow those in which no share of a class is more than t from that in the table.

    The thesis says Kullback-Leibler divergence; its counts are those of this distance.
    """
    whole = Counter(target)

    def allowed(rows: Sequence[int]) -> bool:
        if len(rows) < k:
            return False
        own = Counter(target[row] for row in rows)
        return all(
            abs(own[value] / len(rows) - records / len(target)) <= t
            for value, records in whole.items()
        )

    return allowed


def predicate(k: int, criterion: str, target: Sequence[str]) -> Predicate:
    """Return what allows lists by k alone, or by ``l = 2``, ``t = 0.3`` and their like."""
    kind, _, value = criterion.partition(" = ")
    if kind in ("k", OPTIMIZED):
        return at_least(k)
    if kind == "l":
        return with_values(k, int(value), target)
    return close_to_table(k, float(value), target)


def published_lists(
    table: Texts, columns: Sequence[str], target: str, criterion: str, k: int
) -> list[list[int]]:
    """Return the lists of a criterion. Optimized ones are parted into equal records and a rest."""
    lists = first_cut_lists(table, columns, predicate(k, criterion, table.column(target)))
    return equal_apart(table, columns, lists, k) if criterion == OPTIMIZED else lists


def equal_apart(
    table: Texts, columns: Sequence[str], lists: Sequence[Sequence[int]], k: int
) -> list[list[int]]:
    """Part records of a list that are equal, and at least k, from the rest, however few it has."""
    values = list(zip(*(table.column(name) for name in columns), strict=True))
    parts = []
    for rows in lists:
        equal: dict[tuple[str, ...], list[int]] = {}
        for row in rows:
            equal.setdefault(values[row], []).append(row)
        parts += [same for same in equal.values() if len(same) >= k]
        rest = [row for same in equal.values() if len(same) < k for row in same]
        parts += [rest] if rest else []
    return parts
