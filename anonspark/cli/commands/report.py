"""The commands ``anonspark report``, ``history`` and ``evaluate``."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Holdout, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import of_paths, work_with_engine

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.reporting.making import WrittenReport
    from anonspark.reporting.nights import Night
    from anonspark.utility.evaluation import Utility


def report_release(  # noqa: PLR0913 - each parameter is an option of the command
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="Directory of a release.")],
    original: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Table that the release was made of. Also shows before and after."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File to write. Default: OUTPUT/report.html."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Also train models that predict this published column, on the release and on the "
            "original. Needs --original.",
        ),
    ] = None,
    holdout: Holdout = None,
    inside: Annotated[
        bool,
        typer.Option(
            "--inside",
            help="Also name the worst classes, for internal use only. Needs --out.",
        ),
    ] = False,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the report of a release: one HTML file with charts."""
    progress = LOG.get().follow(quiet=quiet)

    def make(engine: Engine) -> WrittenReport:
        from anonspark.reporting.making import report_release as write

        with progress.stage("report"):
            return write(
                engine, output, original, out, target=target, holdout=holdout, inside=inside
            )

    made = work_with_engine(*of_paths(engine_name, output, original, holdout), master, make)
    if as_json:
        print_json({"report": made.path, "holds": made.holds})
    else:
        OUT.print(f"Report: {made.path}")
    if not made.holds:
        logging.getLogger("anonspark").warning(
            "%s: the guarantee does not hold, expected a release that keeps what was required; the "
            "report says what failed, and anonspark verify all of it; do not use the release "
            "before that is settled",
            output,
        )


def history(
    directory: Annotated[
        str,
        typer.Argument(metavar="DIR", help="Directory of metrics.append_to, or of releases."),
    ],
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Also write a page.")] = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show the trend of all runs, including failed ones."""
    from anonspark.cli.display import show_history

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


def evaluate(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Directory of a release.")],
    original: Annotated[
        str, typer.Option(metavar="PATH", help="Table that the release was made of.")
    ],
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Also train models that predict this published column."
        ),
    ] = None,
    holdout: Holdout = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure how useful a release is: counts and trained models."""
    from anonspark.cli.utility_display import show_utility

    progress = LOG.get().follow(quiet=quiet)

    def measure(engine: Engine) -> Utility:
        from anonspark.utility.evaluation import evaluate as measure_utility

        with progress.stage("evaluate"):
            return measure_utility(engine, release, original, target, holdout)

    utility = work_with_engine(*of_paths(engine_name, release, original, holdout), master, measure)
    if as_json:
        print_json(utility.as_dict())
    else:
        show_utility(OUT, release, utility)
