"""Arguments and options that several commands have."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

ConfigurationPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="YAML file, local or at any Hadoop address.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY.PATH=VALUE", help="Change a key for this command. Can be repeated."
    ),
]
Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Spark master, or sc://HOST:PORT of Spark Connect. Default: the one of spark-submit, "
        "else an embedded local Spark.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|local|spark",
        help="Where it runs: in this process, or on Spark. auto takes this process if you give no "
        "Spark and the files are local and fit.",
    ),
]
Holdout = Annotated[
    str | None,
    typer.Option(
        metavar="PATH", help="Test the models on this table, which is not part of the original."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Details = Annotated[
    bool, typer.Option("--details", help="Show all figures, and what is only claimed.")
]
Sign = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Sign the release: a private SSH key of Ed25519, or its .pub if the agent has it.",
    ),
]
RunId = Annotated[str | None, typer.Option(help="Name of the run in metrics and manifest.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the killed run of this output, or start a new one if there is none. "
        "If several were killed, name one with --run-id. Finished rounds stay if this run fails.",
    ),
]


def with_key(
    overrides: list[str] | None, sign: str | None, path: str = "output.signing_key"
) -> list[str]:
    """Return overrides with the one that ``--sign`` stands for."""
    return [*(overrides or []), *([] if sign is None else [f"{path}={json.dumps(sign)}"])]


def hierarchy_files(what: str) -> Any:
    """Return the option ``--hierarchy``, whose help says what the files are for."""
    return typer.Option(
        "--hierarchy",
        metavar="COLUMN=PATH",
        help=f"File of a column's hierarchy, {what}. Can be repeated.",
    )
