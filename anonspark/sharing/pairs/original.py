"""Compare the labels of two releases, and what they reveal about each original record."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Flags, Integers
from anonspark.core.labels import Kind
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text
from anonspark.engine.tasks import Batches
from anonspark.errors import DataError
from anonspark.kernels.region_pairs import sum_candidates
from anonspark.labels.inference import infer_attributes
from anonspark.labels.raw_records import prepare_table, require_all_read
from anonspark.labels.region_matching import RegionReader, RegionSearch
from anonspark.labels.regions import (
    Leaves,
    PublishedAttribute,
    UnreadableLabelError,
    leaves_by_label,
    read_label,
)
from anonspark.sharing.pairs.classes import ReadRelease, TwoReleases
from anonspark.sharing.pairs.figures import BoundedPairs
from anonspark.verification.opening import OpenedRelease


@dataclass(frozen=True)
class PairCandidates:
    """What two releases reveal about the records of their original.

    ``matched`` records are held by a pair of classes in which a person may be. Of them,
    ``persons_below_k`` are those whose pairs hold fewer than k people at most,
    ``persons_disclosed`` those with one value left of a sensitive attribute, and
    ``persons_disclosed_required`` those with one left of an attribute of which the manifests
    require several.
    """

    records: int
    matched: int
    persons_below_k: int
    persons_disclosed: int
    persons_disclosed_required: int


def count_pair_candidates(
    releases: Sequence[ReadRelease],
    cells: TwoReleases,
    bounded: BoundedPairs,
    original: Table,
    hierarchies: Sequence[Mapping[str, Leaves]],
    *,
    k: int,
    required: Collection[str],
    missing_markers: Iterable[str],
) -> PairCandidates:
    """Look up every original record in both releases, and count whom they single out or disclose.

    ``releases``, ``cells`` and ``hierarchies`` are as in
    :func:`~anonspark.sharing.pairs.classes.compatible_pairs`. The original has a column of each
    quasi-identifier of both. ``required`` are sensitive attributes of which the manifests require
    several values. One job over the original's quasi-identifiers. Every task gets the classes of
    both releases and their pairs, and returns a row of sums. Raises DataError if the original lacks
    columns, or has values that cannot be read.
    """
    first, second = releases
    attributes = (*first.attributes, *second.attributes)
    prepared = prepare_table(
        original,
        attributes,
        {**hierarchies[1], **hierarchies[0]},
        missing_markers=missing_markers,
        subject="original",
    )
    dimensions = len(first.attributes)
    kinds = prepared.compared_as[:dimensions], prepared.compared_as[dimensions:]
    searches = [
        RegionReader(release.attributes, columns, leaves).search(cell.classes)
        for release, cell, columns, leaves in zip(
            releases, cells.cells, kinds, hierarchies, strict=True
        )
    ]
    counts = [cell.classes.num_rows for cell in cells.cells]
    in_both = (bounded.first < counts[0]) & (bounded.second < counts[1])
    keys = (bounded.first * counts[1] + bounded.second)[in_both]
    order = np.argsort(keys)
    single_values = np.empty((len(keys), len(cells.values)), np.int64)
    for position, name in enumerate(cells.values):
        fewest, most = bounded.fewest[name][in_both], bounded.most[name][in_both]
        single_values[:, position] = np.where(fewest == most, fewest, -1)[order]
    names = ["records", "matched", "below", "disclosed", "disclosed_required"]
    names += [f"unreadable_{index}" for index in range(len(attributes))]
    schema = pa.schema([(name, pa.int64()) for name in names])
    task = _LookUp(
        searches[0],
        searches[1],
        keys[order],
        bounded.upper[in_both][order],
        single_values,
        np.array([name in required for name in cells.values], bool),
        k,
        schema,
    )
    totals = prepared.records.map_batches(task, schema).aggregate([], sums=names).collect()
    sums = {name: totals[name][0].as_py() or 0 for name in names} if totals.num_rows else {}
    unreadable = {
        attribute: sums.get(f"unreadable_{index}", 0)
        for index, attribute in reversed(list(enumerate(attributes)))
    }
    require_all_read("original", list(unreadable), list(unreadable.values()))
    return PairCandidates(*(sums.get(name, 0) for name in names[:5]))


@dataclass(frozen=True)
class _LookUp:
    """Counts the people who may be each original record, and sums what is revealed, in a task.

    ``pairs`` are the pairs of classes, ascending, ``figures`` the people at most in each, and
    ``values`` (pairs, attributes) the only sensitive value left in it, or -1.
    """

    first: RegionSearch
    second: RegionSearch
    pairs: Integers
    figures: Integers
    values: Integers
    required: Flags
    k: int
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        """Yield one row: the fields of :class:`PairCandidates`, and unreadable values by column."""
        sums = np.zeros(len(self.schema), np.int64)
        for batch in batches:
            in_first, unreadable_of_first = self.first.points(batch)
            in_second, unreadable_of_second = self.second.points(batch, len(self.first.axes))
            candidates, single_values = sum_candidates(
                in_first, *self.first.regions, in_second, *self.second.regions,
                self.pairs, self.figures, self.values,
            )  # fmt: skip
            matched = candidates > 0
            is_disclosed = matched[:, np.newaxis] & (single_values >= 0)
            disclosed = is_disclosed.any(axis=1), is_disclosed[:, self.required].any(axis=1)
            flags = [matched, matched & (candidates < self.k), *disclosed]
            counted = np.column_stack([*flags, unreadable_of_first, unreadable_of_second])
            sums += [batch.num_rows, *counted.sum(axis=0)]
        yield pa.record_batch([pa.array([total]) for total in sums], schema=self.schema)


_MOST_LABELS = 1_000_000

_ARROW: Mapping[Kind, pa.DataType] = {
    "integer": pa.int64(),
    "decimal": pa.decimal128(38, 18),
    "float": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "boolean": pa.bool_(),
    "category": pa.string(),
}

# No label is both a number and a day.
_TRIED: tuple[Kind, ...] = ("decimal", "date", "timestamp")


def attributes_of_all(
    releases: Sequence[OpenedRelease], original: pa.Schema | None
) -> list[tuple[PublishedAttribute, ...]]:
    """Return the quasi-identifiers of each release, inferred for a table without a manifest.

    Types are those of the original or of another manifest. If neither has a column, its labels are
    read, with one job for each column of texts.
    """
    types = {
        attribute.name: pa.float32() if attribute.type == "float" else _ARROW[attribute.kind]
        for release in releases
        for attribute in release.claim.attributes or ()
        if attribute.rule is None
    }
    if original is not None:
        types |= {field.name: field.type for field in original}
    for release in releases:
        for name in () if release.claim.attributes else release.claim.names:
            if name not in types:
                types[name] = _type_of_labels(name, releases)
    raw = pa.schema(list(types.items()))
    return [
        release.claim.attributes or infer_attributes(release.data, release.claim.names, raw)
        for release in releases
    ]


def leaves_of(release: OpenedRelease) -> dict[str, Leaves]:
    """Return what the labels of a release's hierarchies from files stand for."""
    return {
        name: leaves_by_label(hierarchy) for name, hierarchy in release.claim.hierarchies.items()
    }


def _type_of_labels(name: str, releases: Sequence[OpenedRelease]) -> pa.DataType:
    """Infer the type of an attribute's values from all its labels, in all releases that have it."""
    labels: list[str] = []
    for release in releases:
        types = {field.name: field.type for field in release.data.schema}
        column = name if name in types else f"{name}_min"
        if column not in types:
            continue
        if not is_text(types[column]):
            if not pa.types.is_nested(types[column]):
                return types[column]
            return pa.string()
        counted = release.data.select({"label": column}).aggregate(["label"], count="records")
        table = counted.collect(_MOST_LABELS + 1)
        if table.num_rows > _MOST_LABELS:
            raise DataError(
                f"{release.path}: column {name!r} has more than {_MOST_LABELS:,} different labels. "
                "Give --original, which has their values"
            )
        labels += pc.drop_null(table["label"]).to_pylist()
    for kind in _TRIED:
        attribute = PublishedAttribute(name, kind, "interval", (name,))
        if _all_readable(labels, attribute):
            return _ARROW[kind]
    return pa.string()


def _all_readable(labels: Sequence[str], attribute: PublishedAttribute) -> bool:
    """Return whether all labels can be read.

    >>> born = PublishedAttribute("born", "date", "interval", ("born",))
    >>> _all_readable(["2020-01-01"], born), _all_readable(["January"], born)
    (True, False)
    """
    try:
        for label in labels:
            read_label(label, attribute)
    except UnreadableLabelError:
        return False
    return True
