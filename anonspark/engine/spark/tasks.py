"""Our functions in Spark's Python tasks.

What a failed task says goes to Spark's logs, its user interface and its event log: only the kind
and the place of an error leave the task.
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
    """Apply a function to the batches of each task.

    Parameters
    ----------
    table : DataFrame
    function : callable
        Takes a task's Arrow batches and yields those of the result. Its errors lose their text,
        except those that a user can mend, whose texts hold no values.
    schema : StructType or str
        Of the result.

    Returns
    -------
    DataFrame
        Lazy. No shuffle.
    """
    names = table.columns
    if _are_found(names):
        return table.mapInArrow(_Guarded(function), schema)  # type: ignore[arg-type]
    numbered = table.toDF(*(f"column_{index}" for index in range(len(names))))
    return numbered.mapInArrow(_Guarded(function, tuple(names)), schema)  # type: ignore[arg-type]


def _are_found(names: Sequence[str]) -> bool:
    """Return whether Spark finds columns by their bare names, as ``mapInArrow`` looks for them."""
    alike = len({name.lower() for name in names}) < len(names)
    return not alike and not any(set(".`*") & set(name) for name in names)


@dataclass(frozen=True)
class _Guarded:
    function: Callable[[Batches], Batches]
    names: tuple[str, ...] = ()
    """Names of the columns, where they came without."""

    def __call__(self, batches: Batches) -> Batches:
        context = TaskContext.get()
        enter_task(context.partitionId() if context else 0)
        try:
            yield from run_guarded(self.function, self._named(batches))
        finally:
            _forget_archives()
            _freeze_modules()

    def _named(self, batches: Batches) -> Batches:
        for batch in batches:
            yield batch.rename_columns(self.names) if self.names else batch


def _forget_archives() -> None:
    """Spare the worker's next task the reading of archives.

    Before each task Spark has Python forget what modules there are, and Python then reads the
    directory of an archive anew for every package that was imported from it: with Spark's own
    archive some 0.1 s a task. Who is not in this cache is not asked, and comes back when it is
    needed.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


# Modules of this worker that are left out of collections.
_frozen = 0


def _freeze_modules() -> None:
    """Leave what was imported out of the collections of garbage.

    Spark has a worker collect after each task. With all that a worker has imported this takes some
    0.1 s, for which the next task waits.
    """
    global _frozen  # noqa: PLW0603 - it belongs to the process, as what is frozen does
    if len(sys.modules) > _frozen:
        _frozen = len(sys.modules)
        gc.freeze()
