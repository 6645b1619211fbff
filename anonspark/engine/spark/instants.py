"""Points in time as numbers, whatever the time zone of the session.

A timestamp without a zone that is cast to one with a zone is taken for the local time of the
session: where clocks are put forward there are values that it has no place for, and others come to
lie elsewhere.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

_A_DAY, _AN_HOUR, _A_MINUTE, _A_SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000


def microseconds(column: Column, data_type: st.DataType) -> Column:
    """Return a timestamp's 64-bit microseconds since 1970 in UTC, as Arrow counts them.

    Parameters
    ----------
    column : Column
        With or without a time zone; null gives null.
    data_type : DataType
        Its type: without a zone, the clock's hands count as those of a clock in UTC.
    """
    if not isinstance(data_type, st.TimestampNTZType):
        return sf.unix_micros(column)
    # None of these asks for a zone where the timestamp has none.
    seconds = sf.date_part(sf.lit("SECOND"), column) * sf.lit(_A_SECOND)
    return (
        sf.unix_date(column.cast("date")).cast("long") * sf.lit(_A_DAY)
        + sf.hour(column).cast("long") * sf.lit(_AN_HOUR)
        + sf.minute(column).cast("long") * sf.lit(_A_MINUTE)
        + seconds.cast("long")
    )
