"""Figures that the theses print, and how one of ours compares with them."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PRINTED = Path(__file__).resolve().parents[1] / "conf" / "experiments" / "printed"

Verdict = Literal["equal", "rounding", "better", "spread", "differs"]
VERDICTS: tuple[Verdict, ...] = ("equal", "rounding", "better", "spread", "differs")

# What is better where the same records are summed up. Others are neither, such as a larger gain
# over a worse start.
SMALLER = {"DM", "DM_T", "GCP", "GCP_T", "AECS", "OEC", "OEC %", "ESO", "AEM", "average incl."}
LARGER = {"ES", "ES_T", "UEC", "UEC %", "released"}


@dataclass(frozen=True)
class Place:
    """Where a figure is printed.

    Parameters
    ----------
    table, k : str
    round : str
        ``-`` for the model without outlier handling, empty in tables over all rounds.
    model : str
    """

    table: str
    k: str
    round: str
    model: str


def printed_figures(thesis: str) -> dict[Place, dict[str, str]]:
    """Read the printed figures of a thesis, line by line of its tables."""
    found: dict[Place, dict[str, str]] = {}
    with (PRINTED / f"{thesis}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            place = Place(row["table"], row["k"], row["round"], row["model"])
            found.setdefault(place, {})[row["column"]] = row["printed"]
    return found


@dataclass(frozen=True)
class Figure:
    """A printed figure beside ours.

    Parameters
    ----------
    column : str
    printed : str
        As printed.
    ours : float or None
        None where our run has none, such as of a round that was not needed.
    comparable : bool
        Whether both are about the same records, so that one can be better.
    spread : float
        How far apart two runs of the same experiment may be, where the print does not tell what
        was drawn; 0 where nothing is.
    """

    column: str
    printed: str
    ours: float | None
    comparable: bool = True
    spread: float = 0

    @property
    def decimals(self) -> int:
        """Decimal places of the print."""
        return len(self.printed.partition(".")[2])

    @property
    def difference(self) -> float:
        """Ours less the printed one."""
        return math.nan if self.ours is None else self.ours - float(self.printed)

    @property
    def verdict(self) -> Verdict:
        """Equal, within one unit of the last place, better, within the spread, or different."""
        if self.ours is None:
            return "differs"
        if f"{self.ours:.{self.decimals}f}" == f"{float(self.printed):.{self.decimals}f}":
            return "equal"
        # Some figures are cut off instead of rounded, and counts are exact.
        if self.decimals and abs(self.difference) < 10**-self.decimals:
            return "rounding"
        if self.comparable:
            if self.column in SMALLER and self.difference < 0:
                return "better"
            if self.column in LARGER and self.difference > 0:
                return "better"
        return "spread" if abs(self.difference) <= self.spread else "differs"

    def text(self) -> str:
        """Write it for a cell: printed, then ours with the difference unless they are equal."""
        if self.ours is None:
            return f"{self.printed} → none"
        if self.verdict == "equal":
            return self.printed
        ours = f"{self.ours:.{self.decimals}f}"
        if self.verdict == "rounding":
            return f"{self.printed} ≈ {self.ours:.{self.decimals + 2}f}"
        if self.verdict == "spread":
            return f"{self.printed} ~ {ours}"
        change = f"{self.difference:+.{self.decimals}f}"
        if float(self.printed) and not self.column.endswith("%"):
            percent = f"{100 * self.difference / float(self.printed):+.1f} %"
            change += "" if percent[1:] == "0.0 %" else f", {percent}"
        return f"{self.printed} → {ours} ({change})"


def verdicts(figures: Mapping[str, Figure]) -> str:
    """Say which figures of a line are what."""
    groups: dict[Verdict, list[str]] = {}
    for column, figure in figures.items():
        groups.setdefault(figure.verdict, []).append(column)
    words = {"rounding": "within the print's rounding", "spread": "within the spread"}
    if len(groups) == 1:
        (only,) = groups
        return words.get(only, only)
    return "; ".join(
        f"{words.get(verdict, verdict)}: {', '.join(groups[verdict])}"
        for verdict in VERDICTS
        if verdict in groups
    )
