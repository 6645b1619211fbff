"""Whether a release tells the truth: every published record stands for an original one.

A published record is a possible counterpart of an original if both are equal in what is published
as it is (the payload), and the published region holds the original's quasi-identifiers. A release
is truthful if originals and published records can be paired so, each with one of its own. Releases
carry no record numbers, so that nobody can say which pairing is the one that was meant.

Pairs exist only among records of equal payload, so that each group of equal payload is judged by
itself. Where it has at most 1,000,000 originals and 10,000,000 possible pairs, a largest matching
is found: the answer is exact. In larger groups it is exact where no original has a choice, as in a
release whose regions do not overlap. In all others three conditions are checked that every truthful
release satisfies, but that do not prove it: a payload occurs as often as in the original, every
original has a possible counterpart, and no class publishes a payload more often than its region has
originals of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from anonspark.engine.spark.fingerprints import content_hash
from anonspark.engine.spark.names import quoted
from anonspark.engine.spark.tasks import map_batches
from anonspark.engine.spark.types import TEXT_TYPES
from anonspark.errors import DataError
from anonspark.release.region_matching import (
    PreparedTable,
    RegionSearch,
    build_search,
    class_key,
    collect_classes,
    hashable,
    prepare_table,
    require_all_read,
)
from anonspark.release.regions import Leaves, PublishedAttribute, require_readable

Integers = npt.NDArray[np.int64]

_SUBJECT = "original"

# Records that a task gets, where groups are not larger.
_TASK_RECORDS = 250_000

# Originals and pairs of a group that are matched: they are in the memory of one task.
_MOST_MATCHED = 1_000_000
_MOST_PAIRS = 10_000_000


@dataclass(frozen=True)
class Truthfulness:
    """How published records and originals agree.

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
        """Whether no violation was found; a proof where ``not_proven`` is 0."""
        published = self.surplus + self.without_original + self.unmatched_published
        originals = max(self.missing, self.without_counterpart, self.unmatched)
        return not published and originals <= self.left_out

    def describe(self) -> list[str]:
        """Return one sentence a kind of violation, none for a release that holds."""
        allowed = (
            f", expected at most {self.left_out:,} that were left out" if self.left_out else ""
        )
        own = "their sensitive and insensitive values"
        of_originals = f"of {self.originals:,} originals"
        of_published = f"of {self.published:,} published records"
        told = [
            (
                self.missing,
                self.left_out,
                f"{of_originals} are missing: fewer published records than originals have "
                f"{own}{allowed}",
            ),
            (
                self.surplus,
                0,
                f"{of_published} are too many: fewer originals than published records have {own}",
            ),
            (
                self.without_counterpart,
                self.left_out,
                f"{of_originals} lie in the box of no published record with {own}{allowed}",
            ),
            (
                self.without_original,
                0,
                f"{of_published} are too many for their class: fewer originals with {own} lie in "
                "its box",
            ),
            (
                self.unmatched,
                self.left_out,
                f"{of_originals} get no published record of their own, however they are "
                f"paired{allowed}",
            ),
            (
                self.unmatched_published,
                0,
                f"{of_published} get no original of their own, however they are paired",
            ),
        ]
        return [
            f"truthfulness: {count:,} {found}; the release must not be used"
            for count, allowed_count, found in told
            if count > allowed_count
        ]


def measure_truthfulness(
    release: DataFrame,
    attributes: Sequence[PublishedAttribute],
    original: DataFrame,
    payload: Sequence[str],
    hierarchies: Mapping[str, Leaves] | None = None,
    *,
    missing_markers: Iterable[str] = (),
    left_out: int = 0,
) -> Truthfulness:
    """Look for a counterpart of its own for every published record and every original.

    Parameters
    ----------
    release : DataFrame
        Published records.
    attributes : sequence of PublishedAttribute
        Its quasi-identifiers, see :func:`~anonspark.release.regions.published_attributes`.
    original : DataFrame
        Original records, without those that were dropped on purpose, as far as that is known.
        Columns have the names of the attributes and of the payload. Quasi-identifiers are compared
        by value, whatever types the two tables have; texts exactly, without blanks at their ends.
    payload : sequence of str
        Columns that are published as they are. The original's values are cast to the type of the
        release; a value that this would change is equal to no published one.
    hierarchies : mapping of str to (mapping of str to collection of str), or None
        See :func:`~anonspark.verification.presence.measure_presence`.
    missing_markers : iterable of str
        Texts of the original's quasi-identifiers that mean missing; null and NaN do, always.
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
        If the release has more than 1,000,000 classes, its labels cannot be read, or one of the
        tables lacks columns, or they have types that cannot be compared, or the original has values
        that cannot be read.

    Notes
    -----
    Three jobs. One pass over the release collects its classes. One over both tables shuffles two
    counts for each payload and task. One more shuffles the originals' quasi-identifiers, and a
    count for each class and payload of the release, by payload. Where more than 1,000,000 originals
    have one payload, they are shared out over tasks, which all get its published counts. Other
    groups are in one task each, together some 250,000 originals, with 4 bytes for each possible
    pair of the largest one. A task's time grows with the regions that hold its originals, and at
    worst with the possible pairs of a group times the square root of its originals. To the driver
    come the classes with their counts, and sums; no record of a person.

    Payloads and published tuples are compared by hashes of 64 bits: two that differ are taken for
    equal with a probability of 2^-64.
    """
    require_readable(attributes)
    leaves = hierarchies or {}
    own, published = _payload_hashes(original, release, payload)
    prepared = prepare_table(
        original,
        attributes,
        leaves,
        missing_markers=missing_markers,
        subject=_SUBJECT,
        carried={"payload": own},
    )
    classes = collect_classes(release, attributes)
    search = build_search(classes, attributes, prepared, leaves)
    rows = (
        release.select(published.alias("payload"), class_key(release, attributes).alias("key"))
        .groupBy("payload", "key")
        .agg(sf.count(sf.lit(1)).alias("records"))
    )
    counts = _compare_counts(prepared, rows, attributes)
    matches = _match(prepared, rows, search, classes.column("key").to_numpy(), counts)
    return Truthfulness(
        originals=counts.originals,
        published=counts.published,
        left_out=left_out,
        missing=counts.missing,
        surplus=counts.surplus,
        **matches,
    )


# What is published as it is, as a hash.


def _payload_hashes(
    original: DataFrame, release: DataFrame, payload: Sequence[str]
) -> tuple[Column, Column]:
    """Return the hash of the payload for the original and for the release."""
    found = {field.name: field.dataType for field in original.schema}
    wanted = {field.name: field.dataType for field in release.schema}
    problems = []
    for subject, types in (("original", found), ("release", wanted)):
        lacking = [name for name in payload if name not in types]
        if lacking:
            problems.append(f"{subject}: lacks the columns {', '.join(map(repr, lacking))}")
    if problems:
        raise DataError(*problems)
    own, own_changed, published, published_changed = [], [], [], []
    for name in payload:
        converted = _converted(name, found[name], wanted[name])
        if converted is None:
            problems.append(
                f"original: column {name!r} has type {found[name].simpleString()}, which cannot be "
                f"compared with the release's {wanted[name].simpleString()}; cast it first"
            )
            continue
        value, changed = converted
        own.append(hashable(value, wanted[name]))
        own_changed.append(changed)
        published.append(hashable(sf.col(quoted(name)), wanted[name]))
        published_changed.append(sf.lit(False))
    if problems:
        raise DataError(*problems)
    # Hashes skip nulls: the first value makes one of nothing at all.
    return (
        content_hash([*own, *own_changed], sf.lit(0)),
        content_hash([*published, *published_changed], sf.lit(0)),
    )


def _converted(name: str, found: st.DataType, wanted: st.DataType) -> tuple[Column, Column] | None:
    """Return a column of the original in the type of the release, and whether that changed it.

    None where the types cannot be compared.
    """
    value = sf.col(quoted(name))
    if found.simpleString() == wanted.simpleString():
        return value, sf.lit(False)
    is_text, to_text = isinstance(found, TEXT_TYPES), isinstance(wanted, TEXT_TYPES)
    times = (st.DateType, st.TimestampType, st.TimestampNTZType)
    atomic = (*TEXT_TYPES, st.NumericType, st.BooleanType, *times)
    if not (isinstance(found, atomic) and isinstance(wanted, atomic)):
        return None
    alike = any(
        isinstance(found, one) and isinstance(wanted, one) for one in (st.NumericType, times)
    )
    if not (is_text or to_text or alike):
        return None
    target = "string" if to_text else wanted.simpleString()
    text = f"trim({quoted(name)})" if is_text and not to_text else quoted(name)
    converted = sf.expr(f"try_cast({text} AS {target})")
    changed = converted.isNull() & value.isNotNull()
    fractions = (st.FloatType, st.DoubleType)
    if not (is_text or to_text or (isinstance(found, fractions) and isinstance(wanted, fractions))):
        back = sf.expr(f"try_cast(try_cast({text} AS {target}) AS {found.simpleString()})")
        changed |= ~back.eqNullSafe(value)
    return converted, changed


# How often each payload occurs.


@dataclass(frozen=True)
class _Counts:
    """How the numbers of records agree.

    Parameters
    ----------
    originals, published, missing, surplus : int
        See :class:`Truthfulness`.
    common : dict of int to int
        Originals of each payload of which there are too many for one task.
    """

    originals: int
    published: int
    missing: int
    surplus: int
    common: dict[int, int]


def _compare_counts(
    prepared: PreparedTable, rows: DataFrame, attributes: Sequence[PublishedAttribute]
) -> _Counts:
    unreadable = [
        (sf.col(f"value_{index}").isNull() & ~sf.col(f"missing_{index}")).cast("bigint")
        for index in range(len(attributes))
    ]
    originals = prepared.records.select(
        "payload",
        sf.lit(1).cast("bigint").alias("originals"),
        sf.lit(0).cast("bigint").alias("published"),
        sum(unreadable, start=sf.lit(0).cast("bigint")).alias("unreadable"),
    )
    published = rows.select(
        "payload",
        sf.lit(0).cast("bigint").alias("originals"),
        sf.col("records").alias("published"),
        sf.lit(0).cast("bigint").alias("unreadable"),
    )
    difference = sf.col("originals") - sf.col("published")
    is_common = sf.col("originals") > _MOST_MATCHED
    row = (
        originals.unionAll(published)
        .groupBy("payload")
        .agg(*(sf.sum(name).alias(name) for name in ("originals", "published", "unreadable")))
        .agg(
            sf.sum("originals").alias("originals"),
            sf.sum("published").alias("published"),
            sf.sum(sf.greatest(difference, sf.lit(0))).alias("missing"),
            sf.sum(sf.greatest(-difference, sf.lit(0))).alias("surplus"),
            sf.sum("unreadable").alias("unreadable"),
            sf.collect_list(sf.when(is_common, sf.struct("payload", "originals"))).alias("common"),
        )
        .collect()[0]
    )
    if row["unreadable"]:
        sums = prepared.records.agg(*(sf.sum(column) for column in unreadable)).collect()[0]
        require_all_read(_SUBJECT, attributes, list(sums))
    return _Counts(
        originals=row["originals"] or 0,
        published=row["published"] or 0,
        missing=row["missing"] or 0,
        surplus=row["surplus"] or 0,
        common={one["payload"]: one["originals"] for one in row["common"]},
    )


# Who lies where, payload by payload.

# Of groups that one task holds.
_SUMS = (
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

_ROWS = ", ".join(f"{name} bigint" for name in ("payload", "key", *_PARTS, *_SUMS))


def _match(
    prepared: PreparedTable,
    rows: DataFrame,
    search: RegionSearch,
    keys: Integers,
    counts: _Counts,
) -> dict[str, int]:
    """Return the figures of :class:`Truthfulness` that tell who lies where."""
    together = _shared_out(prepared, rows, counts)
    tasks = max(1, -(-max(counts.originals, counts.published) // _TASK_RECORDS))
    matching = sf.least("records", "held")
    row = (
        map_batches(
            together.repartition(tasks, "payload", "part"), _MatchRecords(search, keys), _ROWS
        )
        .groupBy("payload", "key")
        .agg(
            sf.max("records").alias("records"),
            *(sf.sum(name).alias(name) for name in (*_PARTS[1:], *_SUMS)),
        )
        .groupBy("payload")
        .agg(
            sf.sum(matching).alias("matching"),
            *(sf.sum(name).alias(name) for name in (*_PARTS, *_SUMS)),
        )
        .select(*(sf.col(name) + sf.coalesce(_of_shared(name), sf.lit(0)) for name in _SUMS))
        .toDF(*_SUMS)
        .agg(*(sf.sum(name).alias(name) for name in _SUMS))
        .collect()[0]
    )
    return {name: row[name] or 0 for name in _SUMS}


def _of_shared(name: str) -> Column:
    """Return what a group that was shared out adds to a figure, null for nothing."""
    without_choice = sf.col("payload").isNotNull() & (sf.col("choosing") == 0)
    match name:
        case "without_original":
            return sf.col("records") - sf.col("matching")
        case "matched":
            return sf.when(without_choice, sf.col("matching"))
        case "unmatched":
            return sf.when(without_choice, sf.col("originals") - sf.col("matching"))
        case "unmatched_published":
            return sf.when(without_choice, sf.col("records") - sf.col("matching"))
        case "not_proven":
            return sf.when(~without_choice, sf.col("originals"))
        case _:
            return sf.lit(0)


def _shared_out(prepared: PreparedTable, rows: DataFrame, counts: _Counts) -> DataFrame:
    """Return originals and published counts in one table, with the part of their group.

    Groups that one task can hold are part -1. The originals of all others are shared out by their
    content, and every part gets the published counts.
    """
    originals, published = prepared.records, rows
    alone = sf.lit(-1).cast("bigint")
    own_part = every_part = alone
    if counts.common:
        parts = [
            (payload, -(-number // _TASK_RECORDS)) for payload, number in counts.common.items()
        ]
        spark = originals.sparkSession
        common = sf.broadcast(spark.createDataFrame(parts, "payload bigint, parts bigint"))
        values = [sf.col(name) for name in originals.columns if name != "payload"]
        originals = originals.join(common, "payload", "left")
        published = published.join(common, "payload", "left")
        own_part = sf.coalesce(sf.pmod(content_hash(values), sf.col("parts")), alone)
        numbers = sf.sequence(sf.lit(0).cast("bigint"), sf.col("parts") - 1)
        every_part = sf.explode(sf.coalesce(numbers, sf.array(alone)))
    return originals.withColumn("part", own_part).unionByName(
        published.withColumn("part", every_part), allowMissingColumns=True
    )


@dataclass(frozen=True)
class _MatchRecords:
    """Matches a task's originals with published records of equal payload.

    One row with the sums of all groups that the task holds alone, and rows of the others.
    """

    search: RegionSearch
    keys: Integers

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        points = [np.empty((0, len(self.search.axes)), np.int32)]
        originals = [np.empty((0, 2), np.int64)]
        published = [np.empty((0, 4), np.int64)]
        for batch in batches:
            is_original = batch.column("records").is_null()
            own = batch.filter(is_original)
            points.append(self.search.points(own)[0])
            originals.append(_matrix(own, "payload", "part"))
            others = batch.filter(pc.invert(is_original))
            published.append(_matrix(others, "payload", "part", "key", "records"))
        yield self._matched(
            np.concatenate(points), np.concatenate(originals), np.concatenate(published)
        )

    def _matched(
        self, points: npt.NDArray[np.int32], originals: Integers, published: Integers
    ) -> pa.RecordBatch:
        groups, own, others = _grouped(originals, published[:, :2])
        order = np.argsort(self.keys)
        regions = order[np.searchsorted(self.keys, published[:, 2], sorter=order)]
        sorted_originals = np.argsort(own, kind="stable")
        sorted_places = np.lexsort((regions, others))
        own, others = own[sorted_originals], others[sorted_places]
        published, regions = published[sorted_places], regions[sorted_places]
        first = np.searchsorted(own, np.arange(len(groups) + 1))
        first_places = np.searchsorted(others, np.arange(len(groups) + 1))
        records = np.ascontiguousarray(published[:, 3])
        held, holding, matched = self.search.match(
            points[sorted_originals], first, (first_places, regions, records), _MOST_PAIRS
        )
        without, choosing = (
            np.bincount(own[which], minlength=len(groups)) for which in (holding == 0, holding > 1)
        )
        sizes = np.diff(first)
        of_places, excess = (
            np.bincount(others, weights, len(groups)).astype(np.int64)
            for weights in (records, np.maximum(records - held, 0))
        )
        alone = groups[:, 1] < 0
        exact = alone & (matched >= 0)
        shared_places = ~alone[others]
        rows: list[dict[str, Any]] = [
            {
                "without_counterpart": without.sum(),
                "without_original": excess[alone].sum(),
                "matched": matched[exact].sum(),
                "unmatched": (sizes - matched)[exact].sum(),
                "unmatched_published": (of_places - matched)[exact].sum(),
                "not_proven": sizes[alone & ~exact].sum(),
            },
            {
                "payload": published[shared_places, 0],
                "key": published[shared_places, 2],
                "records": records[shared_places],
                "held": held[shared_places],
            },
            {
                "payload": groups[~alone, 0],
                "originals": sizes[~alone],
                "choosing": choosing[~alone],
            },
        ]
        return pa.Table.from_batches([_batch(row) for row in rows]).combine_chunks().to_batches()[0]


def _matrix(batch: pa.RecordBatch, *names: str) -> Integers:
    return np.stack([batch.column(name).to_numpy() for name in names], axis=1)


def _grouped(originals: Integers, published: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the different pairs of payload and part, and which one each row has."""
    both = np.concatenate([originals, published])
    order = np.lexsort((both[:, 1], both[:, 0]))
    ordered = both[order]
    is_first = np.ones(len(both), bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.empty(len(both), np.int64)
    numbers[order] = np.cumsum(is_first) - 1
    return ordered[is_first], numbers[: len(originals)], numbers[len(originals) :]


def _batch(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return rows of ``_ROWS``: numbers that are not given are 0, payload and key null."""
    arrays = {name: np.atleast_1d(values).astype(np.int64) for name, values in columns.items()}
    (count,) = {len(array) for array in arrays.values()}
    names = ("payload", "key", *_PARTS, *_SUMS)
    made = []
    for name in names:
        if name in arrays:
            made.append(pa.array(arrays[name]))
        elif name in ("payload", "key"):
            made.append(pa.nulls(count, pa.int64()))
        else:
            made.append(pa.array(np.zeros(count, np.int64)))
    return pa.RecordBatch.from_arrays(made, names=list(names))
