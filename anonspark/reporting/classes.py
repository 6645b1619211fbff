"""Single classes of a release: a typical one for everybody, and the worst ones for inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from anonspark.core.columns import published_column
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_plain
from anonspark.engine.tasks import Batches

# Of so many classes of the median size the middle one is shown.
_SAMPLE = 101
_WORST = 10

_HASH = "hash"

_TYPICAL, _WEAK = "typical", "worst"

_CLASSES = pa.schema(
    [
        ("kind", pa.string()),
        ("hash", pa.int64()),
        ("labels", pa.list_(pa.string())),
        ("size", pa.int64()),
        ("distinct", pa.int64()),
        ("most", pa.int64()),
        ("value", pa.string()),
    ]
)


@dataclass(frozen=True)
class ShownClass:
    """One class of a release.

    Parameters
    ----------
    labels : mapping of str to str
        Published column to what it has in the class. ``missing`` for null.
    size : int
        Records.
    attribute : str
        A sensitive attribute. Empty where the release has none.
    distinct : int
        Its different values in the class.
    share : float
        Of the most frequent value.
    value : str
        The most frequent value.
    """

    labels: Mapping[str, str]
    size: int
    attribute: str = ""
    distinct: int = 0
    share: float = 0.0
    value: str = field(default="", repr=False)


@dataclass(frozen=True)
class ShownClasses:
    """Classes that a report shows.

    Parameters
    ----------
    typical : ShownClass or None
    worst : sequence of ShownClass
        Those of the largest share of one value, attribute by attribute.
    """

    typical: ShownClass | None = None
    worst: Sequence[ShownClass] = ()


def show_classes(
    data: Table,
    columns: Sequence[str],
    sensitive: Sequence[str],
    sizes: Mapping[int, int],
    *,
    worst: bool,
) -> ShownClasses:
    """Choose the classes that a report shows.

    Parameters
    ----------
    data : Table
        Published records.
    columns : sequence of str
        Published columns that form classes.
    sensitive : sequence of str
        Sensitive attributes whose values are few.
    sizes : mapping of int to int
        Classes of each size.
    worst : bool
        Whether to look for the worst classes, too.

    Returns
    -------
    ShownClasses
        The same for the same records. The typical one has as many records as the class of the
        median record, and of a sample of such classes the median share of its most frequent value
        of the first sensitive attribute. It lacks where there is one class alone.

    Notes
    -----
    One job with three shuffles of counts, and one more for each further sensitive attribute where
    the worst are asked for. Some hundred classes of each batch are collected at most.
    """
    if sum(sizes.values()) < 2:
        return ShownClasses()
    sensitive = [one for one in sensitive if is_plain(data.schema.field(one).type)]
    usual = _size_of_median_record(sizes)
    typical, weak = None, []
    for place, attribute in enumerate(sensitive if worst else sensitive[:1]):
        found = _choose(data, columns, attribute, usual if place == 0 else 0, worst=worst)
        if place == 0:
            typical = _middle(found, columns, attribute)
        weak += [
            _shown(row, columns, attribute)
            for row in sorted(_of_kind(found, _WEAK), key=_weakness)[:_WORST]
        ]
    if not sensitive:
        typical = _middle(_choose(data, columns, None, usual, worst=False), columns, "")
    return ShownClasses(typical, weak)


def _size_of_median_record(sizes: Mapping[int, int]) -> int:
    ordered = sorted(sizes)
    records = np.cumsum([size * sizes[size] for size in ordered])
    return ordered[int(np.searchsorted(records, records[-1] / 2))]


def _choose(
    data: Table, columns: Sequence[str], attribute: str | None, usual: int, *, worst: bool
) -> list[dict[str, object]]:
    by = {published_column(index): name for index, name in enumerate(columns)}
    value = {} if attribute is None else {"value": attribute}
    hashed = data.select({**by, **value}).with_hashes({_HASH: list(by)}, 0)
    counted = hashed.aggregate([*by, _HASH, *value], count="count")
    classes = counted.aggregate([*by, _HASH], lists=["count", *value])
    take = _Take(tuple(by), usual, worst=worst)
    return list(classes.map_batches(take, _CLASSES).collect().to_pylist())


def _of_kind(rows: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def _weakness(row: Mapping[str, Any]) -> tuple[float, int, int]:
    return (-row["most"] / row["size"], -row["size"], row["hash"])


def _middle(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], attribute: str
) -> ShownClass | None:
    sample = sorted(_of_kind(rows, _TYPICAL), key=lambda row: int(row["hash"]))[:_SAMPLE]
    if not sample:
        return None
    sample.sort(key=_weakness)
    return _shown(sample[len(sample) // 2], columns, attribute)


def _shown(row: Mapping[str, Any], columns: Sequence[str], attribute: str) -> ShownClass:
    labels = ("missing" if one is None else one for one in row["labels"])
    return ShownClass(
        dict(zip(columns, labels, strict=True)),
        row["size"],
        attribute,
        row["distinct"],
        row["most"] / row["size"],
        "missing" if row["value"] is None else row["value"],
    )


@dataclass(frozen=True)
class _Take:
    """Takes of a task's classes those that may be shown.

    Parameters
    ----------
    columns : tuple of str
        Those that form classes.
    usual : int
        Records of a typical class. 0 for none.
    worst : bool
    """

    columns: tuple[str, ...]
    usual: int
    worst: bool

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            if not batch.num_rows:
                continue
            counts = batch.column("count")
            starts = np.r_[0, np.cumsum(counts.value_lengths().to_numpy())][:-1]
            size = np.add.reduceat(counts.flatten().to_numpy(), starts)
            most = np.maximum.reduceat(counts.flatten().to_numpy(), starts)
            hashes = batch.column(_HASH).to_numpy()
            usual = np.flatnonzero(size == self.usual)
            chosen = {_TYPICAL: usual[np.argsort(hashes[usual], kind="stable")][:_SAMPLE]}
            if self.worst:
                chosen[_WEAK] = np.lexsort((hashes, -size, -most / size))[:_WORST]
            for kind, places in chosen.items():
                if len(places):
                    yield self._rows(kind, batch.take(pa.array(places)))

    def _rows(self, kind: str, classes: pa.RecordBatch) -> pa.RecordBatch:
        labels = [_texts(classes.column(name)) for name in self.columns]
        rows = []
        for place in range(classes.num_rows):
            counts = classes.column("count")[place].as_py()
            value = None
            if "value" in classes.schema.names:
                texts = classes.column("value")[place].values.cast(pa.string()).to_pylist()
                # Of several most frequent ones the first in order, missing last.
                absent = (one is None for one in texts)
                order = zip((-one for one in counts), absent, texts, strict=True)
                value = min(order, key=lambda one: (*one[:2], one[2] or ""))[2]
            rows.append(
                {
                    "kind": kind,
                    "hash": classes.column(_HASH)[place].as_py(),
                    "labels": [column[place] for column in labels],
                    "size": sum(counts),
                    "distinct": len(counts),
                    "most": max(counts),
                    "value": value,
                }
            )
        return pa.RecordBatch.from_pylist(rows, _CLASSES)


def _texts(column: pa.Array) -> list[str | None]:
    """Return what is published as texts. The style of bounds has lists for sets."""
    if pa.types.is_list(column.type):
        sets = column.to_pylist()
        return [None if one is None else f"{{{', '.join(map(str, one))}}}" for one in sets]
    return list(column.cast(pa.string()).to_pylist())
