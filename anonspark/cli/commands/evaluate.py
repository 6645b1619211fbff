"""The command ``anonspark evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Holdout, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import of_paths, work_with_engine

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.utility.evaluation import Utility


def evaluate(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Directory of a release.")],
    original: Annotated[str, typer.Option(metavar="PATH", help="The table that it was made of.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Train models that predict this published column."),
    ] = None,
    holdout: Holdout = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure how useful a release is: errors of counts, and what models learn from it."""
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
