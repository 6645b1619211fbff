"""The command ``anonspark generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import work_with_spark

if TYPE_CHECKING:
    from anonspark.engine.spark.engine import SparkEngine


def generate(
    rows: Annotated[int, typer.Option(help="People to generate.")],
    out: Annotated[str, typer.Option(help="Directory to write to; must not exist.")],
    seed: Annotated[int, typer.Option(help="Another seed makes other people.")] = 0,
    format: Annotated[str, typer.Option(help="parquet, csv, orc or json.")] = "parquet",
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a table of invented people, of any size, in parallel."""
    progress = LOG.get().follow(quiet=quiet)

    def write(engine: SparkEngine) -> None:
        from anonspark.demo.people import write_people

        with progress.stage("generate people", rows=rows):
            write_people(engine.session, rows, out, seed, format)

    work_with_spark(master, write)
    if as_json:
        print_json({"rows": rows, "path": out, "format": format})
    else:
        OUT.print(f"{rows:,} people at {out}")
