"""The command ``anonspark doctor``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from anonspark.cli.frame import Call, command
from anonspark.errors import EnvironmentProblem

if TYPE_CHECKING:
    from anonspark.cli.doctor import Check
    from anonspark.presentation.terminal import Block


@command("as_json")
def doctor(call: Call) -> None:
    """Check Java, Python, Spark, Arrow, Numba and write access.

    The exit code is 6 if a check fails.
    """
    from anonspark.cli.doctor import run_checks

    checks = run_checks()
    document = [asdict(one) | {"remedy": one.remedy or None} for one in checks]
    call.show({"checks": document}, lambda _: _blocks(checks))
    failed = sum(not one.passed for one in checks)
    if failed:
        raise EnvironmentProblem(f"{failed} of the checks above failed. Each names its remedy")


def _blocks(checks: Sequence[Check]) -> Iterator[Block]:
    from anonspark.presentation.blocks import Text

    for one in checks:
        mark, tone = ("pass", "good") if one.passed else ("fail", "bad")
        yield Text(f"{mark}  {one.name}: {one.found}", tone)
        if not one.passed:
            yield Text(f"      {one.remedy}")
