"""The table ``metrics/classes``, held against the classes that the records form.

Both are summed up to one number: over records, the keyed hashes of the bounds of their class. The
key is drawn for each verification, so that no one can choose bounds that agree by accident. One
pass over the table, which rides on no shuffle but that of its sizes.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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

    Parameters
    ----------
    readers : tuple of BoundsReader
        Of each quasi-identifier.
    key : int
    """

    readers: tuple[BoundsReader, ...]
    key: int = field(default_factory=lambda: secrets.randbits(63))

    @property
    def columns(self) -> list[str]:
        """Return the published columns of quasi-identifiers."""
        return [name for one in self.readers for name in one.attribute.columns]

    def misread(self, schema: pa.Schema) -> list[str]:
        """Return the published columns that are of another type than they were published with."""
        return [
            name
            for one in self.readers
            for name, wanted in one.published_types.items()
            if name in schema.names and not is_alike(schema.field(name).type, wanted)
        ]

    def hashes(self, ends: Sequence[pa.Array], sizes: npt.NDArray[np.int64]) -> list[pa.Array]:
        """Return the halves of the hashes of bounds, each times the records of its class.

        Parameters
        ----------
        ends : sequence of pyarrow.Array
            Lowest and highest values of each attribute, as readers return them.
        sizes : int64 ndarray of shape (classes,)
        """
        found = content_hash(ends, self.key, rows=len(sizes)).view(np.uint64)
        products = found * sizes.astype(np.uint64)
        low = products & np.uint64(2**_HALF - 1)
        return [pa.array(one.astype(np.int64)) for one in (products >> np.uint64(_HALF), low)]

    def hash_of(self, labels: Sequence[str | None], records: int) -> int:
        """Return what records add whose labels are bounds themselves."""
        ends = [pa.array([one], pa.string()) for one in labels for _ in range(2)]
        high, low = self.hashes(ends, np.array([records], np.int64))
        return joined(high[0].as_py(), low[0].as_py())


def joined(high: int, low: int) -> int:
    """Return the number of sums of halves, modulo 2^64."""
    return ((high << _HALF) + low) % _WORD


@dataclass(frozen=True)
class ClassTable:
    """The content of the table.

    Parameters
    ----------
    sizes : mapping of int to int
        Classes of each size.
    bounds : int
        See :meth:`ClassLabels.hashes`.
    unsound : int
        Rows that no run writes: of another run, without a name of 16 hexadecimal digits, a size or
        round, or with a loss where means hide how wide classes are.
    """

    sizes: Mapping[int, int]
    bounds: int
    unsound: int = 0

    @property
    def rows(self) -> int:
        """Return the records in the classes."""
        return sum(size * classes for size, classes in self.sizes.items())


def class_schema(labels: ClassLabels) -> pa.Schema:
    """Return the schema of the table, as runs write it."""
    bounds = [pair for one in labels.readers for pair in one.bound_types.items()]
    names = [("run_id", pa.string()), ("class_id", pa.string())]
    return pa.schema(
        [*names, ("round", pa.int32()), ("size", pa.int64()), *bounds, ("ncp", pa.float64())]
    )


def read_class_table(table: Table, labels: ClassLabels, run_id: str) -> ClassTable:
    """Read the table, of :func:`class_schema`. One pass, and one shuffle of a row a batch and size.

    Parameters
    ----------
    table : Table
    labels : ClassLabels
    run_id : str
        Of its release.
    """
    sums = _SUMS.names[1:]
    found = table.map_batches(_ReadClasses(labels, run_id), _SUMS).aggregate(["size"], sums=sums)
    rows = found.collect().to_pylist()
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
        for batch in batches:
            sizes = batch.column("size").fill_null(0).to_numpy()
            ends = [
                end
                for one in self.labels.readers
                for end in one.bounds_of(*(batch.column(name) for name in one.bound_types))
            ]
            named = pc.match_substring_regex(batch.column("class_id"), _NAME)
            sound = pc.and_kleene(pc.equal(batch.column("run_id"), self.run_id), named)
            sound = flags(sound.fill_null(fill_value=False)) & (sizes > 0)
            sound &= flags(batch.column("round").is_valid())
            if any(one.content == "mean" for one in self.labels.readers):
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

    Parameters
    ----------
    unsound : tuple of int
        Of labels that no run writes.
    wider : tuple of int
        Of labels that stand for several values. Of means and labels of hierarchies 0.
    fine : tuple of int
        Labels whose ends may be equal as floating-point numbers, as runs measure them.
    bounds : int
        See :meth:`ClassLabels.hashes`.
    """

    unsound: tuple[int, ...]
    wider: tuple[int, ...]
    fine: tuple[int, ...]
    bounds: int


_COUNTS = ("unsound", "wider", "fine")


@dataclass(frozen=True)
class LabelSums:
    """Counts the records of classes by what their labels say.

    Parameters
    ----------
    labels : ClassLabels
    columns : tuple of str
        Those that hold them, in the order of :attr:`ClassLabels.columns`.
    """

    labels: ClassLabels
    columns: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The columns of the sums, of 64-bit integers."""
        places = range(len(self.labels.readers))
        return [*HALVES, *(f"{count}_{place}" for count in _COUNTS for place in places)]

    def of_classes(self, batch: pa.RecordBatch, sizes: Integers) -> list[pa.Array]:
        """Return the columns of :attr:`names`, an entry a class of so many records."""
        columns = iter(self.columns)
        read = [
            one.read([batch.column(next(columns)) for _ in one.attribute.columns])
            for one in self.labels.readers
        ]
        halves = self.labels.hashes([end for one in read for end in one[:2]], sizes)
        counted = ((~one.sound, one.wider, one.fine) for one in read)
        of_counts = zip(*counted, strict=True)
        return [*halves, *(pa.array(sizes * one) for own in of_counts for one in own)]

    def read(self, sums: Mapping[str, int]) -> ReadLabels:
        """Return the sums over all classes."""
        places = range(len(self.labels.readers))
        return ReadLabels(
            **{count: tuple(sums[f"{count}_{place}"] for place in places) for count in _COUNTS},
            bounds=joined(*(sums[half] for half in HALVES)),
        )
