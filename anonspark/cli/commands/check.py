"""The commands ``anonspark check`` and ``plan``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

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
    from anonspark.engine.choice import Choice, EngineName, Work
    from anonspark.engine.protocol import Engine
    from anonspark.layers.partition.lattice.search import NodePreview
    from anonspark.pipeline.plan import Checked, Plan

_NODES = (
    "List the 20 best levels for full-domain and rho-gain, with exact counts. Keep this list "
    "internal."
)


@command(*CONFIGURED)
def check(
    call: Call,
    config: ConfigurationPath,
    overrides: Overrides = None,
    shows_plan: Annotated[
        bool,
        typer.Option("--plan", help="Show what a run would do: rows, tasks, levels and output."),
    ] = False,
    nodes: Annotated[bool, typer.Option("--nodes", help=_NODES)] = False,
) -> None:
    """Check configuration and data without anonymizing.

    The warnings are those of a run that can be known before it.
    """
    from anonspark.cli.display import checked_blocks

    if shows_plan or nodes:
        _show_plan(call, config, overrides, nodes=nodes)
        return

    def inspect(engine: Engine, configuration: Configuration) -> Checked:
        from anonspark.pipeline.plan import check_input

        return check_input(engine, configuration, call.progress)

    checked = call.load(config, loads(config, overrides), inspect)
    coding = checked.coding
    document = {
        "rows": checked.rows,
        "rows_to_drop": checked.rows_dropped,
        "missing": checked.missing,
        "coding": coding and {"name": coding.name, "fingerprint": coding.fingerprint},
        "warnings": [warning.as_dict() for warning in checked.warnings],
    }
    call.show(document, lambda _: checked_blocks(config, checked), is_answer=False)


def _show_plan(call: Call, config: ConfigurationPath, overrides: Overrides, *, nodes: bool) -> None:
    """Show what a run would do, on which engine and why, and perhaps the best nodes."""
    from anonspark.cli.display import plan_blocks
    from anonspark.engine.choice import choose_engine

    def preview(
        engine: Engine, configuration: Configuration
    ) -> tuple[Plan, list[NodePreview] | None]:
        from anonspark.pipeline.plan import plan_run, preview_nodes, require_lattice

        if nodes:
            require_lattice(configuration)
        plan = plan_run(engine, configuration, call.progress)
        return plan, preview_nodes(engine, configuration, call.progress) if nodes else None

    def describe(configuration: Configuration) -> tuple[EngineName, Work]:
        # Before an engine starts: a Spark that runs would be a reason for it by itself.
        work = of_configuration(configuration)
        choices.append(choose_engine(*work, call.master))
        return work

    choices: list[Choice] = []
    plan, best_nodes = call.load(config, loads(config, overrides), preview, describe)
    engines = [{"name": choice.name, "reason": choice.reason} for choice in choices]
    more: Any = {} if best_nodes is None else {"best_nodes": [asdict(node) for node in best_nodes]}
    engine = "".join(f"{choice.name}, because {choice.reason}" for choice in choices)
    call.show(
        plan,
        lambda _: plan_blocks(plan, best_nodes, engine),
        engine=engines[0] if engines else None,
        **more,
    )
