"""Count people on either side of cuts, and the sensitive values that they have, on the cluster.

People cannot be added up over tasks. Each task yields every different pair of a value and a person
once. The pairs are shuffled, and their numbers reach the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Flags, Integers
from anonspark.core.columns import UNIT
from anonspark.core.criteria import Counts, PeopleOfGroup, enough_pairs, matched_of_attributes
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.layers.partition.brackets import goes_left, with_distances
from anonspark.layers.partition.cut_tree import Boundary, Descent
from anonspark.layers.partition.packing import PackedKeys


@dataclass(frozen=True)
class PeopleSplit:
    """A question: the people on either side of some boundaries in a leaf of the tree.

    There is one boundary, or several of one quasi-identifier, from the lowest to the highest.
    """

    node: int
    boundaries: tuple[Boundary, ...]


@dataclass(frozen=True)
class Side:
    """A side of a cut of a leaf of the tree, about whose people the driver asks."""

    node: int
    boundary: Boundary
    goes_left: bool


class MatchedValues(Side):
    """A question: how many values have a person each."""


@dataclass(frozen=True)
class PeopleOfSides:
    """The answer to :class:`PeopleSplit`.

    ``first_value`` (int64, shape (s + 1,)) is where the values of each sensitive attribute begin;
    after them comes the number that counts people. The other arrays have one row each: how many
    people (``counts``) have a value or exist at all (``items``), whose first record (``sides`` 0)
    or last record (1) lies in a stretch. Stretch i lies behind i boundaries.
    """

    first_value: Integers
    sides: Integers
    stretches: Integers
    items: Integers
    counts: Integers

    def side(self, position: int, *, left: bool) -> tuple[int, list[Counts]]:
        """Return the people on one side of a boundary, and those with each value."""
        if left:
            chosen = (self.sides == 0) & (self.stretches <= position)
        else:
            chosen = (self.sides == 1) & (self.stretches > position)
        values = int(self.first_value[-1])
        summed = np.bincount(self.items[chosen], self.counts[chosen], minlength=values + 1)
        exact = summed.astype(np.int64)
        return int(exact[-1]), np.split(exact[:-1], self.first_value[1:-1])


_PAIRS = pa.schema(
    [(name, pa.int64()) for name in ("question", "item", UNIT)]
    + [(name, pa.int32()) for name in ("least", "most")]
)
_COUNTED = pa.schema([(name, pa.int64()) for name in ("question", "side", "stretch", "item")])
_EDGES = pa.schema([(name, pa.int64()) for name in ("question", "item", UNIT)])


@dataclass(frozen=True)
class _Records:
    """The records of a task that questions are about."""

    descent: Descent
    questions: Sequence[PeopleSplit | MatchedValues]
    keys: PackedKeys

    @cached_property
    def values(self) -> slice:
        """Columns of the sensitive values in a key matrix."""
        first = len(self.descent.quasi_identifiers) + 2
        return slice(first, first + len(self.keys.criteria.sensitive))

    def of_questions(self, batches: Batches) -> Iterator[tuple[int, Integers]]:
        """Yield the indices of questions and the transposed key matrices of their records."""
        for keys in self.keys.unpack(batches):
            leaves = self.descent.find_leaves(keys)
            order = np.argsort(leaves, kind="stable")
            leaves = leaves[order]
            for index, question in enumerate(self.questions):
                start, stop = np.searchsorted(leaves, [question.node, question.node + 1])
                if start < stop:
                    yield index, np.ascontiguousarray(keys[order[start:stop]].T)

    def goes_left(self, columns: Integers, boundary: Boundary) -> Flags:
        """Return which records a boundary sends to the left."""
        quasi_identifiers = self.descent.quasi_identifiers
        measured = with_distances(columns, boundary.vantage_point, quasi_identifiers)
        return goes_left(measured, boundary)


@dataclass(frozen=True)
class _FindPairs(_Records):
    """Yields the people of each question, and their values, each once in a batch."""

    def __call__(self, batches: Batches) -> Batches:
        person = int(self.keys.criteria.first_value[-1])
        for index, columns in self.of_questions(batches):
            question = self.questions[index]
            if not isinstance(question, PeopleSplit):
                raise TypeError("expected questions of one type")
            stretches = self._stretches(columns, question.boundaries)
            people = columns[-1]
            items = [*columns[self.values], np.full(len(people), person)]
            for item in items:
                yield _extremes(index, item, people, stretches)

    def _stretches(self, columns: Integers, boundaries: Sequence[Boundary]) -> Integers:
        """Return how many of the boundaries each record lies behind."""
        if len(boundaries) == 1:
            return (~self.goes_left(columns, boundaries[0])).astype(np.int64)
        key = boundaries[0].keys[0]
        last_left = [
            boundary.thresholds[0] - (not boundary.equal_goes_left) for boundary in boundaries
        ]
        stretches: Integers = np.searchsorted(np.array(last_left, np.int64), columns[key])
        return stretches


def _extremes(
    question: int, items: Integers, people: Integers, stretches: Integers
) -> pa.RecordBatch:
    """Return the first and the last stretch in which each pair of an item and a person occurs."""
    order = np.lexsort((stretches, people, items))
    items, people, stretches = items[order], people[order], stretches[order]
    new = np.ones(len(order), bool)
    new[1:] = (items[1:] != items[:-1]) | (people[1:] != people[:-1])
    starts = np.flatnonzero(new)
    last = np.append(starts[1:], len(order)) - 1
    arrays = [
        np.full(len(starts), question, np.int64),
        items[starts],
        people[starts],
        stretches[starts].astype(np.int32),
        stretches[last].astype(np.int32),
    ]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in arrays], schema=_PAIRS)


@dataclass(frozen=True)
class _BySide:
    """Yields each pair twice: for the left side, and for the right."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for side, name in enumerate(("least", "most")):
                arrays = [
                    batch.column("question"),
                    pa.repeat(side, batch.num_rows),
                    batch.column(name).cast(pa.int64()),
                    batch.column("item"),
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=_COUNTED)


@dataclass(frozen=True)
class _FindEdges(_Records):
    """Yields few pairs of each question, which show how many values can be matched."""

    def __call__(self, batches: Batches) -> Batches:
        """Gather the pairs of a value and a person on the asked side that decide a matching.

        The pairs are edges of a graph. A matching gives each value a person of its own, and the
        criterion asks for one of ``most_matched`` edges. :func:`enough_pairs` drops after each
        batch what cannot enlarge it, so that a task holds and sends few pairs.
        """
        edges: dict[tuple[int, int], list[Integers]] = {}
        most_matched = self.keys.criteria.most_matched
        for index, columns in self.of_questions(batches):
            question = self.questions[index]
            if not isinstance(question, MatchedValues):
                raise TypeError("expected questions of one type")
            on_side = columns[:, self.goes_left(columns, question.boundary) == question.goes_left]
            for attribute, new_values in enumerate(on_side[self.values]):
                if not most_matched[attribute]:
                    continue
                values, people = edges.get((index, attribute), [np.zeros(0, np.int64)] * 2)
                values = np.concatenate([values, new_values])
                people = np.concatenate([people, on_side[-1]])
                edges[index, attribute] = [*enough_pairs(values, people, most_matched[attribute])]
        for (index, _), pairs in edges.items():
            arrays = [np.full(len(pairs[0]), index, np.int64), *pairs]
            yield pa.RecordBatch.from_arrays([pa.array(column) for column in arrays], schema=_EDGES)


def count_sides(
    packed: Table, keys: PackedKeys, descent: Descent, questions: Sequence[PeopleSplit]
) -> list[PeopleOfSides]:
    """Count the people on both sides of boundaries.

    One job with two shuffles: of the different pairs of a question, a value and a person in each
    task, and of their counts. At most two counts for each value and boundary are collected.
    """
    if not questions:
        return []
    columns = _counted(packed.map_batches(_FindPairs(descent, questions, keys), _PAIRS))
    first_value = keys.criteria.first_value
    names = ("side", "stretch", "item", "count")
    return [
        PeopleOfSides(first_value, *(columns[name][columns["question"] == index] for name in names))
        for index in range(len(questions))
    ]


def _counted(pairs: Table) -> dict[str, Integers]:
    """Count people by the first and the last stretch of all their batches."""
    whole = pairs.aggregate(["question", "item", UNIT], least=["least"], most=["most"])
    counted = (
        whole.map_batches(_BySide(), _COUNTED).aggregate(_COUNTED.names, count="count").collect()
    )
    return {name: counted[name].to_numpy() for name in counted.column_names}


def match_sides(
    packed: Table, keys: PackedKeys, descent: Descent, questions: Sequence[MatchedValues]
) -> list[list[int]]:
    """Count for each side the values of each sensitive attribute that different people can have.

    One job with one shuffle. At most 2 l^2 pairs of each question and task are collected.
    """
    if not questions:
        return []
    criteria = keys.criteria
    edges = packed.map_batches(_FindEdges(descent, questions, keys), _EDGES)
    pairs = edges.aggregate(_EDGES.names).collect()
    owners, items, people = (pairs[name].to_numpy() for name in _EDGES.names)
    return [
        matched_of_attributes(
            criteria.first_value,
            criteria.most_matched,
            items[owners == index],
            people[owners == index],
        )
        for index in range(len(questions))
    ]


def at_most_matched(number: int, counts: Sequence[Counts]) -> PeopleOfGroup:
    """Return an upper bound for a group whose values are not matched: as many as can be.

    >>> at_most_matched(2, [np.array([4, 0, 1, 1])]).matched
    [2]
    """
    most = [min(int(np.count_nonzero(count)), number) for count in counts]
    return PeopleOfGroup(number, most)
