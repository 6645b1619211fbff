"""The commands of ``anonspark``."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from anonspark._version import __version__
from anonspark.cli.ledger import ledger
from anonspark.cli.logs import LOG_FORMATS, CommandLog, LogFormat
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import Terminal
from anonspark.cli.working import (
    SIGNALS,
    EndedError,
    end,
    load_then_work,
    work_with_engine,
    work_with_spark,
)
from anonspark.errors import (
    AnonsparkError,
    ConfigurationError,
    EnvironmentProblem,
    exit_code_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from anonspark.comparison.grid import Grid
    from anonspark.comparison.runner import Comparison
    from anonspark.config import Configuration
    from anonspark.config.reading import TextReader
    from anonspark.engine.choice import Choice, EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.engine.spark.engine import SparkEngine
    from anonspark.holders.union import Union
    from anonspark.pipeline.plan import Checked, Plan
    from anonspark.pipeline.released import Release
    from anonspark.recipients.distribute import Distribution
    from anonspark.recipients.looking import PlanLook
    from anonspark.recipients.plan import Plan as RecipientsPlan
    from anonspark.selection.selecting import Prospect
    from anonspark.selection.settings import SelectionSettings
    from anonspark.selection.writing import Selection
    from anonspark.utility.arranging import Arrangement
    from anonspark.utility.evaluation import Utility
    from anonspark.verification.claims import Roles
    from anonspark.verification.pair_relation import Statement
    from anonspark.verification.release_pairs import Attack, JointVerification
    from anonspark.verification.result import Verification

application = typer.Typer(
    name="anonspark",
    help="Anonymize big tables about people: exact, deterministic, verifiable k-anonymity.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
application.add_typer(ledger)

_OUT = Terminal(soft_wrap=True)
_ERR = Terminal(stderr=True, soft_wrap=True)

_LOG: ContextVar[CommandLog] = ContextVar("log")

ConfigurationPath = Annotated[
    str, typer.Argument(metavar="CONFIG", help="YAML file, local or at any address of Hadoop.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Override a key; may be repeated."),
]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Spark master; without it, and without spark-submit, an "
                 "embedded local Spark."),
]  # fmt: skip
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|local|spark",
        help="Who does it: this process, or Spark; auto takes this process for local files that "
        "fit, where no Spark is given.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not tell about progress.")]


def _of_configuration(configuration: Configuration) -> tuple[EngineName, Work]:
    """Return the engine that a configuration asks for, and what a run of it does."""
    from anonspark.engine.choice import Work

    return configuration.execution.engine, Work.of(configuration)


def _of_grid(grid: Grid) -> tuple[EngineName, Work]:
    """Return the engine that a grid asks for, and what running its cells does."""
    name, work = _of_configuration(grid.cells[0].configuration)
    if grid.evaluation is None:
        return name, work
    holdout = grid.evaluation.holdout
    read, formats = (*work.read, holdout.path), (*work.formats, holdout.format)
    return name, replace(work, read=read, formats=formats)


def _of_selection(settings: SelectionSettings) -> tuple[EngineName, Work]:
    """Return the engine that is asked for, and what a selection does."""
    name, work = _of_configuration(settings.configuration)
    return name, replace(work, written=(settings.selection.output, settings.ledger.path))


def _of_paths(name: str, *paths: str | None) -> tuple[EngineName, Work]:
    """Return the engine that was asked for, and that tables at some paths are read."""
    from anonspark.engine.choice import Work, engine_name

    return engine_name(name), Work(tuple(filter(None, paths)))


def _configuration(
    path: str, overrides: Sequence[str] | None, *, needs_seed: bool = True
) -> Callable[[TextReader], Configuration]:
    """Say how a configuration is loaded."""
    from anonspark.config import load_configuration

    return lambda read: load_configuration(path, overrides or (), read, needs_seed=needs_seed)


RunId = Annotated[str | None, typer.Option(help="Name of the run in metrics and manifest.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue this output's killed run, of --run-id if there are several; finished "
        "rounds are kept should this one fail, too. Begins anew where none is left.",
    ),
]


@application.command()
def run(  # noqa: PLR0913 - each parameter is an option of the command
    config: ConfigurationPath,
    overrides: Overrides = None,
    master: Master = None,
    run_id: RunId = None,
    resume: Resume = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write report.html into the release.")
    ] = False,
    mapping: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE",
            help="Apply the mapping of an earlier release; as --set model.name=mapping.",
        ),
    ] = None,
) -> None:
    """Anonymize a table and publish the release with its metrics."""
    if mapping is not None:
        # In the place of the model that the configuration names, with its options.
        told = json.dumps(mapping)
        overrides = [f"model={{name: mapping, release: {told}}}", *(overrides or [])]
    progress = _LOG.get().follow(quiet=quiet, run_id=run_id)
    started = datetime.now(UTC)
    configured: list[Configuration] = []
    published: list[Release] = []

    def anonymize(engine: Engine, configuration: Configuration) -> None:
        from anonspark.pipeline.run import run as run_pipeline

        published.append(
            run_pipeline(engine, configuration, run_id=run_id, progress=progress, resume=resume)
        )
        if report:
            from anonspark.report.making import report_run

            with progress.stage("report"):
                report_run(engine, configuration)

    def load(read: TextReader) -> Configuration:
        configured.append(_configuration(config, overrides)(read))
        return configured[0]

    def tell_prometheus(engine: Engine | None, error: BaseException | None) -> None:
        # It needs nothing of pyspark, which may be what is broken.
        from anonspark.layers.publish.prometheus import write_textfile

        if not configured:  # at an address that could not be read
            return
        write_textfile(
            configured[0],
            progress,
            started=started,
            exit_code=exit_code_of(error),
            summary=published[0].summary if published else None,
            files=None if engine is None else engine.files,
        )

    try:
        load_then_work(config, load, _of_configuration, master, anonymize, tell_prometheus)
    except (AnonsparkError, EndedError) as error:
        if not published:
            raise
        # A scheduler must not take a complete release for a run that failed without a trace.
        _show_run(published[0], as_json=as_json)
        raise _without_report(published[0], error) from error
    _show_run(published[0], as_json=as_json)
    if report and not as_json:
        _OUT.print(f"Report: {published[0].path}/report.html")


def _without_report(
    release: Release, error: AnonsparkError | EndedError
) -> AnonsparkError | EndedError:
    """Return the error of a run whose release is complete, but has no report."""
    complete = f"the release at {release.path} is complete, only its report failed"
    if isinstance(error, EndedError):
        return EndedError(error.number, complete)
    return type(error)(f"report: {complete}: {error}")


def _show_run(release: Release, *, as_json: bool) -> None:
    """Tell what was published."""
    from anonspark.cli.display import show_release

    if as_json:
        print_json(
            {
                "path": release.path,
                "summary": release.summary,
                "rounds": release.rounds,
                "attributes": release.attributes,
                "privacy": release.privacy,
                "seconds": release.seconds,
                "warnings": [one.as_dict() for one in release.warnings],
            }
        )
    else:
        show_release(_OUT, release)
        _OUT.print(f"Published at {release.path}; prove it with: anonspark verify {release.path}")


@application.command()
def check(
    config: ConfigurationPath,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Validate configuration and data without anonymizing, and warn of what can be known before."""

    def inspect(engine: Engine, configuration: Configuration) -> Checked:
        from anonspark.pipeline.plan import check_input

        return check_input(engine, configuration)

    checked = load_then_work(
        config, _configuration(config, overrides), _of_configuration, master, inspect
    )
    coding = checked.coding
    if as_json:
        print_json(
            {
                "rows": checked.rows,
                "rows_to_drop": checked.rows_dropped,
                "missing": checked.missing,
                "coding": coding and {"name": coding.name, "fingerprint": coding.fingerprint},
                "warnings": [one.as_dict() for one in checked.warnings],
            }
        )
        return
    verdict = "configuration and data are fine"
    if checked.warnings:
        number = len(checked.warnings)
        count = f"{number} warnings" if number > 1 else "a warning"
        verdict = f"configuration and data can be used, but see {count} in the log"
    _OUT.print(f"{config}: {verdict}")
    _OUT.print(f"{checked.rows:,} rows, {checked.rows_dropped:,} to be dropped")
    if coding is not None:
        line = f"Coding: {coding.name}, fingerprint {coding.fingerprint}"
        _OUT.print(line, markup=False, highlight=False, soft_wrap=True)
    for name, number in checked.missing.items():
        if number:
            _OUT.print(f"attributes.{name}: {number:,} values are missing")


@application.command()
def plan(
    config: ConfigurationPath,
    overrides: Overrides = None,
    master: Master = None,
) -> None:
    """Tell what a run would do, without anonymizing."""
    from anonspark.cli.display import show_plan
    from anonspark.engine.choice import choose_engine

    def look_ahead(engine: Engine, configuration: Configuration) -> Plan:
        from anonspark.pipeline.plan import plan_run

        return plan_run(engine, configuration)

    def describe(configuration: Configuration) -> tuple[EngineName, Work]:
        # Before any engine starts, which would be a reason by itself.
        wanted = _of_configuration(configuration)
        chosen.append(choose_engine(*wanted, master))
        return wanted

    chosen: list[Choice] = []
    load = _configuration(config, overrides)
    planned = load_then_work(config, load, describe, master, look_ahead)
    show_plan(_OUT, planned)
    for choice in chosen:
        _OUT.print(f"Engine: {choice.name}, for {choice.reason}", markup=False, highlight=False)


@application.command()
def clean(
    config: ConfigurationPath,
    overrides: Overrides = None,
    run_id: Annotated[str | None, typer.Option(help="Of this run only.")] = None,
    master: Master = None,
) -> None:
    """Remove what killed runs of a configuration or a plan left: raw records, half a release."""
    from anonspark.config.yaml_reading import read_document
    from anonspark.recipients.cleaning import is_plan
    from anonspark.recipients.plan import Plan as RecipientsPlan
    from anonspark.recipients.plan import load_plan

    def load(read: TextReader) -> Configuration | RecipientsPlan:
        document, _ = read_document(config, "a configuration or a plan", "a mapping", read)
        if is_plan(document):
            return load_plan(config, overrides or (), read=read)
        return _configuration(config, overrides, needs_seed=False)(read)

    def describe(loaded: Configuration | RecipientsPlan) -> tuple[EngineName, Work]:
        if isinstance(loaded, RecipientsPlan):
            return loaded.base.execution.engine, loaded.work()
        return _of_configuration(loaded)

    def remove(
        engine: Engine, loaded: Configuration | RecipientsPlan
    ) -> tuple[str, list[tuple[str, bool]]]:
        from anonspark.layers.publish.staging import find_stagings, remove_staging
        from anonspark.recipients.cleaning import clean_plan

        files = engine.files
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
    for path, removed in found:
        what = "removed" if removed else "kept: a process of this machine is at work on it:"
        _OUT.print(f"{what} {path}", markup=False, highlight=False)
    if not found:
        _OUT.print(f"Nothing was left beside {output}")


Original = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="The table it was made of: also check truthfulness, and attack by linkage.",
    ),
]
Population = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="What an attacker may have, a table of people with the quasi-identifiers: also "
        "attack by linkage with it, and measure the journalist's risk.",
    ),
]
BesideReleases = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="PUBLISHED",
        help="Another release about the same people: attack both together; may be repeated.",
    ),
]
NamesWithoutManifest = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Of a table without manifest; may be repeated."),
]


def _roles(
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str] | None,
    k: int | None,
    config: str | None,
) -> Roles | None:
    """Return what the options say of a table without a manifest, None where they say nothing."""
    from anonspark.verification.claims import Roles

    if not quasi_identifiers and not sensitive and k is None:
        return None
    if config is not None:
        raise ConfigurationError(
            "--quasi-identifier, --sensitive, --k: found together with --config, which says "
            "the same; leave one of the two out"
        )
    return Roles(tuple(quasi_identifiers or ()), tuple(sensitive or ()), 2 if k is None else k)


def _attack(
    beside: Sequence[str] | None,
    joint_k: int | None,
    same_people: bool,
    inside: bool,
    original: str | None,
    population: str | None,
) -> Attack:
    """Return how releases are attacked together.

    Raises
    ------
    ConfigurationError
        If the options contradict one another, or there is one release.
    """
    from anonspark.verification.release_pairs import Attack

    if same_people and inside:
        raise ConfigurationError(
            "--same-people, --inside: found both; the people of two releases are the same, or "
            "those of one are among those of the other: leave one of the two out"
        )
    if not beside and (same_people or inside or joint_k is not None):
        raise ConfigurationError(
            "--joint-k, --same-people, --inside: found without --with, which names the release to "
            "attack with; add it, or leave them out"
        )
    said: Statement | None = "same people" if same_people else "inside" if inside else None
    return Attack(said, joint_k, original, population)


@application.command()
def verify(  # noqa: PLR0913 - each parameter is an option of the command
    published: Annotated[
        str,
        typer.Argument(
            metavar="PUBLISHED", help="Directory of a release, or a table of another tool."
        ),
    ],
    config: Annotated[
        str | None, typer.Option(help="Require this configuration, not the manifest's promise.")
    ] = None,
    original: Original = None,
    population: Population = None,
    quasi_identifier: NamesWithoutManifest = None,
    sensitive: NamesWithoutManifest = None,
    k: Annotated[
        int | None, typer.Option(help="Require this k of a table without manifest; 2 if not given.")
    ] = None,
    beside: BesideReleases = None,
    joint_k: Annotated[
        int | None,
        typer.Option(help="With --with: people whom both releases together should leave alike."),
    ] = None,
    same_people: Annotated[
        bool,
        typer.Option("--same-people", help="With --with: all releases are about the same people."),
    ] = False,
    inside: Annotated[
        bool,
        typer.Option(
            "--inside", help="With --with: the people of the smaller are among the larger's."
        ),
    ] = False,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Prove a release from its files alone; exit code 4 where the proof fails."""
    from anonspark.cli.pairs_display import show_proof

    roles = _roles(quasi_identifier, sensitive, k, config)
    progress = _LOG.get().follow(quiet=quiet)

    attack = _attack(beside, joint_k, same_people, inside, original, population)

    def prove(
        engine: Engine, configuration: Configuration | None = None
    ) -> Verification | JointVerification:
        from anonspark.verification.audit import audit_release
        from anonspark.verification.release_pairs import audit_releases

        with progress.stage("verify"):
            if beside:
                paths = (published, *beside)
                return audit_releases(engine, paths, configuration, roles=roles, attack=attack)
            return audit_release(
                engine,
                published,
                configuration,
                roles=roles,
                original=original,
                population=population,
            )

    wanted = _of_paths(engine_name, published, *(beside or ()), original, population)
    found = (
        work_with_engine(*wanted, master, prove)
        if config is None
        else load_then_work(
            config,
            _configuration(config, None, needs_seed=False),
            lambda _: wanted,
            master,
            prove,
        )
    )
    if as_json:
        print_json(found.as_dict())
    else:
        show_proof(_OUT, found)
    for warning in found.warnings:
        logging.getLogger("anonspark").warning("%s", warning)
    found.require()


@application.command()
def evaluate(
    release: Annotated[str, typer.Argument(metavar="RELEASE", help="Directory of a release.")],
    original: Annotated[str, typer.Option(metavar="PATH", help="The table that it was made of.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Train models that predict this published column."),
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Test them on this table, which was not part of the original."
        ),
    ] = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure how useful a release is: errors of counts, and what models learn from it."""
    from dataclasses import asdict

    from anonspark.cli.utility_display import show_utility

    progress = _LOG.get().follow(quiet=quiet)

    def measure(engine: Engine) -> Utility:
        from anonspark.utility.evaluation import evaluate as measure_utility

        with progress.stage("evaluate"):
            return measure_utility(engine, release, original, target, holdout)

    utility = work_with_engine(*_of_paths(engine_name, release, original, holdout), master, measure)
    if as_json:
        print_json(asdict(utility))
    else:
        show_utility(_OUT, release, utility)


@application.command()
def arrange(  # noqa: PLR0913 - each parameter is an option of the command
    config: ConfigurationPath,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="What values are to tell of.")],
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This quasi-identifier of text; may be repeated."),
    ] = None,
    form: Annotated[
        Literal["order", "hierarchy"], typer.Option("--as", help="What is written.")
    ] = "order",
    min_records: Annotated[
        int | None,
        typer.Option(min=1, help="Rarer values tell nothing; privacy.k if not given."),
    ] = None,
    out: Annotated[str, typer.Option(metavar="DIR", help="Where it is written.")] = "arranged",
    selection: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SELECTION",
            help="Take the noisy tables of anonspark select; the data are not opened.",
        ),
    ] = None,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn orders or hierarchies of categories that tell of a target, for you to correct."""
    from anonspark.cli.utility_display import show_arrangement

    progress = _LOG.get().follow(quiet=quiet)

    def learn(engine: Engine, configuration: Configuration) -> Arrangement:
        from anonspark.utility.arranging import arrange as learn_arrangement

        with progress.stage("arrange"):
            return learn_arrangement(
                engine,
                configuration,
                target,
                out,
                attributes=attribute or (),
                form=form,
                min_records=min_records,
                selection=selection,
            )

    def describe(configuration: Configuration) -> tuple[EngineName, Work]:
        if selection is not None:
            return _of_paths(configuration.execution.engine, selection)
        return _of_configuration(configuration)

    found = load_then_work(config, _configuration(config, overrides), describe, master, learn)
    if as_json:
        print_json(found.as_dict())
    else:
        show_arrangement(_OUT, found)


@application.command("select")
def select_attributes(
    config: ConfigurationPath,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Tell what it would cost; of the data read the schema only."
        ),
    ] = False,
    overrides: Overrides = None,
    master: Master = None,
    run_id: RunId = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Choose attributes that tell of a target, under differential privacy and within a budget."""
    from anonspark.cli.selection_display import show_prospect, show_selection
    from anonspark.selection.settings import load_selection

    progress = _LOG.get().follow(quiet=quiet, run_id=run_id)

    def choose(engine: Engine, settings: SelectionSettings) -> Selection | Prospect:
        from anonspark.selection.selecting import look_ahead, select

        if dry_run:
            return look_ahead(engine, settings)
        with progress.stage("select"):
            return select(engine, settings, run_id=run_id)

    found = load_then_work(
        config,
        lambda read: load_selection(config, overrides or (), read),
        _of_selection,
        master,
        choose,
    )
    if as_json:
        print_json(found.as_dict())
    else:
        (show_prospect if dry_run else show_selection)(_OUT, found)  # type: ignore[arg-type]


@application.command()
def compare(
    grid: Annotated[
        str, typer.Argument(metavar="GRID", help="YAML file, local or at any address of Hadoop.")
    ],
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run many settings on one input, and rank them; what was run before is not run again."""
    from anonspark.cli.comparison_display import show_comparison
    from anonspark.comparison.grid import load_grid

    progress = _LOG.get().follow(quiet=quiet)

    def run_cells(engine: Engine, wanted: Grid) -> tuple[Grid, Comparison]:
        from anonspark.comparison.runner import compare as run_grid

        return wanted, run_grid(engine, wanted, progress)

    wanted, comparison = load_then_work(
        grid,
        lambda read: load_grid(grid, overrides or (), read),
        _of_grid,
        master,
        run_cells,
    )
    if as_json:
        told = {"path": comparison.path, "cells": comparison.rows, "notes": comparison.notes}
        print_json(told)
    else:
        show_comparison(_OUT, wanted, comparison)


@application.command()
def distribute(  # noqa: PLR0913 - each parameter is an option of the command
    plan: Annotated[
        str, typer.Argument(metavar="PLAN", help="YAML file, local or at any address of Hadoop.")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="This recipient alone; may be repeated."),
    ] = None,
    overrides: Overrides = None,
    master: Master = None,
    run_id: RunId = None,
    resume: Resume = False,
    look: Annotated[
        bool, typer.Option("--check", help="Check plan, source and ledger; anonymize nothing.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write report.html into each release.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make a release for each recipient of a plan, or none if together they tell too much."""
    from anonspark.cli.recipients_display import show_distribution, show_look
    from anonspark.recipients.looking import PlanLook
    from anonspark.recipients.plan import load_plan

    progress = _LOG.get().follow(quiet=quiet, run_id=run_id)

    def carry_out(engine: Engine, wanted: RecipientsPlan) -> PlanLook | Distribution:
        from anonspark.recipients.distribute import distribute as carry
        from anonspark.recipients.looking import look_at_plan

        if look:
            return look_at_plan(engine, wanted, progress=progress)
        given = carry(engine, wanted, run_id=run_id, resume=resume, progress=progress)
        if report:
            from anonspark.report.making import report_run

            for one in wanted.recipients:
                with progress.stage(f"report of {one.name}"):
                    report_run(engine, one.configuration)
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
        show_look(_OUT, found)
    else:
        show_distribution(_OUT, found)


@application.command()
def union(
    releases: Annotated[
        list[str],
        typer.Argument(metavar="RELEASE ..", help="Directories of releases of one coding."),
    ],
    out: Annotated[
        str, typer.Option(metavar="PATH", help="Directory of the union; must not exist.")
    ],
    holder_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Tell in a column of this name who held a record: the name of the release's "
            "directory. Each part then keeps its own classes.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER", help="Key of the order of the records; drawn at random if not given."
        ),
    ] = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Publish releases of several holders as one, and prove that anew."""
    from anonspark.cli.holders_display import show_union
    from anonspark.engine.choice import Work
    from anonspark.engine.choice import engine_name as engine_called

    progress = _LOG.get().follow(quiet=quiet)

    def make(engine: Engine) -> Union:
        from anonspark.holders.union import unite

        return unite(
            engine, releases, out, holder_column=holder_column, seed=seed, progress=progress
        )

    work = Work(tuple(releases), (out,))
    made = work_with_engine(engine_called(engine_name), work, master, make)
    if as_json:
        print_json(made.as_dict())
    else:
        show_union(_OUT, made)


@application.command("report")
def report_release(
    output: Annotated[str, typer.Argument(metavar="OUTPUT", help="Directory of a release.")],
    original: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="The table it was made of: also show before and after."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where to write it; OUTPUT/report.html if not given."),
    ] = None,
    master: Master = None,
    engine_name: EngineOption = "auto",
    quiet: Quiet = False,
) -> None:
    """Show a release in one HTML file: its proof, its figures, before and after."""
    progress = _LOG.get().follow(quiet=quiet)

    def make(engine: Engine) -> str:
        from anonspark.report.making import report_release as write

        with progress.stage("report"):
            return write(engine, output, original, out)

    made = work_with_engine(*_of_paths(engine_name, output, original), master, make)
    _OUT.print(f"Report: {made}", markup=False, highlight=False)


@application.command()
def demo(
    out: Annotated[Path, typer.Option(help="Directory for everything that it makes.")] = Path(
        "anonspark-demo"
    ),
    rows: Annotated[int, typer.Option(min=100, help="People to generate.")] = 20_000,
    quiet: Quiet = False,
) -> None:
    """Anonymize generated people with an embedded Spark, and show the result."""
    from anonspark.cli.display import show_records, show_release

    progress = _LOG.get().follow(quiet=quiet)

    def generate_and_anonymize(engine: SparkEngine) -> tuple[Path, Release, pa.Table, pa.Table]:
        from anonspark.demo.demo import prepare_demo
        from anonspark.pipeline.run import run as run_pipeline

        with progress.stage("generate people", rows=rows):
            path, configuration = prepare_demo(engine, out, rows)
        release = run_pipeline(engine, configuration, progress=progress, purpose="demonstration")
        (people,) = configuration.input.paths
        shown = ["birth_date", "sex", "postal_code", "income", "diagnosis"]
        before = engine.published(people, "parquet").select(["full_name", *shown]).gather(5)
        after = engine.published(f"{release.path}/data", "parquet").select(shown).gather(5)
        return path, release, before, after

    path, release, before, after = work_with_spark(None, generate_and_anonymize)
    show_records(_OUT, "Before: five of the invented people", before)
    show_records(_OUT, "After: five published records, which share their class", after)
    show_release(_OUT, release)
    _OUT.print(
        f"Configuration: {path}\n"
        f"Release:       {release.path}/data (Parquet)\n"
        f"Metrics:       {release.path}/metrics (Parquet)\n"
        f"Manifest:      {release.path}/manifest.json\n"
        f"Prove it:      anonspark verify {release.path}\n"
        f"See it:        anonspark report {release.path}\n"
        f"Change it:     anonspark run {path} --set privacy.k=50"
    )


@application.command()
def doctor() -> None:
    """Check Java, Python, Spark, Arrow, Numba and write access; exit code 6 where one fails."""
    from anonspark.cli.doctor import run_checks

    failed = 0
    for result in run_checks():
        failed += not result.passed
        mark = "[green]pass[/]" if result.passed else "[red]fail[/]"
        _OUT.print(f"{mark}  ", end="")
        _OUT.print(f"{result.name}: {result.found}", markup=False, highlight=False)
        if not result.passed:
            _OUT.print(f"      {result.remedy}", markup=False, highlight=False)
    if failed:
        raise EnvironmentProblem(f"{failed} of the checks above failed; each names its remedy")


@application.command()
def generate(
    rows: Annotated[int, typer.Option(help="People to generate.")],
    out: Annotated[str, typer.Option(help="Directory to write to; must not exist.")],
    seed: Annotated[int, typer.Option(help="Another seed makes other people.")] = 0,
    format: Annotated[str, typer.Option(help="parquet, csv, orc or json.")] = "parquet",
    master: Master = None,
    quiet: Quiet = False,
) -> None:
    """Write a table of invented people, of any size, in parallel."""
    progress = _LOG.get().follow(quiet=quiet)

    def write(engine: SparkEngine) -> None:
        from anonspark.demo.people import write_people

        with progress.stage("generate people", rows=rows):
            write_people(engine.session, rows, out, seed, format)

    work_with_spark(master, write)
    _OUT.print(f"{rows:,} people at {out}")


@application.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Data set: adult.")],
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    url: Annotated[
        str | None, typer.Option(help="Where the original files are, instead of UCI's archive.")
    ] = None,
) -> None:
    """Download a public data set, check its SHA-256 and write it as CSV."""
    from anonspark.demo.fetch import ADULT_URL, fetch_adult

    if name != "adult":
        raise ConfigurationError(f"fetch: no data set {name!r}; expected adult")
    for path in fetch_adult(out, base_url=url or ADULT_URL):
        _OUT.print(str(path))


@application.command()
def schema(
    of_plan: Annotated[bool, typer.Option("--plan", help="Of plans, as distribute reads.")] = False,
) -> None:
    """Print the JSON Schema of the configuration, for editors."""
    from anonspark.config import json_schema
    from anonspark.recipients.plan_file import PlanFile

    print_json(PlanFile.model_json_schema() if of_plan else json_schema())


@application.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    _debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show stack traces, with any command. They may contain values of the data.",
        ),
    ] = False,
    _log_format: Annotated[
        str,
        typer.Option(
            "--log-format",
            metavar="|".join(LOG_FORMATS),
            help="Write messages as JSON, one object a line, with any command.",
        ),
    ] = "plain",
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str or None
        None takes those of the process.

    Returns
    -------
    int
        0 done; 1 a bug of ours; 2 wrong usage or configuration; 3 wrong data; 4 a privacy
        criterion does not hold; 5 publishing failed; 6 environment; 130 and 143 interrupted.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Taken out here, so that they may stand anywhere on the line and count for all messages.
    debug = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    log = CommandLog(_ERR, debug=debug)
    _LOG.set(log)
    try:
        log.format, given = _take_log_format(given)
    except ConfigurationError as error:
        return log.fail(error.exit_code, str(error), debug=debug)
    previous = {number: signal.signal(number, end) for number in SIGNALS}
    try:
        with log.opened():
            return _run_command(given, log)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _take_log_format(given: Sequence[str]) -> tuple[LogFormat, list[str]]:
    """Return the format of the log, and the arguments without it."""
    rest: list[str] = []
    found: str | None = "plain"
    arguments = iter(given)
    for argument in arguments:
        if argument == "--log-format":
            found = next(arguments, None)
        elif argument.startswith("--log-format="):
            found = argument.partition("=")[2]
        else:
            rest.append(argument)
    match found:
        case "plain" | "json":
            return found, rest
        case _:
            raise ConfigurationError(
                f"--log-format: found {found or 'nothing'!r}; expected one of "
                f"{', '.join(LOG_FORMATS)}"
            )


def _run_command(given: Sequence[str], log: CommandLog) -> int:
    """Run a command, and tell why it ended if it failed."""
    debug = log.debug
    try:
        result = application(given, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (AnonsparkError, EndedError) as error:
        return log.fail(error.exit_code, str(error), debug=debug)
    except (KeyboardInterrupt, typer.Abort):  # in the middle of Spark's start
        return log.fail(128 + signal.SIGINT, str(EndedError(signal.SIGINT)), debug=debug)
    except Exception as error:  # noqa: BLE001 - the last resort, which must not show data
        usage = getattr(error, "format_message", None)
        if usage is not None and getattr(error, "exit_code", None) == 2:
            return log.fail(2, f"{usage().rstrip('.')}; see anonspark --help", debug=False)
        if "pyspark" in sys.modules:
            from anonspark.engine.spark.errors import environment_problem

            problem = environment_problem(error)
            if problem is not None:
                return log.fail(EnvironmentProblem.exit_code, problem, debug=debug)
        return log.fail(
            1,
            f"unexpected {type(error).__name__}: a bug of anonspark. "
            "Please report it; --debug shows the details, which may contain data",
            debug=debug,
        )


def run_and_exit() -> None:
    """Run a command and end the process with its exit code."""
    sys.exit(main())
