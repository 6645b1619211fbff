"""Arguments and options that several commands have."""

from __future__ import annotations

from typing import Annotated, Any

import typer

ConfigurationPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="YAML file, local or at any address of Hadoop.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Override a key; may be repeated."),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master; without it, and without spark-submit, an embedded local Spark.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|local|spark",
        help="Who does it: this process, or Spark; auto takes this process for local files that "
        "fit, where no Spark is given.",
    ),
]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="Test them on this table, which was not part of the original."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not tell about progress.")]
RunId = Annotated[str | None, typer.Option(help="Name of the run in metrics and manifest.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue this output's killed run, of --run-id if there are several; finished "
        "rounds are kept should this one fail, too. Begins anew where none is left.",
    ),
]


def hierarchy_files(what: str) -> Any:
    """Return the option ``--hierarchy``, whose help says what the files are for."""
    return typer.Option(
        "--hierarchy",
        metavar="COLUMN=PATH",
        help=f"File of a column's hierarchy, {what}; may be repeated.",
    )
