"""Collect everything for a report, and what of it few records hide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anonspark.config.decision import Decision
from anonspark.core.figure_text import percent
from anonspark.layers.evaluate.small_counts import COUNTS, published_counts
from anonspark.redaction import redact
from anonspark.release.manifest import Manifest
from anonspark.reporting.figures import Figures
from anonspark.utility.models import Learning
from anonspark.verification.result import Verification

# Counts of the original are shown rounded to multiples of k, as statistical offices round to a
# base (Hundepool and others, Statistical Disclosure Control, 2012, section 5.4.1): a figure of the
# report less another one, or less one of the release, is then about no fewer than k people.

SHARE = "share of the records (%)"
"""What bars of shares measure."""


@dataclass(frozen=True)
class Disclosure:
    """The rules that hide counts of fewer than k people in a report."""

    k: int

    @property
    def few(self) -> str:
        """The words instead of a count that is too small."""
        return f"fewer than {self.k:,}"

    def hides(self, people: float) -> bool:
        """Return whether a count of people must not be shown: one from 1 to k - 1.

        >>> [Disclosure(5).hides(people) for people in (0, 4, 5)]
        [False, True, False]
        """
        return 0 < people < self.k

    def count(self, people: int | None) -> str:
        """Write a count. None is a count that the run has withheld.

        >>> Disclosure(5).count(3), Disclosure(5).count(1234)
        ('fewer than 5', '1,234')
        """
        return self.few if people is None or self.hides(people) else f"{people:,}"

    def rounded(self, people: float) -> int:
        """Round a count of the original to a multiple of k.

        >>> Disclosure(5).rounded(12), Disclosure(5).rounded(13)
        (10, 15)
        """
        return self.k * int(people / self.k + 0.5)

    def rounded_text(self, people: float) -> str:
        """Write a count of the original, rounded, or that it is too small."""
        return self.few if self.hides(round(people)) else f"{self.rounded(people):,}"

    def shares(self, people: Sequence[float]) -> list[float]:
        """Return the shares of counts in their total, made of rounded counts, 0 if hidden.

        >>> Disclosure(5).shares([4, 20, 60])
        [0.0, 0.25, 0.75]
        """
        rounded = [0 if self.hides(round(count)) else self.rounded(count) for count in people]
        total = sum(rounded)
        return [count / total if total else 0.0 for count in rounded]

    def share(self, share: float, people: int, what: str = "records") -> str:
        """Write a share from 0 to 1 of so many people, or that it is about too few of them.

        >>> [Disclosure(5).share(share, 100) for share in (0.5, 0.03, 0.97)]
        ['50.0%', 'fewer than 5 records', 'all but fewer than 5 records']
        """
        some = share * people
        # A share is a quotient of counts: half a person is rounding.
        if 0.5 <= some < self.k - 0.5:
            return f"{self.few} {what}"
        if 0.5 <= people - some < self.k - 0.5:
            return f"all but {self.few} {what}"
        return percent(share)

    def rounded_share(self, share: float, people: int) -> float:
        """Round a share for a chart to a multiple of k people, or to 0 or 1 if hidden.

        >>> Disclosure(5).rounded_share(0.12, 100), Disclosure(5).rounded_share(0.97, 100)
        (0.1, 1.0)
        """
        some = round(share * people)
        if not people or self.hides(some):
            return 0.0
        if self.hides(people - some):
            return 1.0
        return min(self.rounded(some) / people, 1.0)


def percent_or_nothing(share: Any) -> str:
    """Write a share, or an empty text for None."""
    return "" if share is None else percent(share)


def round_percent(share: float) -> str:
    """Write a share as :func:`percent` does, but 10% for 10.0%.

    >>> round_percent(0.1), round_percent(0.125)
    ('10%', '12.5%')
    """
    return percent(share).replace(".0%", "%")


Row = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """All that the report is made of.

    Paths of release and original are redacted. ``summary``, ``rounds`` and ``attributes`` are rows
    of the metrics tables, empty if a release came without them, ``risk_before`` rows of the table
    ``risk`` about the original. ``proven_by_run`` says that the verification is that of the run,
    before it published. ``learning`` is what models learn from the release and from its original,
    with a loss, and ``decision`` what an officer states, or None.
    """

    release: str
    manifest: Manifest
    verification: Verification
    figures: Figures
    summary: Sequence[Row] = ()
    rounds: Sequence[Row] = ()
    attributes: Sequence[Row] = ()
    original: str | None = None
    risk_before: Sequence[Row] = ()
    proven_by_run: bool = False
    learning: Learning | None = None
    decision: Decision | None = None
    rules: Disclosure = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", Disclosure(self.manifest.k))
        object.__setattr__(self, "release", redact(self.release))
        if self.original is not None:
            object.__setattr__(self, "original", redact(self.original))

    @property
    def counts(self) -> Row:
        """The published figures of the whole release, of the manifest or of the metrics."""
        figures = self.manifest.summary or (self.summary[0] if self.summary else {})
        return _as_published(figures, self.k)

    @property
    def holds(self) -> bool:
        """Return whether the release keeps everything that was required of it."""
        return self.verification.holds

    @property
    def only_untrue(self) -> bool:
        """Return whether nothing failed but the match with the original."""
        return self.verification.only_untrue

    @property
    def rows(self) -> int:
        """Published records, as they were counted."""
        return self.verification.published.rows

    @property
    def people(self) -> Mapping[int, int]:
        """Classes of each number of people, or none if every record counts as a person."""
        units = self.verification.units
        return {} if units is None else units.classes

    @property
    def hidden_among(self) -> Mapping[int, int]:
        """Classes of each number of people if these are distinguished, else of records."""
        return self.people or self.verification.published.sizes

    @property
    def at_risk(self) -> tuple[int, str]:
        """The number of what a risk is about, a person once in each class, and its name."""
        if self.people:
            return sum(size * classes for size, classes in self.people.items()), "people"
        return self.rows, "records"

    @property
    def prosecutor(self) -> Row | None:
        """The risk from an attacker who knows that a person is in the release."""
        return prosecutor_of(self.verification.risk)

    @property
    def withholds_values(self) -> bool:
        """Return whether no figure may depend on values of the records that found no class."""
        return withholds_values(self.manifest)

    @property
    def losses(self) -> Sequence[Row]:
        """Return rows of the table ``attributes``, except where means hide the loss."""
        return [row for row in self.attributes if row["ncp"] is not None]

    @property
    def counted_rows(self) -> int:
        """Return the records that figures count: published, or left out and counted."""
        names = ("rows_published", "rows_left_out")
        return sum(int(self.counts.get(name) or 0) for name in names)

    @property
    def k(self) -> int:
        """Smallest class size that was required."""
        return self.rules.k


def prosecutor_of(risk: Iterable[Row]) -> Row | None:
    """Return the risk from an attacker who knows that a person is in a table."""
    return next((row for row in risk if row["attacker"] == "prosecutor"), None)


def withholds_values(manifest: Manifest) -> bool:
    """Return whether no figure may depend on values of the records that found no class."""
    if manifest.parts:
        return False
    left_out = _as_published(manifest.summary, manifest.k).get("rows_left_out", 0)
    has_values = manifest.published.get("left_out_values", "told") == "told"
    return left_out is None or (bool(left_out) and not has_values)


def hides_original(manifest: Manifest) -> bool:
    """Return whether the original stays hidden, because it would show what a release withholds."""
    return withholds_values(manifest) or manifest.style == "mean"


def _as_published(summary: Row, k: int) -> Row:
    """Hide counts of few records in a summary."""
    if any(summary.get(name) is None for name in COUNTS):
        return summary
    return {**summary, **published_counts({name: int(summary[name]) for name in COUNTS}, k)}
