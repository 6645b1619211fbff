"""The table ``metrics/classes``, held against the classes that the records form.

Both are summed up to one number: over records, the keyed hashes of the bounds of their class. The
key is drawn for each verification, so that no one can choose bounds that agree by accident. One
pass over the table, which rides on no shuffle but that of its sizes.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags, Integers
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import flags
from anonspark.engine.tasks import Batches
from anonspark.engine.values.hashing import content_hash
from anonspark.release.class_bounds import BoundsReader, is_alike
from anonspark.release.derived_figures import Totals

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
    rounds : mapping of int to Totals
        Sums over the classes of each round, in order.
    bounds : int
        See :meth:`ClassLabels.hashes`.
    unsound : int
        Rows that no run writes: of another run, without a name of 16 hexadecimal digits, a size or
        round, or with a loss that cannot be.
    different : bool
        Whether no two rows of a file and its neighbours have one name.
    """

    rounds: Mapping[int, Totals]
    bounds: int
    unsound: int = 0
    different: bool = True

    @cached_property
    def total(self) -> Totals:
        """Sums over all classes."""
        return reduce(add, self.rounds.values(), Totals({}))


def class_schema(labels: ClassLabels) -> pa.Schema:
    """Return the schema of the table, as runs write it."""
    bounds = [pair for one in labels.readers for pair in one.bound_types.items()]
    names = [("run_id", pa.string()), ("class_id", pa.string())]
    return pa.schema(
        [*names, ("round", pa.int32()), ("size", pa.int64()), *bounds, ("ncp", pa.float64())]
    )


def read_class_table(
    table: Table, labels: ClassLabels, run_id: str, weight: float, files: int
) -> ClassTable:
    """Read the table.

    Parameters
    ----------
    table : Table
        Of :func:`class_schema`.
    labels : ClassLabels
    run_id : str
        Of its release.
    weight : float
        Of all quasi-identifiers together: the largest loss of a record.
    files : int
        Of the table. Which of them a class is in follows from its name.

    Notes
    -----
    One pass, and one shuffle of a row a batch and size.
    """
    read = _ReadClasses(labels, run_id, weight, max(files, 1))
    sums = ["classes", "unsound", "ncp", *HALVES]
    found = table.map_batches(read, _SUMS).aggregate(_KEYS, sums=sums).collect().to_pylist()
    rounds: dict[int, Totals] = {}
    for row in found:
        if (row["size"] or 0) > 0:  # other sizes are unsound
            own = Totals({row["size"]: row["classes"]}, row["size"] * Decimal(row["ncp"]))
            rounds[row["round"]] = rounds.get(row["round"], Totals({})) + own
    runs = sorted(
        (row["file"], row["first"], row["last"]) for row in found if row["file"] is not None
    )
    return ClassTable(
        dict(sorted(rounds.items())),
        joined(*(sum(row[half] for row in found) for half in HALVES)),
        sum(row["unsound"] for row in found),
        all(one[0] != following[0] or one[2] < following[1] for one, following in pairwise(runs))
        and all(row["classes"] == 1 for row in found if row["file"] is not None),
    )


_KEYS = ("round", "size", "file", "first", "last")

_COUNTED = ("size", "file", "first", "last", "classes", "unsound", *HALVES)

_SUMS = pa.schema(
    [
        ("round", pa.int32()),
        *((name, pa.int64()) for name in _COUNTED),
        ("ncp", pa.float64()),
    ]
)


@dataclass(frozen=True)
class _ReadClasses:
    """Sums up the classes of each batch by round and size, and says how their names run."""

    labels: ClassLabels
    run_id: str
    weight: float
    files: int

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            if batch.num_rows:
                yield self._sums(batch)
                yield self._names(batch)

    def _sums(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes = batch.column("size").fill_null(0).to_numpy()
        ends = [
            end
            for one in self.labels.readers
            for end in one.bounds_of(*(batch.column(name) for name in one.bound_types))
        ]
        loss = batch.column("ncp")
        hides = any(one.content == "mean" for one in self.labels.readers)
        in_bounds = pc.and_(
            pc.greater_equal(loss, 0.0), pc.less_equal(loss, self.weight * (1 + 1e-9))
        )
        sound = flags(loss.is_null() if hides else pc.fill_null(in_bounds, fill_value=False))
        sound &= flags(
            pc.fill_null(pc.equal(batch.column("run_id"), self.run_id), fill_value=False)
        )
        sound &= _named(batch) & (sizes > 0) & flags(batch.column("round").is_valid())
        table = pa.table(
            {
                "round": batch.column("round").fill_null(0),
                "size": pa.array(sizes),
                "classes": pa.array(np.ones(len(sizes), np.int64)),
                "unsound": pa.array((~sound).astype(np.int64)),
                "ncp": pc.if_else(pa.array(sound), loss, 0.0).fill_null(0.0),
                **dict(zip(HALVES, self.labels.hashes(ends, sizes), strict=True)),
            }
        )
        names = ["classes", "unsound", "ncp", *HALVES]
        grouped = table.group_by(["round", "size"], use_threads=False)
        found = grouped.aggregate([(name, "sum") for name in names])
        columns = {name: found[f"{name}_sum"].combine_chunks() for name in names}
        columns |= {name: found[name].combine_chunks() for name in ("round", "size")}
        return _row_batch(columns, found.num_rows)

    def _names(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the first and the last name of each file, and whether others come in order."""
        named = batch.column("class_id").filter(pa.array(_named(batch)))
        names = _numbers(named)
        files = names % np.uint64(self.files)
        # As signed numbers in the same order.
        ordered = (names ^ np.uint64(2**63)).view(np.int64)
        rows: dict[str, list[Any]] = {"file": [], "first": [], "last": [], "unsound": []}
        for file in np.unique(files).tolist():
            own = ordered[files == file]
            rows["file"].append(file)
            rows["first"].append(int(own[0]))
            rows["last"].append(int(own[-1]))
            rows["unsound"].append(int((own[1:] <= own[:-1]).sum()))
        columns = {name: pa.array(own, pa.int64()) for name, own in rows.items()}
        # So that a run that is there twice is seen.
        columns["classes"] = pa.repeat(1, len(rows["file"]))
        return _row_batch(columns, len(rows["file"]))


def _row_batch(columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Return rows of sums. Of what they do not sum up nothing."""
    keys = {name: pa.nulls(rows) for name in _KEYS}
    none = keys | {name: pa.repeat(0, rows) for name in _SUMS.names if name not in keys}
    own = {**none, **columns}
    arrays = [own[field.name].cast(field.type) for field in _SUMS]
    return pa.RecordBatch.from_arrays(arrays, schema=_SUMS)


def _named(batch: pa.RecordBatch) -> Flags:
    """Return whether each class has a name of 16 hexadecimal digits."""
    matches = pc.match_substring_regex(batch.column("class_id"), _NAME)
    return flags(pc.fill_null(matches, fill_value=False))


def _numbers(names: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the numbers that names of 16 hexadecimal digits are."""
    texts = b"".join(names.cast(pa.binary()).to_pylist())
    return np.frombuffer(bytes.fromhex(texts.decode()), ">u8").astype(np.uint64)


@dataclass(frozen=True)
class ReadLabels:
    """The content of the records' labels, in records. An entry an attribute.

    Parameters
    ----------
    unsound : tuple of int
        Of labels that no run writes.
    wider : tuple of int
        Of labels that stand for several values. Of means and labels of hierarchies 0.
    missing, only_missing : tuple of int
        Of labels of which a value may be missing, and of those that are missing.
    fine : tuple of int
        Labels whose ends may be equal as floating-point numbers, as runs measure them.
    bounds : int
        See :meth:`ClassLabels.hashes`.
    """

    unsound: tuple[int, ...]
    wider: tuple[int, ...]
    missing: tuple[int, ...]
    only_missing: tuple[int, ...]
    fine: tuple[int, ...]
    bounds: int


_COUNTS = ("unsound", "wider", "missing", "only_missing", "fine")


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
        counted = ((~one.sound, one.wider, one.missing, one.only_missing, one.fine) for one in read)
        of_counts = zip(*counted, strict=True)
        return [*halves, *(pa.array(sizes * one) for own in of_counts for one in own)]

    def read(self, sums: Mapping[str, int]) -> ReadLabels:
        """Return the sums over all classes."""
        places = range(len(self.labels.readers))
        return ReadLabels(
            **{count: tuple(sums[f"{count}_{place}"] for place in places) for count in _COUNTS},
            bounds=joined(*(sums[half] for half in HALVES)),
        )
