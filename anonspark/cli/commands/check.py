"""The command ``anonspark check``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from anonspark.cli.logs import LOG
from anonspark.cli.options import AsJson, ConfigurationPath, Master, Overrides, Quiet
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.cli.working import load_then_work, loads, of_configuration

if TYPE_CHECKING:
    from anonspark.config import Configuration
    from anonspark.engine.protocol import Engine
    from anonspark.pipeline.plan import Checked


def check(
    config: ConfigurationPath,
    overrides: Overrides = None,
    master: Master = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Validate configuration and data without anonymizing, and warn of what can be known before."""
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
