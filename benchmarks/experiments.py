"""Runs of the grids in conf/experiments/, on Adult and without Java."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_sets import DATA_SETS

from anonspark.comparison.cells import CellResult
from anonspark.comparison.grid import load_grid
from anonspark.comparison.runner import compare
from anonspark.engine.local.engine import LocalEngine

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "conf" / "experiments"
DIABETES = DATA_SETS["Diabetes"]
COPIES = 10


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
    """Run every grid of a thesis from the beginning: a minute or two on one core."""
    # Where the paths in the grids begin.
    os.chdir(REPOSITORY)
    adult = data / "adult.csv"
    header, _, rows = adult.read_text().partition("\n")
    output = REPOSITORY / "out" / "reproduction"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    inputs = {
        "scale": output / f"adult-{COPIES}-times.csv",
        "model-1": output / "adult-second-part.csv",
        "diabetes": data / DIABETES.file,
    }
    inputs["scale"].write_text(f"{header}\n" + f"{rows.rstrip()}\n" * COPIES)
    second = rows.splitlines()[10_054:20_108]
    inputs["model-1"].write_text("\n".join([header, *second, ""]))
    results: dict[str, list[CellResult]] = {}
    for path in sorted(FOLDER.glob(f"{thesis}-*.yaml")):
        source = inputs.get(path.stem.removeprefix(f"{thesis}-"), adult)
        comparison = compare(LocalEngine(), load_grid(path, [f"input.path={source}"]))
        results[path.stem] = list(comparison.results.values())
        refused = [run.reason for run in results[path.stem] if run.refused]
        if refused:
            sys.exit(f"{path.stem}: refused: {refused[0]}")
        print(f"{path.stem}: {len(results[path.stem])} runs", flush=True)
    return results
