"""The command ``anonspark plan``."""

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
    from anonspark.pipeline.plan import Plan


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
            help="Search the levels of full-domain and rho-gain, and show the best 20 with exact "
            "counts: for inside, not to be published.",
        ),
    ] = False,
) -> None:
    """Tell what a run would do, without anonymizing."""
    from anonspark.cli.display import show_plan
    from anonspark.cli.nodes_display import show_nodes
    from anonspark.engine.choice import choose_engine

    progress = LOG.get().follow(quiet=quiet)

    def look_ahead(
        engine: Engine, configuration: Configuration
    ) -> tuple[Plan, list[LookedAt] | None]:
        from anonspark.pipeline.plan import plan_run

        if not nodes:
            return plan_run(engine, configuration, progress), None
        from anonspark.pipeline.nodes import look_at_nodes, require_lattice

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
