"""Which process of pytest-xdist runs which tests.

A file's tests stay together, for what its fixtures make. Files whose tests share the Spark session
go to some of the processes, and come first: its start and its first queries cost a processor a
minute in each of them. A job of Spark goes from process to process and would wait at each step for
those that compute without one, so the system serves it first.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

from places import REPOSITORY
from xdist.scheduler import LoadFileScheduling

# What a test says that asks for the session.
_ASKS = re.compile(r"SparkSession|SparkEngine|usefixtures\(\"spark\"\)")


# Of three processes one: it keeps a processor busy, and the others what it leaves. Which one it is
# their names say, for their order in pytest-xdist is that in which they were ready.
def _with_spark(name: str, processes: int) -> bool:
    return int(name.removeprefix("gw")) < max(1, processes // 2)


def give_way_to_spark() -> None:
    """Let the processes that have Spark go first, if this one of pytest-xdist is none of them."""
    name = os.environ.get("PYTEST_XDIST_WORKER", "")
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
    if name and not _with_spark(name, processes):
        os.nice(10)


class SparkInSomeProcesses(LoadFileScheduling):
    """Hands out files in their order, those with Spark to some of the processes."""

    def _assign_work_unit(self, node: Any) -> None:
        with_spark = _with_spark(node.gateway.id, len(self.nodes))
        self.workqueue.move_to_end(self._next_file(with_spark=with_spark), last=False)
        super()._assign_work_unit(node)

    def _next_file(self, *, with_spark: bool) -> str:
        """Return the first file that suits a process, else the first one."""
        suited = (one for one in self.workqueue if _needs_spark(one) == with_spark)
        return next(suited, next(iter(self.workqueue)))


@cache
def _needs_spark(file: str) -> bool:
    return _ASKS.search((REPOSITORY / file).read_text(encoding="utf-8")) is not None
