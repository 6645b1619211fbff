"""Runs of the grids in conf/experiments/, on Adult and without Java."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from data_sets import DATA_SETS

from anonspark.comparison.grid import load_grid
from anonspark.comparison.runner import compare
from anonspark.comparison.table import CellResult
from anonspark.engine.local.engine import LocalEngine

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "conf" / "experiments"
DIABETES = DATA_SETS["Diabetes"]
COPIES = 10
PARTS = 3
"""Of the providers of a thesis, equally many records each, in the order of the file."""

Results = Mapping[str, list[CellResult]]


def find_run(results: Results, grid: str, settings: Mapping[str, Any]) -> CellResult:
    """Return the one cell of a grid with these settings; True stands for any value."""
    (only,) = (
        cell
        for cell in results[grid]
        if all(
            key in cell.settings if value is True else cell.settings.get(key) == value
            for key, value in settings.items()
        )
    )
    return only


def run_experiments(thesis: str, data: Path) -> Results:
    """Run every grid of a thesis from the beginning: a minute or two on one core.

    A grid with more than one input has its runs one input after another.
    """
    # Where the paths in the grids begin.
    os.chdir(REPOSITORY)
    adult = data / "adult.csv"
    header, _, rows = adult.read_text().partition("\n")
    output = REPOSITORY / "out" / "reproduction" / thesis
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    inputs = {
        "scale": [output / f"adult-{COPIES}-times.csv"],
        "model-1": [output / f"adult-part-{part + 1}.csv" for part in range(PARTS)],
        "diabetes": [data / DIABETES.file],
    }
    inputs["scale"][0].write_text(f"{header}\n" + f"{rows.rstrip()}\n" * COPIES)
    records = rows.splitlines()
    for part, path in enumerate(inputs["model-1"]):
        first, last = (len(records) * end // PARTS for end in (part, part + 1))
        path.write_text("\n".join([header, *records[first:last], ""]))
    results: dict[str, list[CellResult]] = {}
    for path in sorted(FOLDER.glob(f"{thesis}-*.yaml")):
        results[path.stem] = []
        for source in inputs.get(path.stem.removeprefix(f"{thesis}-"), [adult]):
            grid = load_grid(path, [f"input.path={source}"])
            grid = replace(grid, output=str(output / path.stem / source.stem))
            results[path.stem] += compare(LocalEngine(), grid).results.values()
        refused = [run.reason for run in results[path.stem] if run.refused]
        if refused:
            sys.exit(f"{path.stem}: refused: {refused[0]}")
        print(f"{path.stem}: {len(results[path.stem])} runs", flush=True)
    return results
