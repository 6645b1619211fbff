"""The command ``anonspark compare``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import CONFIGURED, Call, Overrides, command, of_configuration

if TYPE_CHECKING:
    from anonspark.comparison.grid import Grid
    from anonspark.comparison.runner import Comparison
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.presentation.terminal import Block


def _of_grid(grid: Grid) -> tuple[EngineName, Work]:
    """Return the engine of a grid, and the work of its cells."""
    name, work = of_configuration(grid.cells[0].configuration)
    if grid.evaluation is None:
        return name, work
    holdout = grid.evaluation.holdout
    read, formats = (*work.read, holdout.path), (*work.formats, holdout.format)
    return name, replace(work, read=read, formats=formats)


@command(*CONFIGURED)
def compare(
    call: Call,
    grid: Annotated[
        str,
        typer.Argument(
            metavar="GRID",
            help="YAML file of a grid, or a configuration, whose models are tried at three k.",
        ),
    ],
    overrides: Overrides = None,
) -> None:
    """Run many settings on one input and rank them.

    Settings that were run before are not run again.
    """
    from anonspark.comparison.grid import load_comparison

    def run_cells(engine: Engine, grid: Grid) -> tuple[Grid, Comparison]:
        from anonspark.comparison.runner import compare as run_grid

        return grid, run_grid(engine, grid, call.progress)

    chosen, comparison = call.load(
        grid, lambda read: load_comparison(grid, overrides or (), read), run_cells, _of_grid
    )
    document: dict[str, object] = {
        "path": comparison.path,
        "cells": comparison.rows,
        "notes": comparison.notes,
    }
    if chosen.trial is not None and comparison.advice is not None:
        document |= {"refused": chosen.trial.refused, "advice": comparison.advice.as_dict()}
    call.show(document, lambda _: _blocks(chosen, comparison))


def _blocks(grid: Grid, comparison: Comparison) -> Iterator[Block]:
    """Show every cell, where the figures are, and how to use the best one."""
    from anonspark.comparison.card import comparison_card
    from anonspark.presentation.blocks import Text

    card = comparison_card("", grid, comparison)
    yield card
    yield Text(
        f"{comparison.ran:,} run{'s' * (comparison.ran != 1)}, {comparison.reused or 'none'} "
        f"reused. Figures and report: {comparison.path}"
    )
    if comparison.advice is not None:
        if sys.stdout.isatty():
            # Once more where the eye is, for the table is long.
            yield Text(f"{card.verdict[0].upper()}{card.verdict[1:]}", "strong")
        yield Text(f"To use it: {comparison.advice.command_line or 'nothing to set'}")
