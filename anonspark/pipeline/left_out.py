"""What a release tells of the records that it leaves out: how often each sensitive value occurs.

Distances are measured against the whole input. Where records are left out, a release no longer
shows what their sensitive values were, and so not what it was measured against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.criteria import Criteria
from anonspark.engine.files import PublishedFile
from anonspark.engine.raw_columns import Reading, is_time
from anonspark.engine.tasks import Batches
from anonspark.layers.publish.staging import Staging
from anonspark.layers.publish.tables import write_small_table
from anonspark.pipeline.basis import Basis
from anonspark.verification.left_out import LEFT_OUT

_VALUES = pa.schema([("attribute", pa.string()), ("value", pa.string())])
_TABLE = pa.schema(
    [
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("value", pa.string()),
        pa.field("records", pa.int64(), nullable=False),
    ]
)


def write_left_out(basis: Basis, criteria: Criteria, staging: Staging) -> list[PublishedFile]:
    """Write how often each sensitive value of a distance occurs among the records left out.

    Parameters
    ----------
    basis : Basis
        Tells whether any are left out, and whether their values may be told.
    criteria : Criteria
        Of the whole input.
    staging : Staging
        Of the release.

    Returns
    -------
    list of PublishedFile
        None where a release needs no such table.

    Notes
    -----
    One job with one shuffle of the different values of each task; their counts are collected, of
    each attribute at most 50,000.
    """
    residual = basis.rounds.residual
    named = {one.attribute for one in criteria.criteria if one.is_distance}
    if residual is None or not named or not basis.left_out or not basis.values_told:
        return []
    columns = {one.name: one.column for one in criteria.sensitive if one.name in named}
    raw = list(columns.values())
    readings = [Reading(column, _text(column), pa.string()) for column in raw]
    texts = residual.records.rows(*raw).read(readings, raw)
    told = texts.map_batches(_TellValues(columns), _VALUES)
    counts = told.aggregate(_VALUES.names, count="records").collect().cast(_TABLE)
    # In one order, missing values first, so that it tells nothing of the records' own.
    flagged = counts.append_column("is_value", pc.is_valid(counts["value"]))
    keys = [(name, "ascending") for name in ("attribute", "is_value", "value")]
    table = flagged.sort_by(keys).select(_TABLE.names)
    files = residual.records.engine.files
    return [write_small_table(files, table, staging.release, LEFT_OUT)]


def _text(column: str) -> str:
    return f"text_{column}"


@dataclass(frozen=True)
class _TellValues:
    """Yields each attribute's values as texts: days and microseconds of times as whole numbers."""

    columns: Mapping[str, str]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for name, column in self.columns.items():
                raw, text = batch.column(column), batch.column(_text(column))
                if is_time(raw.type):
                    number = pa.int32() if pa.types.is_date(raw.type) else pa.int64()
                    text = raw.cast(number).cast(pa.string())
                elif pa.types.is_floating(raw.type):
                    # It was read as missing, which it is not.
                    text = pc.if_else(pc.is_nan(raw), "NaN", text)
                names = pa.repeat(pa.scalar(name, pa.string()), batch.num_rows)
                yield pa.RecordBatch.from_arrays([names, text], schema=_VALUES)
