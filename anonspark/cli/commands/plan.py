"""The command ``anonspark plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, ConfigurationPath, Master, Overrides, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, loads, of_configuration

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.choice import Choice, EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.pipeline.plan import Plan


def plan(
    config: ConfigurationPath,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tell what a run would do, without anonymizing."""
    from anonspark.cli.display import show_plan
    from anonspark.engine.choice import choose_engine

    progress = LOG.get().follow(quiet=quiet)

    def look_ahead(engine: Engine, configuration: Configuration) -> Plan:
        from anonspark.pipeline.plan import plan_run

        return plan_run(engine, configuration, progress)

    def describe(configuration: Configuration) -> tuple[EngineName, Work]:
        # Before any engine starts, which would be a reason by itself.
        wanted = of_configuration(configuration)
        chosen.append(choose_engine(*wanted, master))
        return wanted

    chosen: list[Choice] = []
    load = loads(config, overrides)
    planned = load_then_work(config, load, describe, master, look_ahead)
    if as_json:
        engine = [{"name": choice.name, "reason": choice.reason} for choice in chosen]
        print_json(planned.as_dict() | {"engine": engine[0] if engine else None})
        return
    show_plan(OUT, planned)
    for choice in chosen:
        OUT.print(f"Engine: {choice.name}, for {choice.reason}", markup=False, highlight=False)
