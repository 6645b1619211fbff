"""Compute what two releases reveal together: bounds of every pair of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonspark.core.arrays import Flags, Integers
from anonspark.errors import DataError
from anonspark.sharing.pairs.classes import Cells, CompatiblePairs, TwoReleases
from anonspark.sharing.pairs.relation import Relation

_Indices = npt.NDArray[np.int32]

_MOST_ROUNDS = 100


@dataclass(frozen=True)
class Margin:
    """Classes of a release by payload, its cells, and whether their records are all accounted for.

    ``records`` is int64 of shape (cells,). ``is_exact`` is bool of that shape: if set, each of a
    cell's records is in one of its unknowns, so that these add up to ``records``, else to no more.
    """

    records: Integers
    is_exact: Flags


@dataclass(frozen=True)
class Bounds:
    """Bounds of every unknown: the people of a cell of one release and one of the other.

    ``lower`` and ``upper`` are int64 of shape (unknowns,), ``rounds`` counts those with a change.
    """

    lower: Integers
    upper: Integers
    rounds: int


def bound_unknowns(left: Margin, right: Margin, of_left: _Indices, of_right: _Indices) -> Bounds:
    """Bound numbers of people of which two tables have sums, by tightening until nothing changes.

    ``of_left`` and ``of_right``, int32 of shape (unknowns,), are the cell of each unknown on both
    sides. No two unknowns agree in both. Stops after 100 rounds at the latest. A round takes
    O(unknowns) time and 40 bytes an unknown. It only uses the values of the round before, so the
    order of unknowns does not matter. Sums are exact up to 2^53 records. Raises DataError if no
    numbers have these sums.

    >>> is_exact = np.array([True, True])
    >>> left, right = Margin(np.array([3, 1]), is_exact), Margin(np.array([2, 2]), is_exact)
    >>> cells = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    >>> bounds = bound_unknowns(left, right, *cells)
    >>> bounds.lower.tolist(), bounds.upper.tolist()
    ([1, 1, 0, 0], [2, 2, 1, 1])
    """
    upper = np.minimum(left.records[of_left], right.records[of_right])
    lower = np.zeros_like(upper)
    rounds = 0
    sides = ((left, of_left), (right, of_right))
    for margin, cells in sides:
        sums = _sums(cells, upper, margin)
        _require_solution(bool((sums[margin.is_exact] >= margin.records[margin.is_exact]).all()))
    while rounds < _MOST_ROUNDS:
        least, greatest = lower, upper
        for margin, cells in sides:
            proven = margin.records - _sums(cells, lower, margin)
            greatest = np.minimum(greatest, proven[cells] + lower)
            needed = margin.records - _sums(cells, upper, margin)
            needed[~margin.is_exact] = np.iinfo(np.int64).min // 2
            least = np.maximum(least, needed[cells] + upper)
        _require_solution(bool((least <= greatest).all()))
        if np.array_equal(least, lower) and np.array_equal(greatest, upper):
            break
        lower, upper = least, greatest
        rounds += 1
    return Bounds(lower, upper, rounds)


def _sums(cells: _Indices, values: Integers, margin: Margin) -> Integers:
    """Add up the values of each cell."""
    # Whole numbers are exact in float64.
    return np.bincount(cells, values, len(margin.records)).astype(np.int64)


def _require_solution(solvable: bool) -> None:
    """Raise DataError if no people can be in both releases."""
    if not solvable:
        raise DataError(
            "verify --with: no people can be in these releases as it is said that they are. They "
            "are not the same people, or not the one within the other: leave --same-people and "
            "--inside out, or name the releases that were made of one table"
        )


CellNumbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class PairFigures:
    """The figures of what the files of two releases reveal together.

    ``pairs`` of classes have regions that meet, ``payload_pairs`` of them also a payload in common.
    No person can be in ``impossible`` ones, a person but fewer than k may be in ``possible`` ones,
    and one certainly is in ``proven`` ones. In ``breaches`` a person certainly is, and fewer than k
    may be: a class and absence from the other release is such a pair, too (``breaches_absent``).
    ``persons_in_breaches`` are certainly in them. In ``disclosed`` pairs a person certainly is, and
    a sensitive attribute has fewer than l values left, in ``disclosed_required`` ones one that the
    manifests require l of. ``absent_from_first`` and ``absent_from_second`` are people of the other
    release who are certainly not in this one, at least, or None if they are fewer than k, but not
    0.
    """

    pairs: int
    payload_pairs: int
    impossible: int
    possible: int
    proven: int
    breaches: int
    breaches_absent: int
    persons_in_breaches: int
    disclosed: int
    disclosed_required: int
    absent_from_first: int | None
    absent_from_second: int | None
    rounds: int


@dataclass(frozen=True)
class BoundedPairs:
    """Pairs of classes in which a person may be. Arrays are int64 of shape (n,).

    ``first`` and ``second`` are the classes, where the number of classes of a release stands for
    absence from it. ``lower`` and ``upper`` are people who are certainly in both, and who may be.
    ``fewest`` and ``most`` are the smallest and largest number of a value that a sensitive
    attribute may have there, ``distinct`` how many it may have. ``absent`` are people of the second
    release who are certainly not in the first, at least, and of the first who are not in the
    second.
    """

    first: Integers
    second: Integers
    lower: Integers
    upper: Integers
    fewest: Mapping[str, Integers]
    most: Mapping[str, Integers]
    distinct: Mapping[str, Integers]
    absent: tuple[int, int]


@dataclass(frozen=True)
class Diversity:
    """The least number of values of a sensitive attribute, and whether the manifests promise it."""

    least: int
    required: bool


def bound_pairs(
    cells: TwoReleases, compatible: CompatiblePairs, relation: Relation
) -> tuple[BoundedPairs, int]:
    """Bound how many people are in both classes of a pair, for every pair. Also return the rounds.

    Pairs without anybody are left out. Raises DataError if the stated relation is impossible.
    """
    absences = _absences(cells, relation)
    margins = [
        _margin(cell, absent, accounted=relation != "unknown")
        for cell, absent in zip(cells.cells, absences, strict=True)
    ]
    unknowns = _with_absences(cells.cells, compatible, absences)
    bounds = bound_unknowns(margins[0], margins[1], *unknowns)
    numbers = [
        np.concatenate([cell.numbers, np.full(len(absent.payloads), cell.classes.num_rows)])
        for cell, absent in zip(cells.cells, absences, strict=True)
    ]
    keep = bounds.upper > 0
    first, second = (number[cell[keep]] for number, cell in zip(numbers, unknowns, strict=True))
    payloads = np.concatenate([cells.cells[0].payloads, absences[0].payloads])[unknowns[0][keep]]
    lower, upper = bounds.lower[keep], bounds.upper[keep]
    changes = np.ones(len(first), bool)
    changes[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    starts = np.flatnonzero(changes)
    fewest, most, distinct = {}, {}, {}
    for name, values in cells.values.items():
        row_values = values[payloads]
        fewest[name] = _reduced(np.minimum, row_values, starts)
        most[name] = _reduced(np.maximum, row_values, starts)
        distinct[name] = _distinct(row_values, np.cumsum(changes) - 1, len(starts))
    pairs = BoundedPairs(
        first[starts],
        second[starts],
        _reduced(np.add, lower, starts),
        _reduced(np.add, upper, starts),
        fewest,
        most,
        distinct,
        absent=_certainly_absent(cells.cells, compatible, bounds.upper),
    )
    return pairs, bounds.rounds


def _certainly_absent(
    cells: tuple[Cells, Cells], compatible: CompatiblePairs, upper: Integers
) -> tuple[int, int]:
    """Count people of the second release who are certainly not in the first, and vice versa.

    A person in a cell of one release is in a compatible cell of the other, or absent. No more
    people of a payload are in a release than it has records of it.
    """
    absent = []
    for index, numbers in ((1, compatible.second), (0, compatible.first)):
        side, other = cells[index], cells[1 - index]
        most = np.bincount(numbers, upper[: len(numbers)], len(side.records)).astype(np.int64)
        without_partner = np.maximum(side.records - most, 0)
        by_payload = np.bincount(side.payloads, without_partner, len(side.totals)).astype(np.int64)
        absent.append(int(np.maximum(by_payload, side.totals - other.totals).sum()))
    return absent[0], absent[1]


def figures_of_pairs(
    cells: TwoReleases,
    compatible: CompatiblePairs,
    bounded: BoundedPairs,
    rounds: int,
    *,
    k: int,
    diversity: Mapping[str, Diversity],
) -> PairFigures:
    """Count the pairs of classes that reveal too much, by the bounds of :func:`bound_pairs`.

    A pair should hold no one or ``k`` people, and the least number of values that ``diversity``
    has for each sensitive attribute of the payload.
    """
    # The number of classes of a release stands for absence from it.
    absent = (bounded.first == cells.cells[0].classes.num_rows) | (
        bounded.second == cells.cells[1].classes.num_rows
    )
    proven, below_k = bounded.lower > 0, bounded.upper < k
    breaches = proven & below_k
    disclosed, required = np.zeros(len(proven), bool), np.zeros(len(proven), bool)
    for name, criterion in diversity.items():
        too_few = proven & (bounded.distinct[name] < criterion.least)
        disclosed |= too_few
        if criterion.required:
            required |= too_few
    absent_people = [None if 0 < people < k else people for people in bounded.absent]
    return PairFigures(
        pairs=compatible.pairs,
        payload_pairs=len(compatible.first),
        impossible=compatible.pairs - int((~absent).sum()),
        possible=int((below_k & ~absent).sum()),
        proven=int((proven & ~absent).sum()),
        breaches=int(breaches.sum()),
        breaches_absent=int((breaches & absent).sum()),
        persons_in_breaches=int(bounded.lower[breaches].sum()),
        disclosed=int(disclosed.sum()),
        disclosed_required=int(required.sum()),
        absent_from_first=absent_people[0],
        absent_from_second=absent_people[1],
        rounds=rounds,
    )


@dataclass(frozen=True)
class _Absence:
    """The people of the other release who may be missing in a release: records of each payload.

    They are the most possible, or exact if ``is_exact``.
    """

    payloads: Integers
    records: Integers
    is_exact: bool


def _absences(cells: TwoReleases, relation: Relation) -> list[_Absence]:
    """Bound how many people of each payload are missing in the first release, and in the second.

    Raises DataError if a release has more records of a payload than the relation allows.
    """
    absences = []
    contradicted = np.zeros(len(cells.cells[0].totals), bool)
    for index, inside in ((0, "first inside second"), (1, "second inside first")):
        side, other = cells.cells[index], cells.cells[1 - index]
        surplus = other.totals - side.totals
        exact = False
        if relation == "unknown":
            records = np.zeros_like(surplus)
        elif relation == inside:
            # People who were left out are absent, too, and cannot be distinguished from the others.
            records = surplus + other.left_out
            exact = not other.left_out.any()
        else:
            records = side.left_out
        if relation != "unknown":
            contradicted |= (surplus > records) | (records < 0)
        payloads = np.flatnonzero(records > 0)
        absences.append(_Absence(payloads, records[payloads], exact))
    if contradicted.any():
        raise _not_so(relation, int(contradicted.sum()), len(contradicted))
    return absences


def _not_so(relation: Relation, payloads: int, of: int) -> DataError:
    """Say that a stated relation is wrong."""
    related = "the same people" if relation == "same people" else "the people of one in the other"
    return DataError(
        f"verify --with: the releases do not hold {related}: their numbers of records differ for "
        f"{payloads:,} of {of:,} payloads (values that both publish as they are). Leave "
        "--same-people and --inside out, or name releases that were made of one table"
    )


def _margin(cells: Cells, absence: _Absence, *, accounted: bool) -> Margin:
    """Return the sums of a release's cells, and of absence from it."""
    is_exact = np.concatenate(
        [np.full(len(cells.records), accounted), np.full(len(absence.payloads), absence.is_exact)]
    )
    return Margin(np.concatenate([cells.records, absence.records]), is_exact)


def _with_absences(
    cells: tuple[Cells, Cells], compatible: CompatiblePairs, absences: list[_Absence]
) -> tuple[CellNumbers, CellNumbers]:
    """Return the unknowns: pairs of cells, and cells whose people may be absent."""
    unknowns = [[compatible.first], [compatible.second]]
    for index in (0, 1):
        absence, side, other = absences[index], cells[index], cells[1 - index]
        number = np.full(len(side.totals), -1)
        number[absence.payloads] = len(side.records) + np.arange(len(absence.payloads))
        of_absence = number[other.payloads]
        matched = np.flatnonzero(of_absence >= 0)
        unknowns[index].append(of_absence[matched].astype(np.int32))
        unknowns[1 - index].append(matched.astype(np.int32))
    first, second = (np.concatenate(unknown) for unknown in unknowns)
    return first, second


def _reduced(function: np.ufunc, values: Integers, starts: Integers) -> Integers:
    """Reduce the values of each group by a ufunc.

    >>> _reduced(np.add, np.array([1, 2, 3]), np.array([0, 2])).tolist()
    [3, 3]
    """
    if not len(starts):
        return np.zeros(0, np.int64)
    reduced: Integers = function.reduceat(values, starts)
    return reduced


def _distinct(values: Integers, pairs: Integers, count: int) -> Integers:
    """Return how many different values each pair has.

    >>> _distinct(np.array([7, 7, 8]), np.array([0, 0, 0]), 1).tolist()
    [2]
    """
    order = np.lexsort((values, pairs))
    values, pairs = values[order], pairs[order]
    is_new = np.ones(len(values), bool)
    is_new[1:] = (values[1:] != values[:-1]) | (pairs[1:] != pairs[:-1])
    return np.bincount(pairs[is_new], minlength=count)
