"""Convert identifiers of types that no file has to texts, which is enough to tell them apart."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from anonspark.engine.protocol import Table
from anonspark.engine.raw_columns import is_hashable, is_publishable, require_read
from anonspark.engine.tasks import Batches


def with_texts_of_identifiers(table: Table, names: Sequence[str]) -> Table:
    """Convert identifiers whose type has no hash, as UUIDs and times of day, to texts.

    Maps stay unchanged. Raises DataError if values cannot be read.
    """
    schema = table.schema
    require_read(schema, names, "attributes.")
    indices = [
        index
        for index, field in enumerate(schema)
        if field.name in names and is_hashable(field.type) and not is_publishable(field.type)
    ]
    if not indices:
        return table
    for index in indices:
        schema = schema.set(index, schema.field(index).with_type(pa.string()))

    def read(batches: Batches) -> Batches:
        for batch in batches:
            columns = list(batch.columns)
            for index in indices:
                values = columns[index].to_pylist()
                texts = [None if value is None else str(value) for value in values]
                columns[index] = pa.array(texts, pa.string())
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return table.map_batches(read, schema)
