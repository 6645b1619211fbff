"""The commands ``anonspark report``, ``history`` and ``evaluate``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import WITH_ENGINE, Call, Holdout, Sign, command

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.presentation.terminal import Block
    from anonspark.reporting.build_report import WrittenReport
    from anonspark.reporting.nights import Night
    from anonspark.utility.evaluation import Utility


@command(*WITH_ENGINE)
def report_release(
    call: Call,
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
    decision: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also print the decision in a file of init --decision."),
    ] = None,
    sign: Sign = None,
) -> None:
    """Write the report of a release: one HTML file with charts."""

    def make(engine: Engine) -> WrittenReport:
        from anonspark.reporting.build_report import report_release as write

        learned = {"target": target, "holdout": holdout}
        return write(engine, output, original, out, decision=decision, key=sign, **learned)

    path = call.work(make, output, original, holdout, stage="report")
    call.say({"report": path.path, "holds": path.holds}, f"Report: {path.path}")
    if not path.holds:
        logging.getLogger("anonspark").warning(
            "%s: the guarantee does not hold. Expected a release that keeps what was required. "
            "The report shows what failed, and anonspark verify lists all of it. Do not use the "
            "release before that is settled",
            output,
        )


@command(*WITH_ENGINE)
def history(
    call: Call,
    directory: Annotated[
        str,
        typer.Argument(metavar="DIR", help="Directory of metrics.append_to, or of releases."),
    ],
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Also write a page.")] = None,
) -> None:
    """Show the trend of all runs."""

    def read(engine: Engine) -> list[Night]:
        from anonspark.reporting.nights import read_nights, write_history

        nights = read_nights(engine, directory)
        if html is not None:
            write_history(engine.files, nights, directory, html)
        return nights

    nights = call.work(read, directory, stage="history")

    def blocks(_: object) -> Iterator[Block]:
        from anonspark.cli.display import history_blocks
        from anonspark.presentation.blocks import Text

        yield from history_blocks(nights)
        if html is not None:
            yield Text(f"Page: {html}")

    call.show([night.as_dict() for night in nights], blocks)


@command(*WITH_ENGINE)
def evaluate(
    call: Call,
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
) -> None:
    """Measure how useful a release is: counts and trained models."""
    from anonspark.presentation.utility import utility_card

    def measure(engine: Engine) -> Utility:
        from anonspark.utility.evaluation import evaluate as measure_utility

        return measure_utility(engine, release, original, target, holdout)

    utility = call.work(measure, release, original, holdout, stage="evaluate")
    call.show(utility, lambda measured: [utility_card("", measured)])
