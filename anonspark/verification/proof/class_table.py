"""The table ``metrics/classes``, held against the classes that the records form.

Both are summed up to one number: over records, the keyed hashes of the bounds of their class. The
key is drawn for each verification, so that no one can choose bounds that agree by accident. One
pass over the table, which rides on no shuffle but that of its sizes.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import flags
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import content_hash
from anonspark.labels.class_bounds import BoundsReader, is_alike

HALVES = ("bounds_high", "bounds_low")
"""Columns of both halves of a number of 64 bits, whose sums fit."""

_HALF = 32
_WORD = 2**64

_NAME = r"^[0-9a-f]{16}$"


@dataclass(frozen=True)
class ClassLabels:
    """The reading of a release's labels, and the key of the hashes of their bounds.

    A reader for each quasi-identifier.
    """

    readers: tuple[BoundsReader, ...]
    key: int = field(default_factory=lambda: secrets.randbits(63))

    @property
    def columns(self) -> list[str]:
        """The published columns of quasi-identifiers."""
        return [name for reader in self.readers for name in reader.attribute.columns]

    def misread(self, schema: pa.Schema) -> list[str]:
        """Return the published columns that are of another type than they were published with."""
        return [
            name
            for reader in self.readers
            for name, data_type in reader.published_types.items()
            if name in schema.names and not is_alike(schema.field(name).type, data_type)
        ]

    def hashes(self, ends: Sequence[pa.Array], sizes: npt.NDArray[np.int64]) -> list[pa.Array]:
        """Return the halves of the hashes of bounds, each times the records of its class.

        ``ends`` are the lowest and highest values of each attribute, as readers return them,
        ``sizes`` is int64 of shape (classes,).
        """
        class_hashes = content_hash(ends, self.key, rows=len(sizes)).view(np.uint64)
        products = class_hashes * sizes.astype(np.uint64)
        low = products & np.uint64(2**_HALF - 1)
        return [pa.array(half.astype(np.int64)) for half in (products >> np.uint64(_HALF), low)]

    def hash_of(self, labels: Sequence[str | None], records: int) -> int:
        """Return what records add to the sum if their labels are bounds themselves.

        >>> labels = ClassLabels((), key=7)
        >>> labels.hash_of(["*"], 2) == 2 * labels.hash_of(["*"], 1) % 2**64
        True
        """
        ends = [pa.array([label], pa.string()) for label in labels for _ in range(2)]
        high, low = self.hashes(ends, np.array([records], np.int64))
        return joined(high[0].as_py(), low[0].as_py())


def joined(high: int, low: int) -> int:
    """Return the number of sums of halves, modulo 2^64.

    >>> joined(1, 5) == 2**32 + 5
    True
    """
    return ((high << _HALF) + low) % _WORD


@dataclass(frozen=True)
class ClassTable:
    """The content of the table: classes of each size, and the sum of the hashes of their bounds.

    ``unsound`` counts rows that no run writes: of another run, without a name of 16 hexadecimal
    digits, a size or round, or with a loss where means hide how wide classes are.

    >>> ClassTable({2: 3, 5: 1}, bounds=0).rows
    11
    """

    sizes: Mapping[int, int]
    bounds: int
    unsound: int = 0

    @property
    def rows(self) -> int:
        """The records in the classes."""
        return sum(size * classes for size, classes in self.sizes.items())


def class_schema(labels: ClassLabels) -> pa.Schema:
    """Return the schema of the table, as runs write it.

    >>> class_schema(ClassLabels(())).names
    ['run_id', 'class_id', 'round', 'size', 'ncp']
    """
    bounds = [pair for reader in labels.readers for pair in reader.bound_types.items()]
    names = [("run_id", pa.string()), ("class_id", pa.string())]
    return pa.schema(
        [*names, ("round", pa.int32()), ("size", pa.int64()), *bounds, ("ncp", pa.float64())]
    )


def read_class_table(table: Table, labels: ClassLabels, run_id: str) -> ClassTable:
    """Read the table of a run. One pass, and one shuffle of a row a batch and size."""
    sums = _SUMS.names[1:]
    by_size = table.map_batches(_ReadClasses(labels, run_id), _SUMS).aggregate(["size"], sums=sums)
    rows = by_size.collect().to_pylist()
    return ClassTable(
        {row["size"]: row["classes"] for row in rows if row["size"] > 0},
        joined(*(sum(row[half] for row in rows) for half in HALVES)),
        sum(row["unsound"] for row in rows),
    )


_SUMS = pa.schema([(name, pa.int64()) for name in ("size", "classes", "unsound", *HALVES)])


@dataclass(frozen=True)
class _ReadClasses:
    """Sums up the classes of each batch by size."""

    labels: ClassLabels
    run_id: str

    def __call__(self, batches: Batches) -> Batches:
        """Sum the classes of each batch by size: their number, faults, and hashes of labels."""
        for batch in batches:
            sizes = batch.column("size").fill_null(0).to_numpy()
            ends = [
                end
                for reader in self.labels.readers
                for end in reader.bounds_of(*(batch.column(name) for name in reader.bound_types))
            ]
            has_name = pc.match_substring_regex(batch.column("class_id"), _NAME)
            sound = pc.and_kleene(pc.equal(batch.column("run_id"), self.run_id), has_name)
            sound = flags(sound.fill_null(fill_value=False)) & (sizes > 0)
            sound &= flags(batch.column("round").is_valid())
            if any(reader.content == "mean" for reader in self.labels.readers):
                sound &= flags(batch.column("ncp").is_null())
            table = pa.table(
                [
                    pa.array(sizes),
                    pa.repeat(1, len(sizes)),
                    pa.array((~sound).astype(np.int64)),
                    *self.labels.hashes(ends, sizes),
                ],
                _SUMS.names,
            )
            sums = [(name, "sum") for name in _SUMS.names[1:]]
            of_sizes = table.group_by(["size"], use_threads=False).aggregate(sums)
            columns = [of_sizes[name] for name in ("size", *(f"{name}_sum" for name, _ in sums))]
            yield from pa.table(columns, schema=_SUMS).to_batches()


@dataclass(frozen=True)
class ReadLabels:
    """The content of the records' labels, in records. An entry an attribute.

    ``unsound`` labels no run writes, ``wider`` ones stand for several values (0 for means and
    hierarchies), ``fine`` ones have ends that may be equal as floating-point numbers, by which runs
    measure them. ``bounds`` is the sum of :meth:`ClassLabels.hashes`.
    """

    unsound: tuple[int, ...]
    wider: tuple[int, ...]
    fine: tuple[int, ...]
    bounds: int


_COUNTS = ("unsound", "wider", "fine")


@dataclass(frozen=True)
class LabelSums:
    """Counts the records of classes by the content of their labels.

    ``columns`` hold the labels, in the order of :attr:`ClassLabels.columns`.

    >>> LabelSums(ClassLabels(()), ()).names
    ['bounds_high', 'bounds_low']
    """

    labels: ClassLabels
    columns: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The columns of the sums, of 64-bit integers."""
        places = range(len(self.labels.readers))
        return [*HALVES, *(f"{count}_{index}" for count in _COUNTS for index in places)]

    def of_classes(self, batch: pa.RecordBatch, sizes: Integers) -> list[pa.Array]:
        """Return the columns of :attr:`names`, an entry a class of so many records."""
        columns = iter(self.columns)
        read = [
            bounds.read([batch.column(next(columns)) for _ in bounds.attribute.columns])
            for bounds in self.labels.readers
        ]
        halves = self.labels.hashes([end for bounds in read for end in bounds[:2]], sizes)
        counted = ((~bounds.sound, bounds.wider, bounds.fine) for bounds in read)
        of_counts = zip(*counted, strict=True)
        return [*halves, *(pa.array(sizes * is_such) for is_such in chain.from_iterable(of_counts))]

    def read(self, sums: Mapping[str, int]) -> ReadLabels:
        """Return the sums over all classes."""
        places = range(len(self.labels.readers))
        return ReadLabels(
            **{count: tuple(sums[f"{count}_{index}"] for index in places) for count in _COUNTS},
            bounds=joined(*(sums[half] for half in HALVES)),
        )
