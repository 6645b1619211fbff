"""Find the recipients who may combine their releases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from math import comb

from anonspark.errors import ConfigurationError

MOST_COALITIONS = 1000
"""Coalitions that one plan checks at most."""


def list_coalitions(
    recipients: Collection[str],
    *,
    public: Collection[str],
    together: Sequence[Sequence[str]],
    size: int | None,
    of_plan: Collection[str],
) -> list[tuple[str, ...]]:
    """Return the coalitions to be checked: what holds for them holds for all smaller ones.

    Parameters
    ----------
    recipients : collection of str
        All who have a release that counts, or are to get one.
    public : collection of str
        Those whose releases everybody has: they are in every coalition.
    together : sequence of sequence of str
        Recipients that are always one.
    size : int or None
        How many recipients may collude. None for all.
    of_plan : collection of str
        Those who are to get a release: of others nothing changes.

    Returns
    -------
    list of tuple of str
        Each in the order of the names.

    Raises
    ------
    ConfigurationError
        If there are more than :data:`MOST_COALITIONS`.
    """
    everybody = {name for name in recipients if name in public}
    one_of = {name: frozenset(group) for group in together for name in group}
    units = sorted(
        {
            tuple(sorted(one_of.get(name, frozenset([name])) & set(recipients)))
            for name in recipients
            if name not in everybody
        }
    )
    if size is None or len(units) <= size:
        return [tuple(sorted({*everybody, *(name for unit in units for name in unit)}))]
    # Of open data in the plan everybody gets something new.
    asked = units if everybody & set(of_plan) else [unit for unit in units if {*unit} & {*of_plan}]
    number = comb(len(units), size) - comb(len(units) - len(asked), size)
    if number > MOST_COALITIONS:
        raise ConfigurationError(
            f"collusion.recipients: {size} of {len(units)} recipients make {number:,} coalitions. "
            f"Expected {MOST_COALITIONS:,} at most. List those who are one in collusion.together, "
            "or set it to all"
        )
    return [
        tuple(sorted({*everybody, *(name for unit in chosen for name in unit)}))
        for chosen in combinations(units, size)
        if any(unit in asked for unit in chosen)
    ]
