"""Find the memory that this process, or an embedded Spark, can have.

Java heeds the limits of containers, but Spark always sets a size. No package of Python that we know
heeds them: psutil reports the memory of the machine.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_GIBIBYTE = 2**30
_MEBIBYTE = 2**20

_SYSTEM = Path("/")

# Four for each of the four cores, so that none waits long for the last task of another one.
_TASKS_OF_EXECUTOR = 16
_MOST_EXECUTORS = 50

# MiB for the driver's Python, by rows at most: twice what was measured, or more.
_DRIVER_OVERHEADS = ((10_000_000, 1024), (100_000_000, 2048))
_LARGEST_OVERHEAD = 4096


def driver_memory_mebibytes() -> int:
    """Choose the heap: half of what this machine or container can give, from 1 to 8 GiB."""
    half = available_memory() // 2
    return min(max(half, _GIBIBYTE), 8 * _GIBIBYTE) // _MEBIBYTE


@dataclass(frozen=True)
class ClusterSizes:
    """The executors of four cores, and the MiB, that a cluster should give a run on Spark.

    The overheads are the memory of Python, outside of Java's heap.
    """

    executors: int
    executor_memory: int
    executor_overhead: int
    driver_memory: int
    driver_overhead: int


def cluster_sizes(rows: int, tasks: int) -> ClusterSizes:
    """Choose sizes for a number of rows, and of tasks in the first round, as in docs/clusters.md.

    >>> cluster_sizes(20_000_000, 64).executors
    4
    """
    executors = min(max(-(-tasks // _TASKS_OF_EXECUTOR), 1), _MOST_EXECUTORS)
    overhead = next((size for limit, size in _DRIVER_OVERHEADS if rows <= limit), _LARGEST_OVERHEAD)
    return ClusterSizes(executors, 4096, 3072, 2048, overhead)


def available_memory() -> int:
    """Return the bytes of memory that are still available within all limits of this process."""
    limits = []
    with suppress(OSError):
        for line in (_SYSTEM / "proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
    if not limits:
        with suppress(OSError, ValueError):  # not a Linux: all there is
            limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    limits.extend(_control_group_limits())
    addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
    if addresses != resource.RLIM_INFINITY:
        limits.append(addresses)
    return min(limits, default=0)


def _control_group_limits() -> list[int]:
    """List the memory limits in bytes of the control groups that this process is in."""
    try:
        memberships = (_SYSTEM / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    limits = []
    for membership in memberships:
        _, controllers, group = membership.split(":", 2)
        if controllers == "":
            root, name = _SYSTEM / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            root, name = _SYSTEM / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        # Limits of the groups above hold, too. Inside a container the group's path often does not
        # exist, while the root of the mount is that group.
        relative = Path(group.lstrip("/"))
        for folder in (relative, *relative.parents):
            with suppress(OSError, ValueError):  # not there, or "max" for no limit
                limits.append(int((root / folder / name).read_text(encoding="ascii")))
    return limits
