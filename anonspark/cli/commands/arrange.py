"""The command ``anonspark arrange``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from anonspark.cli.command import (
    CONFIGURED,
    Call,
    ConfigurationPath,
    Overrides,
    command,
    loads,
    of_configuration,
)

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.utility.learned_hierarchies import Arrangement


@command(*CONFIGURED)
def arrange(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
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
) -> None:
    """Learn orders or hierarchies of categories from a target.

    Values that occur with similar values of the target come next to each other. You correct them.
    """
    from anonspark.presentation.utility import arrangement_blocks

    def learn(engine: Engine, configuration: Configuration) -> Arrangement:
        from anonspark.utility.learned_hierarchies import arrange as learn_arrangement

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
        from anonspark.engine.choice import Work

        if selection is not None:
            return configuration.execution.engine, Work((selection,))
        return of_configuration(configuration)

    arrangement = call.load(config, loads(config, overrides), learn, describe, stage="arrange")
    call.show(arrangement, arrangement_blocks, is_answer=False)
