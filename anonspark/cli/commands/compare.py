"""The command ``anonspark compare``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, Master, Overrides, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, of_configuration

if TYPE_CHECKING:
    from anonspark.comparison.grid import Grid
    from anonspark.comparison.runner import Comparison
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine


def _of_grid(grid: Grid) -> tuple[EngineName, Work]:
    """Return the engine that a grid asks for, and what running its cells does."""
    name, work = of_configuration(grid.cells[0].configuration)
    if grid.evaluation is None:
        return name, work
    holdout = grid.evaluation.holdout
    read, formats = (*work.read, holdout.path), (*work.formats, holdout.format)
    return name, replace(work, read=read, formats=formats)


def compare(
    grid: Annotated[
        str,
        typer.Argument(
            metavar="GRID",
            help="YAML file of a grid, or a configuration, whose models are tried at three k.",
        ),
    ],
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run many settings on one input and rank them.

    Settings that were run before are not run again.
    """
    from anonspark.cli.display import show_comparison
    from anonspark.comparison.trial import load_comparison

    progress = LOG.get().follow(quiet=quiet)

    def run_cells(engine: Engine, wanted: Grid) -> tuple[Grid, Comparison]:
        from anonspark.comparison.runner import compare as run_grid

        return wanted, run_grid(engine, wanted, progress)

    wanted, comparison = load_then_work(
        grid,
        lambda read: load_comparison(grid, overrides or (), read),
        _of_grid,
        master,
        run_cells,
    )
    if as_json:
        told: dict[str, object] = {
            "path": comparison.path,
            "cells": comparison.rows,
            "notes": comparison.notes,
        }
        if wanted.trial is not None and comparison.advice is not None:
            told |= {"refused": wanted.trial.refused, "advice": comparison.advice.as_dict()}
        print_json(told)
    else:
        show_comparison(OUT, wanted, comparison)
