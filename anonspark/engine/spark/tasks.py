"""Run our functions in Spark's Python tasks.

Errors of a task are shown in Spark's logs, its user interface and its event log: only their kind
and position leave the task.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zipimport import zipimporter

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from anonspark.engine.tasks import Batches, enter_task, run_guarded


def map_batches(
    table: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str
) -> DataFrame:
    """Apply a function to the batches of each task. Lazy, no shuffle.

    Errors of the function lose their texts, but for those that users can correct, which hold no
    values. ``schema`` is that of the result.
    """
    names = table.columns
    if _are_found(names):
        return table.mapInArrow(_Guarded(function), schema)  # type: ignore[arg-type]
    numbered = table.toDF(*(f"column_{index}" for index in range(len(names))))
    return numbered.mapInArrow(_Guarded(function, tuple(names)), schema)  # type: ignore[arg-type]


def _are_found(names: Sequence[str]) -> bool:
    """Return whether Spark resolves columns by their bare names, as ``mapInArrow`` does."""
    has_equal_names = len({name.lower() for name in names}) < len(names)
    return not has_equal_names and not any(set(".`*") & set(name) for name in names)


@dataclass(frozen=True)
class _Guarded:
    """Runs a function in a task, with the names of numbered columns."""

    function: Callable[[Batches], Batches]
    names: tuple[str, ...] = ()

    def __call__(self, batches: Batches) -> Batches:
        context = TaskContext.get()
        enter_task(context.partitionId() if context else 0)
        try:
            yield from run_guarded(self.function, self._named(batches))
        finally:
            _forget_archives()
            _freeze_modules()

    def _named(self, batches: Batches) -> Batches:
        """Yield batches with the names of their columns."""
        for batch in batches:
            yield batch.rename_columns(self.names) if self.names else batch


def _forget_archives() -> None:
    """Keep the worker's next task from reading the directories of archives.

    Before each task Spark has Python forget which modules there are, and Python then reads the
    directory of an archive again for every package that was imported from it: 0.1 s a task for
    Spark's archive. One that is not in this cache is only read when it is needed.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


# Number of modules of this worker that are left out of collections.
_frozen = 0


def _freeze_modules() -> None:
    """Leave imported modules out of the collections of garbage.

    Spark has a worker collect after each task. With all imported modules this takes 0.1 s, for
    which the next task waits.
    """
    global _frozen  # noqa: PLW0603 - it belongs to the process, as what is frozen does
    if len(sys.modules) > _frozen:
        _frozen = len(sys.modules)
        gc.freeze()
