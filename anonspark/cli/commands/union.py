"""The command ``anonspark union``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Master, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import work_with_engine

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.holders.union import Union


def union(
    releases: Annotated[
        list[str],
        typer.Argument(metavar="RELEASE ..", help="Directories of releases of one coding."),
    ],
    out: Annotated[
        str, typer.Option(metavar="PATH", help="Directory of the union; must not exist.")
    ],
    holder_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Tell in a column of this name who held a record: the name of the release's "
            "directory. Each part then keeps its own classes.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Key of the order of the records; drawn at random if not given."
        ),
    ] = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Publish releases of several holders as one, and prove that anew."""
    from anonspark.cli.holders_display import show_union
    from anonspark.engine.choice import Work
    from anonspark.engine.choice import engine_name as engine_called

    progress = LOG.get().follow(quiet=quiet)

    def make(engine: Engine) -> Union:
        from anonspark.holders.union import unite

        return unite(
            engine, releases, out, holder_column=holder_column, seed=seed, progress=progress
        )

    work = Work(tuple(releases), (out,))
    made = work_with_engine(engine_called(engine_name), work, master, make)
    if as_json:
        print_json(made.as_dict())
    else:
        show_union(OUT, made)
