"""Tables of Arrow as DataFrames of pandas, without a change of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas


def as_pandas(table: pa.Table) -> pandas.DataFrame:
    """Convert a table of Arrow to a DataFrame of pandas, with Python's dates and decimals.

    Integers and booleans with missing values get ``Int64``, ``boolean`` and so on, because NumPy
    would convert them to floats, which change integers beyond 2^53. Without missing values they
    have NumPy's types.

    >>> as_pandas(pa.table({"age": [39, None], "visits": [1, 2]})).dtypes.astype(str).to_dict()
    {'age': 'Int64', 'visits': 'int64'}
    """
    import pandas as pd

    nullable = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    frame: pandas.DataFrame = table.to_pandas(date_as_object=True)
    for index, column in enumerate(table.columns):
        if column.null_count and column.type in nullable:
            frame.isetitem(index, column.to_pandas(types_mapper=nullable.get))
    return frame
