"""The commands ``anonspark distribute`` and ``union``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.command import (
    CONFIGURED,
    WITH_ENGINE,
    Call,
    Overrides,
    Resume,
    RunId,
    Sign,
    command,
    with_key,
)

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.sharing.holders.union import Union
    from anonspark.sharing.recipients.card import PlanPreview
    from anonspark.sharing.recipients.distribute import Distribution
    from anonspark.sharing.recipients.plan import Plan as RecipientsPlan


@command(*CONFIGURED)
def distribute(  # noqa: PLR0913 - each parameter is an option of the command
    call: Call,
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="YAML file, local or at any Hadoop address.")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only for this recipient. Can be repeated."),
    ] = None,
    overrides: Overrides = None,
    run_id: RunId = None,
    resume: Resume = False,
    look: Annotated[
        bool, typer.Option("--check", help="Check plan, source and ledger without anonymizing.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write report.html into each release.")
    ] = False,
    sign: Sign = None,
) -> None:
    """Make a release for each recipient of a plan.

    Publishes none of them if recipients together could learn too much.
    """
    from anonspark.sharing.recipients.plan import load_plan

    progress = call.progress
    signed = with_key(overrides, sign, 'set."output.signing_key"')

    def carry_out(engine: Engine, read: RecipientsPlan) -> PlanPreview | Distribution:
        from anonspark.sharing.recipients.card import preview_plan
        from anonspark.sharing.recipients.distribute import distribute as carry

        if look:
            return preview_plan(engine, read, progress=progress)
        done = carry(engine, read, run_id=run_id, resume=resume, progress=progress)
        if report:
            from anonspark.reporting.build_report import report_run

            for recipient in read.recipients:
                with progress.stage(f"report of {recipient.name}"):
                    report_run(
                        engine, recipient.configuration, done.releases[recipient.name].verified
                    )
        return done

    result = call.load(
        plan,
        lambda read: load_plan(plan, signed, only or (), read),
        carry_out,
        lambda loaded: (loaded.base.execution.engine, loaded.work()),
    )
    from anonspark.sharing.recipients.card import distribution_blocks

    call.show(result, distribution_blocks, is_answer=look)


@command(*WITH_ENGINE)
def union(
    call: Call,
    releases: Annotated[
        list[str],
        typer.Argument(metavar="RELEASE ..", help="Directories of releases of one coding."),
    ],
    out: Annotated[
        str, typer.Option(metavar="PATH", help="Directory of the union. Must not exist.")
    ],
    holder_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Add a column of this name with the holder of each record: the name of the "
            "release's directory. Each part then keeps its own classes.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="NUMBER", help="Key of the order of the records. Default: random."),
    ] = None,
    sign: Sign = None,
) -> None:
    """Publish releases of several holders as one verified release."""

    def make(engine: Engine) -> Union:
        from anonspark.sharing.holders.union import unite

        return unite(
            engine,
            releases,
            out,
            holder_column=holder_column,
            seed=seed,
            progress=call.progress,
            key=sign,
        )

    result = call.work(make, *releases, written=(out,))
    from anonspark.sharing.holders.card import union_blocks

    call.show(result, union_blocks, is_answer=False)
