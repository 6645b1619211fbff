"""Read what a release publishes about the records that it leaves out.

Distances are measured against the whole input. Where records are left out, a release no longer
shows what their sensitive values were, and so not what it was measured against.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.protocol import Engine
from anonspark.engine.raw_columns import is_time, time_numbers
from anonspark.engine.values.value_texts import write
from anonspark.errors import GuaranteeError
from anonspark.release.layout import LEFT_OUT
from anonspark.release.manifest import Manifest
from anonspark.verification.proof.measures import Uncertainty

_COLUMNS = pa.schema(
    [
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("value", pa.string()),
        pa.field("records", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True)
class LeftOut:
    """The known facts about the records that a release leaves out.

    ``rows`` is their number, at most. ``values`` has the columns ``attribute``, ``value`` and
    ``records``. ``uncertainty`` says, of every attribute without such values, what may be different
    in the whole input. ``failures`` contradict the manifest. ``suppressed`` counts the records of a
    table of another tool that are suppressed as a whole, or is None if they are unknown.
    """

    rows: int = 0
    values: pa.Table | None = None
    uncertainty: Mapping[str, Uncertainty] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    suppressed: int | None = None


NOTHING_LEFT_OUT = LeftOut()


def read_left_out(engine: Engine, release: str, manifest: Manifest) -> LeftOut:
    """Read what a release publishes about the records that it leaves out, and check their number.

    One job, which collects the sensitive values of the records, if they are published: of each
    attribute as many as the manifest says were left out, else the result has a failure. The rest is
    read from ``published`` of the manifest. Raises GuaranteeError if the file has other columns.
    """
    published = manifest.published
    # Null if they are fewer than k.
    stated = published.get("rows_left_out", 0)
    rows = manifest.k - 1 if stated is None else int(stated)
    path = f"{release}/{LEFT_OUT}"
    values, attributes_with_values = None, frozenset[str]()
    failures: tuple[str, ...] = ()
    if engine.files.exists(path):
        table = engine.published(path, "parquet")
        if (table.schema.names, table.schema.types) != (_COLUMNS.names, _COLUMNS.types):
            raise GuaranteeError(
                f"{path}: found other columns or types than those of records left out. Restore the "
                "release or publish it again"
            )
        values = table.select(_COLUMNS.names).collect().cast(_COLUMNS)
        totals = values.group_by("attribute").aggregate([("records", "sum")])
        attributes_with_values = frozenset(totals["attribute"].to_pylist())
        if any(records != rows for records in totals["records_sum"].to_pylist()):
            failures = (
                f"{path}: found another number of records than the {rows:,} that the manifest says "
                "were left out. Restore the release or publish it again",
            )
    # Of an attribute whose values they do not publish, the distribution in the whole input may
    # differ from the published one by their share, and have values that only they have.
    share = rows / max(rows + int(published.get("rows", 0)), 1)
    uncertainty = {
        name: Uncertainty(share, int(number))
        for name, number in published.get("sensitive_values", {}).items()
        if rows and name not in attributes_with_values
    }
    return LeftOut(rows, values, uncertainty, failures)


def left_out_texts(name: str, counted: pa.Table) -> pa.Table:
    """Return counted values of a sensitive attribute as ``left_out`` of a release has them.

    ``counted`` has the columns ``value`` and ``records``. Days and microseconds become integers.

    >>> left_out_texts("born", pa.table({"value": [1, None], "records": [3, 1]})).to_pylist()[0]
    {'attribute': 'born', 'value': '1', 'records': 3}
    """
    values = counted["value"].combine_chunks()
    texts = write(time_numbers(values) if is_time(values.type) else values)
    columns = [pa.repeat(name, len(counted)), texts, counted["records"]]
    return pa.table(columns, names=_COLUMNS.names).cast(_COLUMNS)


def count_texts(values: pa.Table) -> Counter[str | None]:
    """Count the values of an attribute, as texts. Zero has one sign.

    >>> count_texts(pa.table({"value": ["0.0", "-0.0"], "records": [1, 2]}))
    Counter({'0.0': 3})
    """
    counts: Counter[str | None] = Counter()
    for text, records in zip(
        values["value"].to_pylist(), values["records"].to_pylist(), strict=True
    ):
        counts["0.0" if text == "-0.0" else text] += records
    return counts


def listed_values(left_out: pa.Table, data_type: pa.DataType) -> pa.ChunkedArray:
    """Convert the published texts of left-out values to the type of their column.

    >>> listed_values(pa.table({"value": ["1", "-0.0"]}), pa.float64()).to_pylist()
    [1.0, 0.0]
    """
    values = left_out["value"]
    # Times are listed as whole numbers.
    if pa.types.is_timestamp(data_type):
        values = values.cast(pa.int64())
    elif pa.types.is_date(data_type):
        values = values.cast(pa.int32())
    values = values.cast(data_type)
    if pa.types.is_floating(data_type):
        # -0.0 is the same value, but Arrow distinguishes it.
        values = pc.add(values, pa.scalar(0.0, data_type))
    return values
