"""The commands ``anonspark distribute`` and ``union``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, EngineOption, Master, Overrides, Quiet, Resume, RunId
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, work_with_engine

if TYPE_CHECKING:
    from anonspark.engine.protocol import Engine
    from anonspark.sharing.holders.union import Union
    from anonspark.sharing.recipients.distribute import Distribution
    from anonspark.sharing.recipients.dry_run import PlanLook
    from anonspark.sharing.recipients.plan import Plan as RecipientsPlan


def distribute(  # noqa: PLR0913 - each parameter is an option of the command
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="YAML file, local or at any Hadoop address.")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only for this recipient. Can be repeated."),
    ] = None,
    overrides: Overrides = None,
    master: Master = None,
    run_id: RunId = None,
    resume: Resume = False,
    look: Annotated[
        bool, typer.Option("--check", help="Check plan, source and ledger without anonymizing.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write report.html into each release.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a release for each recipient of a plan.

    Publishes none of them if recipients together could learn too much.
    """
    from anonspark.cli.sharing.recipients_display import show_distribution, show_look
    from anonspark.sharing.recipients.dry_run import PlanLook
    from anonspark.sharing.recipients.plan import load_plan

    progress = LOG.get().follow(quiet=quiet, run_id=run_id)

    def carry_out(engine: Engine, wanted: RecipientsPlan) -> PlanLook | Distribution:
        from anonspark.sharing.recipients.distribute import distribute as carry
        from anonspark.sharing.recipients.dry_run import look_at_plan

        if look:
            return look_at_plan(engine, wanted, progress=progress)
        given = carry(engine, wanted, run_id=run_id, resume=resume, progress=progress)
        if report:
            from anonspark.reporting.making import report_run

            for one in wanted.recipients:
                with progress.stage(f"report of {one.name}"):
                    report_run(engine, one.configuration, given.releases[one.name].verified)
        return given

    found = load_then_work(
        plan,
        lambda read: load_plan(plan, overrides or (), only or (), read),
        lambda loaded: (loaded.base.execution.engine, loaded.work()),
        master,
        carry_out,
    )
    if as_json:
        print_json(found.as_dict())
    elif isinstance(found, PlanLook):
        show_look(OUT, found)
    else:
        show_distribution(OUT, found)


def union(
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
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Publish releases of several holders as one verified release."""
    from anonspark.cli.sharing.recipients_display import show_union
    from anonspark.engine.choice import Work
    from anonspark.engine.choice import engine_name as engine_called

    progress = LOG.get().follow(quiet=quiet)

    def make(engine: Engine) -> Union:
        from anonspark.sharing.holders.union import unite

        return unite(
            engine, releases, out, holder_column=holder_column, seed=seed, progress=progress
        )

    work = Work(tuple(releases), (out,))
    made = work_with_engine(engine_called(engine_name), work, master, make)
    if as_json:
        print_json(made.as_dict())
    else:
        show_union(OUT, made)
