"""Arguments and options of commands that read a table nobody has configured yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from anonspark.errors import ConfigurationError

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="A file, a directory or a pattern; any address that Spark reads."
    ),
]
DataFormat = Annotated[
    str | None,
    typer.Option("--format", metavar="NAME", help="Of the data; recognized if not given."),
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="Of the format, as header=true; may be repeated."
    ),
]
SmallK = Annotated[
    int, typer.Option("--k", min=2, help="Tell of records that fewer than k are like.")
]
SampleRows = Annotated[
    int,
    typer.Option("--sample", min=1000, metavar="ROWS", help="Rows by which columns are compared."),
]
SampleSeed = Annotated[int, typer.Option("--seed", help="Draws another sample.")]


def parsed_options(given: Sequence[str] | None) -> dict[str, str]:
    """Return options by their names.

    Raises
    ------
    ConfigurationError
        If one has no value.
    """
    found = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"--option: found {one!r}; expected NAME=VALUE; correct it")
        found[name] = value
    return found
