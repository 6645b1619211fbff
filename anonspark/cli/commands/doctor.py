"""The command ``anonspark doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonspark.cli.options import AsJson
from anonspark.cli.printing import print_json
from anonspark.cli.terminal import OUT
from anonspark.errors import EnvironmentProblem

if TYPE_CHECKING:
    pass


def doctor(as_json: AsJson = False) -> None:
    """Check Java, Python, Spark, Arrow, Numba and write access.

    The exit code is 6 if a check fails.
    """
    from anonspark.cli.doctor import run_checks

    failed = 0
    told = []
    for result in run_checks():
        failed += not result.passed
        if as_json:
            told.append(
                {
                    "name": result.name,
                    "passed": result.passed,
                    "found": result.found,
                    "remedy": None if result.passed else result.remedy,
                }
            )
            continue
        mark, colour = ("pass", "green") if result.passed else ("fail", "red")
        OUT.print(f"{mark}  ", style=colour, end="")
        OUT.print(f"{result.name}: {result.found}")
        if not result.passed:
            OUT.print(f"      {result.remedy}")
    if as_json:
        print_json({"checks": told})
    if failed:
        raise EnvironmentProblem(f"{failed} of the checks above failed; each names its remedy")
