"""What tests do with Spark Connect, in a process of its own that has a session of it.

``python connect_client.py FOLDER ADDRESS`` writes ``FOLDER/outcomes.json``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

import anonspark
from anonspark.engine.spark.session import open_session
from anonspark.errors import AnonsparkError, ConfigurationError

CONFIGURATION = {
    "attributes": {"age": "quasi_identifier", "illness": "sensitive"},
    "privacy": {"k": 4},
}


def rows(table: pa.Table) -> list[list[str]]:
    """Return the rows of a table as texts, in one order."""
    return sorted([*map(str, row.values())] for row in table.to_pylist())


def use(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Try what can be tried."""
    people = pandas.DataFrame({"age": [20 + 3 * i % 40 for i in range(60)]})
    people["illness"] = [f"i{i % 3}" for i in range(60)]
    table = spark.createDataFrame(people)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with open_session() as same:
        outcomes: dict[str, Any] = {
            "session": type(spark).__module__,
            "the same session": same is spark,
            "settings": same.conf.get("spark.sql.session.timeZone"),
        }
    outcomes["settings afterwards"] = spark.conf.get("spark.sql.session.timeZone")
    try:
        anonspark.anonymize(table, CONFIGURATION)
    except ConfigurationError as error:
        outcomes["without staging"] = str(error)
    staging = folder / "staging"
    with anonspark.anonymize(table, CONFIGURATION, staging=staging) as release:
        outcomes["rows, remote"] = rows(release.to_arrow())
        outcomes["counted by the server"] = release.data.count()
    outcomes["left behind"] = [one.name for one in staging.iterdir()]
    local = anonspark.anonymize(people, CONFIGURATION)
    outcomes["rows, local"] = rows(local.to_arrow())
    remote = spark.createDataFrame(local.data)
    for name, published, original in (("local", local.data, people), ("remote", remote, table)):
        proof = anonspark.verify(published, CONFIGURATION, original=original)
        found = asdict(proof.published)
        outcomes[f"verified, {name}"] = {"holds": proof.holds, **found, "said": proof.failures}
        raw = anonspark.verify(original, quasi_identifiers=["age"], k=4)
        outcomes[f"refuted, {name}"] = {"holds": raw.holds, "said": raw.failures}
    outcomes["rows, with the session after all that"] = table.count()
    outcomes["Java was started"] = SparkContext._gateway is not None
    spark.stop()
    try:
        anonspark.anonymize(table, CONFIGURATION, staging=staging)
    except AnonsparkError as error:
        outcomes["stopped"] = str(error)
    return outcomes


if __name__ == "__main__":
    place, address = Path(sys.argv[1]), sys.argv[2]
    session = SparkSession.builder.remote(address).getOrCreate()
    (place / "outcomes.json").write_text(json.dumps(use(session, place)))
