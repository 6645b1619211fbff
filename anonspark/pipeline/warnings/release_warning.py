"""One warning, words that warnings share, and warnings about settings."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from anonspark.config import Configuration
from anonspark.config.loading import is_readable_by_others
from anonspark.core.figure_text import share_of_records
from anonspark.core.warning_codes import WarningCode
from anonspark.foreign_text import visible

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True)
class ReleaseWarning:
    """A warning to the publisher of a table.

    ``code`` names its kind. ``text`` is for people: what was found, what it means, what to do.
    ``figures`` are for machines. ``advice`` is more for the log, which no release holds.

    >>> ReleaseWarning("rare_values", "2% of the records have a rare value", "zip").line
    'attributes.zip: 2% of the records have a rare value'
    """

    code: WarningCode
    text: str
    attribute: str | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""

    @property
    def line(self) -> str:
        """The warning as one line of the log."""
        where = "" if self.attribute is None else f"attributes.{self.attribute}: "
        return f"{where}{self.text}{self.advice}"

    def as_dict(self) -> dict[str, object]:
        """Return it for the manifest: plain values, without the advice."""
        return {
            "code": self.code,
            "attribute": self.attribute,
            "text": visible(self.text),
            "figures": dict(self.figures),
        }


def log_warnings(warnings: Iterable[ReleaseWarning]) -> None:
    """Write warnings to the log."""
    for warning in warnings:
        _LOGGER.warning("%s", warning.line)


# So many seeds can be tried in minutes, against the fingerprint in the manifest.
_GUESSABLE = 2**32

# No number is proposed: logs are read by many, and what stands in one is no secret.
_DRAW = "python3 -c 'import secrets; print(secrets.randbits(64) - 2**63)'"


def seed_warnings(configuration: Configuration) -> Iterator[ReleaseWarning]:
    """Warn of a seed that others know, can guess, or can read. The demo may have such a seed."""
    execution = configuration.execution
    if abs(execution.seed) < _GUESSABLE:
        what = "is 0, the default, which is public"
        if execution.seed:
            what = "is a small number, which can be found by trying"
        yield ReleaseWarning(
            "guessable_seed",
            f"execution.seed {what}: an attacker can test guesses about who is in which class. "
            "For real data draw one at random from the whole range, and keep it secret in a "
            "file that execution.seed_file names",
            advice=f". This draws one: (umask 077; {_DRAW} > seed)",
        )
    if execution.seed_file is not None and is_readable_by_others(execution.seed_file):
        yield ReleaseWarning(
            "seed_file_readable",
            "execution.seed_file: others than its owner may read the file, and so test guesses "
            "about who is in which class. Take the right from them (chmod 600)",
        )


# More than the reader of a useful release would expect.
_MANY = 0.2


def dropped_record_warnings(dropped: int, others: int, k: int) -> Iterator[ReleaseWarning]:
    """Warn if many records are dropped because a quasi-identifier is missing.

    ``others`` are the other records, whose number is published. Nothing is said of fewer than k.

    >>> [warning.code for warning in dropped_record_warnings(30, 70, k=5)]
    ['many_dropped']
    >>> list(dropped_record_warnings(3, 7, k=5))
    []
    """
    total = dropped + others
    if dropped < max(k, _MANY * total):
        return
    yield ReleaseWarning(
        "many_dropped",
        f"{share_of_records(dropped, total, k)} are dropped because a quasi-identifier is "
        "missing, and no figure of loss or usefulness counts them. To keep them set missing "
        "to category, or leave out the quasi-identifier that is missing most. If values were "
        "taken for missing that are none, correct input.missing_markers",
        figures={"share": round(dropped / total, 2)},
    )


def large_block_warnings(rows: int) -> Iterator[ReleaseWarning]:
    """Warn of the largest block of ``rows`` records that cannot be cut, unless that is 0.

    >>> [warning.figures for warning in large_block_warnings(123_456)]
    [{'records': 120000}]
    """
    if not rows:
        return
    # Only the first two digits are shown.
    step = 10 ** max(len(str(rows)) - 2, 0)
    about = rows // step * step
    yield ReleaseWarning(
        "large_block",
        f"a block of about {about:,} records cannot be cut: its records are equal in every "
        "quasi-identifier, or a criterion allows no cut. One task takes the whole block, "
        "whatever execution.task_rows says, and needs more time and memory than other tasks. "
        "Give each task memory for so many records. If a criterion is the reason, weaken it",
        figures={"records": about},
    )


def blank_row_warnings(blank: int, k: int) -> Iterator[ReleaseWarning]:
    """Warn of rows without any value, of which fewer than k are not reported.

    >>> list(blank_row_warnings(4, k=5))
    []
    """
    if blank < k:
        return
    yield ReleaseWarning(
        "blank_rows",
        f"{blank:,} rows have no value in any column of an attribute: they are no records, and "
        "are left out. If they are people, list a column in which they have values",
        figures={"rows": blank},
    )
