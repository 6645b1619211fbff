"""The command ``anonspark schema``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.printing import print_json

if TYPE_CHECKING:
    pass


def schema(
    of_plan: Annotated[bool, typer.Option("--plan", help="Of plans, as distribute reads.")] = False,
) -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from anonspark.config import json_schema
    from anonspark.recipients.plan_file import PlanFile

    print_json(PlanFile.model_json_schema() if of_plan else json_schema())
