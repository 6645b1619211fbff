"""The parent of Python workers whose tasks fail in the middle: see counted_tasks.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.daemon import manager

from anonspark.engine.spark import tasks

FOLDER = Path(os.environ["TASK_FAULTS"])

undisturbed = tasks._Guarded.__call__


def failing_once(self: Any, batches: Any) -> Any:
    context = TaskContext.get()
    assert context is not None
    name = f"{context.stageId()} {context.partitionId()}"
    number, kind = (FOLDER / "wanted").read_text().split(" ", 1)
    wanted = kind == "middle" and context.partitionId() % 3 == int(number)
    for batch in undisturbed(self, batches):
        yield batch
        if wanted and context.attemptNumber() == 0:
            (FOLDER / "met" / name).touch()
            raise OSError("on purpose")


if __name__ == "__main__":
    tasks._Guarded.__call__ = failing_once  # type: ignore[method-assign]
    manager()  # type: ignore[no-untyped-call]
