"""Our functions in Spark's Python tasks, whose errors must not carry values of the data away.

What a failed task says goes to Spark's logs, its user interface and its event log, where other
people read it than those who may see the data. The text of an error often quotes the value that
caused it, so only its kind and its place leave the task.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath
from zipimport import zipimporter

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from anonspark.engine.tasks import Batches, enter_task
from anonspark.errors import AnonsparkError


class FailedTaskError(Exception):
    """A task failed; the message names the kind of error and the calls that led to it."""


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
        Lazy; no shuffle.
    """
    return table.mapInArrow(_Guarded(function), schema)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Guarded:
    function: Callable[[Batches], Batches]

    def __call__(self, batches: Batches) -> Batches:
        context = TaskContext.get()
        enter_task(context.partitionId() if context else 0)
        try:
            yield from self.function(batches)
        except AnonsparkError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, its text may quote a record
            message = _without_text(error)
        else:
            return
        finally:
            _forget_archives()
            _freeze_modules()
        # Outside the handler, so that the traceback does not show the error that came first.
        raise FailedTaskError(message)


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

    Spark has a worker collect after each task; with all that a worker has imported this takes some
    0.1 s, for which the next task waits.
    """
    global _frozen  # noqa: PLW0603 - it belongs to the process, as what is frozen does
    if len(sys.modules) > _frozen:
        _frozen = len(sys.modules)
        gc.freeze()


def _without_text(error: Exception) -> str:
    calls = "; ".join(
        f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    )
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        # The system's own words for it, such as that a disk is full.
        kind += f" ({os.strerror(error.errno)})"
    return f"{kind} at {calls} (its text is left out: it may hold data)"
