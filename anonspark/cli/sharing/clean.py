"""The command ``anonspark clean``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import (
    CONFIGURED,
    Call,
    ConfigurationPath,
    Overrides,
    command,
    loads,
    of_configuration,
)

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.config.reading import TextReader
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.sharing.recipients.plan import Plan as RecipientsPlan


@command(*CONFIGURED)
def clean(
    call: Call,
    config: ConfigurationPath,
    overrides: Overrides = None,
    only: Annotated[str | None, typer.Option("--run-id", help="Only of this run.")] = None,
) -> None:
    """Remove what killed runs left: raw records, half a release."""
    from anonspark.config.yaml_reading import read_document
    from anonspark.sharing.recipients.members import is_plan
    from anonspark.sharing.recipients.plan import Plan as RecipientsPlan
    from anonspark.sharing.recipients.plan import load_plan

    def load(read: TextReader) -> Configuration | RecipientsPlan:
        what = "a configuration or a plan"
        document, _ = read_document(config, what, "a mapping", read, variables=True)
        if is_plan(document):
            return load_plan(config, overrides or (), read=read)
        return loads(config, overrides, needs_seed=False)(read)

    def describe(loaded: Configuration | RecipientsPlan) -> tuple[EngineName, Work]:
        if isinstance(loaded, RecipientsPlan):
            return loaded.base.execution.engine, loaded.work()
        return of_configuration(loaded)

    def remove(
        engine: Engine, loaded: Configuration | RecipientsPlan
    ) -> tuple[str, list[tuple[str, bool]]]:
        from anonspark.layers.publish.staging import find_stagings, remove_staging
        from anonspark.sharing.recipients.members import clean_plan

        files = engine.files
        if isinstance(loaded, RecipientsPlan):
            return loaded.output, clean_plan(files, loaded, only)
        staging_path = loaded.execution.staging_path
        places = find_stagings(files, loaded.output.path, staging_path)
        return loaded.output.path, [
            (staging.private, remove_staging(files, staging))
            for staging in places
            if only in (None, staging.run_id)
        ]

    stage = "remove what was left"
    output, freed = call.load(config, load, remove, describe, stage=stage)
    folders = [{"path": path, "removed": removed} for path, removed in freed]
    in_use = "kept: a process of this machine is at work on it:"
    lines = [f"{'removed' if removed else in_use} {path}" for path, removed in freed]
    call.say(
        {"output": output, "found": folders}, *(lines or [f"No run left anything next to {output}"])
    )
