"""Raw values as plain numbers and texts, whatever type they were read with."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.engine.raw_columns import is_text, is_time


def comparable(values: pa.Array) -> pa.Array:
    """Return values as float64, or as texts if they are texts or booleans.

    Parameters
    ----------
    values : pyarrow.Array
        As :meth:`anonspark.engine.protocol.Table.read` gives them, or as this function does.

    Returns
    -------
    pyarrow.Array
        Dates are days, timestamps microseconds since 1970. What is infinite is null: it has no
        place between the others.
    """
    if is_text(values.type):
        return values
    if pa.types.is_boolean(values.type):
        return values.cast(pa.string())
    if is_time(values.type):
        values = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64())
    numbers = pc.cast(values, pa.float64(), safe=False)
    return pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(None, pa.float64()))
