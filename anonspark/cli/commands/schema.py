"""The commands that print what the package is made of: ``anonspark schema`` and ``verifier``."""

from __future__ import annotations

from typing import Annotated

import typer

from anonspark.cli.command import print_json


def schema(
    of_plan: Annotated[
        bool, typer.Option("--plan", help="Schema of the plans that distribute reads.")
    ] = False,
) -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from anonspark.config import json_schema
    from anonspark.config.json_schema import load_extensions
    from anonspark.sharing.recipients.plan_file import PlanFile

    load_extensions()
    print_json(PlanFile.model_json_schema() if of_plan else json_schema())


def verifier() -> None:
    """Print check_release.py, which checks a release with pyarrow."""
    from anonspark.verifier import verifier_text

    typer.echo(verifier_text(), nl=False)
