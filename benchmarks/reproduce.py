"""The figures of the theses beside ours: runs conf/experiments/, writes docs/reproduction.md.

    make reproduce
    .venv/bin/python benchmarks/reproduce.py --learning

or, with the data sets elsewhere, ``ANONSPARK_DATA=/data make reproduce``. The second writes the
section on theses on learning alone and leaves the rest of the page as it is. What is in
out/reproduction is not run again, as long as code, grids and data are those that it was made of.
The page says the same for the same figures: no times, no dates.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.csv as pc
from data_sets import ADULT
from printed_figures import VERDICTS, Figure, Place, Verdict, verdicts

from anonspark.comparison.cells import CellResult
from anonspark.comparison.grid import load_grid
from anonspark.comparison.runner import compare
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.progress import Progress

REPOSITORY = Path(__file__).resolve().parents[1]
EXPERIMENTS = REPOSITORY / "conf" / "experiments"
PAGE = REPOSITORY / "docs" / "reproduction.md"
COPIES = 10
AGAIN = "5, remainders left out"

Results = list[CellResult]
Line = tuple[str, dict[str, Figure]]

# How the columns of a round's line are called in the table of rounds.
ROUND_COLUMNS = {
    "N": "normal_rows",
    "O": "outlier_rows",
    "ES": "classes",
    "ES_T": "classes_total",
    "DM": "dm",
    "DM_T": "dm_total",
    "GCP": "gcp_total",
    "GCP_T": "gcp_total_cumulative",
    "AECS": "mean_class_size",
}
BY_THE_THESIS = {"model.published": "canbay-2019"}
CHAPTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "strict": ("canbay-2019-strict", {}),
    "relaxed": ("canbay-2019-relaxed", BY_THE_THESIS),
    "canon": ("canbay-2019-canon", BY_THE_THESIS),
    "scale": ("canbay-2019-scale", {}),
}
TABLES = {
    **{f"4.{number}": "strict" for number in range(1, 9)},
    **{f"4.{number}": "relaxed" for number in range(9, 17)},
    "5.1": "canon",
    "5.2": "canon",
    **{f"6.{number}": "canon" for number in range(1, 9)},
    **{f"7.{number}": "scale" for number in range(1, 8)},
}
VURAL_ROUNDS = {
    "Figures 4-22 to 4-27": ("vural-2017-k", {"model.rho": 2}),
    "Figures 4-28 to 4-33": ("vural-2017-k-l", {"model.rho": 2}),
    "Figures 4-34 to 4-39": ("vural-2017-k-t", {"model.levels": True}),
}
VURAL_TOTALS = {
    "4-6": "Figures 4-22 to 4-27",
    "4-7": "Figures 4-28 to 4-33",
    "4-8": "Figures 4-34 to 4-39",
}


class Experiments:
    """All results, and what is asked of them."""

    def __init__(self, results: Mapping[str, Results]) -> None:
        self.results = results

    def find(self, grid: str, **settings: Any) -> CellResult:
        """Return the one cell of a grid with these settings; True stands for any value."""
        wanted = {key.replace("__", "."): value for key, value in settings.items()}
        (found,) = (
            result
            for result in self.results[grid]
            if all(
                key in result.settings if value is True else result.settings.get(key) == value
                for key, value in wanted.items()
            )
        )
        return found

    def canbay(self, chapter: str, k: int, rho: int = 5) -> CellResult:
        """Return the run of a chapter, k and number of rounds."""
        grid, settings = CHAPTERS[chapter]
        keys = {key.replace(".", "__"): value for key, value in settings.items()}
        return self.find(grid, **keys, privacy__k=k, model__rho=rho)

    def vural(self, table: str) -> CellResult:
        """Return the run with two further rounds that a series of figures is about."""
        grid, settings = VURAL_ROUNDS[table]
        return self.find(grid, **{key.replace(".", "__"): value for key, value in settings.items()})


def begun_with(adult: Path) -> None:
    """Forget figures of other code, grids or data: the page is of those that are here now."""
    everything = REPOSITORY / "out" / "reproduction"
    sources = [
        *sorted((REPOSITORY / "anonspark").rglob("*.py")),
        *EXPERIMENTS.glob("*.yaml"),
        adult,
    ]
    digest = hashlib.sha256()
    for path in sources:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    mark = everything / "made-of"
    if everything.exists() and not (mark.exists() and mark.read_text() == digest.hexdigest()):
        shutil.rmtree(everything)
    everything.mkdir(parents=True, exist_ok=True)
    mark.write_text(digest.hexdigest())


def run_experiments(data: Path) -> Experiments:
    """Run what is missing of every grid."""
    adult = data / "adult.csv"
    if not adult.exists():
        sys.exit(f"{adult} is missing: set ANONSPARK_DATA to a folder with adult.csv")
    begun_with(adult)
    copied = REPOSITORY / "out" / "reproduction" / f"adult-{COPIES}-times.csv"
    header, _, rows = adult.read_text().partition("\n")
    copied.write_text(f"{header}\n" + f"{rows.rstrip()}\n" * COPIES)
    results: dict[str, Results] = {}
    with open_session() as spark:
        for path in sorted(EXPERIMENTS.glob("*.yaml")):
            is_copied = path.stem == CHAPTERS["scale"][0]
            overrides = [] if is_copied else [f"input.path={adult}"]
            comparison = compare(SparkEngine(spark), load_grid(path, overrides), Progress())
            print(f"{path.stem}: {comparison.ran} settings tried, {comparison.reused} were there")
            results[path.stem] = list(comparison.results.values())
            refused = [one.reason for one in results[path.stem] if one.refused]
            if refused:
                sys.exit(f"{path.stem}: refused: {refused[0]}")
    return Experiments(results)


# Canbay 2019 --------------------------------------------------------------------------------------


def without_rounds(result: CellResult) -> dict[str, float]:
    """Return the figures of the model without outlier handling, as the first line prints them."""
    summary = result.summary
    found = {
        "N": summary["rows_published"],
        "O": 0,
        "ES": summary["baseline_classes"],
        "DM": summary["baseline_dm"],
        "GCP": summary["baseline_gcp_total"],
        "AECS": summary["baseline_mean_class_size"],
    }
    return found | {f"{name}_T": found[name] for name in ("ES", "DM", "GCP")}


def of_round(result: CellResult, number: int) -> dict[str, float]:
    """Return the figures of a round, as the tables print them."""
    for row in result.rounds:
        if row["round"] == number:
            return {name: row[column] for name, column in ROUND_COLUMNS.items()}
    return {}


def of_all_rounds(result: CellResult) -> dict[str, float]:
    """Return the figures of all rounds together."""
    summary = result.summary
    return {
        "ES": summary["classes"],
        "DM": summary["dm"],
        "GCP": summary["gcp_total"],
        "AECS": summary["mean_class_size"],
    }


def improvement(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Return by how many percent figures are smaller."""
    return {
        f"{name} %": 100 * (before[name] - after[name]) / before[name]
        for name in ("DM", "GCP", "AECS")
    }


def canbay_figures(experiments: Experiments, place: Place) -> dict[str, float]:
    """Return our figures of a line of a table."""
    k = int(place.k)
    result = experiments.canbay(TABLES[place.table], k)
    if place.round == "-":
        return without_rounds(result)
    if place.round:
        return of_round(result, int(place.round))
    if place.table in ("5.1", "5.2"):
        mondrian = without_rounds(experiments.canbay("relaxed", k))
        canon = without_rounds(result)
        if place.table == "5.2":
            return improvement(mondrian, canon)
        return mondrian if place.model == "Mondrian" else canon
    if place.table in ("4.8", "4.16", "6.8", "7.7"):
        return improvement(without_rounds(result), of_all_rounds(result))
    plain = place.model in ("Mondrian", "Canon", "SMondrian")
    return without_rounds(result) if plain else of_all_rounds(result)


def canbay_line(experiments: Experiments, place: Place, printed: Mapping[str, str]) -> Line:
    """Return a line of a table, each figure beside ours."""
    ours = canbay_figures(experiments, place)
    # Of another number of records no figure is better.
    same = "N" not in printed or ours.get("N") == float(printed["N"])
    figures = {
        column: Figure(
            column,
            text,
            ours.get(column),
            # The last round's totals are those of all records.
            (same or (place.round == "5" and column.endswith("_T")))
            and not measured_otherwise(place, column),
        )
        for column, text in printed.items()
    }
    return place.round or f"{place.k} {place.model}", figures


def measured_otherwise(place: Place, column: str) -> bool:
    """Return whether the thesis means something else, so that nothing is better or worse.

    Reasons A, C, V and X of the page.
    """
    if column.startswith("AECS"):
        return not place.round and place.model not in ("Mondrian", "Canon", "SMondrian")
    # Of Canon one draw is printed and one is ours; of the copies nobody knows what was measured.
    otherwise = TABLES[place.table] in ("relaxed", "canon", "scale")
    return column.startswith("GCP") and otherwise


def as_summed_up_by_the_thesis(
    experiments: Experiments, place: Place, printed: Mapping[str, str]
) -> Line | None:
    """Return the last round with the remainders left out: the fifth of six.

    None where the records left over after it are too few for a sixth one.
    """
    result = experiments.canbay(TABLES[place.table], int(place.k), rho=6)
    if len(result.rounds) < 6:
        return None
    ours = of_round(result, 5)
    names = ("DM", "DM_T", "GCP", "GCP_T")
    # The thesis' own N holds the remainders, which neither of the two sums here does.
    same = int(printed["DM"]) == ours["DM"]
    return AGAIN, {
        name: Figure(name, printed[name], ours[name], same and not measured_otherwise(place, name))
        for name in names
    }


# Vural 2017 ---------------------------------------------------------------------------------------


def vural_round(result: CellResult, number: int) -> dict[str, float]:
    """Return the figures of an anonymization, from 0."""
    row = next(row for row in result.rounds if row["round"] == number + 1)
    risk = {one["attacker"]: one for one in result.risk if one.get("round") == number + 1}
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


def vural_figures(experiments: Experiments, place: Place) -> dict[str, float]:
    """Return our figures of a line of a table or of a series of figures."""
    if place.round:
        return vural_round(experiments.vural(place.table), int(place.round))
    if place.table in VURAL_TOTALS:
        result = experiments.vural(VURAL_TOTALS[place.table])
        if place.model == "full-domain":
            first = vural_round(result, 0)
            classes, released, records = first["UEC"], first["released"], first["records"]
        else:
            summary = result.summary
            classes, records = summary["classes"], summary["rows_in"]
            released = summary["rows_published"]
        return {
            "ESO": records / (classes + 1),
            "UEC %": 100 * released / records,
            "OEC %": 100 * (records - released) / records,
        }
    if place.table == "4-4" and place.k == "5":
        first = vural_round(experiments.vural("Figures 4-22 to 4-27"), 0)
        return {"UEC": first["UEC"], "OEC": first["OEC"], "ESO": first["average incl."]}
    objective = {"4-4": "average_class_size", "4-5": "discernibility"}[place.table]
    summary = experiments.find(
        "vural-2017-metrics", model__objective=objective, privacy__k=int(place.k)
    ).summary
    average = summary["rows_in"] / (summary["classes"] + 1)
    return {
        "UEC": summary["classes"],
        "OEC": summary["rows_suppressed"],
        "ESO": average,
        "AEM": average,
    }


def vural_line(experiments: Experiments, place: Place, printed: Mapping[str, str]) -> Line:
    """Return a line of a table, each figure beside ours."""
    ours = vural_figures(experiments, place)
    same = "records" not in printed or ours["records"] == float(printed["records"])
    # Table 4-7 is a slip: reason P of the page.
    same = same and place.table != "4-7"
    figures = {column: Figure(column, text, ours[column], same) for column, text in printed.items()}
    if place.table in VURAL_TOTALS:
        return place.model, figures
    return place.round or place.k, figures


# What explains the differences --------------------------------------------------------------------


Numbers = npt.NDArray[np.float64]


def relaxed_cells(records: Numbers, k: int) -> tuple[int, float, float]:
    """Return classes and penalty of relaxed Mondrian on one machine, measured in cells and in data.

    The attribute with the widest cell is cut at the median record; its cell, and no other, is first
    tightened to the node's records. This is plain NumPy, apart from the package.
    """
    ranges = np.ptp(records, axis=0)
    waiting = [(np.arange(len(records)), records.min(axis=0), records.max(axis=0))]
    classes, in_cells, in_data = 0, 0.0, 0.0
    while waiting:
        node, low, high = waiting.pop()
        own = records[node]
        low, high = low.copy(), high.copy()
        chosen = None
        if len(node) >= 2 * k:
            allowed = set(range(records.shape[1]))
            while allowed and chosen is None:
                widest = max(allowed, key=lambda one: ((high[one] - low[one]) / ranges[one], -one))
                low[widest], high[widest] = own[:, widest].min(), own[:, widest].max()
                if low[widest] < high[widest]:
                    chosen = widest
                allowed.discard(widest)
        if len(node) < 2 * k:
            classes += 1
            in_cells += len(node) * float(((high - low) / ranges).sum())
            in_data += len(node) * float((np.ptp(own, axis=0) / ranges).sum())
            continue
        half = len(node) // 2
        order = np.arange(len(node))
        left_high, right_low = high.copy(), low.copy()
        if chosen is not None:
            order = np.argsort(own[:, chosen], kind="stable")
            left_high[chosen] = right_low[chosen] = own[order[half - 1], chosen]
        waiting += [(node[order[:half]], low, left_high), (node[order[half:]], right_low, high)]
    return classes, in_cells, in_data


def cells_table(data: Path, printed: Mapping[Place, Mapping[str, str]]) -> Iterator[str]:
    """Compare relaxed GCP in cells with the print."""
    table = pc.read_csv(data / "adult.csv")
    columns = [table[name].to_numpy().astype(np.float64) for name in ADULT.quasi_identifiers]
    records = np.column_stack(columns)
    yield "| k | printed GCP | in cells | difference | the same classes, in their records |"
    yield "| --- | --- | --- | --- | --- |"
    for k in (5, 10, 20, 30, 40, 50):
        text = printed[Place("4.15", str(k), "", "Mondrian")]["GCP"]
        classes, in_cells, in_data = relaxed_cells(records, k)
        if classes != int(printed[Place("4.15", str(k), "", "Mondrian")]["ES"]):
            sys.exit(f"relaxed Mondrian in cells: {classes} classes at k = {k}")
        change = 100 * (in_cells / float(text) - 1)
        yield f"| {k} | {text} | {in_cells:.2f} | {change:+.1f} % | {in_data:.2f} |"


# The page -----------------------------------------------------------------------------------------


def table_of(first: str, lines: Sequence[Line]) -> Iterator[str]:
    """Write lines as a Markdown table."""
    columns = list(lines[0][1])
    yield "| " + " | ".join([first, *columns, "verdict"]) + " |"
    yield "|" + " --- |" * (len(columns) + 2)
    for name, figures in lines:
        cells = [figures[column].text() if column in figures else "" for column in columns]
        yield "| " + " | ".join([name, *cells, verdicts(figures)]) + " |"


def count_verdicts(lines: Sequence[Line]) -> dict[str, int]:
    """Count the figures of each verdict."""
    found = dict.fromkeys(VERDICTS, 0)
    for name, figures in lines:
        if name == AGAIN:
            # The printed figures of the line above, compared once more.
            continue
        for figure in figures.values():
            found[figure.verdict] += 1
    return found


OF_EXACT: tuple[Verdict, ...] = ("equal", "rounding", "better", "differs")
HEADINGS: Mapping[Verdict, str] = {"rounding": "within rounding", "spread": "within the spread"}


def overview(
    tables: Mapping[str, Sequence[Line]],
    why: Mapping[str, str],
    shown: Sequence[Verdict] = OF_EXACT,
) -> Iterator[str]:
    """Write how many figures of each table are what, and why they differ."""
    headings = [HEADINGS.get(one, one) for one in shown]
    yield "| " + " | ".join(["table", "figures", *headings, "why"]) + " |"
    yield "|" + " --- |" * (len(headings) + 3)
    for name, lines in tables.items():
        found = count_verdicts(lines)
        cells = [name, str(sum(found.values())), *(str(found[one]) for one in shown)]
        yield "| " + " | ".join([*cells, why[name]]) + " |"


def main() -> None:
    """Run the experiments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--learning", action="store_true", help="write the section on theses on learning alone"
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    given = os.environ.get("ANONSPARK_DATA")
    data = Path(given).resolve() if given else REPOSITORY.parent / "shared" / "data"
    # Where the paths in the grids begin.
    os.chdir(REPOSITORY)
    experiments = None if options.learning else run_experiments(data)
    # These import this module, which is another one than the program.
    from quality.learning_page import learning_section
    from reproduction_page import page, with_learning

    # Its small runs are many, and their data are known.
    logging.getLogger("anonspark").setLevel(logging.ERROR)
    before = PAGE.read_text()
    text = before if experiments is None else page(experiments, data)
    PAGE.write_text(with_learning(text, learning_section(data), before))
    print(f"written: {PAGE.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
