"""Two dialects of SQL, and the expressions in which they differ."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa


class Dialect(ABC):
    """How a database says it.

    Expressions are handed over and returned as text. Regular expressions are those that both
    databases read alike.
    """

    name: str
    plain_timestamp: str
    """Type of times without a zone."""
    zoned_timestamp: str
    """Type of instants."""

    @abstractmethod
    def quoted(self, name: str) -> str:
        """Return a column's name."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Return a text literal."""

    @abstractmethod
    def middle_day(self, low: str, high: str) -> str:
        """Return the day in the middle, rounded down."""

    @abstractmethod
    def middle_time(self, low: str, high: str, *, zoned: bool) -> str:
        """Return the microsecond in the middle, rounded down."""

    @abstractmethod
    def members(self, inner: str, pattern: str) -> str:
        """Return the members of a set that is written as text."""

    @abstractmethod
    def one_member(self, label: str) -> str:
        """Return a set of one text."""

    @abstractmethod
    def each(self, members: str) -> str:
        """Return members as values: unquoted, and null for missing."""

    @abstractmethod
    def source(self, data_format: str) -> str | None:
        """Return the table of the records beside the file; None where it cannot be read."""

    def matched(self, text: str, pattern: str, group: int) -> str:
        """Return what a group of a regular expression matches, null for nothing."""
        return f"nullif(regexp_extract({text}, {self.text(pattern)}, {group}), '')"

    def typed(self, text: str, arrow_type: pa.DataType) -> str:
        """Return a text as a value of a type, null where it is none; a time is in UTC."""
        if pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None:
            # Whatever the time zone of the session.
            return f"try_cast(({text}) || '+00:00' AS {self.zoned_timestamp})"
        return f"try_cast({text} AS {self.type_name(arrow_type)})"

    def type_name(self, arrow_type: pa.DataType) -> str:
        """Return the name of a type."""
        if pa.types.is_timestamp(arrow_type):
            return self.plain_timestamp
        if pa.types.is_decimal(arrow_type):
            return f"DECIMAL({arrow_type.precision}, {arrow_type.scale})"
        return _NAMES.get(str(arrow_type), "DOUBLE")

    def _value(self, member: str, unquoted: str) -> str:
        quote = self.text('"%')
        return (
            f"CASE WHEN {member} = 'missing' THEN NULL WHEN {member} LIKE {quote} "
            f"THEN {unquoted} ELSE {member} END"
        )


_NAMES = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT",
    "date32[day]": "DATE",
}  # fmt: skip


class DuckDB(Dialect):
    """The SQL of DuckDB."""

    name = "DuckDB"
    plain_timestamp = "TIMESTAMP"
    zoned_timestamp = "TIMESTAMPTZ"

    def quoted(self, name: str) -> str:
        """Return a column's name."""
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Return a text literal."""
        return "'" + value.replace("'", "''") + "'"

    def middle_day(self, low: str, high: str) -> str:
        """Return the day in the middle, rounded down."""
        return f"CAST({low} + CAST(({high} - {low}) // 2 AS INTEGER) AS DATE)"

    def middle_time(self, low: str, high: str, *, zoned: bool) -> str:
        """Return the microsecond in the middle, rounded down."""
        make = "make_timestamptz" if zoned else "make_timestamp"
        return f"{make}(epoch_us({low}) + (epoch_us({high}) - epoch_us({low})) // 2)"

    def members(self, inner: str, pattern: str) -> str:
        """Return the members of a set that is written as text."""
        return f"regexp_extract_all({inner}, {self.text(pattern)}, 0)"

    def one_member(self, label: str) -> str:
        """Return a set of one text."""
        return f"[{label}]"

    def each(self, members: str) -> str:
        """Return members as values: unquoted, and null for missing."""
        value = self._value("x", "json_extract_string(x, '$')")
        return f"[{value} FOR x IN {members}]"

    def source(self, data_format: str) -> str | None:
        """Return the table of the records beside the file; None where it cannot be read."""
        return "read_parquet('data/*.parquet')" if data_format == "parquet" else None


class Spark(Dialect):
    """The SQL of Spark."""

    name = "Spark"
    plain_timestamp = "TIMESTAMP_NTZ"
    zoned_timestamp = "TIMESTAMP"

    def quoted(self, name: str) -> str:
        """Return a column's name."""
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Return a text literal."""
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def middle_day(self, low: str, high: str) -> str:
        """Return the day in the middle, rounded down."""
        return f"date_add({low}, CAST(floor(datediff({high}, {low}) / 2) AS INT))"

    def middle_time(self, low: str, high: str, *, zoned: bool) -> str:
        """Return the microsecond in the middle, rounded down."""
        if zoned:
            step = f"(unix_micros({high}) - unix_micros({low})) DIV 2"
            return f"timestamp_micros(unix_micros({low}) + {step})"
        # By the clock: by way of an instant the session's time zone would count.
        days = f"CAST(datediff({high}, {low}) AS BIGINT) * 86400000000"
        micros = f"({days} + {_micros_of_day(high)} - {_micros_of_day(low)}) DIV 2"
        seconds = f"CAST(CAST({micros} AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
        return f"{low} + make_dt_interval(0, 0, 0, {seconds})"

    def members(self, inner: str, pattern: str) -> str:
        """Return the members of a set that is written as text."""
        return f"regexp_extract_all({inner}, {self.text(pattern)}, 0)"

    def one_member(self, label: str) -> str:
        """Return a set of one text."""
        return f"array({label})"

    def each(self, members: str) -> str:
        """Return members as values: unquoted, and null for missing."""
        unquoted = "get_json_object(concat('[', x, ']'), '$[0]')"
        return f"transform({members}, x -> {self._value('x', unquoted)})"

    def source(self, data_format: str) -> str | None:
        """Return the table of the records beside the file; None where it cannot be read."""
        return f"{data_format}.`data`"


def _micros_of_day(time: str) -> str:
    seconds = f"CAST(date_part('SECOND', {time}) * 1000000 AS BIGINT)"
    hours = f"CAST(hour({time}) AS BIGINT) * 3600000000"
    return f"({hours} + minute({time}) * 60000000L + {seconds})"
