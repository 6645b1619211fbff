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
    """Return how many values can have a person of their own each who has it, at most ``most``.

    Parameters
    ----------
    values, people : int64 ndarray of shape (n,)
        Pairs of a value and a person who has it, in any order.
    most : int
    """
    return len(match_values(*_different(values, people), most))


def enough_pairs(values: Integers, people: Integers, most: int) -> tuple[Integers, Integers]:
    """Return few of some pairs, for which :func:`matched_values` is the same.

    Parameters
    ----------
    values, people, most
        See :func:`matched_values`.

    Returns
    -------
    values, people : int64 ndarray of shape (fewer,)
        ``most`` pairs, or those of the first ``most`` people of each value and the first ``most``
        values of each person: at most 2 ``most``^2. Why that is enough: docs/algorithms.md.
    """
    values, people = _different(values, people)
    chosen = match_values(values, people, most)
    if len(chosen) < most:
        chosen = np.flatnonzero(_places_in_runs(values) < most)
        by_person = chosen[np.lexsort((values[chosen], people[chosen]))]
        chosen = by_person[_places_in_runs(people[by_person]) < most]
    return values[chosen], people[chosen]


def matched_of_attributes(
    first_value: Integers, most_matched: Sequence[int], items: Integers, people: Integers
) -> list[int]:
    """Return :func:`matched_values` of each sensitive attribute.

    Parameters
    ----------
    first_value : int64 ndarray of shape (s + 1,)
        Where the values of each attribute begin.
    most_matched : sequence of int
        Of each attribute how many values are asked for.
    items, people : int64 ndarray of shape (n,)
        Pairs of a value, numbered through all attributes, and a person.
    """
    matched = []
    first = first_value.tolist()
    for index, most in enumerate(most_matched):
        chosen = (first[index] <= items) & (items < first[index + 1])
        matched.append(matched_values(items[chosen], people[chosen], most) if most else 0)
    return matched


def _different(values: Integers, people: Integers) -> tuple[Integers, Integers]:
    """Return each pair once, by value and person."""
    order = np.lexsort((people, values))
    values, people = values[order], people[order]
    new = np.ones(len(order), bool)
    new[1:] = (values[1:] != values[:-1]) | (people[1:] != people[:-1])
    return values[new], people[new]


def _places_in_runs(ordered: Integers) -> Integers:
    """Return the place of each element among those that are equal to it and follow each other."""
    new = np.ones(len(ordered), bool)
    new[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    places: Integers = np.arange(len(ordered)) - starts[np.cumsum(new) - 1]
    return places


def comparable(values: pa.Array, *, as_text: bool) -> pa.Array:
    """Return values so that equal ones are equal to Arrow, too.

    Parameters
    ----------
    values : pyarrow.Array
    as_text : bool
        Whether they are compared as texts without blanks at their ends.
    """
    if pa.types.is_floating(values.type):
        # -0.0 and 0.0 are one value.
        values = pc.add(values, pa.scalar(0.0, values.type))
    return pc.utf8_trim_whitespace(values.cast(pa.string())) if as_text else values


@dataclass(frozen=True)
class SensitiveAttribute:
    """A sensitive attribute that a criterion is about.

    Parameters
    ----------
    name : str
        As configured.
    column : str
        Its staged column.
    values : pyarrow.Array
        Its different values in order. A null, which is a value of its own, comes last.
    counts : int64 ndarray of shape (values,)
        Records of the whole input with each value.
    parents, heights : int64 ndarray of shape (nodes,)
        Nodes of its hierarchy bottom up, the values first. Empty where it has none.
    as_text : bool
        Whether values are compared as texts without blanks at their ends, as those that a
        hierarchy or a declared order lists.
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
        """Return the place of each value among :attr:`values`.

        Raises
        ------
        ValueError
            If a value is none of them: the data changed after they were counted.
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        coded = pa.types.is_dictionary(column.type)
        values = comparable(column.dictionary if coded else column, as_text=self.as_text)
        places = pc.index_in(values, value_set=self.values)
        if coded:
            missing = pc.index_in(pa.nulls(1, self.values.type), value_set=self.values)[0]
            places = pc.if_else(column.is_null(), missing, places.take(column.indices))
        if places.null_count:
            raise ValueError("a sensitive value is unknown in the staged records")
        encoded: Integers = places.to_numpy(zero_copy_only=False).astype(np.int64)
        return encoded


# A kernel calls a C function by its address, which takes seven numbers: the addresses of codes and
# counts of the values that a group has, their number, the address of the shares of all values in
# the whole input, their number, the records of the group, and the bound. It returns how many
# records the group lacks at least, and 0 where it satisfies the criterion.
#
# A Python function is called with a :class:`GroupValues` and the bound. One with an ``address``,
# as ``numba.cfunc`` makes it, is called as it is.


class GroupValues(NamedTuple):
    """The sensitive values of a group of records.

    Attributes
    ----------
    codes : int64 ndarray of shape (values of the group,)
        Codes of the values that the group has, ascending.
    counts : int64 ndarray of shape (values of the group,)
        Its records with each of them.
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
    """Return a C function that calls one of Python. -1 stands for an exception."""

    def call(*numbers: Any) -> int:
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
        # A kernel can take none; its text may hold values.
        except BaseException as error:  # noqa: BLE001
            _LOGGER.error("privacy.%s: judging a group ends with %s", key, type(error).__name__)  # noqa: TRY400
            return -1

    return _FUNCTION(call)


def _array(address: int, length: int, kind: Any) -> np.ndarray[Any, Any]:
    return np.ctypeslib.as_array((kind * length).from_address(address))


@cache
def address_of(judge: Callable[..., int], key: str) -> int:
    """Return the address of the C function that judges groups, in this process alone.

    Parameters
    ----------
    judge : callable
    key : str
        Of the criterion.

    Raises
    ------
    ConfigurationError
        It cannot judge a class of two records with the same value.
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
    """The known facts about the people of a table.

    Parameters
    ----------
    number : int
        Number of different people.
    most_records : int
        Of one of them.
    of_fewer_than_k : int
        Records that k - 1 people have at most: more records are about k people at least, in any
        part of the table.
    """

    number: int
    most_records: int
    of_fewer_than_k: int

    @property
    def repeat(self) -> bool:
        """Return whether any person has several records, else k people are k records."""
        return self.most_records > 1


def with_units(hashes: Integers, units: Integers) -> Integers:
    """Return hashes that distinguish equal records of different people.

    Parameters
    ----------
    hashes : int64 ndarray of shape (n,)
        Of the records' content.
    units : int64 ndarray of shape (n,)
        Hashes of whom they are about.

    Notes
    -----
    Records that are equal in everything but whom they are about are ordered by it, for it matters
    who stays in a class.
    """
    mixed = (hashes.view(np.uint64) ^ (units.view(np.uint64) * _MIX)) * _MIX
    return (mixed ^ (mixed >> np.uint64(32))).view(np.int64)


def numbered(units: Integers) -> tuple[Integers, int]:
    """Give each of the people of some records a number.

    Parameters
    ----------
    units : int64 ndarray of shape (n,)

    Returns
    -------
    numbers : int64 ndarray of shape (n,)
        From 0 on, in the order of the hashes.
    number : int
        Number of different people.
    """
    different, numbers = np.unique(units, return_inverse=True)
    return numbers.astype(np.int64, copy=False), len(different)


@dataclass(frozen=True)
class PairedPeople:
    """The people of some records and the sensitive values that each of them has, numbered.

    Parameters
    ----------
    first : int64 ndarray of shape (s + 2,)
        Where the numbers of each attribute's pairs begin, and those of people, and where they end.
    values, people : int64 ndarray of shape (pairs,)
        Value, numbered through all attributes, and person of each pair. By attribute, value and
        person.
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
    """The requirements of criteria for the people of a group.

    Parameters
    ----------
    number : int
        Number of different people.
    matched : sequence of int
        Of each sensitive attribute, the values that are of another person each, at most as many as
        are asked for.
    """

    number: int
    matched: Sequence[int]


def paired(values: Integers) -> tuple[Integers, PairedPeople]:
    """Give numbers to people, and to each pair of a sensitive value and a person.

    Parameters
    ----------
    values : int64 ndarray of shape (n, s + 1)
        Numbers of the sensitive values, those of all attributes numbered through, and the hash of
        whom the record is about.

    Returns
    -------
    numbers : int64 ndarray of shape (n, s + 1)
        Of the pair that each record is of, for each attribute, and of the person, numbered through.
    pairs : PairedPeople

    Notes
    -----
    O(n log n) for each attribute. No order of the records matters.
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
    own_values, own_people = np.divmod(pairs, max(number, 1))
    return numbers, PairedPeople(first, own_values, own_people)


Counts = npt.NDArray[np.int64]

_NEVER = np.iinfo(np.int64).max


def _kind_of(criterion: Criterion) -> int:
    """Return what kernels know a criterion by."""
    constant = criterion.type.kernel
    if isinstance(constant, str):
        return int(getattr(kernel, constant))
    return address_of(constant, criterion.kind)


@dataclass(frozen=True)
class Criteria:
    """The requirements of every class of every round.

    Parameters
    ----------
    k : int
        Smallest class size.
    criteria : tuple of Criterion
    sensitive : tuple of SensitiveAttribute
        The attributes that the criteria are about, each once.
    units : Units or None
        Of people, of whom a class has to have k, where they have several records. None where
        records are counted.
    """

    k: int
    criteria: tuple[Criterion, ...] = ()
    sensitive: tuple[SensitiveAttribute, ...] = ()
    units: Units | None = None

    @property
    def has_more_than_k(self) -> bool:
        """Return whether a class has to satisfy more than to have k records."""
        return bool(self.criteria) or self.units is not None

    def __getstate__(self) -> dict[str, object]:
        # Another process has its functions elsewhere.
        return {key: value for key, value in vars(self).items() if key != "requirements"}

    @cached_property
    def first_value(self) -> Counts:
        """Return where the values of each sensitive attribute begin if all are numbered through."""
        sizes = [len(attribute.values) for attribute in self.sensitive]
        return np.cumsum([0, *sizes]).astype(np.int64)

    @cached_property
    def requirements(self) -> Requirements:
        """The same for the kernels, but for what is said of people."""
        return self._requirements(None)

    def requirements_among(self, pairs: PairedPeople | None) -> Requirements:
        """Return the same for the kernels, for records of some people.

        Parameters
        ----------
        pairs : PairedPeople or None
            Those of the records. None where records are counted.
        """
        return self.requirements if self.units is None else self._requirements(pairs)

    def _requirements(self, pairs: PairedPeople | None) -> Requirements:
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
        none = np.zeros(0, np.int64)
        if self.units is not None and pairs is not None:
            # k people are k different values of what tells them apart.
            kinds = [*(kind + BY_PEOPLE for kind in kinds), kernel.DISTINCT]
            attributes.append(len(names))
            bounds.append((float(self.k), 0.0))
            certain.append(self.units.of_fewer_than_k)
            nodes.append(0)
            first_value = pairs.first
            # As many as there are numbers to count. None is compared.
            shares = np.zeros(int(pairs.first[-1]))
        return Requirements(
            k=self.k,
            kinds=np.array(kinds, np.int64),
            attributes=np.array(attributes, np.int64),
            bounds=np.array(bounds, float).reshape(-1, 2),
            certain=np.array(certain, np.int64),
            first_value=first_value,
            shares=shares,
            paired_values=none if pairs is None else pairs.values,
            paired_people=none if pairs is None else pairs.people,
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
        """Values of each sensitive attribute that have to be of another person each, at most."""
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

        Parameters
        ----------
        rows : int
            Its records.
        counts : sequence of int64 ndarray
            Its records with each value of each sensitive attribute.
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
