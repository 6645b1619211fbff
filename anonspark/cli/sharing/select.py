"""The command ``anonspark select``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import (
    CONFIGURED,
    Call,
    ConfigurationPath,
    Overrides,
    RunId,
    command,
    of_configuration,
)

if TYPE_CHECKING:
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.sharing.selection.selecting import Prospect, Selection
    from anonspark.sharing.selection.settings import SelectionSettings


def _of_selection(settings: SelectionSettings) -> tuple[EngineName, Work]:
    """Return the engine of a selection, and its work."""
    name, work = of_configuration(settings.configuration)
    return name, replace(work, written=(settings.selection.output, settings.ledger.path))


@command(*CONFIGURED)
def select_attributes(
    call: Call,
    config: ConfigurationPath,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the cost, and read only the schema of the data."),
    ] = False,
    overrides: Overrides = None,
    run_id: RunId = None,
) -> None:
    """Choose attributes for a target under differential privacy.

    Spends from a budget.
    """
    from anonspark.sharing.selection.settings import load_selection

    def choose(engine: Engine, settings: SelectionSettings) -> Selection | Prospect:
        from anonspark.sharing.selection.selecting import look_ahead, select

        return look_ahead(engine, settings) if dry_run else select(engine, settings, run_id=run_id)

    selection = call.load(
        config,
        lambda read: load_selection(config, overrides or (), read),
        choose,
        _of_selection,
        stage="look ahead" if dry_run else "select",
    )
    from anonspark.sharing.selection.card import selection_card

    call.show(selection, lambda result: [selection_card(result)], is_answer=dry_run)
