"""Count the distinct tuples of a table on the cluster, and work on them there if they are many.

Tuples travel as few 64-bit words, mixed-radix numbers of their groups: a group-by of integers is
what Spark does fastest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.core.columns import UNIT, quasi_identifier_column
from anonspark.core.criteria import Criteria, PairedPeople, paired
from anonspark.engine.protocol import Table
from anonspark.kernels.tuple_classes import find_utility_classes
from anonspark.layers.partition.lattice.domain import Codes, Counts, Domain, Levels
from anonspark.layers.partition.lattice.tuples import NodeScore, Tuples, TupleTable, score_tuples
from anonspark.staged.records import Records

_NumberedTuples = tuple[Codes, Counts, PairedPeople | None]

_WORD = 2**63
_COUNT = "count"

# Tuples that one task holds.
_TASK_TUPLES = 2_000_000


@dataclass(frozen=True)
class Packing:
    """Writes rows of small numbers as few 64-bit words, and reads them again.

    The numbers of each column are smaller than its radix.

    >>> packing = Packing((10, 7))
    >>> words = packing.pack(np.array([[3, 6], [0, 1]], np.int32))
    >>> [word.tolist() for word in words], packing.unpack(words).tolist()
    ([[27, 1]], [[3, 6], [0, 1]])
    """

    radices: tuple[int, ...]

    @property
    def word_of(self) -> list[int]:
        """Word that each column goes to."""
        words, room = [], 0
        word = -1
        for radix in self.radices:
            if room < radix:
                word, room = word + 1, _WORD
            words.append(word)
            room //= radix
        return words

    @property
    def words(self) -> int:
        """Number of words."""
        return self.word_of[-1] + 1 if self.radices else 0

    def pack(self, codes: Codes) -> list[Counts]:
        """Return the words of each row of an int32 ndarray of shape (n, columns)."""
        packed = [np.zeros(len(codes), np.int64) for _ in range(self.words)]
        for column, (word, radix) in enumerate(zip(self.word_of, self.radices, strict=True)):
            packed[word] *= radix
            packed[word] += codes[:, column]
        return packed

    def unpack(self, words: Sequence[Counts]) -> Codes:
        """Return the rows of words. The opposite of :meth:`pack`."""
        rest = [word.copy() for word in words]
        codes = np.empty((len(words[0]) if words else 0, len(self.radices)), np.int32)
        for column in reversed(range(len(self.radices))):
            word = self.word_of[column]
            rest[word], codes[:, column] = np.divmod(rest[word], self.radices[column])
        return codes


def word_names(words: int, prefix: str = "tuple") -> list[str]:
    """Return the names of columns of words.

    >>> word_names(2)
    ['tuple_0', 'tuple_1']
    """
    return [f"{prefix}_{index}" for index in range(words)]


@dataclass(frozen=True)
class _Format:
    """The form of the tuples of one node: words of the groups, and of the sensitive values."""

    domain: Domain
    levels: Levels

    @property
    def groups(self) -> Packing:
        return Packing(tuple(self.domain.groups(self.levels)))

    @property
    def values(self) -> Packing:
        return Packing(tuple(self.domain.radices(self.levels)[len(self.levels) :]))

    @property
    def group_names(self) -> list[str]:
        return word_names(self.groups.words)

    @property
    def names(self) -> list[str]:
        units = [UNIT] * self.domain.counts_units
        return [*self.group_names, *word_names(self.values.words, "values"), *units]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, pa.int64()) for name in [*self.names, _COUNT]])

    def write(self, codes: Codes, units: Counts | None, counts: Counts) -> pa.RecordBatch:
        """Add up equal tuples and write each once. ``units`` are the people, or None."""
        d = len(self.levels)
        words = [*self.groups.pack(codes[:, :d]), *self.values.pack(codes[:, d:])]
        words += [] if units is None else [units]
        order = np.lexsort(words[::-1])
        words = [word[order] for word in words]
        new = np.ones(len(order), bool)
        if len(order):
            new[1:] = np.logical_or.reduce([word[1:] != word[:-1] for word in words])
        starts = np.flatnonzero(new)
        sums = np.add.reduceat(counts[order], starts) if len(order) else counts
        arrays = [pa.array(word) for word in [*(word[starts] for word in words), sums]]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def read(self, columns: dict[str, Counts]) -> tuple[Codes, Counts | None, Counts]:
        """Return different tuples in lexicographic order, as :meth:`write` takes them."""
        # The order of the words is that of the numbers in them.
        order = np.lexsort([columns[name] for name in reversed(self.names)])
        words = [columns[name][order] for name in self.names]
        d, first = len(self.levels), self.groups.words
        codes = np.empty((len(order), self.domain.columns - self.domain.counts_units), np.int32)
        codes[:, :d] = self.groups.unpack(words[:first])
        if self.values.words:
            codes[:, d:] = self.values.unpack(words[first : first + self.values.words])
        units = words[-1] if self.domain.counts_units else None
        return codes, units, columns[_COUNT][order]

    def read_numbered(self, columns: dict[str, Counts]) -> _NumberedTuples:
        """Return different tuples in lexicographic order, with numbers for people.

        If people are counted, pairs of a sensitive value and a person, and people, are numbered
        instead of sensitive values.
        """
        codes, units, counts = self.read(columns)
        if units is None:
            return codes, counts, None
        d = len(self.levels)
        numbers, pairs = paired(np.column_stack([codes[:, d:].astype(np.int64), units]))
        codes = np.column_stack([codes[:, :d], numbers.astype(np.int32)])
        # Pairs of one attribute are not in the order of the values of the next one.
        order = np.lexsort(codes.T[::-1])
        return codes[order], counts[order], pairs

    def read_all(self, batches: Iterator[pa.RecordBatch]) -> _NumberedTuples | None:
        nonempty = [batch for batch in batches if batch.num_rows]
        if not nonempty:
            return None
        table = pa.Table.from_batches(nonempty)
        return self.read_numbered(
            {name: table.column(name).to_numpy() for name in table.column_names}
        )


@dataclass(frozen=True)
class _CountRecords:
    """Counts the tuples of one partition's records, batch by batch, in a Python worker."""

    format: _Format

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            codes, units = self.format.domain.encode(batch, self.format.levels)
            yield self.format.write(codes, units, np.ones(len(codes), np.int64))


@dataclass(frozen=True)
class _RollUp:
    """Rolls up the tuples of one partition, batch by batch, in a Python worker."""

    low: _Format
    high: _Format

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Replace each group of a tuple by the one of the high node that contains it."""
        for batch in batches:
            columns = {name: batch.column(name).to_numpy() for name in batch.schema.names}
            codes, units, counts = self.low.read(columns)
            steps = zip(self.low.domain.attributes, self.low.levels, self.high.levels, strict=True)
            for column, (attribute, low, high) in enumerate(steps):
                codes[:, column] = attribute.between(low, high)[codes[:, column]]
            yield self.high.write(codes, units, counts)


_SCORE = pa.schema(
    [
        *((name, pa.int64()) for name in ("classes", "utility_classes", "suppressed")),
        *((name, pa.string()) for name in ("squares", "utility_squares")),
        ("groups", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True)
class _Score:
    """Judges the classes of one partition, which holds them whole, in a Python worker."""

    format: _Format
    criteria: Criteria
    by_group: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the score of the classes as one row, or nothing if the partition is empty."""
        numbered = self.format.read_all(batches)
        if numbered is None:
            return
        codes, counts, pairs = numbered
        score = score_tuples(
            codes,
            counts,
            self.format.domain,
            self.format.levels,
            self.criteria.requirements_among(pairs),
            by_group=self.by_group,
        )
        row = score._asdict() | {
            "squares": str(score.squares),
            "utility_squares": str(score.utility_squares),
            "groups": score.groups.tolist(),
        }
        yield pa.RecordBatch.from_pylist([row], schema=_SCORE)


@dataclass(frozen=True)
class _UtilityClasses:
    """Finds the classes of one partition that satisfy the criteria, in a Python worker."""

    format: _Format
    criteria: Criteria

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, pa.int64()) for name in [*self.format.group_names, "size"]])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbered = self.format.read_all(batches)
        if numbered is None:
            return
        codes, counts, pairs = numbered
        d = len(self.format.levels)
        requirements = self.criteria.requirements_among(pairs)
        rows, sizes = find_utility_classes(codes, counts, d, requirements)
        words = self.format.groups.pack(codes[rows, :d])
        yield pa.RecordBatch.from_arrays(
            [pa.array(word) for word in [*words, sizes]], schema=self.schema
        )


@dataclass(frozen=True)
class DistributedTuples:
    """Distinct tuples on the cluster, more than ``most_on_driver``.

    ``rows`` holds them, and is kept until :meth:`release`.
    """

    domain: Domain
    levels: Levels
    rows: Table
    tuples: int
    most_on_driver: int

    @property
    def _format(self) -> _Format:
        return _Format(self.domain, self.levels)

    def roll_up(self, levels: Levels) -> TupleTable:
        """Return the table of a more general node: on the driver, if it fits.

        One job with one shuffle of tuples, and one more that collects them if they fit.
        """
        high = _Format(self.domain, levels)
        rolled = self.rows.map_batches(_RollUp(self._format, high), high.schema)
        return _sum_up(rolled, high, self.most_on_driver)

    def score(self, criteria: Criteria, *, by_group: bool) -> NodeScore:
        """Judge the classes. One job with one shuffle of tuples."""
        judge = _Score(self._format, criteria, by_group)
        parts = self._by_class().map_batches(judge, _SCORE).collect().to_pylist()
        return NodeScore(
            classes=sum(part["classes"] for part in parts),
            utility_classes=sum(part["utility_classes"] for part in parts),
            suppressed=sum(part["suppressed"] for part in parts),
            squares=sum(int(part["squares"]) for part in parts),
            utility_squares=sum(int(part["utility_squares"]) for part in parts),
            groups=np.sum([part["groups"] for part in parts], axis=0, dtype=np.int64),
        )

    def utility_class_rows(self, criteria: Criteria) -> Table:
        """Return the words and the size of each class that satisfies the criteria. Lazy."""
        find = _UtilityClasses(self._format, criteria)
        return self._by_class().map_batches(find, find.schema)

    def release(self) -> None:
        """Free the tuples on the cluster."""
        self.rows.unpersist()

    def _by_class(self) -> Table:
        return self.rows.group(self._format.group_names, -(-self.tuples // _TASK_TUPLES))


def _sum_up(rows: Table, form: _Format, most_on_driver: int) -> TupleTable:
    """Add up equal tuples, and take them to the driver if they fit."""
    summed = rows.aggregate(form.names, sums=[_COUNT]).persist()
    stays_distributed = False
    try:
        tuples = summed.count()
        stays_distributed = tuples > most_on_driver
        if stays_distributed:
            return DistributedTuples(form.domain, form.levels, summed, tuples, most_on_driver)
        columns = summed.collect()
    finally:
        if not stays_distributed:
            summed.unpersist()
    numbered = form.read_numbered({name: columns[name].to_numpy() for name in columns.column_names})
    return Tuples(form.domain, form.levels, *numbered)


def count_tuples(
    records: Records, domain: Domain, levels: Levels, most_on_driver: int
) -> TupleTable:
    """Count the distinct tuples of staged records at the lowest node of the lattice.

    Reads the quasi-identifiers and the sensitive attributes of criteria once. The driver takes up
    to ``most_on_driver`` tuples, with their sensitive values, at most 100 bytes each during the
    search with some ten quasi-identifiers. One job with one shuffle of tuples, and one more that
    collects them if they fit.
    """
    names = [quasi_identifier_column(index) for index in range(len(levels))]
    names += [attribute.column for attribute in domain.criteria.sensitive]
    names += [UNIT] * domain.counts_units
    form = _Format(domain, levels)
    counted = records.map_batches(_CountRecords(form), form.schema, names)
    return _sum_up(counted, form, most_on_driver)
