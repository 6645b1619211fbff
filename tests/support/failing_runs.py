"""Runs the command several times in one process, in the end with tasks that fail once each.

Its argument: JSON with ``undisturbed``, the arguments of runs, and ``failing``, runs again, each
with the folder of markers that stand for what has failed. ``kinds`` names the functions of tasks
(module and class) and whether the worker crashes or the task raises, after their first output.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from anonspark.cli.application import main

markers = ""


def failing_once(kind: type, crash: bool) -> type:
    class FailingOnce(kind):  # type: ignore[misc]
        def __call__(self, batches: Any) -> Any:
            for batch in super().__call__(batches):
                yield batch
                try:
                    os.close(os.open(f"{markers}/{kind.__name__}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                if crash:
                    os._exit(1)
                raise RuntimeError("on purpose")

    return FailingOnce


def run(arguments: list[str]) -> None:
    code = main(["run", *arguments])
    if code:
        sys.exit(code)


def run_all(
    environment: dict[str, str],
    kinds: dict[str, bool],
    failing: dict[Path, list[str]],
    undisturbed: list[list[str]] | None = None,
) -> list[set[str]]:
    """Start this in a process of its own; return the kinds that failed, run by run."""
    for folder in failing:
        folder.mkdir()
    wanted = {
        "kinds": kinds,
        "undisturbed": undisturbed or [],
        "failing": [[str(folder), arguments] for folder, arguments in failing.items()],
    }
    ended = subprocess.run(
        [sys.executable, __file__, json.dumps(wanted)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=500,
    )
    assert ended.returncode == 0, ended.stderr
    return [{path.name for path in folder.iterdir()} for folder in failing]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    for each in given["undisturbed"]:
        run(each)
    for place, crashes in given["kinds"].items():
        module, name = place.rsplit(".", 1)
        own = importlib.import_module(f"anonspark.{module}")
        setattr(own, name, failing_once(getattr(own, name), crashes))
    for markers, each in given["failing"]:  # noqa: B007 - read by the tasks' functions
        run(each)
