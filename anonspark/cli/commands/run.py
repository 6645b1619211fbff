"""The command ``anonspark run``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import (
    CONFIGURED,
    Call,
    ConfigurationPath,
    Overrides,
    Resume,
    RunId,
    Sign,
    command,
    loads,
    with_key,
)
from anonspark.cli.engine_runner import EndedError
from anonspark.errors import AnonsparkError

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.protocol import Engine
    from anonspark.pipeline.context import Release
    from anonspark.presentation.terminal import Block


@command(*CONFIGURED)
def run(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
    config: ConfigurationPath,
    overrides: Overrides = None,
    run_id: RunId = None,
    resume: Resume = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write report.html into the release.")
    ] = False,
    details: Annotated[
        bool,
        typer.Option("--details", help="Show all figures, and whether another model loses less."),
    ] = False,
    mapping: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            help="Apply the mapping of an earlier release, as --set model.name=mapping does.",
        ),
    ] = None,
    sign: Sign = None,
) -> None:
    """Anonymize a table and publish the release with its metrics."""
    if mapping is not None:
        # Replaces the model of the configuration together with its options.
        quoted = json.dumps(mapping)
        overrides = [f"model={{name: mapping, release: {quoted}}}", *(overrides or [])]
    progress = call.progress
    published: list[Release] = []

    def anonymize(engine: Engine, configuration: Configuration) -> None:
        from anonspark.pipeline.run import run as run_pipeline

        published.append(
            run_pipeline(
                engine,
                configuration,
                run_id=run_id,
                progress=progress,
                resume=resume,
                compares=details,
            )
        )
        if report:
            from anonspark.reporting.build_report import report_run

            with progress.stage("report"):
                report_run(engine, configuration, published[0].verified)

    try:
        call.load(config, loads(config, with_key(overrides, sign)), anonymize)
    except (AnonsparkError, EndedError) as error:
        if not published:
            raise
        # A scheduler must not take a complete release for a run that failed without a trace.
        _show_run(call, published[0], details=details)
        raise _without_report(published[0], error) from error
    _show_run(call, published[0], details=details, has_report=report)


def _without_report(
    release: Release, error: AnonsparkError | EndedError
) -> AnonsparkError | EndedError:
    """Return an error which says that the release is complete and only its report failed."""
    complete = f"the release at {release.path} is complete, only its report failed"
    if isinstance(error, EndedError):
        return EndedError(error.number, complete)
    return type(error)(f"report: {complete}: {error}")


def _show_run(call: Call, release: Release, *, details: bool, has_report: bool = False) -> None:
    """Show what was published."""

    def blocks(_: object) -> Iterator[Block]:
        from anonspark.presentation.release import detail_blocks, published_card

        look = ("see it", f"anonspark report {release.path}")
        if has_report:
            look = ("report", f"{release.path}/report.html")
        yield published_card(release, (("prove it", f"anonspark verify {release.path}"), look))
        if details:
            yield from detail_blocks(release)

    document = {
        "path": release.path,
        "published_earlier": release.earlier,
        "summary": release.summary,
        "rounds": release.rounds,
        "attributes": release.attributes,
        "privacy": release.privacy,
        "seconds": release.seconds,
        "unpublished": release.unpublished,
        "warnings": [warning.as_dict() for warning in release.warnings],
    }
    call.show(document, blocks, is_answer=False)
