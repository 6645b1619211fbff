"""Names of the columns of staged tables.

Staged columns are numbered, so that no name of the input (dots, blanks, clashes) can break a plan.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "CLASS_ID",
    "CLASS_SUMMARY",
    "HASH_KEY",
    "OCCURRENCE",
    "PART",
    "RECORD_HASH",
    "STAGED",
    "Part",
    "payload_column",
    "published_column",
    "quasi_identifier_column",
    "quoted",
]

RECORD_HASH = "record_hash"
"""64-bit keyed hash of a record's whole content."""

HASH_KEY = "hash_key"
"""The seed, or what is made of it, while a hash is computed; not staged."""

OCCURRENCE = "occurrence"
"""Number of a record among those equal in every column; only staged where a cut needs it."""

PART = "part"
"""Which part of a round's result a row belongs to; one of :class:`Part`."""

CLASS_ID = "class_id"
"""64-bit name of a finished class, made from the round and the path in the tree."""

CLASS_SUMMARY = "class_summary"
"""Figures of a class, in the part that tells of the classes only."""

STAGED = {"parquet.enable.dictionary": "false"}
"""Options of staged files: read once or twice and removed, so dictionaries would not pay."""


class Part(StrEnum):
    """The parts of a round's result, staged side by side."""

    FINISHED = "finished"
    """Records of finished classes, generalized."""
    LEFT_OVER = "left_over"
    """Records of the next round, as they came."""
    CLASSES = "classes"
    """One row a finished class, with its figures."""
    SUPPRESSED = "suppressed"
    """Records that no round found a class for, all their quasi-identifiers suppressed."""


def quasi_identifier_column(index: int) -> str:
    """Return the staged column of a quasi-identifier's raw values."""
    return f"quasi_identifier_{index}"


def payload_column(index: int) -> str:
    """Return the staged column of a sensitive or insensitive attribute."""
    return f"payload_{index}"


def published_column(index: int) -> str:
    """Return the staged column of a generalized quasi-identifier."""
    return f"published_{index}"


def quoted(name: str) -> str:
    """Return a column name as Spark reads it whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"
