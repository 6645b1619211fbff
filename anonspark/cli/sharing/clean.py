"""The command ``anonspark clean``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, ConfigurationPath, Master, Overrides, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, loads, of_configuration

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.config.reading import TextReader
    from anonspark.engine.choice import EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.sharing.recipients.plan import Plan as RecipientsPlan


def clean(
    config: ConfigurationPath,
    overrides: Overrides = None,
    run_id: Annotated[str | None, typer.Option(help="Only of this run.")] = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Remove what killed runs left: raw records, half a release."""
    from anonspark.config.yaml_reading import read_document
    from anonspark.sharing.recipients.members import is_plan
    from anonspark.sharing.recipients.plan import Plan as RecipientsPlan
    from anonspark.sharing.recipients.plan import load_plan

    progress = LOG.get().follow(quiet=quiet)

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
        with progress.stage("remove what was left"):
            if isinstance(loaded, RecipientsPlan):
                return loaded.output, clean_plan(files, loaded, run_id)
            staging_path = loaded.execution.staging_path
            places = find_stagings(files, loaded.output.path, staging_path)
            return loaded.output.path, [
                (place.private, remove_staging(files, place))
                for place in places
                if run_id in (None, place.run_id)
            ]

    output, found = load_then_work(config, load, describe, master, remove)
    if as_json:
        told = [{"path": path, "removed": removed} for path, removed in found]
        print_json({"output": output, "found": told})
        return
    for path, removed in found:
        what = "removed" if removed else "kept: a process of this machine is at work on it:"
        OUT.print(f"{what} {path}")
    if not found:
        OUT.print(f"Nothing was left beside {output}")
