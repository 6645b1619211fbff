"""The command ``anonspark profile``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.data_options import (
    Data,
    DataFormat,
    DataOptions,
    SampleRows,
    SampleSeed,
    SmallK,
    parsed_options,
)
from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import work_with_engine

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.profiling.profile import Profile


def profile(  # noqa: PLR0913 - each parameter is an option of the command
    data: Data,
    k: SmallK = 5,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write it as a page.")
    ] = None,
    show_values: Annotated[
        bool, typer.Option("--show-values", help="Show examples of the values of each column.")
    ] = False,
    data_format: DataFormat = None,
    options: DataOptions = None,
    sample: SampleRows = 200_000,
    seed: SampleSeed = 0,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tell what a table has that tells people apart, before anything is configured."""
    progress = LOG.get().follow(quiet=quiet)
    with progress.stage("look at the data"):
        from anonspark.engine.choice import engine_name as named
        from anonspark.profiling.source import find_source

        source = find_source(data, data_format, parsed_options(options))

    def look(engine: Engine) -> Profile:
        from anonspark.profiling.page import write_page
        from anonspark.profiling.profile import profile_table

        found = profile_table(
            engine, source, progress, k=k, sample=sample, seed=seed, show_values=show_values
        )
        if html is not None:
            write_page(engine.files, html, found)
        return found

    found = work_with_engine(named(engine_name), source.work, master, look)
    if as_json:
        print_json(found.as_dict())
        return
    from anonspark.cli.profile_display import show_profile

    show_profile(OUT, found)
    if html is not None:
        OUT.print(f"Page: {html}")
