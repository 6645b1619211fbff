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
    """The rules for one release.

    Parameters
    ----------
    k : int
        Smallest number of people that may be shown, at least 1.
    """

    k: int

    @property
    def few(self) -> str:
        """What is shown instead of a count that is too small."""
        return f"fewer than {self.k:,}"

    def hides(self, people: float) -> bool:
        """Return whether a count of people must not be shown. None at all may be."""
        return 0 < people < self.k

    def count(self, people: int | None) -> str:
        """Return a count as text. None stands for one that the run has withheld."""
        return self.few if people is None or self.hides(people) else f"{people:,}"

    def rounded(self, people: float) -> int:
        """Return a count of the original, rounded to a multiple of k."""
        return self.k * int(people / self.k + 0.5)

    def rounded_text(self, people: float) -> str:
        """Return a count of the original as text."""
        return self.few if self.hides(round(people)) else f"{self.rounded(people):,}"

    def shares(self, people: Sequence[float]) -> list[float]:
        """Return the shares of some counts in their total, made of rounded counts. 0 if hidden.

        Parameters
        ----------
        people : sequence of float
            Counts that make up a table.
        """
        rounded = [0 if self.hides(round(count)) else self.rounded(count) for count in people]
        total = sum(rounded)
        return [count / total if total else 0.0 for count in rounded]

    def share(self, share: float, people: int, what: str = "records") -> str:
        """Return a share of some people as text.

        Parameters
        ----------
        share : float
            In [0, 1].
        people : int
            How many all of them are.
        what : str
            What they are called.
        """
        some = share * people
        # A share is a quotient of counts: half a person is rounding.
        if 0.5 <= some < self.k - 0.5:
            return f"{self.few} {what}"
        if 0.5 <= people - some < self.k - 0.5:
            return f"all but {self.few} {what}"
        return percent(share)

    def rounded_share(self, share: float, people: int) -> float:
        """Return a share of some people for a chart: a multiple of k people, 0 or all if hidden."""
        some = round(share * people)
        if not people or self.hides(some):
            return 0.0
        if self.hides(people - some):
            return 1.0
        return min(self.rounded(some) / people, 1.0)


def percent_or_nothing(share: Any) -> str:
    """Return a share as text, none as an empty one."""
    return "" if share is None else percent(share)


def round_percent(share: float) -> str:
    """Return a share as text as :func:`percent` does, but 10% for 10.0%."""
    return percent(share).replace(".0%", "%")


Row = Mapping[str, Any]


@dataclass(frozen=True)
class Evidence:
    """Everything that the report is made of.

    Parameters
    ----------
    release : str
        Path of the release, as it was given. Credentials in it are redacted.
    manifest : Manifest
    verification : Verification
    figures : Figures
    summary, rounds, attributes : sequence of mapping
        Rows of the metrics tables. Empty where a release came without them.
    original : str or None
        Path of the original, likewise. None without one.
    risk_before : sequence of mapping
        Rows as those of the table ``risk``, of the original.
    proven_by_run : bool
        Whether the verification is that of the run, before it published.
    learning : Learning or None
        What models learn from the release and from its original, with a loss. None where none were
        trained.
    decision : Decision or None
        What an officer states of the release.
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
        """Classes of each number of people. Empty where every record counts as a person."""
        units = self.verification.units
        return {} if units is None else units.classes

    @property
    def hidden_among(self) -> Mapping[int, int]:
        """Classes of each number of what a risk is one of: people, where they are distinguished."""
        return self.people or self.verification.published.sizes

    @property
    def at_risk(self) -> tuple[int, str]:
        """How many a risk is about, a person once in each class, and what they are."""
        if self.people:
            return sum(size * classes for size, classes in self.people.items()), "people"
        return self.rows, "records"

    @property
    def prosecutor(self) -> Row | None:
        """The risk from an attacker who knows that a person is in the release."""
        return prosecutor_of(self.verification.risk)

    @property
    def withholds_values(self) -> bool:
        """Return whether nothing may depend on the values of the records that found no class."""
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
    """Return whether nothing may depend on the values of the records that found no class."""
    if manifest.parts:
        return False
    left_out = _as_published(manifest.summary, manifest.k).get("rows_left_out", 0)
    has_values = manifest.published.get("left_out_values", "told") == "told"
    return left_out is None or (bool(left_out) and not has_values)


def hides_original(manifest: Manifest) -> bool:
    """Return whether nothing of the original is shown: it would say what a release withholds."""
    return withholds_values(manifest) or manifest.style == "mean"


def _as_published(summary: Row, k: int) -> Row:
    """Return a summary without counts of few records."""
    if any(summary.get(name) is None for name in COUNTS):
        return summary
    return {**summary, **published_counts({name: int(summary[name]) for name in COUNTS}, k)}
