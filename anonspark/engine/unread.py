"""Columns of a table in memory whose values cannot be read: they have a place and a kind only."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from anonspark.errors import DataError


class UnreadType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column whose values cannot be read. A column that is not used may have it.

    Parameters
    ----------
    kind : str
        What its values are, as messages say it. No value is in it.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(pa.null(), "anonspark.unread")

    def __str__(self) -> str:
        """Return the kind."""
        return self.kind

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the kind."""
        return self.kind.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, _: pa.DataType, serialized: bytes) -> UnreadType:
        """Return the type of a kind."""
        return cls(serialized.decode())


def unread_column(kind: str, rows: int) -> pa.Array:
    """Return a column whose values cannot be read."""
    return pa.ExtensionArray.from_storage(UnreadType(kind), pa.nulls(rows))


def unread(name: str, found: pa.DataType) -> str:
    """Return the error that a column cannot be read."""
    return (
        f"{name}: found {found}, which cannot be read. Expected a column of numbers, dates, "
        "timestamps, booleans or texts, all of one type. Convert it, or leave it out"
    )


def require_read(schema: pa.Schema, names: Iterable[str], subject: str = "") -> None:
    """Check that the values of columns can be read. Those that are not there are passed over.

    Parameters
    ----------
    schema : pyarrow.Schema
    names : iterable of str
        Those to be used.
    subject : str
        What messages say before the name of a column.

    Raises
    ------
    DataError
        Naming each column, and what its values are.
    """
    wanted = set(names)
    problems = [
        f"{subject}{unread(field.name, field.type)}"
        for field in schema
        if field.name in wanted and isinstance(field.type, UnreadType)
    ]
    if problems:
        raise DataError(*problems)
