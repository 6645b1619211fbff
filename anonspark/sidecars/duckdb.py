"""Expressions in DuckDB's SQL. Expressions are handed over and returned as text."""

from __future__ import annotations

import pyarrow as pa

_NAMES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT",
    "date32[day]": "DATE",
}  # fmt: skip


def quoted(name: str) -> str:
    """Quote the name of a column.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text literal.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def middle_day(low: str, high: str) -> str:
    """Return the day in the middle, rounded down."""
    return f"CAST({low} + CAST(({high} - {low}) // 2 AS INTEGER) AS DATE)"


def middle_time(low: str, high: str, *, zoned: bool) -> str:
    """Return the microsecond in the middle, rounded down."""
    make = "make_timestamptz" if zoned else "make_timestamp"
    return f"{make}(epoch_us({low}) + (epoch_us({high}) - epoch_us({low})) // 2)"


def members(inner: str, pattern: str) -> str:
    """Return the members of a set that is written as text.

    >>> members("x", "[a-z]")
    "regexp_extract_all(x, '[a-z]', 0)"
    """
    return f"regexp_extract_all({inner}, {text(pattern)}, 0)"


def each(listed: str) -> str:
    """Return the members of a list as values: unquoted, and null for missing."""
    quote = text('"%')
    value = (
        f"CASE WHEN x = 'missing' THEN NULL WHEN x LIKE {quote} "
        "THEN json_extract_string(x, '$') ELSE x END"
    )
    return f"[{value} FOR x IN {listed}]"


def matched(label: str, pattern: str, group: int) -> str:
    """Return the text that a group of a regular expression matches, or null.

    >>> matched("x", "([0-9]+)-", 1)
    "nullif(regexp_extract(x, '([0-9]+)-', 1), '')"
    """
    return f"nullif(regexp_extract({label}, {text(pattern)}, {group}), '')"


def typed(label: str, arrow_type: pa.DataType) -> str:
    """Cast a text to a type, or to null if it is no value of it. A time is in UTC.

    >>> typed("x", pa.int32())
    'try_cast(x AS INT)'
    """
    if pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None:
        # Whatever the time zone of the session.
        clock = f"regexp_replace({label}, '^[^ ]+$', '\\0 00:00:00')"
        return f"try_cast({clock} || '+00:00' AS TIMESTAMPTZ)"
    return f"try_cast({label} AS {_type_name(arrow_type)})"


def _type_name(arrow_type: pa.DataType) -> str:
    """Return DuckDB's name of a type.

    >>> _type_name(pa.decimal128(9, 2))
    'DECIMAL(9, 2)'
    """
    if pa.types.is_timestamp(arrow_type):
        return "TIMESTAMP"
    if pa.types.is_decimal(arrow_type):
        return f"DECIMAL({arrow_type.precision}, {arrow_type.scale})"
    return _NAMES.get(str(arrow_type), "DOUBLE")
