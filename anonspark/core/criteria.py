"""Define the requirements of every class, and match sensitive values with people."""

from __future__ import annotations

import ctypes
import logging
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core import extensions
from anonspark.core.arrays import Figures, Integers
from anonspark.core.criterion import Criterion
from anonspark.kernels import criteria as kernel
from anonspark.kernels.criteria import Requirements
from anonspark.kernels.people import BY_PEOPLE, match_values


def matched_values(values: Integers, people: Integers, most: int) -> int:
    """Count values that have a person each whom no other of them has, up to ``most`` of them.

    ``values`` and ``people`` (int64, shape (n,)) are pairs of a value and a person who has it, in
    any order. Two values that only one person has count as one:

    >>> matched_values(np.array([0, 1, 1]), np.array([7, 7, 8]), 5)
    2
    >>> matched_values(np.array([0, 1]), np.array([7, 7]), 5)
    1
    """
    return len(match_values(*_different(values, people), most))


def enough_pairs(values: Integers, people: Integers, most: int) -> tuple[Integers, Integers]:
    """Reduce pairs of a value and a person to few, without a change of :func:`matched_values`.

    If ``most`` pairs match, these are enough. Otherwise the first ``most`` people of each value are
    kept, and of these pairs the first ``most`` of each person: at most 2 ``most``^2 pairs
    (docs/algorithms.md has the proof).

    >>> values, people = enough_pairs(np.array([0, 0, 0, 1]), np.array([5, 6, 7, 5]), 2)
    >>> sorted(zip(values.tolist(), people.tolist()))
    [(0, 6), (1, 5)]
    """
    values, people = _different(values, people)
    chosen = match_values(values, people, most)
    if len(chosen) < most:
        chosen = np.flatnonzero(_positions_in_runs(values) < most)
        by_person = chosen[np.lexsort((values[chosen], people[chosen]))]
        chosen = by_person[_positions_in_runs(people[by_person]) < most]
    return values[chosen], people[chosen]


def matched_of_attributes(
    first_value: Integers, most_matched: Sequence[int], items: Integers, people: Integers
) -> list[int]:
    """Return :func:`matched_values` of each sensitive attribute.

    The values of attribute i have the numbers from ``first_value[i]`` up to below ``first_value[i +
    1]``. ``most_matched`` says how many of them are asked for, and 0 counts none.
    """
    matched = []
    first = first_value.tolist()
    for index, most in enumerate(most_matched):
        chosen = (first[index] <= items) & (items < first[index + 1])
        matched.append(matched_values(items[chosen], people[chosen], most) if most else 0)
    return matched


def _different(values: Integers, people: Integers) -> tuple[Integers, Integers]:
    """Return the different pairs, ordered by value and person."""
    order = np.lexsort((people, values))
    values, people = values[order], people[order]
    new = np.ones(len(order), bool)
    new[1:] = (values[1:] != values[:-1]) | (people[1:] != people[:-1])
    return values[new], people[new]


def _positions_in_runs(ordered: Integers) -> Integers:
    """Return the position of each element in its run of equal neighbours.

    >>> _positions_in_runs(np.array([4, 4, 4, 7, 9, 9])).tolist()
    [0, 1, 2, 0, 0, 1]
    """
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    positions: Integers = np.arange(len(ordered)) - starts[np.cumsum(new) - 1]
    return positions


def comparable(values: pa.Array, *, as_text: bool) -> pa.Array:
    """Normalize values so that Arrow finds equal what is one value: -0.0 and 0.0.

    With ``as_text`` they become texts without blanks at their ends.

    >>> comparable(pa.array([" a", "a "]), as_text=True).to_pylist()
    ['a', 'a']
    """
    if pa.types.is_floating(values.type):
        # -0.0 and 0.0 are one value.
        values = pc.add(values, pa.scalar(0.0, values.type))
    return pc.utf8_trim_whitespace(values.cast(pa.string())) if as_text else values


@dataclass(frozen=True)
class SensitiveAttribute:
    """A sensitive attribute that a criterion is about.

    ``column`` is its staged column. ``values`` are its different values in order; a null, which is
    a value, too, comes last. ``counts`` (int64, as long) are the records of the whole input with
    each value. ``parents`` and ``heights`` (int64, one a node) describe its hierarchy bottom up,
    the values first, and are empty without a hierarchy. With ``as_text``, values are compared as
    texts without blanks at their ends, as a hierarchy or a declared order lists them.
    """

    name: str
    column: str
    values: pa.Array
    counts: Integers
    parents: Integers
    heights: Integers
    as_text: bool = False

    @property
    def shares(self) -> Figures:
        """Share of each value in the whole input."""
        shares: Figures = self.counts / max(int(self.counts.sum()), 1)
        return shares

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Integers:
        """Return the position of each value in :attr:`values`, int64.

        Raises ValueError for a value that is not among them, because the data changed meanwhile.
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        coded = pa.types.is_dictionary(column.type)
        values = comparable(column.dictionary if coded else column, as_text=self.as_text)
        positions = pc.index_in(values, value_set=self.values)
        if coded:
            missing = pc.index_in(pa.nulls(1, self.values.type), value_set=self.values)[0]
            positions = pc.if_else(column.is_null(), missing, positions.take(column.indices))
        if positions.null_count:
            raise ValueError("a sensitive value is unknown in the staged records")
        encoded: Integers = positions.to_numpy(zero_copy_only=False).astype(np.int64)
        return encoded


# A kernel calls a C function by its address, which takes seven numbers: the addresses of codes and
# counts of the values that a group has, their number, the address of the shares of all values in
# the whole input, their number, the records of the group, and the bound. It returns how many
# records the group lacks at least, and 0 where it satisfies the criterion.
#
# A Python function is called with a :class:`GroupValues` and the bound. One with an ``address``,
# as ``numba.cfunc`` makes it, is called as it is.


class GroupValues(NamedTuple):
    """The sensitive values of a group of records, as a criterion of another package gets them.

    Attributes
    ----------
    codes : int64 ndarray of shape (values of the group,)
        Codes of the values that the group has, ascending.
    counts : int64 ndarray of shape (values of the group,)
        Records of the group with each of these values.
    shares : float64 ndarray of shape (values,)
        Share of each value in the whole input, by code.
    size : int
        Records of the group.
    """

    codes: Integers
    counts: Integers
    shares: Figures
    size: int


_LOGGER = logging.getLogger("anonspark")
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6, ctypes.c_double)


@cache
def _as_c(judge: Callable[..., int], key: str) -> Any:
    """Wrap a function of Python as a C function for kernels, which returns -1 for an exception."""

    def call(*numbers: Any) -> int:
        """Judge a group whose arrays a kernel passes by address. Returns -1 if judging fails."""
        codes, counts, present, shares, values, size, bound = numbers
        try:
            return operator.index(
                judge(
                    GroupValues(
                        _array(codes, present, ctypes.c_int64),
                        _array(counts, present, ctypes.c_int64),
                        _array(shares, values, ctypes.c_double),
                        size,
                    ),
                    bound,
                )
            )
        # A kernel cannot take an exception, whose text may hold values.
        except BaseException as error:  # noqa: BLE001
            _LOGGER.error("privacy.%s: judging a group ends with %s", key, type(error).__name__)  # noqa: TRY400
            return -1

    return _FUNCTION(call)


def _array(address: int, length: int, kind: Any) -> np.ndarray[Any, Any]:
    """View ``length`` numbers at an address as an array, without a copy."""
    return np.ctypeslib.as_array((kind * length).from_address(address))


@cache
def address_of(judge: Callable[..., int], key: str) -> int:
    """Return the address of the C function that judges groups, valid in this process alone.

    Raises ConfigurationError if the function cannot judge two records with the same value.
    """
    address: Any = getattr(judge, "address", None)
    if address is None:
        address = ctypes.cast(_as_c(judge, key), ctypes.c_void_p).value
    values, share = np.array([0, 2]), np.ones(1)
    code = values.ctypes.data
    lacks = _FUNCTION(address)(code, code + values.itemsize, 1, share.ctypes.data, 1, 2, 1.0)
    plugin = extensions.extension(extensions.CRITERIA, key)
    if lacks < 0 and plugin is not None:
        problem = "its function fails, or returns less than 0, for a class of one value"
        raise plugin.refused(extensions.CRITERIA, key, problem)
    return int(address)


_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Units:
    """The people of a table: how many they are, and how many records they have.

    ``of_fewer_than_k`` is the number of records that k - 1 people have at most. More records than
    that are about at least k people, in any part of the table.
    """

    number: int
    most_records: int
    of_fewer_than_k: int

    @property
    def repeat(self) -> bool:
        """Return whether any person has several records. If none has, k records are k people."""
        return self.most_records > 1


def with_units(hashes: Integers, units: Integers) -> Integers:
    """Mix hashes of content with hashes of people: equal records of different people differ.

    Records that are equal in all else are ordered by their person: who stays in a class matters.
    """
    mixed = (hashes.view(np.uint64) ^ (units.view(np.uint64) * _MIX)) * _MIX
    return (mixed ^ (mixed >> np.uint64(32))).view(np.int64)


def numbered(units: Integers) -> tuple[Integers, int]:
    """Return a number for each record's person, from 0 on by the hashes, and the number of people.

    >>> numbers, number = numbered(np.array([50, -3, 50]))
    >>> numbers.tolist(), number
    ([1, 0, 1], 2)
    """
    different, numbers = np.unique(units, return_inverse=True)
    return numbers.astype(np.int64, copy=False), len(different)


@dataclass(frozen=True)
class PairedPeople:
    """The people of some records and the sensitive values that each person has, numbered.

    ``first`` (int64, shape (s + 2,)) holds the first number of the pairs of each attribute, then
    that of the people, then the end. ``values`` (numbered through all attributes) and ``people``
    describe each pair, by attribute, value and person.
    """

    first: Integers
    values: Integers
    people: Integers

    @property
    def number(self) -> int:
        """Number of different people."""
        return int(self.first[-1] - self.first[-2])


@dataclass(frozen=True)
class PeopleOfGroup:
    """What criteria that count people need of a group.

    ``number`` counts its people. ``matched`` is, for each sensitive attribute, the number of values
    that have a person of their own, counted up to the number that is asked for.
    """

    number: int
    matched: Sequence[int]


def paired(values: Integers) -> tuple[Integers, PairedPeople]:
    """Assign numbers to people, and to pairs of a sensitive value and a person.

    ``values`` (int64, shape (n, s + 1)) holds the numbers of the sensitive values, consecutive over
    all attributes, and last the hash of the person. The first result has the same shape: the
    numbers of a record's pairs and of its person, also consecutive. O(n log n) for each attribute.
    The order of the records does not matter.

    >>> numbers, pairs = paired(np.array([[0, 70], [1, 70], [0, 70]]))
    >>> numbers.tolist(), pairs.first.tolist()
    ([[0, 2], [1, 2], [0, 2]], [0, 2, 3])
    """
    people, number = numbered(values[:, -1])
    uniques = [
        np.unique(values[:, index] * max(number, 1) + people, return_inverse=True)
        for index in range(values.shape[1] - 1)
    ]
    sizes = [*(len(pairs) for pairs, _ in uniques), number]
    first = np.cumsum([0, *sizes]).astype(np.int64)
    numbers = np.empty_like(values)
    for position, (_, inverse) in enumerate(uniques):
        numbers[:, position] = first[position] + inverse
    numbers[:, -1] = first[-2] + people
    pairs = np.concatenate([np.zeros(0, np.int64), *(pairs for pairs, _ in uniques)])
    values_of_pairs, people_of_pairs = np.divmod(pairs, max(number, 1))
    return numbers, PairedPeople(first, values_of_pairs, people_of_pairs)


Counts = npt.NDArray[np.int64]

_NEVER = np.iinfo(np.int64).max


def _kind_of(criterion: Criterion) -> int:
    """Return the number by which kernels know a criterion: a constant, or a function's address."""
    constant = criterion.type.kernel
    if isinstance(constant, str):
        return int(getattr(kernel, constant))
    return address_of(constant, criterion.kind)


@dataclass(frozen=True)
class Criteria:
    """The requirements of every class of every round: k, and the criteria beyond k.

    ``sensitive`` are the attributes that the criteria are about, each once. ``units`` describes the
    people, of whom a class must have k, if people have several records, or is None if records are
    counted.
    """

    k: int
    criteria: tuple[Criterion, ...] = ()
    sensitive: tuple[SensitiveAttribute, ...] = ()
    units: Units | None = None

    @property
    def has_more_than_k(self) -> bool:
        """Return whether a class must satisfy more than to have k records."""
        return bool(self.criteria) or self.units is not None

    def __getstate__(self) -> dict[str, object]:
        # Another process has its functions elsewhere.
        return {key: value for key, value in vars(self).items() if key != "requirements"}

    @cached_property
    def first_value(self) -> Counts:
        """Return the first number of the values of each attribute, if all are numbered through."""
        sizes = [len(attribute.values) for attribute in self.sensitive]
        return np.cumsum([0, *sizes]).astype(np.int64)

    @cached_property
    def requirements(self) -> Requirements:
        """The requirements for the kernels, without those for people."""
        return self._requirements(None)

    def requirements_among(self, pairs: PairedPeople | None) -> Requirements:
        """Return the requirements for the kernels, with people (None if records are counted)."""
        return self.requirements if self.units is None else self._requirements(pairs)

    def _requirements(self, pairs: PairedPeople | None) -> Requirements:
        """Collect the arrays by which kernels judge groups. People count if ``pairs`` are given."""
        names = [attribute.name for attribute in self.sensitive]
        nodes = [len(attribute.parents) for attribute in self.sensitive]
        shares = np.concatenate([np.zeros(0), *(attribute.shares for attribute in self.sensitive)])
        parents = [np.zeros(0, np.int64), *(attribute.parents for attribute in self.sensitive)]
        heights = [np.zeros(0), *(attribute.heights for attribute in self.sensitive)]
        kinds = [_kind_of(criterion) for criterion in self.criteria]
        attributes = [names.index(criterion.attribute) for criterion in self.criteria]
        bounds = [(float(criterion.bound), criterion.c) for criterion in self.criteria]
        certain = [_NEVER] * len(kinds)
        first_value = self.first_value
        no_pairs = np.zeros(0, np.int64)
        if self.units is not None and pairs is not None:
            # k people are k different values of the attribute that identifies them.
            kinds = [*(kind + BY_PEOPLE for kind in kinds), kernel.DISTINCT]
            attributes.append(len(names))
            bounds.append((float(self.k), 0.0))
            certain.append(self.units.of_fewer_than_k)
            nodes.append(0)
            first_value = pairs.first
            # As many shares as there are numbers, which no criterion reads.
            shares = np.zeros(int(pairs.first[-1]))
        return Requirements(
            k=self.k,
            kinds=np.array(kinds, np.int64),
            attributes=np.array(attributes, np.int64),
            bounds=np.array(bounds, float).reshape(-1, 2),
            certain=np.array(certain, np.int64),
            first_value=first_value,
            shares=shares,
            paired_values=no_pairs if pairs is None else pairs.values,
            paired_people=no_pairs if pairs is None else pairs.people,
            first_node=np.cumsum([0, *nodes]).astype(np.int64),
            parents=np.concatenate(parents),
            heights=np.concatenate(heights).astype(np.float64),
        )

    @property
    def counts_people(self) -> bool:
        """Return whether criteria beyond k count people, of whom one may have several values."""
        return self.units is not None and bool(self.criteria)

    @cached_property
    def most_matched(self) -> list[int]:
        """Number of values of each sensitive attribute that must be of different people."""
        return [
            max(
                (
                    int(criterion.bound)
                    for criterion in self.criteria
                    if criterion.asks_for_distinct(attribute.name)
                ),
                default=0,
            )
            for attribute in self.sensitive
        ]

    def violated_by_people(self, people: PeopleOfGroup) -> Criterion | None:
        """Return the first distinct l-diversity that a group violates, if any, counting people."""
        names = [attribute.name for attribute in self.sensitive]
        for criterion in self.criteria:
            index = names.index(criterion.attribute)
            if people.matched[index] < criterion.bound:
                return criterion
        return None

    def satisfied_by(self, rows: int, counts: Sequence[Counts]) -> bool:
        """Return whether a group may be a class.

        ``counts`` are, for each sensitive attribute, its records with each value.

        >>> Criteria(k=3).satisfied_by(3, []), Criteria(k=3).satisfied_by(2, [])
        (True, False)
        """
        return rows >= self.k and self.violated_by(rows, counts) is None

    def violated_by(self, rows: int, counts: Sequence[Counts]) -> Criterion | None:
        """Return the first criterion beyond k that a group of records violates, if any."""
        if not self.criteria or not rows:
            return None
        if self.counts_people:
            raise ValueError("the criteria count people, not records")
        flat = np.concatenate([np.asarray(part, np.int64) for part in counts])
        present = np.zeros(len(flat), np.int64)
        occurring = np.flatnonzero(flat)
        present[: len(occurring)] = occurring
        index = kernel.first_unsatisfied(self.requirements, flat, present, len(occurring), rows)
        return None if index < 0 else self.criteria[index]
