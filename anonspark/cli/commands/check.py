"""The commands ``anonspark check`` and ``plan``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, ConfigurationPath, Master, Overrides, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, loads, of_configuration

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.choice import Choice, EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.layers.partition.lattice.watching import LookedAt
    from anonspark.pipeline.plan import Checked, Plan


def check(
    config: ConfigurationPath,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check configuration and data without anonymizing.

    The warnings are those of a run that can be known before it.
    """
    progress = LOG.get().follow(quiet=quiet)

    def inspect(engine: Engine, configuration: Configuration) -> Checked:
        from anonspark.pipeline.plan import check_input

        return check_input(engine, configuration, progress)

    checked = load_then_work(config, loads(config, overrides), of_configuration, master, inspect)
    coding = checked.coding
    if as_json:
        print_json(
            {
                "rows": checked.rows,
                "rows_to_drop": checked.rows_dropped,
                "missing": checked.missing,
                "coding": coding and {"name": coding.name, "fingerprint": coding.fingerprint},
                "repeats": [asdict(one) | {"remedy": one.remedy} for one in checked.repeats],
                "warnings": [one.as_dict() for one in checked.warnings],
            }
        )
        return
    verdict, style = "configuration and data are fine", None
    if checked.warnings:
        number = len(checked.warnings)
        count = f"{number} warnings" if number > 1 else "1 warning"
        verdict, style = f"usable, with {count} (see the log)", "yellow"
    OUT.print(f"{config}: {verdict}", style=style)
    OUT.print(f"{checked.rows:,} rows, {checked.rows_dropped:,} to be dropped")
    if coding is not None:
        line = f"Coding: {coding.name}, fingerprint {coding.fingerprint}"
        OUT.print(line, soft_wrap=True)
    for name, number in checked.missing.items():
        if number:
            OUT.print(f"attributes.{name}: {number:,} values are missing")
    for repeat in checked.repeats:
        text = repeat.describe(checked.k)
        OUT.print(text, style="yellow", soft_wrap=True)


def plan(
    config: ConfigurationPath,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    nodes: Annotated[
        bool,
        typer.Option(
            "--nodes",
            help="Also list the 20 best levels for full-domain and rho-gain, with exact counts. "
            "Keep this list internal.",
        ),
    ] = False,
) -> None:
    """Show what a run would do, without anonymizing.

    Shows rows, tasks, tree levels, columns and output.
    """
    from anonspark.cli.display import show_nodes, show_plan
    from anonspark.engine.choice import choose_engine

    progress = LOG.get().follow(quiet=quiet)

    def look_ahead(
        engine: Engine, configuration: Configuration
    ) -> tuple[Plan, list[LookedAt] | None]:
        from anonspark.pipeline.plan import plan_run

        if not nodes:
            return plan_run(engine, configuration, progress), None
        from anonspark.pipeline.plan import look_at_nodes, require_lattice

        require_lattice(configuration)
        return plan_run(engine, configuration, progress), look_at_nodes(
            engine, configuration, progress
        )

    def describe(configuration: Configuration) -> tuple[EngineName, Work]:
        # Before any engine starts, which would be a reason by itself.
        wanted = of_configuration(configuration)
        chosen.append(choose_engine(*wanted, master))
        return wanted

    chosen: list[Choice] = []
    load = loads(config, overrides)
    planned, looked_at = load_then_work(config, load, describe, master, look_ahead)
    if as_json:
        engine = [{"name": choice.name, "reason": choice.reason} for choice in chosen]
        told = planned.as_dict() | {"engine": engine[0] if engine else None}
        if looked_at is not None:
            told["best_nodes"] = [asdict(one) for one in looked_at]
        print_json(told)
        return
    show_plan(OUT, planned)
    if looked_at is not None:
        show_nodes(OUT, looked_at)
    for choice in chosen:
        OUT.print(f"Engine: {choice.name}, for {choice.reason}")
