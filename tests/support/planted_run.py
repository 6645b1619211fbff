"""Runs commands on planted data in one process, for :mod:`test_planted_values`.

Its arguments: a JSON file with a list of cases, and ``local`` where Spark is to have no part in it.
A case is a name, the arguments of the command and optionally ``fails``: the tasks of that kind
raise an error that quotes their data, and ``adaptive``: Spark changes its plans while they are run.
Standard output, standard error and exit code of each case go into the folder of the JSON file.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from anonspark.cli.application import main
from anonspark.models import blockwise


class FailingFinish(blockwise.FinishBlocks):
    """A kernel that quotes records in its error."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            raise ValueError(f"cannot handle {batch.to_pylist()}")
        yield from ()


def run_case(case: dict[str, Any], folder: Path) -> None:
    fails = case.get("fails", False)
    patched = mock.patch.object(blockwise, "FinishBlocks", FailingFinish)
    with (
        (folder / f"{case['name']}.out").open("w") as out,
        (folder / f"{case['name']}.err").open("w") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patched if fails else contextlib.nullcontext(),
    ):
        code = main(case["arguments"])
    (folder / f"{case['name']}.code").write_text(str(code))


def run_on_spark(cases: list[dict[str, Any]], folder: Path) -> None:
    from pyspark.ml.classification import LogisticRegression

    from anonspark.engine.spark import learning
    from anonspark.engine.spark.session import open_session

    # What is learned is not looked at: one quick learner stands for all.
    learning._learners = lambda _: iter([("quick", LogisticRegression(maxIter=1))])
    with open_session("local[2]", application_name="planted") as session:
        for case in cases:
            session.conf.set("spark.sql.adaptive.enabled", case.get("adaptive", False))
            run_case(case, folder)


if __name__ == "__main__":
    given = Path(sys.argv[1])
    listed = json.loads(given.read_text())
    if sys.argv[2:] == ["local"]:
        for each in listed:
            run_case(each, given.parent)
    else:
        run_on_spark(listed, given.parent)
