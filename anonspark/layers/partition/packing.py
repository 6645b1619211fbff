"""Key matrices as few large values, which Spark passes on many times faster than many small ones.

A counting pass reads every record, but only its keys. Row by row they cost more on the way from
files to Python than to count. One value for a whole batch costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.core.arrays import Integers
from anonspark.core.criteria import Criteria
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.tasks import Batches
from anonspark.kernels.brackets import find_outermost
from anonspark.kernels.descent import draw_records
from anonspark.staged.keys import key_columns, key_matrix, key_width
from anonspark.staged.records import FIRST_NUMBER, ROWS, unpack_batches

MOST_SAMPLED = 2**18
"""Records of a sample, more or less: what the driver gets of a table of any size."""

# One of so many records at most: reading more of a small table helps less than it costs.
_SMALLEST_SHARE = 16
# The sample also has records with the outermost values, which decide how wide a node is: one for
# so many sampled ones.
_SAMPLED_PER_OUTERMOST = 8

# An odd number with about as many ones as zeros; scatters the numbers of records.
_SCATTER = np.int64(-0x61C8864680B583EB)


@dataclass(frozen=True)
class Sampling:
    """The rule by which records of a table of ``rows`` are sampled.

    ``salt`` distinguishes the draw from others.
    """

    rows: int
    salt: int

    @property
    def expected(self) -> int:
        """Return about how many records are drawn.

        >>> Sampling(1_000_000, salt=0).expected, Sampling(10**9, salt=0).expected
        (62500, 262144)
        """
        return min(MOST_SAMPLED, self.rows // _SMALLEST_SHARE)

    def draw(self, keys: Integers, d: int) -> tuple[Integers, Integers]:
        """Draw records of a batch, given as a key matrix of d quasi-identifiers. O(n d).

        Returns their indices and weights: 1 for records of the sample, 0 for those with outermost
        values. Records are drawn by their keyed hashes, which no person can choose, and by their
        numbers, so that equal records are drawn independently. Both are staged, so a task that runs
        again draws the same.
        """
        limit = np.array([2**64 * self.expected // self.rows], np.uint64)
        scattered = keys[:, d] ^ (keys[:, d + 1] * _SCATTER)
        first_draw = np.array([0, 1])
        leaves = np.zeros(len(keys), np.int32)
        salt = np.array([self.salt], np.uint64)
        _, drawn, _ = draw_records(scattered, leaves, first_draw, salt, limit)
        of_batch = len(keys) * self.expected // (self.rows * _SAMPLED_PER_OUTERMOST)
        outermost = np.zeros((d, 2, of_batch // (2 * d)), np.int64)
        find_outermost(keys, outermost)
        others = np.unique(outermost)
        weights = np.repeat(np.array([1, 0]), [len(drawn), len(others)])
        return np.concatenate([drawn, others]), weights


SAMPLE = "sample"
"""Column of the sampled records' keys."""

PACKED_KEYS = pa.schema(
    [
        (FIRST_NUMBER, pa.int64()),
        (ROWS, pa.int64()),
        ("bytes", pa.string()),
        ("keys", pa.binary()),
        (SAMPLE, pa.binary()),
    ]
)
"""One row a batch: the number of its first record, its records, a digit for each key that is kept,
the bytes that it takes in each record, these keys, one after another, and those of a sample, by
:meth:`PackedKeys.pack_records`, where one is drawn."""

_TYPES = (np.int8, np.int16, np.int32, np.int64)


@dataclass(frozen=True)
class PackedKeys:
    """The packed keys: all except the records' numbers, which follow from the first one.

    ``with_hashes`` says whether any cut compares the records' hashes; otherwise they are 0.
    ``coded`` records hold codes instead of raw values. ``sampling`` is None to sample no records.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    criteria: Criteria
    with_hashes: bool
    coded: bool = False
    sampling: Sampling | None = None

    @property
    def _counts_units(self) -> bool:
        return self.criteria.units is not None

    @property
    def _indices(self) -> list[int]:
        d = len(self.quasi_identifiers)
        hashes = [d] * self.with_hashes
        return [*range(d), *hashes, *range(d + 2, key_width(d, self.criteria))]

    def pack(self, packed: Batches) -> Batches:
        """Pack the keys of each batch into one row, column by column in the smallest type."""
        names = key_columns(len(self.quasi_identifiers), self.criteria, coded=self.coded)
        for first, records in unpack_batches(packed, names):
            keys = key_matrix(records, self.quasi_identifiers, self.criteria, first)
            columns = [keys[:, index] for index in self._indices]
            columns = [column.astype(_smallest_type(column)) for column in columns]
            yield pa.RecordBatch.from_pydict(
                {
                    FIRST_NUMBER: pa.array([first]),
                    ROWS: pa.array([len(keys)]),
                    "bytes": pa.array(["".join(str(column.itemsize) for column in columns)]),
                    "keys": pa.array(
                        [b"".join(column.tobytes() for column in columns)], pa.binary()
                    ),
                    SAMPLE: pa.array([self._sample(keys)], pa.binary()),
                }
            )

    def _sample(self, keys: Integers) -> bytes | None:
        if self.sampling is None:
            return None
        records, weights = self.sampling.draw(keys, len(self.quasi_identifiers))
        return self.pack_records(keys[records], weights)

    def unpack(self, batches: Batches) -> Iterator[Integers]:
        """Yield the key matrices that :meth:`pack` packed, see `key_matrix`."""
        d = len(self.quasi_identifiers)
        for batch in batches:
            for first, rows, sizes, packed, _ in zip(*batch.columns, strict=True):
                n, start, begin = rows.as_py(), first.as_py(), 0
                keys = np.zeros((n, key_width(d, self.criteria)), np.int64)
                keys[:, d + 1] = np.arange(start, start + n)
                for index, size in zip(self._indices, sizes.as_py(), strict=True):
                    keys[:, index] = np.frombuffer(packed.as_buffer(), f"i{size}", n, begin)
                    begin += n * int(size)
                yield keys

    def pack_records(self, keys: Integers, marks: Integers) -> bytes:
        """Pack some records of a key matrix, each with a mark, for :meth:`unpack_records`."""
        columns = [marks, *(keys[:, index] for index in self._record_indices)]
        columns = [column.astype(_smallest_type(column)) for column in columns]
        head = np.array([len(keys), *(column.itemsize for column in columns)], np.int64)
        return b"".join(column.tobytes() for column in (head, *columns))

    def unpack_records(self, packed: Sequence[bytes]) -> tuple[Integers, Integers]:
        """Return packed records as a transposed key matrix, and their marks.

        Keys that no cut compares are 0.
        """
        width = self._record_width
        places = [width, *self._record_indices]
        heads = [np.frombuffer(value, np.int64, 1 + len(places)) for value in packed]
        columns = np.zeros((width + 1, sum(int(head[0]) for head in heads)), np.int64)
        start = 0
        for value, head in zip(packed, heads, strict=True):
            rows, begin = int(head[0]), head.nbytes
            for index, size in zip(places, head[1:].tolist(), strict=True):
                column = np.frombuffer(value, f"i{size}", rows, begin)
                columns[index, start : start + rows] = column
                begin += column.nbytes
            start += rows
        return columns[:width], columns[width]

    @property
    def _record_indices(self) -> list[int]:
        """Return the keys of single records: with their numbers, which no longer follow.

        Single records do not show their person.
        """
        d, width = len(self.quasi_identifiers), self._record_width
        indices = [index for index in self._indices if index < width]
        return sorted([*indices, *([d + 1] * self.with_hashes)])

    @property
    def _record_width(self) -> int:
        return key_width(len(self.quasi_identifiers), self.criteria) - self._counts_units

    def of_records(self, keys: Integers) -> Integers:
        """Return key matrices without the columns that :meth:`unpack_records` lacks."""
        return np.ascontiguousarray(keys[:, : self._record_width])


def _smallest_type(column: Integers) -> type[np.signedinteger]:
    lowest, highest = column.min(initial=0), column.max(initial=0)
    return next(
        kind for kind in _TYPES if np.iinfo(kind).min <= lowest and highest <= np.iinfo(kind).max
    )
