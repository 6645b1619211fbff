"""The command ``anonspark history``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import of_paths, work_with_engine

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.reporting.nights import Night


def history(
    directory: Annotated[
        str,
        typer.Argument(metavar="DIR", help="What metrics.append_to names, or where releases lie."),
    ],
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the trend as a page, too.")
    ] = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the trend of all runs below a directory, those that failed too."""
    from anonspark.cli.history_display import show_history

    progress = LOG.get().follow(quiet=quiet)

    def read(engine: Engine) -> list[Night]:
        from anonspark.reporting.history_page import write_history
        from anonspark.reporting.nights import read_nights

        with progress.stage("history"):
            nights = read_nights(engine, directory)
            if html is not None:
                write_history(engine.files, nights, directory, html)
            return nights

    nights = work_with_engine(*of_paths(engine_name, directory), master, read)
    if as_json:
        print_json([one.as_dict() for one in nights])
        return
    show_history(OUT, nights)
    if html is not None:
        OUT.print(f"Page: {html}")
