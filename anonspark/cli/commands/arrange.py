"""The commands ``anonspark arrange`` and ``select``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, ConfigurationPath, Master, Overrides, Quiet, RunId
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, loads, of_configuration, of_paths

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.sharing.selection.selecting import Prospect
    from anonspark.sharing.selection.settings import SelectionSettings
    from anonspark.sharing.selection.writing import Selection
    from anonspark.utility.learned_hierarchies import Arrangement


def arrange(  # noqa: PLR0913 - each parameter is an option of the command
    config: ConfigurationPath,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="What values are to tell of.")],
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This quasi-identifier of text; may be repeated."),
    ] = None,
    form: Annotated[
        Literal["order", "hierarchy"], typer.Option("--as", help="What is written.")
    ] = "order",
    min_records: Annotated[
        int | None,
        typer.Option(min=1, help="Rarer values tell nothing; privacy.k if not given."),
    ] = None,
    out: Annotated[str, typer.Option(metavar="DIR", help="Where it is written.")] = "arranged",
    selection: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SELECTION",
            help="Take the noisy tables of anonspark select; the data are not opened.",
        ),
    ] = None,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn orders or hierarchies of categories that tell of a target, for you to correct."""
    from anonspark.cli.utility_display import show_arrangement

    progress = LOG.get().follow(quiet=quiet)

    def learn(engine: Engine, configuration: Configuration) -> Arrangement:
        from anonspark.utility.learned_hierarchies import arrange as learn_arrangement

        with progress.stage("arrange"):
            return learn_arrangement(
                engine,
                configuration,
                target,
                out,
                attributes=attribute or (),
                form=form,
                min_records=min_records,
                selection=selection,
            )

    def describe(configuration: Configuration) -> tuple[EngineName, Work]:
        if selection is not None:
            return of_paths(configuration.execution.engine, selection)
        return of_configuration(configuration)

    found = load_then_work(config, loads(config, overrides), describe, master, learn)
    if as_json:
        print_json(found.as_dict())
    else:
        show_arrangement(OUT, found)


def _of_selection(settings: SelectionSettings) -> tuple[EngineName, Work]:
    """Return the engine that is asked for, and what a selection does."""
    name, work = of_configuration(settings.configuration)
    return name, replace(work, written=(settings.selection.output, settings.ledger.path))


def select_attributes(
    config: ConfigurationPath,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Tell what it would cost; of the data read the schema only."
        ),
    ] = False,
    overrides: Overrides = None,
    master: Master = None,
    run_id: RunId = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose attributes that tell of a target, under differential privacy and within a budget."""
    from anonspark.cli.selection_display import show_prospect, show_selection
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
