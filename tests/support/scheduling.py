"""Which process of pytest-xdist runs which tests.

A file's tests stay together, for what its fixtures make. Files whose tests share the Spark session
go to some of the processes, and come first: its start and its first queries cost a processor half
a minute in each of them.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from places import REPOSITORY
from xdist.scheduler import LoadFileScheduling

# What a test says that asks for the session.
_ASKS = re.compile(r"SparkSession|SparkEngine|usefixtures\(\"spark\"\)")


class SparkInSomeProcesses(LoadFileScheduling):
    """Hands out files in their order, those with Spark to half of the processes."""

    def _assign_work_unit(self, node: Any) -> None:
        with_spark = self.nodes.index(node) < (len(self.nodes) + 1) // 2
        self.workqueue.move_to_end(self._next_file(with_spark=with_spark), last=False)
        super()._assign_work_unit(node)

    def _next_file(self, *, with_spark: bool) -> str:
        """Return the first file that suits a process, else the first one."""
        suited = (one for one in self.workqueue if _needs_spark(one) == with_spark)
        return next(suited, next(iter(self.workqueue)))


@cache
def _needs_spark(file: str) -> bool:
    return _ASKS.search((REPOSITORY / file).read_text(encoding="utf-8")) is not None
