"""Groups of categories: values that k people have, and otherwise what values have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from anonspark.core.arrays import Figures
from anonspark.core.hierarchies.hierarchy import Hierarchy

OTHER = "other values"
"""Name of the group of all values that have none of their own."""

_MOST_GROUPS = 15
_COVERED = 0.8
_LONGEST_BEGINNING = 6

Naming = Callable[[str], str]


@dataclass(frozen=True)
class Groups:
    """Groups of a category's values.

    Parameters
    ----------
    names : tuple of str
        Of the groups. The last one is :data:`OTHER`, perhaps with missing values in it.
    places : mapping of str to int
        Group of each value that has one of its own. All others are in the last.
    with_missing : bool
        Whether missing values are in the last group, because fewer than k are missing.
    """

    names: tuple[str, ...]
    places: Mapping[str, int]
    with_missing: bool = False

    def __len__(self) -> int:
        return len(self.names)


def plan_groups(
    regions: Sequence[Sequence[str]],
    counts: Figures,
    k: int,
    namings: Sequence[Naming],
    missing: float = 0.0,
) -> Groups:
    """Choose groups that k people or more are known to be in.

    Parameters
    ----------
    regions : sequence of sequence of str
        What is known of records: values of the original, one each, or published sets of values.
    counts : float64 ndarray of shape (regions,)
        Records of each.
    k : int
    namings : sequence of callable
        Ways to name the group of a value, from fine to coarse. The first one is taken that names
        few groups and leaves few records out.
    missing : float
        Records whose value is missing.

    Returns
    -------
    Groups
        The largest first. The group of the other values, too, has k records or none, if the
        regions are single values.
    """
    total = float(counts.sum())
    best: tuple[float, dict[str, float], Naming] | None = None
    for naming in namings:
        counted: dict[str, float] = {}
        different: set[str] = set()
        for region, count in zip(regions, counts.tolist(), strict=True):
            named = {naming(value) for value in region}
            different |= named
            if len(named) == 1:
                name = named.pop()
                counted[name] = counted.get(name, 0.0) + count
        frequent = {name: count for name, count in counted.items() if count >= k}
        largest = sorted(frequent, key=lambda name: (-frequent[name], name))[:_MOST_GROUPS]
        covered = sum(frequent[name] for name in largest)
        if best is None or covered > best[0]:
            best = covered, {name: frequent[name] for name in largest}, naming
        if len(different) <= _MOST_GROUPS + 1 and covered >= _COVERED * total:
            best = covered, {name: frequent[name] for name in largest}, naming
            break
    _, frequent, naming = best or (0.0, {}, str)
    with_missing = 0 < missing < k
    rest = total - sum(frequent.values()) + (missing if with_missing else 0.0)
    while frequent and 0 < rest < k:
        smallest = min(frequent, key=lambda name: (frequent[name], name))
        rest += frequent.pop(smallest)
    positions = {name: index for index, name in enumerate(frequent)}
    group_of = {
        value: positions[naming(value)]
        for region in regions
        for value in region
        if naming(value) in positions
    }
    names = [*map(_shown, frequent), f"{OTHER} or missing" if with_missing else OTHER]
    return Groups(tuple(names), group_of, with_missing)


def _shown(name: str) -> str:
    return name if name.strip() else f'"{name}"'


def beginnings(values: Sequence[str]) -> list[Naming]:
    """Return namings by the first characters, long ones first, for values that are codes.

    Parameters
    ----------
    values : sequence of str
        They are codes if each has a digit.
    """
    if not values or not all(any(map(str.isdigit, value)) for value in values):
        return []
    longest = min(_LONGEST_BEGINNING, max(map(len, values)) - 1)
    return [_begins(length) for length in range(longest, 0, -1)]


def _begins(length: int) -> Naming:
    return lambda value: value if len(value) <= length else f"{value[:length]}…"


def levels_of(hierarchy: Hierarchy) -> list[Naming]:
    """Return namings by the levels of a hierarchy above the values, fine ones first."""
    namings: list[Naming] = []
    for level in hierarchy.levels[:-1]:
        runs = pairwise([*level.starts, len(hierarchy.leaves)])
        labels = {
            leaf: label
            for label, (start, stop) in zip(level.labels, runs, strict=True)
            for leaf in hierarchy.leaves[start:stop]
        }
        namings.append(lambda value, labels=labels: labels.get(value, value))  # type: ignore[misc]
    return namings
