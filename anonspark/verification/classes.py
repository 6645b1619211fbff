"""The classes of published files, as an attacker forms them: by published tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import xor

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.columns import published_column
from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.protocol import Table
from anonspark.engine.tasks import Batches
from anonspark.verification.class_table import ClassLabels, LabelSums, ReadLabels


@dataclass(frozen=True)
class PublishedClasses:
    """Classes by published tuple, as an attacker forms them.

    Parameters
    ----------
    rows : int
        Published records.
    classes : int
        Different tuples of quasi-identifiers.
    smallest, largest : int
        Records of the smallest and largest class; 0 where nothing was published.
    sizes : mapping of int to int
        Classes of each size.
    hash_sum, hash_xor : int
        Sum and exclusive or of the hashes of the records.
    homogeneous : mapping of str to int
        Records of the classes with only one value of an attribute; of those that were asked for.
    labels : ReadLabels or None
        What labels say; None where they were not read.
    """

    rows: int
    classes: int
    smallest: int
    largest: int
    sizes: Mapping[int, int]
    hash_sum: int
    hash_xor: int
    homogeneous: Mapping[str, int] = field(default_factory=dict)
    labels: ReadLabels | None = None

    @property
    def fingerprint(self) -> str:
        """Tells whether two releases hold the same records, in whatever order and files."""
        return table_fingerprint(self.rows, self.hash_sum, self.hash_xor)


def count_published_classes(
    data: Table,
    quasi_identifiers: Sequence[str],
    attributes: Sequence[str] = (),
    labels: ClassLabels | None = None,
) -> PublishedClasses:
    """Count the classes of published records.

    Parameters
    ----------
    data : Table
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns that tell of quasi-identifiers.
    attributes : sequence of str
        Published columns of which classes with only one value are counted, too; missing is one
        more value. Values are compared by 64-bit hashes, of which a class needs the smallest and
        the largest alone, however many values it has.
    labels : ClassLabels or None
        How the labels of these columns are read, each different one of a batch of classes once.

    Returns
    -------
    PublishedClasses

    Notes
    -----
    One job; one shuffle of one row a class and task, and one of a row a class size and task.
    Nothing but the files is trusted.
    """
    # Numbered, so that no published name clashes with ours.
    names = data.schema.names
    numbered = {published_column(index): name for index, name in enumerate(names)}
    by = [published_column(names.index(name)) for name in quasi_identifiers]
    hashes = {"content": list(numbered)}
    hashes |= {
        f"value_{place}": [published_column(names.index(name))]
        for place, name in enumerate(attributes)
    }
    least = {f"least_{place}": f"value_{place}" for place in range(len(attributes))}
    most = {f"most_{place}": f"value_{place}" for place in range(len(attributes))}
    classes = (
        data.select(numbered)
        .with_hashes(hashes)
        .select({**dict(zip(by, by, strict=True)), "content": "content", **least, **most})
        .aggregate(by, count="size", least=list(least), most=list(most), hashes="content")
    )
    read = None
    if labels is not None:
        columns = tuple(published_column(names.index(name)) for name in labels.columns)
        read = LabelSums(labels, columns)
    alike = [f"homogeneous_{place}" for place in range(len(attributes))]
    counts = [*alike, *(read.names if read else ())]
    if counts:
        own = [classes.schema.field(name) for name in ("size", "content_sum", "content_xor")]
        schema = pa.schema([*own, *((name, pa.int64()) for name in counts)])
        classes = classes.map_batches(_DescribeClasses(schema, len(attributes), read), schema)
    found = classes.aggregate(
        ["size"], count="classes", sums=["content_sum", *counts], hashes="content_xor"
    ).collect()
    numbers = zip(found["size"].to_pylist(), found["classes"].to_pylist(), strict=True)
    sizes = dict(numbers)
    records = sum(size * classes for size, classes in sizes.items())
    sums = {name: sum(found[name].to_pylist()) for name in counts}
    return PublishedClasses(
        rows=records,
        classes=sum(sizes.values()),
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        sizes=sizes,
        hash_sum=sum(map(int, found["content_sum"].to_pylist())),
        hash_xor=reduce(xor, found["content_xor_xor"].to_pylist(), 0),
        homogeneous={name: sums[own] for name, own in zip(attributes, alike, strict=True)},
        labels=None if read is None else read.read(sums),
    )


@dataclass(frozen=True)
class _DescribeClasses:
    """Yields sizes and hashes of classes, and the records that are counted otherwise.

    Of each attribute those of the classes whose smallest value is the largest one; and what labels
    say.
    """

    schema: pa.Schema
    attributes: int
    labels: LabelSums | None

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            columns = [batch.column(name) for name in self.schema.names[:3]]
            for place in range(self.attributes):
                ends = (batch.column(f"{end}_{place}") for end in ("least", "most"))
                columns.append(pc.if_else(pc.equal(*ends), batch.column("size"), 0))
            if self.labels is not None:
                columns += self.labels.of_classes(batch)
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
