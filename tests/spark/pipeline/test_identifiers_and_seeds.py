"""Identifiers and seeds as Spark's sessions have them: of any type, never staged, at addresses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli
from helpers import configuration_file, summary, write_table

import anonspark.api.release
from anonspark.config import load_configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.identifiers import with_numbers_for_identifiers
from anonspark.pipeline.warnings.published_values import read_identifiers
from anonspark.pipeline.warnings.value_sizes import count_value_sizes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 5_164_208_731_946_275_003


def test_a_seed_at_an_address(spark: SparkSession, tmp_path: Path, cli: Cli) -> None:
    settings = spark._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./data", tmp_path.as_uri())
    address = f"viewfs://{tmp_path.name}/data"
    (tmp_path / "seed").write_text(f"{SEED}\n")
    write_table(tmp_path / "input.parquet", {"age": list(range(60))})
    attributes = {"age": {"role": "quasi_identifier", "grid": 1}}
    path = configuration_file(
        tmp_path, attributes=attributes, execution={"seed_file": f"{address}/seed"}
    )
    outcome = cli("run", path, "--no-progress")
    assert (outcome.code, outcome.err) == (0, "")
    fingerprint = summary(tmp_path / "release")["output_fingerprint"]
    rows = spark.read.parquet(str(tmp_path / "input.parquet"))
    config = {"attributes": attributes, "privacy": {"k": 5}}
    file = {"seed_file": f"{address}/seed"}
    with anonspark.anonymize(rows, {**config, "execution": file}) as release:
        assert release.manifest["warnings"] == []
        told = release.summary.first()
        assert told is not None
        assert told["output_fingerprint"] == fingerprint
    in_memory = rows.toPandas()
    with anonspark.anonymize(in_memory, {**config, "execution": {"seed": SEED}}) as of_number:
        assert of_number.figures.summary["output_fingerprint"] == fingerprint
    # Who verifies needs no seed.
    (tmp_path / "seed").unlink()
    cli.ends(0, "verify", tmp_path / "release", "--config", path, "--no-progress")
    cli.ends(2, "check", path, says=f"execution.seed_file: {address}/seed: no such file")


@pytest.mark.usefixtures("settings_come_back")
def test_identifiers_are_not_staged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A DataFrame whose session means something else by times is staged before it is read."""
    run = anonspark.api.functions.run
    staged: list[pa.Table] = []

    def look_and_run(*arguments: Any, **named: Any) -> Any:
        staged.extend(pq.read_table(path) for path in tmp_path.rglob("records/*.parquet"))
        return run(*arguments, **named)

    monkeypatch.setattr(anonspark.api.functions, "run", look_and_run)
    rows = spark.createDataFrame(
        [
            (row % 40, f"P-{max(row, 14) // 2}", "?" if row % 2 else f"V-{row}")
            for row in range(120)
        ],
        "age int, patient string, visit string",
    )
    config = {
        "attributes": {"age": "quasi_identifier", "patient": "identifier", "visit": "identifier"},
        "privacy": {"k": 5},
        "execution": {"seed": SEED},
    }
    with anonspark.anonymize(rows.toPandas(), config) as release:
        expected = release.manifest["warnings"]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with anonspark.anonymize(rows, config, staging=str(tmp_path)) as given:
        told = given.manifest["warnings"]
    assert staged
    for one in staged:
        assert {str(field.type) for field in one.schema} <= {"int32", "int64"}
    assert told == expected
    codes = [("identifier_repeats", "patient"), ("exact_ends", None)]
    assert [(one["code"], one["attribute"]) for one in told] == codes


def test_identifiers_of_any_type(engine: SparkEngine, tmp_path: Path) -> None:
    frame = engine.session.sql(
        """
        SELECT col1 AS identifier_0, col2 AS identifier_1, col3 AS identifier_2,
               map('a', 1) AS identifier_3, struct(col1, col2) AS identifier_4, 1 AS payload_0
        FROM VALUES ('P-1', 1.5, array(1)), (' n/a ', double('nan'), array(2)),
                    ('', 1.5, null), ('P-1', null, array(1, null)), (null, 2.5, array(1))
        """
    )
    configuration = load_configuration(
        configuration_file(
            tmp_path,
            input={"missing_markers": ["N/A", "n/a"]},
            attributes={"age": "quasi_identifier", **{f"id_{i}": "identifier" for i in range(5)}},
        )
    )
    table, columns = read_identifiers(engine.wrap(frame), configuration, ["payload_0"])
    sizes = count_value_sizes(table, columns, 5)
    assert {name: dict(one.sizes) for name, one in sizes.items()} == {
        "id_0": {2: 1},
        "id_1": {1: 1, 2: 1},
        "id_2": {1: 2, 2: 1},
        "id_4": {1: 5},
    }
    named = frame.toDF(*(f"id_{i}" for i in range(5)), "payload_0")
    numbers = with_numbers_for_identifiers(named, configuration)
    assert numbers.columns == named.columns
    told = numbers.toPandas()
    missing = {name: told[name].isna().tolist() for name in numbers.columns}
    assert missing["id_0"] == [False, True, True, False, True]
    assert missing["id_1"] == [False, True, False, True, False]
    assert missing["id_2"] == [False, False, True, False, False]
    assert all(missing["id_3"])
    assert not any(missing["id_4"])
    assert told["id_0"][0] == told["id_0"][3]
    assert told["id_2"].nunique() == 3
