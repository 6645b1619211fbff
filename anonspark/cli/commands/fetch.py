"""The command ``anonspark fetch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.errors import ConfigurationError


def fetch(
    name: Annotated[str, typer.Argument(help="Data set: adult.")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    url: Annotated[
        str | None, typer.Option(help="Where the original files are, instead of UCI's archive.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Download a public data set, check its SHA-256 and write it as CSV."""
    from anonspark.demo.fetch import ADULT_URL, fetch_adult

    if name != "adult":
        raise ConfigurationError(f"fetch: no data set {name!r}; expected adult")
    with LOG.get().follow(quiet=quiet).stage(f"fetch {name}"):
        paths = fetch_adult(out, base_url=url or ADULT_URL)
    if as_json:
        print_json({"files": [str(path) for path in paths]})
        return
    for path in paths:
        OUT.print(str(path))
