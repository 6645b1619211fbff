"""The command ``anonspark select``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, ConfigurationPath, Master, Overrides, Quiet, RunId
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, of_configuration

if TYPE_CHECKING:
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.sharing.selection.selecting import Prospect
    from anonspark.sharing.selection.settings import SelectionSettings
    from anonspark.sharing.selection.writing import Selection


def _of_selection(settings: SelectionSettings) -> tuple[EngineName, Work]:
    """Return the engine that is asked for, and what a selection does."""
    name, work = of_configuration(settings.configuration)
    return name, replace(work, written=(settings.selection.output, settings.ledger.path))


def select_attributes(
    config: ConfigurationPath,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the cost, and read only the schema of the data."),
    ] = False,
    overrides: Overrides = None,
    master: Master = None,
    run_id: RunId = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose attributes for a target under differential privacy.

    Spends from a budget.
    """
    from anonspark.cli.sharing.selection_display import show_prospect, show_selection
    from anonspark.sharing.selection.settings import load_selection

    progress = LOG.get().follow(quiet=quiet, run_id=run_id)

    def choose(engine: Engine, settings: SelectionSettings) -> Selection | Prospect:
        from anonspark.sharing.selection.selecting import look_ahead, select

        if dry_run:
            with progress.stage("look ahead"):
                return look_ahead(engine, settings)
        with progress.stage("select"):
            return select(engine, settings, run_id=run_id)

    found = load_then_work(
        config,
        lambda read: load_selection(config, overrides or (), read),
        _of_selection,
        master,
        choose,
    )
    if as_json:
        print_json(found.as_dict())
    else:
        (show_prospect if dry_run else show_selection)(OUT, found)  # type: ignore[arg-type]
