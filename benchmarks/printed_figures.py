"""Compared that the theses print and ours, read from conf/experiments/, and how they compare."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

FOLDER = Path(__file__).resolve().parents[1] / "conf" / "experiments"
PRINTED, MEASURED = FOLDER / "printed", FOLDER / "measured"

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


Printed = Mapping[Place, Mapping[str, str]]


def printed_figures(thesis: str) -> dict[Place, dict[str, str]]:
    """Read the printed figures of a thesis, line by line of its tables."""
    lines: dict[Place, dict[str, str]] = {}
    for row in read_rows(PRINTED / f"{thesis}.csv"):
        place = Place(row["table"], row["k"], row["round"], row["model"])
        lines.setdefault(place, {})[row["column"]] = row["printed"]
    return lines


def read_rows(path: Path) -> Iterator[dict[str, str]]:
    """Read the rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


@dataclass(frozen=True)
class Figure:
    """A printed figure and ours.

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
        How far apart two runs of the same experiment may be, where the print does not show what
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
            percent = f"{100 * self.difference / float(self.printed):+.1f}%"
            change += "" if percent[1:] == "0.0%" else f", {percent}"
        if self.verdict == "better":
            ours = f"**{ours}**"
        return f"{self.printed} → {ours} ({change})"


Compared = Mapping[Place, Mapping[str, Figure]]


def compare_lines(
    printed: Printed,
    ours: Callable[[Place], Mapping[str, float]],
    spread: Callable[[Place, str], float],
) -> dict[Place, dict[str, Figure]]:
    """Compare each printed line with ours, where no figure is better than another."""
    return {
        place: {
            column: Figure(column, text, measured[column], False, spread(place, column))
            for column, text in line.items()
        }
        for place, line in printed.items()
        for measured in [ours(place)]
    }


def write_measured(thesis: str, figures: Compared, facts: Mapping[str, Any]) -> None:
    """Write our figures of a thesis, and facts that the page's prose needs."""
    MEASURED.mkdir(exist_ok=True)
    with (MEASURED / f"{thesis}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["table", "k", "round", "model", "column", "measured", "comparable", "spread"]
        )
        for place, line in figures.items():
            for one in line.values():
                ours = "" if one.ours is None else f"{one.ours:.12g}"
                where = [place.table, place.k, place.round, place.model, one.column]
                writer.writerow([*where, ours, int(one.comparable), f"{one.spread:.6g}"])
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    (MEASURED / f"{thesis}.json").write_text(f"{text}\n", encoding="utf-8")


def measured_figures(thesis: str) -> dict[Place, dict[str, Figure]]:
    """Read the figures of a thesis, printed and measured."""
    measured = {
        (row["table"], row["k"], row["round"], row["model"], row["column"]): row
        for row in read_rows(MEASURED / f"{thesis}.csv")
    }
    figures: dict[Place, dict[str, Figure]] = {}
    for place, line in printed_figures(thesis).items():
        for column, text in line.items():
            row = measured[place.table, place.k, place.round, place.model, column]
            ours = float(row["measured"]) if row["measured"] else None
            figures.setdefault(place, {})[column] = Figure(
                column, text, ours, row["comparable"] == "1", float(row["spread"])
            )
    return figures


@dataclass(frozen=True)
class PrintedTable:
    """A table of a thesis, as conf/experiments/tables.csv describes it.

    Parameters
    ----------
    name, title : str
    head, line : str
        What its first column is called, and a format of its cells, over a place.
    why : str
        Letters of reasons.
    run : str
        What its figures are computed from.
    lines : dict of Place to dict of str to Figure
    """

    name: str
    title: str
    head: str
    line: str
    why: str
    run: str
    lines: Mapping[Place, Mapping[str, Figure]]

    @property
    def verdicts(self) -> Counter[str]:
        """How many figures there are of each verdict."""
        return Counter(one.verdict for line in self.lines.values() for one in line.values())

    @property
    def columns(self) -> list[str]:
        """All columns of its lines, in the order of their first appearance."""
        return list(dict.fromkeys(column for line in self.lines.values() for column in line))


def read_tables(thesis: str, figures: Compared | None = None) -> list[PrintedTable]:
    """Read which tables of a thesis are compared, with their figures."""
    by_table = {
        name: {place: (figures or {})[place] for place in places}
        for name, places in groupby(figures or {}, lambda place: place.table)
    }
    return [
        PrintedTable(
            row["table"], row["title"], row["head"], row["line"], row["why"], row["run"],
            by_table.get(row["table"], {}),
        )
        for row in read_rows(FOLDER / "tables.csv")
        if row["thesis"] == thesis
    ]  # fmt: skip
