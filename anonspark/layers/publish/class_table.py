"""Write the metrics table ``classes``: one row a class, with its bounds and its penalty."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from anonspark.core.columns import CLASS_ID, ROUND, SIZE, is_published, published_column
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import TASK
from anonspark.engine.tasks import Batches
from anonspark.layers.generalize.classes import PublishedColumn
from anonspark.layers.publish.staging import Staging
from anonspark.staged.records import Records

_CLASSES_IN_FILE = 1_000_000

Names: TypeAlias = npt.NDArray[np.uint64]

# Digits of a name in hexadecimal.
_DIGITS = 16


def write_classes(
    classes: Records,
    number: int,
    quasi_identifiers: Sequence[QuasiIdentifier],
    columns: Sequence[PublishedColumn],
    run_id: str,
    staging: Staging,
) -> list[PublishedFile]:
    """Write the table ``classes`` to the directory ``metrics`` of a release.

    ``number`` counts the classes. ``columns`` are the published ones of the quasi-identifiers, so
    no bound reveals more than they do. One job with one shuffle of the classes: files and their
    order follow from the names of the classes, not from tasks or the tree.
    """
    # Columns are renamed in the last step: names of attributes could break a query plan.
    bounds = {
        f"{end}_{index}": f"{identifier.name}_{short}"
        for index, identifier in enumerate(quasi_identifiers)
        for end, short in (("lowest", "min"), ("highest", "max"))
    }
    staged = pa.schema(
        [
            ("class_id", pa.int64()),
            (ROUND, pa.int32()),
            (SIZE, pa.int64()),
            *(classes.schema.field(name) for name in bounds),
            ("ncp", pa.float64()),
        ]
    )
    schema = pa.schema(
        [
            ("run_id", pa.string()),
            ("class_id", pa.string()),
            *(field.with_name(bounds.get(field.name, field.name)) for field in list(staged)[1:]),
        ]
    )
    tasks = -(-number // _CLASSES_IN_FILE)
    addressed = staged.append(pa.field(TASK, pa.int32()))
    labels = {
        column.attribute: published_column(position)
        for position, column in enumerate(columns)
        if column.content == "label" and quasi_identifiers[column.attribute].hierarchy is not None
    }
    hidden = frozenset(column.attribute for column in columns if column.content == "mean")
    describe = _DescribeClasses(tuple(quasi_identifiers), labels, hidden, tasks, addressed)
    described = [
        name for name in classes.schema.names if not is_published(name) or name in labels.values()
    ]
    sent = classes.only(described).repartition(describe, addressed, tasks)
    table = sent.map_batches(_SortClasses(run_id, schema), schema)
    return table.publish("parquet", staging.release, "metrics/classes", staging.written)


@dataclass(frozen=True)
class _DescribeClasses:
    """Turns staged classes into rows of the table.

    ``labels`` is the staged column with the label of each quasi-identifier whose hierarchy decides
    what is published: then the label stands for both bounds. ``hidden`` bounds are not published.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    labels: Mapping[int, str]
    hidden: frozenset[int]
    tasks: int
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            penalty = np.zeros(batch.num_rows)
            bounds = []
            for index, identifier in enumerate(self.quasi_identifiers):
                bounds += self._bounds(batch, index)
                penalty += batch.column(f"penalty_{index}").to_numpy() * identifier.weight
            names = _published_names(batch.column(CLASS_ID).to_numpy().view(np.uint64))
            columns = [
                pa.array(names.view(np.int64)),
                *(batch.column(name) for name in (ROUND, SIZE)),
                *bounds,
                # With the sizes and means the penalty would reveal the bounds.
                pa.nulls(batch.num_rows, pa.float64()) if self.hidden else pa.array(penalty),
                pa.array((names % np.uint64(self.tasks)).astype(np.int32)),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _bounds(self, batch: pa.RecordBatch, index: int) -> list[pa.Array]:
        """Return the smallest and the largest value of each class, as far as they are published."""
        names = [f"{end}_{index}" for end in ("lowest", "highest")]
        types = [self.schema.field(name).type for name in names]
        if index in self.hidden:
            return [pa.nulls(batch.num_rows, dtype) for dtype in types]
        if index in self.labels:
            return [batch.column(self.labels[index]).cast(dtype) for dtype in types]
        return [batch.column(name) for name in names]


def _published_names(staged: Names) -> Names:
    """Hash the names of classes: the staged names derive from the seed, and could be undone.

    >>> [f"{name:016x}" for name in _published_names(np.array([1], np.uint64)).tolist()]
    ['665e994827f6b031']
    """
    texts = staged.astype(">u8").tobytes().hex().encode()
    digests = [
        hashlib.sha256(texts[start : start + _DIGITS]).digest()[:8]
        for start in range(0, len(texts), _DIGITS)
    ]
    return np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)


def _in_digits(names: Names) -> pa.Array:
    """Write numbers as texts of 16 hexadecimal digits.

    >>> _in_digits(np.array([255], np.uint64)).to_pylist()
    ['00000000000000ff']
    """
    offsets = (np.arange(len(names) + 1) * _DIGITS).astype(np.int32)
    digits = names.astype(">u8").tobytes().hex().encode()
    return pa.StringArray.from_buffers(len(names), pa.py_buffer(offsets), pa.py_buffer(digits))


@dataclass(frozen=True)
class _SortClasses:
    """Orders the classes of a file by their names."""

    run_id: str
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        nonempty = [batch for batch in batches if batch.num_rows]
        if nonempty:
            table = pa.Table.from_batches(nonempty).drop_columns(TASK).combine_chunks()
            names = table.column("class_id").to_numpy().view(np.uint64)
            order = np.argsort(names, kind="stable")
            others = table.drop_columns("class_id").take(pa.array(order)).combine_chunks()
            columns = [
                pa.repeat(self.run_id, len(order)),
                _in_digits(names[order]),
                *(column.combine_chunks() for column in others.columns),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
