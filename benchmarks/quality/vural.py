"""What Vural (2017) prints about rounds of full-domain recoding, computed again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments import Results, find_run, run_experiments
from printed_figures import Compared, Figure, Place, Printed, read_tables

from anonspark.comparison.table import CellResult

THESIS = "vural-2017"
NEEDED = ("adult.csv",)
RUNS = {table.name: table.run for table in read_tables(THESIS)}
# With t the levels are those of the thesis.
CRITERIA = {"k": "k", "k and l": "k-l", "k and t": "k-t", "k, l and t": "k-l-t"}
OBJECTIVES = {"4-4": "average_class_size", "4-5": "discernibility"}


def measure(data: Path, printed: Printed) -> tuple[Compared, dict[str, Any]]:
    """Return our figures of its tables, and facts about how they differ."""
    experiments = run_experiments(THESIS, data)
    searched = {
        name: find_run(experiments, f"{THESIS}-{name}", {"model.levels": None}).rounds
        for name in ("k-t", "k-l-t")
    }
    figures = {place: _compared(experiments, place, line) for place, line in printed.items()}
    return figures, {
        "best_with_t": _sizes(searched["k-t"][1]),
        "best_with_l_and_t": _sizes(searched["k-l-t"][2]),
        "gains": [_ours(experiments, Place("4-10", "5", "", name)) for name in CRITERIA],
    }


def _sizes(row: Mapping[str, Any]) -> dict[str, int]:
    return {name: row[name] for name in ("classes", "outlier_rows")}


def _compared(experiments: Results, place: Place, printed: Mapping[str, str]) -> dict[str, Figure]:
    ours = _ours(experiments, place)
    # Percentages follow from slips, and are neither better nor worse.
    same = "UEC" in printed and float(printed.get("records", ours["records"])) == ours["records"]
    return {column: Figure(column, text, ours[column], same) for column, text in printed.items()}


def _ours(experiments: Results, place: Place) -> dict[str, float]:
    if place.table in OBJECTIVES and (place.table, place.k) != ("4-4", "5"):
        return _by_objective(experiments, place.table, int(place.k))
    run = f"{THESIS}-{CRITERIA[place.model]}" if place.model in CRITERIA else RUNS[place.table]
    # With t the levels are those of the thesis.
    result = find_run(experiments, run, {"model.levels": True} if "-t" in run else {})
    if place.round:
        return _of_round(result, int(place.round))
    first, summary = _of_round(result, 0), result.summary
    before = _average(first["records"], first["UEC"], first["released"])
    after = _average(first["records"], summary["classes"], summary["rows_published"])
    return {
        **(first | before if place.model == "full-domain" else after),
        "records": first["records"],
        "points": before["OEC %"] - after["OEC %"],
        "ESO less %": 100 * (1 - after["ESO"] / before["ESO"]),
    }


def _by_objective(experiments: Results, table: str, k: int) -> dict[str, float]:
    settings = {"model.objective": OBJECTIVES[table], "privacy.k": k}
    summary = find_run(experiments, f"{THESIS}-metrics", settings).summary
    average = summary["rows_in"] / (summary["classes"] + 1)
    return {
        "records": summary["rows_in"],
        "UEC": summary["classes"],
        "OEC": summary["rows_suppressed"],
        "ESO": average,
        "AEM": average,
    }


def _average(records: float, classes: float, released: float) -> dict[str, float]:
    """Return the average class size with the outlier class, and shares of the records."""
    return {
        "ESO": records / (classes + 1),
        "UEC %": 100 * released / records,
        "OEC %": 100 * (records - released) / records,
    }


def _of_round(result: CellResult, number: int) -> dict[str, float]:
    """Return the figures of an anonymization, from 0."""
    row = next(row for row in result.rounds if row["round"] == number + 1)
    risk = {row["attacker"]: row for row in result.risk if row.get("round") == number + 1}
    prosecutor = risk["prosecutor"]
    return {
        "records": row["rows"],
        "UEC": row["classes"],
        "released": row["normal_rows"],
        "OEC": row["outlier_rows"],
        "average incl.": row["mean_class_size_with_outliers"],
        "average excl.": row["mean_class_size"],
        "largest": 1 / prosecutor["lowest"],
        "smallest": 1 / prosecutor["highest"],
        "prosecutor %": 100 * prosecutor["highest"],
        "journalist %": 100 * risk["journalist"]["highest"],
        "marketer %": 100 * risk["marketer"]["average"],
        "high band %": 100 * prosecutor["at_highest"],
    }
