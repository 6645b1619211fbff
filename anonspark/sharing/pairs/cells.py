"""The classes of two releases by what both publish as it is: cells, each of a class and a payload.

Payloads are compared by hashes of 64 bits: two that differ are taken for equal with a probability
of 2^-64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.arrays import Integers
from anonspark.core.kinds import Kind
from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_text, type_name
from anonspark.errors import DataError
from anonspark.release.region_matching import class_keys, collect_classes
from anonspark.release.regions import PublishedAttribute
from anonspark.verification.claims.claim import Claim
from anonspark.verification.claims.left_out import told_values

MOST_CELLS = 20_000_000

# The names that people give to columns are not like these.
_PAYLOAD, _KEY = "anonspark_payload", "anonspark_key"


@dataclass(frozen=True)
class ReadRelease:
    """The records of a release, and how they are read.

    Parameters
    ----------
    name : str
        What messages call it.
    data : Table
    claim : Claim
    attributes : tuple of PublishedAttribute
        Its quasi-identifiers.
    raw_kinds : mapping of str to Kind
        What the values of quasi-identifiers were, where their labels are read otherwise.
    """

    name: str
    data: Table
    claim: Claim
    attributes: tuple[PublishedAttribute, ...]
    raw_kinds: Mapping[str, Kind] = field(default_factory=dict)


@dataclass(frozen=True)
class Cells:
    """The classes of a release, and how many records of each have each payload.

    Parameters
    ----------
    classes : pyarrow.Table
        See :func:`~anonspark.release.region_matching.collect_classes`.
    starts : int64 ndarray of shape (classes + 1,)
        Where the cells of each class begin.
    payloads : int64 ndarray of shape (cells,)
        Number of each cell's payload, ascending inside a class.
    records : int64 ndarray of shape (cells,)
    totals : int64 ndarray of shape (payloads,)
        Records of each payload.
    left_out : int64 ndarray of shape (payloads,)
        Records of each payload that found no class and are not published, at most.
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

    Parameters
    ----------
    cells : tuple of Cells
        Of the first and of the second.
    payload : tuple of str
        The columns that both publish as they are.
    values : mapping of str to int64 ndarray of shape (payloads,)
        Of each sensitive attribute among them, the number of each payload's value.
    """

    cells: tuple[Cells, Cells]
    payload: tuple[str, ...]
    values: dict[str, Integers]


def read_cells(first: ReadRelease, second: ReadRelease) -> TwoReleases:
    """Collect the cells of two releases.

    Raises
    ------
    DataError
        If a column that both publish as it is has two types, or there are more than 1,000,000
        classes or 20,000,000 cells of a release.

    Notes
    -----
    Two or, where sensitive attributes are among the payload, three jobs a release, with a shuffle
    of a row a class, cell or payload and task. To the driver come the classes, a key, a hash and a
    count of each cell, and the sensitive values of each different payload. No record of a person.
    """
    payload = _payload(first, second)
    schema = first.data.schema
    sensitive = [
        name for name in payload if name in first.claim.sensitive or name in second.claim.sensitive
    ]
    both = [_collect(release, payload, schema) for release in (first, second)]
    hashes = np.unique(np.concatenate([counted.column(_PAYLOAD).to_numpy() for _, counted in both]))
    columns = _values(first, second, payload, sensitive, schema, hashes)
    bounds = [_most_left_out(release.claim, columns, len(hashes)) for release in (first, second)]
    cells = [
        _cells(classes, counted, hashes, bound)
        for (classes, counted), bound in zip(both, bounds, strict=True)
    ]
    numbers = {name: _numbers(column) for name, column in columns.items()}
    return TwoReleases((cells[0], cells[1]), payload, numbers)


def _payload(first: ReadRelease, second: ReadRelease) -> tuple[str, ...]:
    """Return the columns that both publish as they are."""
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
    return release.data.with_hashes({_PAYLOAD: payload}, like=schema)


def _collect(
    release: ReadRelease, payload: Sequence[str], schema: pa.Schema
) -> tuple[pa.Table, pa.Table]:
    """Return the classes of a release and the records of each cell."""
    classes = collect_classes(release.data, release.attributes)
    names = [name for attribute in release.attributes for name in attribute.columns]
    keyed = class_keys(_hashed(release, payload, schema), names)
    counted = keyed.select({_KEY: "key", _PAYLOAD: _PAYLOAD}).aggregate(
        [_KEY, _PAYLOAD], count="records"
    )
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
    """Return the value of each sensitive attribute in each payload."""
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
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _most_left_out(claim: Claim, columns: dict[str, pa.Array], payloads: int) -> Integers:
    """Return how many records of each payload were left out, at most."""
    most = np.full(payloads, claim.left_out.rows, np.int64)
    if claim.left_out.values is None or not claim.left_out.rows:
        return most
    for name, column in columns.items():
        left_out = claim.left_out.values.filter(pc.field("attribute") == name)
        if not left_out.num_rows:
            continue
        values, keys = told_values(left_out, column.type), column
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
    """Return cells in the order of classes and payloads, by their numbers."""
    keys = classes.column("key").to_numpy()
    order = np.argsort(keys, kind="stable")
    sought = counted.column(_KEY).to_numpy()
    ranks = np.minimum(np.searchsorted(keys, sought, sorter=order), len(keys) - 1)
    numbers = order[ranks]
    if not np.array_equal(keys[numbers], sought):
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
