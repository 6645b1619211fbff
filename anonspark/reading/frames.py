"""Tables of Arrow as DataFrames of pandas, with the values that they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pandas


def as_pandas(table: pa.Table) -> pandas.DataFrame:
    """Return a table of Arrow as a DataFrame of pandas: dates are dates, decimals decimals.

    Whole numbers and booleans among which values are missing get the types of pandas that know
    missing values, as ``Int64`` and ``boolean``. NumPy has none: whole numbers would become floats,
    which beyond 2^53 are others. Without missing values they have NumPy's types.
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
