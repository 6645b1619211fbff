"""The classes of published files, as an attacker forms them: by published tuple."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import xor

from anonspark.core.columns import published_column
from anonspark.core.fingerprints import table_fingerprint
from anonspark.engine.protocol import Table


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
    """

    rows: int
    classes: int
    smallest: int
    largest: int
    sizes: Mapping[int, int]
    hash_sum: int
    hash_xor: int

    @property
    def fingerprint(self) -> str:
        """Tells whether two releases hold the same records, in whatever order and files."""
        return table_fingerprint(self.rows, self.hash_sum, self.hash_xor)


def count_published_classes(data: Table, quasi_identifiers: Sequence[str]) -> PublishedClasses:
    """Count the classes of published records.

    Parameters
    ----------
    data : Table
        Published records, read from their files.
    quasi_identifiers : sequence of str
        Published columns that tell of quasi-identifiers.

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
    found = (
        data.select(numbered)
        .with_hashes({"content": list(numbered)})
        .select([*by, "content"])
        .aggregate(by, count="size", hashes="content")
        .aggregate(["size"], count="classes", sums=["content_sum"], hashes="content_xor")
        .collect()
    )
    numbers = zip(found["size"].to_pylist(), found["classes"].to_pylist(), strict=True)
    sizes = dict(numbers)
    records = sum(size * classes for size, classes in sizes.items())
    return PublishedClasses(
        rows=records,
        classes=sum(sizes.values()),
        smallest=min(sizes, default=0),
        largest=max(sizes, default=0),
        sizes=sizes,
        hash_sum=sum(map(int, found["content_sum"].to_pylist())),
        hash_xor=reduce(xor, found["content_xor_xor"].to_pylist(), 0),
    )
