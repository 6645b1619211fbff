"""What tests do with Spark Connect, in a process of its own that has a session of it.

``python connect_client.py FOLDER ADDRESS`` writes ``FOLDER/outcomes.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas
from pyspark import SparkContext
from pyspark.sql import SparkSession

import anonspark
from anonspark.engine.spark.session import open_session
from anonspark.errors import EnvironmentProblem

CONFIGURATION = {
    "attributes": {"age": "quasi_identifier", "illness": "sensitive"},
    "privacy": {"k": 4},
}


def said_by(action: Callable[[], Any]) -> str:
    """Return what an action was refused with."""
    try:
        action()
    except EnvironmentProblem as error:
        return str(error)
    return "not refused"


def opened(master: str | None) -> Callable[[], None]:
    """Return an action that opens a session."""

    def action() -> None:
        with open_session(master):
            pass

    return action


def use(spark: SparkSession) -> dict[str, Any]:
    """Try what can be tried."""
    people = pandas.DataFrame({"age": [20 + 3 * i % 40 for i in range(60)]})
    people["illness"] = [f"i{i % 3}" for i in range(60)]
    table = spark.createDataFrame(people)
    outcomes: dict[str, Any] = {
        "session": type(spark).__module__,
        "open_session": said_by(opened(None)),
        "open_session with a master": said_by(opened("local[2]")),
        "anonymize": said_by(lambda: anonspark.anonymize(table, CONFIGURATION)),
    }
    local = anonspark.anonymize(table.toPandas(), CONFIGURATION).data
    remote = spark.createDataFrame(local)
    for name, published, original in (("local", local, people), ("remote", remote, table)):
        proof = anonspark.verify(published, CONFIGURATION, original=original)
        found = asdict(proof.published)
        outcomes[f"verified, {name}"] = {"holds": proof.holds, **found, "said": proof.failures}
        raw = anonspark.verify(original, quasi_identifiers=["age"], k=4)
        outcomes[f"refuted, {name}"] = {"holds": raw.holds, "said": raw.failures}
    outcomes["rows, with the session after all that"] = table.count()
    outcomes["Java was started"] = SparkContext._gateway is not None
    return outcomes


if __name__ == "__main__":
    folder, address = Path(sys.argv[1]), sys.argv[2]
    session = SparkSession.builder.remote(address).getOrCreate()
    (folder / "outcomes.json").write_text(json.dumps(use(session)))
