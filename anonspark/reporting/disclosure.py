"""What a report may show of people: no count below k, and nothing that reveals one.

Counts of the original are shown rounded to multiples of k, as statistical offices round to a base
(Hundepool and others, Statistical Disclosure Control, 2012, section 5.4.1): a figure of the report
less another one, or less one of the release, is then about no fewer than k people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anonspark.core.figure_text import percent

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
