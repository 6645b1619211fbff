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

# Records that a task gets, where groups are not larger.
_TASK_RECORDS = 250_000

# Originals and pairs of a group that are matched: they are in the memory of one task.
_MOST_MATCHED = 1_000_000
_MOST_PAIRS = 10_000_000


@dataclass(frozen=True)
class Truthfulness:
    """The agreement between published records and originals.

    Parameters
    ----------
    originals : int
        Original records.
    published : int
        Published records.
    left_out : int
        Originals that may be without a counterpart, for they were left out on purpose.
    missing : int
        Originals that are too many for the published records of equal payload.
    surplus : int
        Published records that are too many for the originals of equal payload.
    without_counterpart : int
        Originals with no possible counterpart: no published record of equal payload has a region
        that holds them.
    without_original : int
        Published records that are too many for their class: of each class and payload, those
        beyond the number of originals of equal payload that lie in its region.
    matched : int
        Originals that were proven to have counterparts of their own, all at once.
    unmatched : int
        Originals, in groups that were judged exactly, that no pairing of their group can serve.
    unmatched_published : int
        Published records, in groups that were judged exactly, that no pairing can serve.
    not_proven : int
        Originals in groups that are too large to be judged exactly. Of them it is known only
        what the other figures say.
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
        """Return whether no violation was found. A proof where ``not_proven`` is 0."""
        return not self.unpaired_originals and not self.unpaired_published

    @property
    def unpaired_originals(self) -> int:
        """Originals that have no counterpart of their own, beyond those left out, as far as known.

        One record may be counted by several figures, so the largest of them is what is sure.
        """
        unpaired = max(self.missing, self.without_counterpart, self.unmatched)
        return max(0, unpaired - self.left_out)

    @property
    def unpaired_published(self) -> int:
        """Published records that have no counterpart of their own, as far as known, likewise."""
        return max(self.surplus, self.without_original, self.unmatched_published)

    def describe(self) -> list[str]:
        """Return one sentence a kind of violation, none for a release that holds."""
        found = []
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
            found.append(
                f"truthfulness: {count:,} of {records} {text}{allowed}. Check that the original is "
                "the table that the release was made of: if it is, the release must not be used"
            )
        return found


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
    """Look for a counterpart of its own for every published record and every original.

    Parameters
    ----------
    labels : LabelledTable
        Published records.
    original : Table
        Original records. Columns have the names of the attributes and of the payload.
        Quasi-identifiers are compared by value, whatever types the two tables have. Texts exactly,
        without blanks at their ends.
    payload : sequence of str
        Columns that are published as they are. The original's values are cast to the type of the
        release. A value that this would change is equal to no published one.
    drops_missing : bool
        Whether originals with a missing value were dropped on purpose.
    left_out : int
        How many originals may be without a counterpart.

    Returns
    -------
    Truthfulness

    Raises
    ------
    ConfigurationError
        If the release publishes means.
    DataError
        If the release's labels cannot be read, or one of the tables lacks columns, or they have
        types that cannot be compared, or the original has values that cannot be read.
        :class:`~anonspark.labels.region_matching.TooManyClassesError` if over 1,000,000 classes
        overlap too much.

    Notes
    -----
    Three jobs. One pass over the release collects its classes. One over the original shuffles a
    count for each payload and task. One more shuffles the originals' quasi-identifiers, and a
    count for each class and payload of the release, by payload. Where more than 1,000,000 originals
    have one payload, they are shared out over tasks, which all get its published counts. Other
    groups are in one task each, together some 250,000 originals, with 4 bytes for each possible
    pair of the largest one. A task's time grows with the regions that hold its originals, and at
    worst with the possible pairs of a group times the square root of its originals. To the driver
    come the classes with their counts, and sums. No record of a person.

    Payloads and published tuples are compared by hashes of 64 bits: two that differ are taken for
    equal with a probability of 2^-64.
    """
    release, attributes = labels.data, labels.attributes
    _require_comparable(original.schema, release.schema, [one.name for one in attributes], payload)
    prepared = labels.prepare(
        original.with_hashes({_PAYLOAD: payload}, like=release.schema),
        _SUBJECT,
        drops_missing=drops_missing,
        carried=[_PAYLOAD],
    )
    reader = labels.reader(prepared.places)
    published = count_payloads(
        release.with_hashes({_PAYLOAD: payload}, like=release.schema),
        attributes,
        _PAYLOAD,
        labelled=reader.leaves is not None,
    )
    originals, common = _count_payloads(prepared.records, attributes)
    search = None if reader.leaves else reader.search(labels.classes)
    matching = _MatchRecords(reader, labels.classes["key"].to_numpy(), search)
    records = max(originals, labels.records)
    figures = _match(prepared.records, published, matching, common, records)
    return Truthfulness(originals=originals, left_out=left_out, **figures)


# What is published as it is, as a hash.

# The names that people give to columns are not like these.
_PAYLOAD, _CONTENT = "anonspark_payload", "anonspark_content"


def _require_comparable(
    original: pa.Schema, release: pa.Schema, names: Sequence[str], payload: Sequence[str]
) -> None:
    """Check that the original has what is compared, and the payload in types that can be.

    Raises
    ------
    DataError
    """
    found, wanted = (dict(zip(one.names, one.types, strict=True)) for one in (original, release))
    lacking = [name for name in (*names, *payload) if name not in found]
    if lacking:
        raise DataError(
            f"original: lacks the columns {', '.join(map(repr, lacking))}. Found "
            f"{', '.join(map(repr, found))}. Give the table that the release was made of"
        )
    problems = [
        f"original: column {name!r} has type {type_name(found[name])}, which cannot be "
        f"compared with the release's {type_name(wanted[name])}. Cast it first"
        for name in payload
        if not (found[name].equals(wanted[name]) or is_readable(found[name], wanted[name]))
    ]
    if problems:
        raise DataError(*problems)


# How often each payload occurs.


def _count_payloads(
    records: Table, attributes: Sequence[PublishedAttribute]
) -> tuple[int, dict[int, int]]:
    """Return the number of originals, and those of each payload that has too many for one task."""
    names = ["payload", "originals", *(f"unreadable_{index}" for index in range(len(attributes)))]
    schema = _integers(names)
    found = (
        records.map_batches(_CountOriginals(schema), schema)
        .aggregate(["payload"], sums=names[1:])
        .map_batches(_HideRare(_MOST_MATCHED), schema)
        .aggregate(["payload"], sums=names[1:])
        .collect()
    )
    originals, *unreadable = (pc.sum(found[name], min_count=0).as_py() for name in names[1:])
    require_all_read(_SUBJECT, attributes, unreadable)
    common = found.filter(pc.is_valid(found["payload"]))
    columns = (common[name].to_pylist() for name in names[:2])
    return originals, dict(zip(*columns, strict=True))


def _integers(names: Iterable[str]) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


@dataclass(frozen=True)
class _CountOriginals:
    """Counts a batch's originals by payload, and the values that cannot be read."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            values, which = np.unique(batch.column(_PAYLOAD).to_numpy(), return_inverse=True)
            columns = [values, np.bincount(which, minlength=len(values))]
            for index in range(len(self.schema) - len(columns)):
                lacking = np.asarray(batch.column(f"value_{index}").is_null())
                missing = np.asarray(batch.column(f"missing_value_{index}"))
                columns.append(np.bincount(which, lacking & ~missing, len(values)))
            arrays = [pa.array(column.astype(np.int64)) for column in columns]
            yield pa.record_batch(arrays, schema=self.schema)


@dataclass(frozen=True)
class _HideRare:
    """Yields payloads that have many originals, and null for each other one."""

    most: int

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            is_common = pc.greater(batch.column("originals"), self.most)
            payloads = pc.if_else(is_common, batch.column("payload"), None)
            yield batch.set_column(0, "payload", payloads)


# Who lies where, payload by payload.

# Of groups that one task holds.
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
    records: int,
) -> dict[str, int]:
    """Return the figures of :class:`Truthfulness`, of so many records or fewer on either side.

    Groups that one task can hold are part -1. The originals of all others are shared out by their
    leaves and their content, and every part gets the published counts of its leaf.
    """
    reader = matching.reader
    leaves = 1 if reader.leaves is None else reader.leaves.classes
    parts = {payload: -(-number // (leaves * _TASK_RECORDS)) for payload, number in common.items()}
    if parts:
        values = [name for name in originals.schema.names if name.startswith("value_")]
        originals = originals.with_hashes({_CONTENT: values})
    schema = joint_schema(published, originals, pa.field("part", pa.int64()))
    share = _ShareOut(reader, parts, schema)
    both = originals.map_batches(share, schema).union(published.map_batches(share, schema))
    tasks = max(1, -(-records // _TASK_RECORDS))
    found = (
        both.group([_PAYLOAD, "part"], tasks)
        .map_batches(matching, _ROWS)
        .aggregate(["payload", "key"], sums=[*_PARTS[1:], *_SUMS], most=["records"])
        .map_batches(_AddMatching(), _WITH_MATCHING)
        .aggregate(["payload"], sums=[*_PARTS, "matching", *_SUMS])
        .collect()
    )
    sums: Counter[str] = Counter()
    for group in found.to_pylist():
        sums.update({name: group[name] for name in _SUMS})
        if group["payload"] is not None:
            sums.update(_of_shared(group))
    return {name: sums[name] for name in _SUMS}


def _of_shared(group: Mapping[str, int | None]) -> dict[str, int]:
    """Return the figures of a group that was shared out."""
    matching, originals, records = (
        int(group[one] or 0) for one in ("matching", "originals", "records")
    )
    sure = {
        "published": records,
        "missing": max(originals - records, 0),
        "surplus": max(records - originals, 0),
        "without_original": records - matching,
    }
    if group["choosing"]:
        return {**sure, "not_proven": originals}
    unmatched = {"unmatched": originals - matching, "unmatched_published": records - matching}
    return {**sure, **unmatched, "matched": matching}


_WITH_MATCHING = _integers(["payload", *_PARTS, "matching", *_SUMS])


@dataclass(frozen=True)
class _AddMatching:
    """Counts for each class how many of its published records can have an original."""

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            matching = pc.min_element_wise(batch.column("records"), batch.column("held"))
            added = batch.append_column("matching", matching)
            yield added.select(_WITH_MATCHING.names)


@dataclass(frozen=True)
class _ShareOut:
    """Names the part of each original, and brings published counts into every part of their leaf.

    Parameters
    ----------
    reader : RegionReader
    parts : mapping of int to int
        Of each common payload, the parts of a leaf.
    schema : pyarrow.Schema
    """

    reader: RegionReader
    parts: Mapping[int, int]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            payloads = batch.column(_PAYLOAD).to_numpy()
            numbers = np.zeros(len(payloads), np.int64)
            for payload, number in self.parts.items():
                numbers[payloads == payload] = number
            rows = leaves = np.zeros(0, np.int64)
            if numbers.any():
                rows, leaves = self.reader.leaves_of(batch)
            times = numbers[rows]
            if _CONTENT in batch.schema.names:
                copies = np.flatnonzero(times)
                within = batch.column(_CONTENT).to_numpy()[rows[copies]] % times[copies]
            else:
                copies = np.repeat(np.arange(len(rows)), times)
                within = np.arange(len(copies)) - (np.cumsum(times) - times)[copies]
            alone = np.flatnonzero(numbers == 0)
            part = np.concatenate(
                [np.full(len(alone), -1), leaves[copies] * times[copies] + within]
            )
            shared = np.concatenate([alone, rows[copies]])
            yield taken(batch, shared, self.schema, "part", part)


@dataclass(frozen=True)
class _MatchRecords:
    """Matches a task's originals with published records of equal payload.

    One row with the sums of all groups that the task holds alone, and rows of the others.
    """

    reader: RegionReader
    keys: Integers
    search: RegionSearch | None

    def __call__(self, batches: Batches) -> Batches:
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        table = pa.Table.from_batches(received)
        found = find_groups([table[_PAYLOAD], table["part"]])
        is_original = np.asarray(table["records"].is_null())
        rows = np.flatnonzero(~is_original)
        published = table["key"].take(pa.array(rows)).to_numpy()
        search, keys = self.search, self.keys
        if search is None:
            keys, first = np.unique(published, return_index=True)
            search = self.reader.search(table.take(pa.array(rows[first])))
        order = np.argsort(keys)
        regions = order[np.searchsorted(keys, published, sorter=order)]
        own = np.flatnonzero(is_original)
        own = own[np.argsort(found.numbers[own], kind="stable")]
        codes, _ = search.points(table.take(pa.array(own)))
        sorted_places = np.lexsort((regions, found.numbers[rows]))
        rows, regions = rows[sorted_places], regions[sorted_places]
        others, published = found.numbers[rows], table.take(pa.array(rows))
        yield from self._matched(
            search,
            table.select([_PAYLOAD, "part"]).take(pa.array(found.first)),
            (found.numbers[own], codes),
            (others, regions, published),
        )

    def _matched(
        self,
        search: RegionSearch,
        groups: pa.Table,
        originals: tuple[Integers, Codes],
        places: tuple[Integers, Integers, pa.Table],
    ) -> Batches:
        """Match the originals and the places of groups, in the order of these."""
        own, codes = originals
        others, regions, published = places
        first, first_places = (
            np.searchsorted(one, np.arange(len(groups) + 1)) for one in (own, others)
        )
        records = published["records"].to_numpy().copy()  # the kernel takes what may be written to
        held, holding, matched = match_groups(
            codes, first, first_places, regions, records, _MOST_PAIRS, *search.regions
        )
        without, choosing = (
            np.bincount(own[which], minlength=len(groups)) for which in (holding == 0, holding > 1)
        )
        sizes = np.diff(first)
        of_places, excess = (
            np.bincount(others, weights, len(groups)).astype(np.int64)
            for weights in (records, np.maximum(records - held, 0))
        )
        alone = groups["part"].to_numpy() < 0
        exact = alone & (matched >= 0)
        shared_places = ~alone[others]
        yield from (
            _batch(
                published=of_places[alone].sum(),
                missing=np.maximum(sizes - of_places, 0)[alone].sum(),
                surplus=np.maximum(of_places - sizes, 0)[alone].sum(),
                without_counterpart=without.sum(),
                without_original=excess[alone].sum(),
                matched=matched[exact].sum(),
                unmatched=(sizes - matched)[exact].sum(),
                unmatched_published=(of_places - matched)[exact].sum(),
                not_proven=sizes[alone & ~exact].sum(),
            ),
            _batch(
                payload=published[_PAYLOAD].to_numpy()[shared_places],
                key=published["key"].to_numpy()[shared_places],
                records=records[shared_places],
                held=held[shared_places],
            ),
            _batch(
                payload=groups[_PAYLOAD].to_numpy()[~alone],
                originals=sizes[~alone],
                choosing=choosing[~alone],
            ),
        )


def _batch(**columns: Integers | np.int64) -> pa.RecordBatch:
    """Return rows of ``_ROWS``: numbers that are not given are 0, payload and key null."""
    arrays = {name: np.atleast_1d(values).astype(np.int64) for name, values in columns.items()}
    (count,) = {len(array) for array in arrays.values()}
    arrays = {name: pa.array(array) for name, array in arrays.items()}
    arrays |= dict.fromkeys({"payload", "key"} - set(arrays), pa.nulls(count, pa.int64()))
    none = pa.array(np.zeros(count, np.int64))
    return pa.record_batch([arrays.get(name, none) for name in _ROWS.names], schema=_ROWS)
