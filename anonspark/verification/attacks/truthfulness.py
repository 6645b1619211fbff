"""Check that a release is true: every published record stands for an original one.

A published record is a possible counterpart of an original if both are equal in what is published
as it is (the payload), and the published region holds the original's quasi-identifiers. A release
is truthful if originals and published records can be paired so, each with one of its own. Releases
carry no record numbers, so that the intended pairing is unknown.

Pairs exist only among records of equal payload, so that each group of equal payload is judged by
itself. Where it has at most 1,000,000 originals and 10,000,000 possible pairs, a largest matching
is found: the answer is exact. In larger groups it is exact where no original has a choice, as in a
release whose regions do not overlap. In all others three conditions are checked that every truthful
release satisfies, but that do not prove it: a payload occurs as often as in the original, every
original has a possible counterpart, and no class publishes a payload more often than its region has
originals of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_readable, type_name
from anonspark.engine.tasks import Batches
from anonspark.engine.values.grouping import find_groups
from anonspark.errors import DataError
from anonspark.kernels.region_search import match_groups
from anonspark.labels.raw_records import require_all_read
from anonspark.labels.region_axes import Codes
from anonspark.labels.region_matching import (
    LabelledTable,
    RegionReader,
    RegionSearch,
    count_payloads,
    joint_schema,
    taken,
)
from anonspark.labels.regions import PublishedAttribute

_SUBJECT = "original"

# Records of a task, unless one group is larger.
_TASK_RECORDS = 250_000

# Originals and pairs of a group that are matched, in the memory of one task.
_MOST_MATCHED = 1_000_000
_MOST_PAIRS = 10_000_000


@dataclass(frozen=True)
class Truthfulness:
    """The agreement between published records and originals, in counts of records.

    ``left_out`` are originals that may lack a counterpart because they were left out on purpose.
    ``missing`` are originals beyond the published records of equal payload, ``surplus`` published
    records beyond the originals. ``without_counterpart`` are originals in the region of no
    published record of equal payload, ``without_original`` published records beyond the originals
    of equal payload in the region of their class. In groups that were judged exactly, ``matched``
    originals were proven to have counterparts of their own, all at once, ``unmatched`` originals
    and ``unmatched_published`` records get none in any pairing. ``not_proven`` originals are in
    groups that are too large for that: of them only the other figures are known.

    >>> figures = Truthfulness(9, 8, 0, 1, 0, 0, 0, 8, 1, 0, 0)
    >>> figures.holds, figures.unpaired_originals, figures.unpaired_published
    (False, 1, 0)
    """

    originals: int
    published: int
    left_out: int
    missing: int
    surplus: int
    without_counterpart: int
    without_original: int
    matched: int
    unmatched: int
    unmatched_published: int
    not_proven: int

    @property
    def holds(self) -> bool:
        """Whether no violation was found, which is a proof if ``not_proven`` is 0."""
        return not self.unpaired_originals and not self.unpaired_published

    @property
    def unpaired_originals(self) -> int:
        """Originals that are known to have no counterpart of their own, beyond those left out.

        One record may be counted by several figures, so the largest of them is what is sure.
        """
        unpaired = max(self.missing, self.without_counterpart, self.unmatched)
        return max(0, unpaired - self.left_out)

    @property
    def unpaired_published(self) -> int:
        """Published records that are known to have no original of their own, likewise."""
        return max(self.surplus, self.without_original, self.unmatched_published)

    def describe(self) -> list[str]:
        """Describe each kind of violation in a sentence. A release that holds has none."""
        sentences = []
        for name, text in _VIOLATIONS.items():
            of_originals = name in ("missing", "without_counterpart", "unmatched")
            count, left_out = getattr(self, name), self.left_out if of_originals else 0
            if count <= left_out:
                continue
            allowed = f", expected at most {left_out:,} that were left out" if left_out else ""
            records = (
                f"{self.originals:,} originals"
                if of_originals
                else f"{self.published:,} published records"
            )
            sentences.append(
                f"truthfulness: {count:,} of {records} {text}{allowed}. Check that the original is "
                "the table that the release was made of: if it is, the release must not be used"
            )
        return sentences


_VALUES = "their sensitive and insensitive values"
_VIOLATIONS = {
    "missing": f"are missing: fewer published records than originals have {_VALUES}",
    "surplus": f"are too many: fewer originals than published records have {_VALUES}",
    "without_counterpart": f"lie in the box of no published record with {_VALUES}",
    "without_original": (
        f"are too many for their class: fewer originals with {_VALUES} lie in its box"
    ),
    "unmatched": "get no published record of their own, however they are paired",
    "unmatched_published": "get no original of their own, however they are paired",
}
"""The possible violations between originals and published records, by figure."""


def measure_truthfulness(
    labels: LabelledTable,
    original: Table,
    payload: Sequence[str],
    *,
    drops_missing: bool = False,
    left_out: int = 0,
) -> Truthfulness:
    """Pair published records with originals, so that each has a separate counterpart.

    ``payload`` are the columns that are published unchanged. The original's values are cast to the
    type of the release, and a value that the cast would change equals no published one.
    Quasi-identifiers are compared by value, whatever their types, and texts exactly, without blanks
    at their ends. ``left_out`` originals may be without a counterpart. Raises ConfigurationError if
    the release publishes means, DataError if labels or values cannot be read, or columns are
    missing or cannot be compared, and
    :class:`~anonspark.labels.region_matching.TooManyClassesError` if over 1,000,000 classes overlap
    too much.

    Three jobs: the release's classes are collected, the original's payloads are counted, and then
    its quasi-identifiers are shuffled by payload. A task has some 250,000 originals, with 4 bytes
    for each possible pair of its largest payload. More than 1,000,000 originals of one payload are
    divided among tasks. Time grows at worst with the pairs of a payload times the square root of
    its originals. No record reaches the driver. More than 1,000,000 classes do not travel to every
    task: a task reads the labels of its groups, and a common payload is divided into leaves
    (:class:`~anonspark.labels.region_matching.RegionReader`).

    Payloads are compared by hashes of 64 bits. Two collide with a probability of 2^-64.
    """
    release, attributes = labels.data, labels.attributes
    names = [attribute.name for attribute in attributes]
    _require_comparable(original.schema, release.schema, names, payload)
    prepared = labels.prepare(
        original.with_hashes({_PAYLOAD: payload}, like=release.schema),
        _SUBJECT,
        drops_missing=drops_missing,
        carried=[_PAYLOAD],
    )
    reader = labels.reader(prepared.compared_as)
    published = count_payloads(
        release.with_hashes({_PAYLOAD: payload}, like=release.schema),
        attributes,
        _PAYLOAD,
        labelled=reader.leaves is not None,
    )
    originals, common = _count_payloads(prepared.records, attributes)
    search = None if reader.leaves else reader.search(labels.classes)
    matching = _MatchRecords(reader, labels.classes["key"].to_numpy(), search)
    most_records = max(originals, labels.records)
    figures = _match(prepared.records, published, matching, common, most_records)
    return Truthfulness(originals=originals, left_out=left_out, **figures)


# Columns of hashes: of what is published unchanged, and of the quasi-identifiers.

# No column has such a name by accident.
_PAYLOAD, _CONTENT = "anonspark_payload", "anonspark_content"


def _require_comparable(
    original: pa.Schema, release: pa.Schema, names: Sequence[str], payload: Sequence[str]
) -> None:
    """Raise DataError if the original lacks a column, or a payload's types cannot be compared."""
    types = {field.name: field.type for field in original}
    lacking = [name for name in (*names, *payload) if name not in types]
    if lacking:
        raise DataError(
            f"original: lacks the columns {', '.join(map(repr, lacking))}. Found "
            f"{', '.join(map(repr, types))}. Give the table that the release was made of"
        )
    problems = [
        f"original: column {published.name!r} has type {type_name(types[published.name])}, which "
        f"cannot be compared with the release's {type_name(published.type)}. Cast it first"
        for published in map(release.field, payload)
        if not types[published.name].equals(published.type)
        and not is_readable(types[published.name], published.type)
    ]
    if problems:
        raise DataError(*problems)


# How often each payload occurs.


def _count_payloads(
    records: Table, attributes: Sequence[PublishedAttribute]
) -> tuple[int, dict[int, int]]:
    """Count the originals, and those of each payload that has too many for one task."""
    names = ["payload", "originals", *(f"unreadable_{index}" for index in range(len(attributes)))]
    schema = _integers(names)
    counted = (
        records.map_batches(_CountOriginals(schema), schema)
        .aggregate(["payload"], sums=names[1:])
        .map_batches(partial(_hide_rare, _MOST_MATCHED), schema)
        .aggregate(["payload"], sums=names[1:])
        .collect()
    )
    originals, *unreadable = (pc.sum(counted[name], min_count=0).as_py() for name in names[1:])
    require_all_read(_SUBJECT, attributes, unreadable)
    common = counted.filter(pc.is_valid(counted["payload"]))
    columns = (common[name].to_pylist() for name in names[:2])
    return originals, dict(zip(*columns, strict=True))


def _integers(names: Iterable[str]) -> pa.Schema:
    """Return a schema of 64-bit integers.

    >>> _integers(["key"])
    key: int64
    """
    return pa.schema([(name, pa.int64()) for name in names])


@dataclass(frozen=True)
class _CountOriginals:
    """Counts a batch's originals by payload, and the values that cannot be read."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        """Yield a row a payload of each batch."""
        for batch in batches:
            payload = batch.column(_PAYLOAD).to_numpy()
            values, value_of_row = np.unique(payload, return_inverse=True)
            columns = [values, np.bincount(value_of_row, minlength=len(values))]
            for index in range(len(self.schema) - len(columns)):
                lacking = np.asarray(batch.column(f"value_{index}").is_null())
                missing = np.asarray(batch.column(f"missing_value_{index}"))
                columns.append(np.bincount(value_of_row, lacking & ~missing, len(values)))
            arrays = [pa.array(column.astype(np.int64)) for column in columns]
            yield pa.record_batch(arrays, schema=self.schema)


def _hide_rare(most: int, batches: Batches) -> Batches:
    """Yield payloads that have many originals, and null for each other one."""
    for batch in batches:
        is_common = pc.greater(batch.column("originals"), most)
        yield batch.set_column(0, "payload", pc.if_else(is_common, batch.column(0), None))


# Matching, payload by payload.

# Figures of groups that one task holds.
_SUMS = (
    "published",
    "missing",
    "surplus",
    "without_counterpart",
    "without_original",
    "matched",
    "unmatched",
    "unmatched_published",
    "not_proven",
)

# Of groups that are shared out: of a class its published records and the originals that it holds,
# and, with a null as key, a task's originals and those of them that have a choice.
_PARTS = ("records", "held", "originals", "choosing")

_ROWS = _integers(["payload", "key", *_PARTS, *_SUMS])


def _match(
    originals: Table,
    published: Table,
    matching: _MatchRecords,
    common: Mapping[int, int],
    most_records: int,
) -> dict[str, int]:
    """Match originals and published records, payload by payload, and sum up :class:`Truthfulness`.

    ``common`` counts the originals of each payload that one task cannot hold. These are divided
    among tasks by leaf and content, and each part gets the published counts of its leaf. Any other
    payload stays whole, as part -1. ``most_records``, the larger of both sides, only sets the
    number of tasks.
    """
    reader = matching.reader
    leaves = 1 if reader.leaves is None else reader.leaves.classes
    parts = {payload: -(-number // (leaves * _TASK_RECORDS)) for payload, number in common.items()}
    if parts:
        values = [name for name in originals.schema.names if name.startswith("value_")]
        originals = originals.with_hashes({_CONTENT: values})
    schema = joint_schema(published, originals, pa.field("part", pa.int64()))
    share = partial(_share_out, reader, parts, schema)
    both = originals.map_batches(share, schema).union(published.map_batches(share, schema))
    tasks = max(1, -(-most_records // _TASK_RECORDS))
    groups = (
        both.group([_PAYLOAD, "part"], tasks)
        .map_batches(matching, _ROWS)
        .aggregate(["payload", "key"], sums=[*_PARTS[1:], *_SUMS], most=["records"])
        .map_batches(_AddMatching(), _WITH_MATCHING)
        .aggregate(["payload"], sums=[*_PARTS, "matching", *_SUMS])
        .collect()
    )
    sums: Counter[str] = Counter()
    for group in groups.to_pylist():
        sums.update({name: group[name] for name in _SUMS})
        if group["payload"] is not None:
            sums.update(_of_shared(group))
    return {name: sums[name] for name in _SUMS}


def _of_shared(group: Mapping[str, int | None]) -> dict[str, int]:
    """Return the figures of a group that was divided among tasks.

    >>> _of_shared({"matching": 3, "originals": 4, "records": 3, "choosing": 0})["unmatched"]
    1
    """
    matching, originals, records = (
        int(group[name] or 0) for name in ("matching", "originals", "records")
    )
    figures = {
        "published": records,
        "missing": max(originals - records, 0),
        "surplus": max(records - originals, 0),
        "without_original": records - matching,
    }
    if group["choosing"]:
        return {**figures, "not_proven": originals}
    unmatched = {"unmatched": originals - matching, "unmatched_published": records - matching}
    return {**figures, **unmatched, "matched": matching}


_WITH_MATCHING = _integers(["payload", *_PARTS, "matching", *_SUMS])


@dataclass(frozen=True)
class _AddMatching:
    """Counts for each class how many of its published records can have an original."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            matching = pc.min_element_wise(batch.column("records"), batch.column("held"))
            added = batch.append_column("matching", matching)
            yield added.select(_WITH_MATCHING.names)


def _share_out(
    reader: RegionReader, parts: Mapping[int, int], schema: pa.Schema, batches: Batches
) -> Batches:
    """Send each original to its part, and published counts to every part of their leaves.

    ``parts`` has the number of parts of a leaf for each common payload. All others are part -1.
    """
    for batch in batches:
        payloads = batch.column(_PAYLOAD).to_numpy()
        numbers = np.zeros(len(payloads), np.int64)
        for payload, number in parts.items():
            numbers[payloads == payload] = number
        rows = leaves = np.zeros(0, np.int64)
        if numbers.any():
            rows, leaves = reader.leaves_of(batch)
        shares = numbers[rows]
        if _CONTENT in batch.schema.names:
            copies = np.flatnonzero(shares)
            offset = batch.column(_CONTENT).to_numpy()[rows[copies]] % shares[copies]
        else:
            copies = np.repeat(np.arange(len(rows)), shares)
            offset = np.arange(len(copies)) - (np.cumsum(shares) - shares)[copies]
        undivided = np.flatnonzero(numbers == 0)
        part = np.concatenate(
            [np.full(len(undivided), -1), leaves[copies] * shares[copies] + offset]
        )
        yield taken(batch, np.concatenate([undivided, rows[copies]]), schema, "part", part)


@dataclass(frozen=True)
class _MatchRecords:
    """Matches a task's originals with published records of equal payload."""

    reader: RegionReader
    keys: Integers
    search: RegionSearch | None

    def __call__(self, batches: Batches) -> Batches:
        """Match the groups of all batches of a task."""
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        table = pa.Table.from_batches(received)
        groups = find_groups([table[_PAYLOAD], table["part"]])
        is_original = np.asarray(table["records"].is_null())
        rows = np.flatnonzero(~is_original)
        published_keys = table["key"].take(pa.array(rows)).to_numpy()
        search, keys = self.search, self.keys
        if search is None:
            keys, first = np.unique(published_keys, return_index=True)
            search = self.reader.search(table.take(pa.array(rows[first])))
        order = np.argsort(keys)
        regions = order[np.searchsorted(keys, published_keys, sorter=order)]
        sorted_places = np.lexsort((regions, groups.numbers[rows]))
        rows, regions = rows[sorted_places], regions[sorted_places]
        group_of_place, published = groups.numbers[rows], table.take(pa.array(rows))
        rows = np.flatnonzero(is_original)
        rows = rows[np.argsort(groups.numbers[rows], kind="stable")]
        codes, _ = search.points(table.take(pa.array(rows)))
        yield from self._matched(
            search,
            table.select([_PAYLOAD, "part"]).take(pa.array(groups.first)),
            (groups.numbers[rows], codes),
            (group_of_place, regions, published),
        )

    def _matched(
        self,
        search: RegionSearch,
        groups: pa.Table,
        originals: tuple[Integers, Codes],
        places: tuple[Integers, Integers, pa.Table],
    ) -> Batches:
        """Match originals with places, a class in a group each, both in the order of the groups.

        Yields the sums of groups that are complete here. For parts of other groups it yields what
        each place holds, and how many originals have a place.
        """
        group_of_original, codes = originals
        group_of_place, regions, published = places
        ends = np.arange(len(groups) + 1)
        first = np.searchsorted(group_of_original, ends)
        first_places = np.searchsorted(group_of_place, ends)
        records = published["records"].to_numpy().copy()  # the kernel needs a writable array
        held, holding, matched = match_groups(
            codes, first, first_places, regions, records, _MOST_PAIRS, *search.regions
        )
        without = np.bincount(group_of_original[holding == 0], minlength=len(groups))
        choosing = np.bincount(group_of_original[holding > 1], minlength=len(groups))
        sizes = np.diff(first)
        records_of_group, excess = (
            np.bincount(group_of_place, weights, len(groups)).astype(np.int64)
            for weights in (records, np.maximum(records - held, 0))
        )
        is_complete = groups["part"].to_numpy() < 0
        exact = is_complete & (matched >= 0)
        shared_places = ~is_complete[group_of_place]
        yield from (
            _batch(
                published=records_of_group[is_complete].sum(),
                missing=np.maximum(sizes - records_of_group, 0)[is_complete].sum(),
                surplus=np.maximum(records_of_group - sizes, 0)[is_complete].sum(),
                without_counterpart=without.sum(),
                without_original=excess[is_complete].sum(),
                matched=matched[exact].sum(),
                unmatched=(sizes - matched)[exact].sum(),
                unmatched_published=(records_of_group - matched)[exact].sum(),
                not_proven=sizes[is_complete & ~exact].sum(),
            ),
            _batch(
                payload=published[_PAYLOAD].to_numpy()[shared_places],
                key=published["key"].to_numpy()[shared_places],
                records=records[shared_places],
                held=held[shared_places],
            ),
            _batch(
                payload=groups[_PAYLOAD].to_numpy()[~is_complete],
                originals=sizes[~is_complete],
                choosing=choosing[~is_complete],
            ),
        )


def _batch(**columns: Integers | np.int64) -> pa.RecordBatch:
    """Return rows of ``_ROWS``: absent figures are 0, absent payload and key null.

    >>> _batch(payload=np.array([7]), held=np.array([2]))["held"].to_pylist()
    [2]
    """
    arrays = {name: np.atleast_1d(values).astype(np.int64) for name, values in columns.items()}
    (count,) = {len(array) for array in arrays.values()}
    arrays = {name: pa.array(array) for name, array in arrays.items()}
    arrays |= dict.fromkeys({"payload", "key"} - set(arrays), pa.nulls(count, pa.int64()))
    zeros = pa.array(np.zeros(count, np.int64))
    return pa.record_batch([arrays.get(name, zeros) for name in _ROWS.names], schema=_ROWS)
