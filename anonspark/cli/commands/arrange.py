"""The command ``anonspark arrange``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, ConfigurationPath, Master, Overrides, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, loads, of_configuration, of_paths

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.utility.learned_hierarchies import Arrangement


def arrange(  # noqa: PLR0913 - each parameter is an option of the command
    config: ConfigurationPath,
    target: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column that the order should predict.")
    ],
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this text quasi-identifier. Can be repeated."),
    ] = None,
    form: Annotated[
        Literal["order", "hierarchy"], typer.Option("--as", help="Write orders or hierarchies.")
    ] = "order",
    min_records: Annotated[
        int | None,
        typer.Option(min=1, help="Learn nothing from rarer values. Default: privacy.k."),
    ] = None,
    out: Annotated[str, typer.Option(metavar="DIR", help="Directory to write to.")] = "arranged",
    selection: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SELECTION",
            help="Read the noisy tables of anonspark select instead of the data.",
        ),
    ] = None,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn orders or hierarchies of categories from a target.

    Values that occur with similar values of the target come next to each other. You correct them.
    """
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
