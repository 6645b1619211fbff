"""The metrics table ``classes``: one row a class, with its bounds and its penalty."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonspark.core.columns import CLASS_ID, ROUND, SIZE, is_published
from anonspark.core.encoding import QuasiIdentifier
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import TASK
from anonspark.engine.tasks import Batches
from anonspark.layers.publish.staging import Staging
from anonspark.staged.records import Records

_CLASSES_IN_FILE = 1_000_000


def write_classes(
    classes: Records,
    number: int,
    quasi_identifiers: Sequence[QuasiIdentifier],
    run_id: str,
    staging: Staging,
) -> list[PublishedFile]:
    """Write the table ``classes`` to the directory ``metrics`` of a release.

    Parameters
    ----------
    classes : Records
        Of :func:`anonspark.layers.generalize.figures.class_schema`.
    number : int
        Of the classes.
    quasi_identifiers : sequence of QuasiIdentifier
    run_id : str
    staging : Staging
        Of the release.

    Notes
    -----
    One job with one shuffle of the classes: files and the order in them follow from the names of
    the classes, not from tasks and the tree.
    """
    # Under their own names until the last step: those of attributes could break a query plan.
    bounds = {
        f"{end}_{index}": f"{one.name}_{short}"
        for index, one in enumerate(quasi_identifiers)
        for end, short in (("lowest", "min"), ("highest", "max"))
    }
    staged = pa.schema(
        [
            ("run_id", pa.string()),
            ("class_id", pa.string()),
            (ROUND, pa.int32()),
            (SIZE, pa.int64()),
            *(classes.schema.field(name) for name in bounds),
            ("ncp", pa.float64()),
        ]
    )
    schema = pa.schema(field.with_name(bounds.get(field.name, field.name)) for field in staged)
    tasks = -(-number // _CLASSES_IN_FILE)
    addressed = staged.append(pa.field(TASK, pa.int32()))
    describe = _DescribeClasses(tuple(quasi_identifiers), run_id, tasks, addressed)
    described = [name for name in classes.schema.names if not is_published(name)]
    sent = classes.only(described).send(describe, addressed, tasks)
    table = sent.map_batches(_InOrder(schema), schema)
    return table.publish("parquet", staging.release, "metrics/classes", staging.written).files


@dataclass(frozen=True)
class _DescribeClasses:
    """Makes rows of the table of staged classes."""

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    run_id: str
    tasks: int
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            penalty = np.zeros(batch.num_rows)
            bounds = []
            for index, one in enumerate(self.quasi_identifiers):
                bounds += [batch.column(f"{end}_{index}") for end in ("lowest", "highest")]
                penalty += batch.column(f"penalty_{index}").to_numpy() * one.weight
            staged = batch.column(CLASS_ID).to_numpy().view(np.uint64).tolist()
            names = [_published_name(name) for name in staged]
            columns = [
                pa.repeat(self.run_id, batch.num_rows),
                pa.array(names, pa.string()),
                *(batch.column(name) for name in (ROUND, SIZE)),
                *bounds,
                pa.array(penalty),
                pa.array([int(name, 16) % self.tasks for name in names], pa.int32()),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _published_name(name: int) -> str:
    """Return what a class is called: its staged name is made of the seed, and can be undone."""
    return hashlib.sha256(f"{name:016x}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _InOrder:
    """Puts the classes of a file in the order of their names."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        received = [batch for batch in batches if batch.num_rows]
        if received:
            table = pa.Table.from_batches(received).drop_columns(TASK).sort_by("class_id")
            names = self.schema.names
            yield from table.rename_columns(names).combine_chunks().to_batches()
