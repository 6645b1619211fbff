"""What Canbay (2019) prints about rounds of Mondrian and Canon, computed again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.csv as pc
from data_sets import ADULT
from experiments import DIABETES, Results, find_run, run_experiments
from printed_figures import Compared, Figure, Place, Printed, read_tables

from anonspark.comparison.table import CellResult

THESIS = "canbay-2019"
NEEDED = ("adult.csv", DIABETES.file)
RUNS = {table.name: table.run for table in read_tables(THESIS)}
SETTINGS = {"relaxed": {"model.published": THESIS}, "canon": {"model.published": THESIS}}
OVERALL = {"strict": "4.7", "relaxed": "4.15", "canon": "6.7", "scale": "7.6"}
PLAIN = ("Mondrian", "Canon", "SMondrian")
KS = (5, 10, 20, 30, 40, 50)

TOTALS = {"ES": "classes", "DM": "dm", "GCP": "gcp_total", "AECS": "mean_class_size"}
COLUMNS = TOTALS | {
    "N": "normal_rows",
    "O": "outlier_rows",
    "ES_T": "classes_total",
    "DM_T": "dm_total",
    "GCP_T": "gcp_total_cumulative",
}
COUNTS = ("N", "O", "ES", "ES_T", "DM", "DM_T")


def measure(data: Path, printed: Printed) -> tuple[Compared, dict[str, Any]]:
    """Return our figures of its tables, and facts about how they differ."""
    experiments = run_experiments(THESIS, data)
    figures = {place: _compared(experiments, place, line) for place, line in printed.items()}
    facts = {
        "rounds": list(_rounds(experiments, printed)),
        "neighbors": _neighbors(experiments),
        "cells": list(_cells(data, printed)),
        "spans": [
            find_run(
                experiments, "canbay-2019-relaxed", {"model.span": "data", "privacy.k": k}
            ).summary["gcp_total"]
            for k in (5, 50)
        ],
    }
    return figures, facts


def _run(experiments: Results, run: str, k: int | str, rho: int = 5) -> CellResult:
    settings = {**SETTINGS.get(run, {}), "privacy.k": int(k), "model.rho": rho}
    return find_run(experiments, f"{THESIS}-{run}", settings)


def _without_rounds(result: CellResult) -> dict[str, float]:
    """Return the figures of the model without outlier handling, as the first line prints them."""
    summary = result.summary
    line = {name: summary[f"baseline_{column}"] for name, column in TOTALS.items()}
    totals = {f"{name}_T": line[name] for name in ("ES", "DM", "GCP")}
    return {"N": summary["rows_published"], "O": 0, **line, **totals}


def _of_round(result: CellResult, number: int) -> dict[str, float]:
    rows = (row for row in result.rounds if row["round"] == number)
    return {name: row[column] for row in rows for name, column in COLUMNS.items()}


def _improvement(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return by how many percent figures are smaller."""
    return {
        f"{name} %": 100 * (before[name] - after[name]) / before[name]
        for name in ("DM", "GCP", "AECS")
    }


def _ours(experiments: Results, place: Place) -> dict[str, float]:
    result = _run(experiments, RUNS[place.table], place.k)
    plain = _without_rounds(result)
    if place.round:
        return plain if place.round == "-" else _of_round(result, int(place.round))
    if place.table in ("5.1", "5.2"):
        mondrian = _without_rounds(_run(experiments, "relaxed", place.k))
        if place.table == "5.2":
            return _improvement(mondrian, plain)
        return mondrian if place.model == "Mondrian" else plain
    total = {name: result.summary[column] for name, column in TOTALS.items()}
    if place.table in ("4.8", "4.16", "4.32", "6.8", "7.7"):
        return _improvement(plain, total)
    return plain if place.model in PLAIN else total


def _compared(experiments: Results, place: Place, printed: Mapping[str, str]) -> dict[str, Figure]:
    ours = _ours(experiments, place)
    # No figure is better with another number of records, but the last round's totals are of all.
    same = "N" not in printed or ours.get("N") == float(printed["N"])
    # Canon: one draw is printed, another is ours. It is unknown how the copies were measured.
    otherwise = RUNS[place.table] in ("relaxed", "canon", "scale")

    def comparable(column: str) -> bool:
        if column.startswith("AECS"):
            return same and (bool(place.round) or place.model in PLAIN)
        total = place.round == "5" and column.endswith("_T")
        return (same or total) and not (column.startswith("GCP") and otherwise)

    return {
        column: Figure(column, text, ours.get(column), comparable(column))
        for column, text in printed.items()
    }


def _rounds(experiments: Results, printed: Printed) -> Iterator[dict[str, Any]]:
    """Return how each table with rounds compares with ours.

    Numbers are our penalty as a multiple of the printed one.
    """
    places = (place for place in printed if place.round and RUNS[place.table] in OVERALL)
    for (table, k), group in groupby(places, lambda place: (place.table, place.k)):
        lines = {place.round: printed[place] for place in group}
        run, last = RUNS[table], lines["5"]
        result, six = (_run(experiments, run, k, rho) for rho in (5, 6))
        plain, first, total = _without_rounds(result), _of_round(result, 1), _of_round(result, 5)
        fifth = _of_round(six, 5) if len(six.rounds) == 6 else None
        overall = next(
            line
            for place, line in printed.items()
            if (place.table, place.k) == (OVERALL[run], k) and place.model not in PLAIN
        )
        mean = sum(float(lines[str(number)]["AECS"]) for number in range(1, 6)) / 5
        classes = int(last["DM"]) // int(k) ** 2
        yield {
            "table": table,
            "run": run,
            "k": int(k),
            "whole_classes": int(last["DM"]) == classes * int(k) ** 2
            and classes <= int(last["ES"]),
            "more_classes": int(last["ES"]) > classes,
            "rounded_down": int(last["ES"]) == int(last["N"]) // int(k),
            "mean_of_means": abs(mean - float(overall["AECS"])) < 0.0151,
            "six_rounds": fifth is not None,
            "dm_total": fifth is not None and fifth["DM_T"] == int(last["DM_T"]),
            "dm_last": fifth is not None and fifth["DM"] == int(last["DM"]),
            "equal_first": all(first[name] == int(lines["1"][name]) for name in ("N", "DM")),
            "equal_counts": sum(
                _of_round(result, number)[name] == int(lines[str(number)][name])
                for number in range(1, 5)
                for name in COUNTS
            ),
            "plain": plain["GCP"] / float(lines["-"]["GCP"]),
            "first": first["GCP"] / float(lines["1"]["GCP"]),
            "total": total["GCP_T"] / float(last["GCP_T"]),
            "remainders_left_out": fifth and fifth["GCP_T"] / float(last["GCP_T"]),
            "saved": 1 - total["GCP_T"] / plain["GCP"],
            **(_of_one_copy(experiments, int(k), plain, lines["-"]) if run == "scale" else {}),
            **(_spread(experiments, int(k), last) if run == "canon" else {}),
        }


def _of_one_copy(
    experiments: Results, k: int, plain: Mapping[str, float], printed: Mapping[str, str]
) -> dict[str, Any]:
    """Compare ten copies with one, whose exact tree has the same classes at a tenth of k."""
    single = _without_rounds(_run(experiments, "strict", k // 10))
    return {
        "classes": [printed["ES"], plain["ES"], single["ES"]],
        "gcp": [printed["GCP"], plain["GCP"], 10 * single["GCP"]],
        "exact": plain["ES"] == single["ES"]
        and plain["DM"] == 100 * single["DM"]
        and abs(plain["GCP"] - 10 * single["GCP"]) < 0.01,
        "equal_classes": int(printed["ES"]) == plain["ES"],
        "smaller": int(printed["ES"]) > plain["ES"] and int(printed["DM"]) < plain["DM"],
    }


def _spread(experiments: Results, k: int, last: Mapping[str, str]) -> dict[str, float]:
    run = find_run(experiments, f"{THESIS}-canon", {"model.vantage": "spread", "privacy.k": k})
    return {"spread": run.summary["gcp_total"] / float(last["GCP_T"])}


def _neighbors(experiments: Results) -> dict[str, float]:
    """Return the penalty of the first round by number of neighbours, k = 10."""
    return {
        str(run.settings.get("model.lof_neighbors", "density")): run.rounds[0]["gcp_total"]
        for run in experiments[f"{THESIS}-neighbors"]
    }


def relaxed_cells(records: npt.NDArray[np.float64], k: int) -> tuple[int, float, float]:
    """Return classes and penalty of relaxed Mondrian on one machine, measured in cells and in data.

    The attribute with the widest cell is cut at the median record; its cell, and no other, is first
    tightened to the node's records. This is plain NumPy, apart from the package.
    """
    ranges = np.ptp(records, axis=0)
    waiting = [(np.arange(len(records)), records.min(axis=0), records.max(axis=0))]
    classes, in_cells, in_data = 0, 0.0, 0.0
    while waiting:
        node, low, high = waiting.pop()
        values = records[node]
        if len(node) < 2 * k:
            classes += 1
            in_cells += len(node) * float(((high - low) / ranges).sum())
            in_data += len(node) * float((np.ptp(values, axis=0) / ranges).sum())
            continue
        half, order = len(node) // 2, np.arange(len(node))
        low, high = low.copy(), high.copy()
        left_high, right_low = high, low
        for widest in np.argsort((low - high) / ranges, kind="stable"):
            low[widest], high[widest] = values[:, widest].min(), values[:, widest].max()
            if low[widest] < high[widest]:
                order = np.argsort(values[:, widest], kind="stable")
                left_high, right_low = high.copy(), low.copy()
                left_high[widest] = right_low[widest] = values[order[half - 1], widest]
                break
        waiting += [(node[order[:half]], low, left_high), (node[order[half:]], right_low, high)]
    return classes, in_cells, in_data


def _cells(data: Path, printed: Printed) -> Iterator[tuple[int, str, float, float]]:
    """Return k and relaxed penalties: printed, in cells, in the same classes' records."""
    table = pc.read_csv(data / "adult.csv")
    columns = [table[name].to_numpy().astype(np.float64) for name in ADULT.quasi_identifiers]
    for k in KS:
        line = printed[Place("4.15", str(k), "", "Mondrian")]
        classes, in_cells, in_data = relaxed_cells(np.column_stack(columns), k)
        if classes != int(line["ES"]):
            raise AssertionError(f"relaxed Mondrian in cells: {classes} classes at k = {k}")
        yield k, line["GCP"], in_cells, in_data
