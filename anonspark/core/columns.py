"""Names of the columns of staged tables.

Staged columns are numbered, so that no name of the input (dots, blanks, clashes) can break a plan.
"""

from __future__ import annotations

from enum import StrEnum

RECORD_HASH = "record_hash"
"""64-bit keyed hash of a record's whole content."""

UNIT = "unit"
"""64-bit keyed hash of who a record is about. Null where that is missing. What is published of
it, if anything, is a pseudonym (:mod:`anonspark.core.pseudonyms`)."""

SUBJECT = "subject_key"
"""Keyed hash of who a record is about, for a ledger: 16 bytes, and 16 more of the record where
people have several. Like other companions of a record it takes part in no hash, no order and no
fingerprint, and is never published."""

ATOM = "atom"
"""64-bit name of the group of records that no release of a plan divides. A companion."""

WEIGHT = "sampling_weight"
"""The sampling weight of a record as it came, where it is not published. A companion."""

_PAYLOAD = "payload_"

_PUBLISHED = "published_"

PAYLOAD_HASH = "hash_of_payload"
"""64-bit keyed hash of what is published of a record as it came."""

PART = "part"
"""The part of a round's result that a row belongs to. One of :class:`Part`."""

CLASS_ID = "class_id"
"""64-bit name of a finished class, made from the round and the path in the tree."""

ROUND = "round"
"""The round that a class was finished in."""

SIZE = "size"
"""Records of a class."""

RECORD_LOSS = "record_loss"
"""The weighted sum of the certainty penalties of a record, the same for all records of a class."""

PENALTY = "penalty"
"""The contribution of the classes of a packed batch to ``gcp_total``."""

WHOLE_PENALTY = "whole_penalty"
"""The same, had the groups that the classes were taken from been kept whole."""

WHOLE_SQUARES = "whole_squares"
"""Sum of the squared sizes of these groups."""


class Part(StrEnum):
    """The parts of a round's result, staged side by side."""

    FINISHED = "finished"
    """Records of finished classes, generalized."""
    LEFT_OVER = "left_over"
    """Records of the next round, with their raw values or codes."""
    CLASSES = "classes"
    """One row a finished class, with its figures."""
    SUPPRESSED = "suppressed"
    """Records that no round found a class for, all their quasi-identifiers suppressed."""


def quasi_identifier_column(index: int) -> str:
    """Return the staged column of a quasi-identifier's raw values.

    >>> quasi_identifier_column(0)
    'quasi_identifier_0'
    """
    return f"quasi_identifier_{index}"


def code_column(index: int) -> str:
    """Return the staged column of a quasi-identifier's codes, which stand for its raw values."""
    return f"code_{index}"


def identifier_column(index: int) -> str:
    """Return the column of an identifier while records are counted by it. It is never staged."""
    return f"identifier_{index}"


def payload_column(index: int) -> str:
    """Return the staged column of a sensitive or insensitive attribute.

    >>> payload_column(2), is_payload(payload_column(2))
    ('payload_2', True)
    """
    return f"{_PAYLOAD}{index}"


def is_payload(name: str) -> bool:
    """Return whether a staged column holds an attribute that is published as it came."""
    return name.startswith(_PAYLOAD)


def published_column(index: int) -> str:
    """Return the numbered name of a published column that describes a quasi-identifier."""
    return f"{_PUBLISHED}{index}"


def is_published(name: str) -> bool:
    """Return whether a staged column of classes is one of the release."""
    return name.startswith(_PUBLISHED)
