"""Find the classes of two releases that may share a person, and the cells in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.hierarchies.files import BLANKS
from anonspark.core.labels import Kind
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text, type_name
from anonspark.errors import DataError
from anonspark.kernels.region_pairs import match_payloads
from anonspark.kernels.region_search import build_region_tree
from anonspark.labels.raw_records import ComparedAs, order_of_code
from anonspark.labels.region_axes import Runs, sets_of_codes
from anonspark.labels.region_matching import (
    class_columns,
    code_regions,
    collect_classes,
    count_payloads,
)
from anonspark.labels.regions import (
    CategoryRegion,
    Interval,
    Leaves,
    OrderedRegion,
    PublishedAttribute,
    code_key,
    read_regions,
    read_values,
    require_readable,
)
from anonspark.verification.claims.claim import Claim
from anonspark.verification.claims.left_out import listed_values

# Payloads are compared by hashes of 64 bits: two that differ are taken for equal with a probability
# of 2^-64.

MOST_CELLS = 20_000_000

# No column has such a name by accident.
_PAYLOAD = "anonspark_payload"


@dataclass(frozen=True)
class ReadRelease:
    """The records of a release, and how they are read.

    ``name`` is for messages. ``raw_kinds`` say what the values of quasi-identifiers were, if their
    labels are read otherwise.
    """

    name: str
    data: Table
    claim: Claim
    attributes: tuple[PublishedAttribute, ...]
    raw_kinds: Mapping[str, Kind] = field(default_factory=dict)


@dataclass(frozen=True)
class Cells:
    """The classes of a release, and how many records of each have each payload.

    ``classes`` are those of :func:`~anonspark.labels.region_matching.collect_classes`. ``starts``,
    int64 of shape (classes + 1,), is where the cells of each class begin. ``payloads`` and
    ``records``, of shape (cells,), are the number of each cell's payload, ascending inside a class,
    and its records. Of shape (payloads,) are ``totals``, the records of each payload, and
    ``left_out``, those that found no class and are not published, at most.
    """

    classes: pa.Table
    starts: Integers
    payloads: Integers
    records: Integers
    totals: Integers
    left_out: Integers

    @property
    def numbers(self) -> Integers:
        """The class of each cell."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


@dataclass(frozen=True)
class TwoReleases:
    """The cells of two releases, with one numbering of payloads.

    ``payload`` are the columns that both publish unchanged. ``values`` has, of each sensitive
    attribute among them, the number of each payload's value, int64 of shape (payloads,).
    """

    cells: tuple[Cells, Cells]
    payload: tuple[str, ...]
    values: dict[str, Integers]


def read_cells(first: ReadRelease, second: ReadRelease) -> TwoReleases:
    """Collect the cells of two releases: the records of each class by payload.

    Two jobs a release, or three if sensitive attributes are among the payload, with a shuffle of a
    row a class, cell or payload and task. The driver gets the classes, a key, a hash and a count of
    each cell, and the sensitive values of each different payload, but no record. Raises DataError
    if a column of both has two types, or a release over 1,000,000 classes or 20,000,000 cells.
    """
    payload = _payload(first, second)
    schema = first.data.schema
    sensitive = [
        name for name in payload if name in first.claim.sensitive or name in second.claim.sensitive
    ]
    sides = [_collect(release, payload, schema) for release in (first, second)]
    hashes = np.unique(np.concatenate([table.column(_PAYLOAD).to_numpy() for _, table in sides]))
    columns = _values(first, second, payload, sensitive, schema, hashes)
    bounds = [_most_left_out(release.claim, columns, len(hashes)) for release in (first, second)]
    cells = [
        _cells(classes, counted, hashes, bound)
        for (classes, counted), bound in zip(sides, bounds, strict=True)
    ]
    numbers = {name: _numbers(column) for name, column in columns.items()}
    return TwoReleases((cells[0], cells[1]), payload, numbers)


def _payload(first: ReadRelease, second: ReadRelease) -> tuple[str, ...]:
    """Find the columns that both publish unchanged. Raises DataError if their types differ."""
    types = [{field.name: field.type for field in side.data.schema} for side in (first, second)]
    names = [
        name
        for name in types[0]
        if name in types[1] and all(name in side.claim.as_they_came for side in (first, second))
    ]
    problems = [
        f"{second.name}: column {name!r} has type {type_name(types[1][name])}, and "
        f"{type_name(types[0][name])} in {first.name}. Values of two types cannot be compared: "
        "publish it with one type"
        for name in names
        if not types[0][name].equals(types[1][name])
    ]
    if problems:
        raise DataError(*problems)
    return tuple(names)


def _hashed(release: ReadRelease, payload: Sequence[str], schema: pa.Schema) -> Table:
    """Add a hash of the payload, of the types of a schema."""
    return release.data.with_hashes({_PAYLOAD: payload}, like=schema)


def _collect(
    release: ReadRelease, payload: Sequence[str], schema: pa.Schema
) -> tuple[pa.Table, pa.Table]:
    """Return the classes of a release and the records of each cell."""
    classes = collect_classes(release.data, release.attributes)
    counted = count_payloads(_hashed(release, payload, schema), release.attributes, _PAYLOAD)
    collected = counted.collect(MOST_CELLS + 1)
    if collected.num_rows > MOST_CELLS:
        raise DataError(
            f"{release.name}: more than {MOST_CELLS:,} pairs of a class and the values that are "
            "published as they are. The files alone are attacked up to that many: let a ledger "
            "check releases of this size"
        )
    return classes, collected


def _values(
    first: ReadRelease,
    second: ReadRelease,
    payload: Sequence[str],
    sensitive: Sequence[str],
    schema: pa.Schema,
    hashes: Integers,
) -> dict[str, pa.Array]:
    """Collect the value of each sensitive attribute in each payload, in the order of ``hashes``."""
    if not sensitive:
        return {}
    columns = {f"value_{index}": name for index, name in enumerate(sensitive)}
    rows = pa.concat_tables(
        _hashed(release, payload, schema)
        .select({_PAYLOAD: _PAYLOAD, **columns})
        .aggregate([_PAYLOAD, *columns], count="records")
        .collect()
        for release in (first, second)
    )
    _, indices = np.unique(rows.column(_PAYLOAD).to_numpy(), return_index=True)
    if len(indices) != len(hashes):
        raise DataError("verify --with: a release changed while it was read. Verify it again")
    return {
        name: rows.column(alias).take(pa.array(indices)).combine_chunks()
        for alias, name in columns.items()
    }


def _numbers(column: pa.Array) -> Integers:
    """Return the number of each value among the different ones of a column.

    >>> _numbers(pa.array(["a", None, "a"])).tolist()
    [0, 1, 0]
    """
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _most_left_out(claim: Claim, columns: dict[str, pa.Array], payloads: int) -> Integers:
    """Bound how many records of each payload were left out, by those of each sensitive value."""
    most = np.full(payloads, claim.left_out.rows, np.int64)
    if claim.left_out.values is None or not claim.left_out.rows:
        return most
    for name, column in columns.items():
        left_out = claim.left_out.values.filter(pc.field("attribute") == name)
        if not left_out.num_rows:
            continue
        values, keys = listed_values(left_out, column.type), column
        if is_text(column.type):
            # Spellings that differ in blanks are bounded together.
            values, keys = pc.utf8_trim_whitespace(values), pc.utf8_trim_whitespace(keys)
        totals = pa.table([values, left_out["records"]], ["value", "records"])
        totals = totals.group_by("value").aggregate([("records", "sum")])
        indices = pc.index_in(keys, value_set=totals["value"].combine_chunks())
        records = totals["records_sum"].take(indices).fill_null(0).to_numpy()
        most = np.minimum(most, records)
    return most


def _cells(classes: pa.Table, counted: pa.Table, hashes: Integers, left_out: Integers) -> Cells:
    """Return the cells that were counted, with numbers for class and payload, sorted by both."""
    keys = classes.column("key").to_numpy()
    order = np.argsort(keys, kind="stable")
    cell_keys = counted.column("key").to_numpy()
    ranks = np.minimum(np.searchsorted(keys, cell_keys, sorter=order), len(keys) - 1)
    numbers = order[ranks]
    if not np.array_equal(keys[numbers], cell_keys):
        raise DataError("verify --with: a release changed while it was read. Verify it again")
    payloads = np.searchsorted(hashes, counted.column(_PAYLOAD).to_numpy())
    records = counted.column("records").to_numpy().astype(np.int64)
    sorted_cells = np.lexsort((payloads, numbers))
    numbers, payloads, records = (column[sorted_cells] for column in (numbers, payloads, records))
    return Cells(
        classes=classes,
        starts=np.searchsorted(numbers, np.arange(len(keys) + 1)),
        payloads=payloads,
        records=records,
        totals=np.bincount(payloads, records, len(hashes)).astype(np.int64),
        left_out=left_out,
    )


CellNumbers = npt.NDArray[np.int32]

MOST_PAIRS = 20_000_000
"""Pairs of cells, which are in the driver's memory."""

_MOST_VISITED = 2_000_000_000

_CLASSES_AT_ONCE = 1024

_DECIMAL_PLACES = 18

_TEXTS = ("category", "boolean")


@dataclass(frozen=True)
class CompatiblePairs:
    """The pairs of classes that may share a person.

    ``pairs`` counts those whose regions meet. ``first`` and ``second`` are, of such pairs, the
    cells of both releases that agree in their payload, int32 of shape (n,). Those of one pair of
    classes follow each other.
    """

    pairs: int
    first: CellNumbers
    second: CellNumbers


def compatible_pairs(
    releases: Sequence[ReadRelease],
    cells: TwoReleases,
    hierarchies: Sequence[Mapping[str, Leaves]],
) -> CompatiblePairs:
    """Find the pairs of classes of two releases that may share a person.

    ``hierarchies`` are those of :func:`~anonspark.labels.regions.read_label`, of both. O(log n +
    pairs) for each class if regions overlap little, and the cells of both classes of a pair. 8
    bytes a pair of cells. Raises ConfigurationError if a release publishes means, and DataError if
    labels cannot be read, a quasi-identifier is of two kinds, or there are too many pairs.
    """
    for release in releases:
        require_readable(release.attributes)
    left, right = cells.cells
    counts = left.classes.num_rows, right.classes.num_rows
    regions = _common_regions(releases, cells.cells, hierarchies)
    low, high = (np.ascontiguousarray(ends[: counts[0]]) for ends in regions[:2])
    tree = build_region_tree(low, high)
    starts = np.concatenate([left.starts, right.starts[1:] + left.starts[-1]])
    payloads = np.concatenate([left.payloads, right.payloads])
    fixed = (*regions, *tree)
    empty = np.empty(0, np.int32)
    pairs = hits = 0
    for first in range(counts[0], sum(counts), _CLASSES_AT_ONCE):
        last = min(first + _CLASSES_AT_ONCE, sum(counts))
        counts_here = match_payloads(*fixed, first, last, starts, payloads, empty, empty)
        pairs, hits = pairs + counts_here[0], hits + counts_here[1]
        if pairs > _MOST_VISITED:
            raise _too_many(f"more than {_MOST_VISITED:,} pairs of classes that may share a person")
    if hits > MOST_PAIRS:
        raise _too_many(f"{hits:,} pairs of classes with the values that both publish as they are")
    firsts, seconds = np.empty(hits, np.int32), np.empty(hits, np.int32)
    match_payloads(*fixed, counts[0], sum(counts), starts, payloads, firsts, seconds)
    seconds -= np.int32(left.starts[-1])
    return CompatiblePairs(pairs, firsts, seconds)


def _too_many(pairs: str) -> DataError:
    """Say that there are too many pairs."""
    return DataError(
        f"verify --with: found {pairs}. The files alone are attacked up to {MOST_PAIRS:,}: let a "
        "ledger check releases of this size (anonspark ledger check)"
    )


def _common_regions(
    releases: Sequence[ReadRelease],
    cells: Sequence[Cells],
    hierarchies: Sequence[Mapping[str, Leaves]],
) -> tuple[npt.NDArray[Any], ...]:
    """Return the regions of all classes in the common attributes, the first release's first."""
    classes = sum(cell.classes.num_rows for cell in cells)
    indices = [
        {attribute.name: index for index, attribute in enumerate(release.attributes)}
        for release in releases
    ]
    coded = [
        _coded(name, releases, cells, hierarchies) for name in indices[0] if name in indices[1]
    ]
    if not coded:
        # Without a common attribute all classes have one region.
        coded = [([((0, 0),)], np.zeros(classes, np.int64))]
    return code_regions(coded, classes)


def _coded(
    name: str,
    releases: Sequence[ReadRelease],
    cells: Sequence[Cells],
    hierarchies: Sequence[Mapping[str, Leaves]],
) -> tuple[list[Runs], Integers]:
    """Encode an attribute of both releases on one axis: its regions, and that of each class."""
    attributes = [
        next(field for field in release.attributes if field.name == name) for release in releases
    ]
    compared_as, kind = _comparison(name, attributes, releases)
    regions: list[Any] = []
    numbers = []
    first_leaves: Leaves | None = None
    for release, cell, leaves_of, attribute in zip(
        releases, cells, hierarchies, attributes, strict=True
    ):
        leaves = None if attribute.rule else leaves_of.get(name)
        first_leaves = first_leaves or leaves
        # Ends are rounded as the values are.
        is_rounded = compared_as == "float" and attribute.rule is not None
        read_as = replace(attribute, kind="float") if is_rounded else attribute
        columns = class_columns(
            cell.classes, release.attributes, release.attributes.index(attribute)
        )
        parsed, region_of_class = read_regions(columns, read_as, leaves)
        numbers.append(region_of_class + len(regions))
        if compared_as in ("code", "beginning"):
            by_length = compared_as == "code"
            regions += [_as_code(region, attribute, by_length=by_length) for region in parsed]
        elif compared_as is not None:
            regions += [
                read_values(region, kind) if isinstance(region, CategoryRegion) else region
                for region in parsed
            ]
        else:
            regions += parsed
    _, sets = sets_of_codes(regions, compared_as, first_leaves)
    return sets, np.concatenate(numbers)


def _comparison(
    name: str, attributes: Sequence[PublishedAttribute], releases: Sequence[ReadRelease]
) -> tuple[ComparedAs | None, Kind]:
    """Decide how to compare the values of an attribute in two releases, and as which kind.

    Texts, as those of a hierarchy, are read as the kind of the other release. Raises DataError if
    neither kind can be read as the other.
    """
    kinds = [
        release.raw_kinds.get(name, attribute.kind)
        for attribute, release in zip(attributes, releases, strict=True)
    ]
    ordered = {kind for kind in kinds if kind not in _TEXTS}
    codes = {order for attribute in attributes if (order := order_of_code(attribute)) is not None}
    if len(codes) > 1:
        raise DataError(
            f"{releases[1].name}: quasi-identifier {name!r} has another rule than in "
            f"{releases[0].name}: prefix and keep mask other codes. They cannot be compared: make "
            "both releases by one of the two"
        )
    if not ordered:
        return (codes.pop() if codes else None), "category"
    if codes == {"code"} and ordered == {"integer"}:
        return "code", "integer"
    if not codes and "boolean" not in kinds:
        if ordered <= {"integer"}:
            return "integer", "integer"
        if ordered <= {"integer", "decimal"}:
            return _DECIMAL_PLACES, "decimal"
        if ordered <= {"integer", "decimal", "float"}:
            return "float", "float"
        if len(ordered) == 1:
            return "integer", ordered.pop()
    raise DataError(
        f"{releases[1].name}: quasi-identifier {name!r} is of kind {kinds[1]}, and of kind "
        f"{kinds[0]} in {releases[0].name}. They cannot be compared: make both releases with one "
        "type of it"
    )


def _as_code(
    region: OrderedRegion | CategoryRegion, attribute: PublishedAttribute, *, by_length: bool
) -> OrderedRegion:
    """Turn texts or whole numbers into intervals of masked codes, which sort as numbers do."""
    if isinstance(region, OrderedRegion):
        if attribute.is_code or region.intervals is None:
            return region
        ends = [_whole_ends(interval) for interval in region.intervals]
        if any(low < 0 or high == math.inf for low, high in ends):
            # A superset: codes order negative numbers otherwise, and open ends have any length.
            return OrderedRegion(None, region.missing)
        keys = [
            (code_key(str(low), by_length=True), code_key(str(high), by_length=True))
            for low, high in ends
            if low <= high
        ]
    elif region.values is None:
        return OrderedRegion(None, region.missing)
    else:
        keys = [
            (code_key(value.strip(BLANKS), by_length=by_length),) * 2 for value in region.values
        ]
    return OrderedRegion(tuple(Interval(low, high) for low, high in keys), region.missing)


def _whole_ends(interval: Interval) -> tuple[int, int | float]:
    """Return the first and last whole number of an interval.

    >>> _whole_ends(Interval(17, 25, high_included=False)), _whole_ends(Interval(17, math.inf))
    ((17, 24), (17, inf))
    """
    if isinstance(interval.low, str) or isinstance(interval.high, str):
        raise TypeError("an interval of texts has no numbers")
    low = -1 if interval.low == -math.inf else math.ceil(interval.low)
    if interval.high == math.inf:
        return low, math.inf
    high = math.floor(interval.high)
    low += not interval.low_included and low == interval.low
    high -= not interval.high_included and high == interval.high
    return low, high
