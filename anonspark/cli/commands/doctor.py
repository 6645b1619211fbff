"""The command ``anonspark doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonspark.cli.terminal import OUT
from anonspark.errors import EnvironmentProblem

if TYPE_CHECKING:
    pass


def doctor() -> None:
    """Check Java, Python, Spark, Arrow, Numba and write access; exit code 6 where one fails."""
    from anonspark.cli.doctor import run_checks

    failed = 0
    for result in run_checks():
        failed += not result.passed
        mark = "[green]pass[/]" if result.passed else "[red]fail[/]"
        OUT.print(f"{mark}  ", end="")
        OUT.print(f"{result.name}: {result.found}", markup=False, highlight=False)
        if not result.passed:
            OUT.print(f"      {result.remedy}", markup=False, highlight=False)
    if failed:
        raise EnvironmentProblem(f"{failed} of the checks above failed; each names its remedy")
