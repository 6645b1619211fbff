"""File systems that no local path leads to: everything has to go through Hadoop's API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.orc
import pytest
from commands import Cli
from helpers import configuration_file, published, summary, write_people_of_towns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.system

ATTRIBUTES = {
    "age": "quasi_identifier",
    "town": {"role": "quasi_identifier", "hierarchy": "viewfs://anon/data/towns.csv"},
    "disease": "sensitive",
}


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """Mount the folder at viewfs://anon/data, and write people and a hierarchy into it."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    key = "fs.viewfs.mounttable.anon.link./data"
    hadoop.set(key, tmp_path.as_uri())
    write_people_of_towns(tmp_path, 300)
    yield tmp_path
    hadoop.unset(key)


def test_everything_on_viewfs(mounted: Path, cli: Cli) -> None:
    """Configuration, input, hierarchy, staging, output, verification and report."""
    configuration_file(
        mounted,
        input={"path": "viewfs://anon/data/input.parquet"},
        attributes=ATTRIBUTES,
        output={"path": "viewfs://anon/data/release", "mode": "overwrite"},
        execution={"staging_path": "viewfs://anon/data/private"},
    )
    configuration = "viewfs://anon/data/configuration.yaml"
    # The second one writes over the first.
    for words in ((), ("--report",)):
        cli.ends(0, "run", configuration, "--no-progress", "--resume", *words)
    assert {path.name for path in (mounted / "release").iterdir()} >= {
        "data",
        "manifest.json",
        "metrics",
        "report.html",
    }
    assert list((mounted / "private").iterdir()) == []
    assert not list(mounted.glob(".release*"))
    assert published(mounted / "release").num_rows == 300
    original = "viewfs://anon/data/input.parquet"
    arguments = ("--original", original, "--config", configuration)
    cli.ends(0, "verify", "viewfs://anon/data/release", *arguments)

    (mounted / "release" / "manifest.json").unlink()
    outcome = cli("verify", "viewfs://anon/data/release")
    assert outcome.code == 3
    assert "no manifest.json there, so it is not a complete release" in outcome.err


def test_another_format(mounted: Path, cli: Cli) -> None:
    configuration = configuration_file(
        mounted, attributes={"age": "quasi_identifier", "disease": "sensitive"}
    )
    local = ("--set", "execution.engine=local")
    cli.ends(0, "run", configuration, "--no-progress", *local)
    as_parquet = summary(mounted / "release")
    other = ["--set", "output.path=" + str(mounted / "orc"), "--set", "output.format=orc"]
    cli.ends(0, "run", configuration, "--no-progress", *other)
    assert summary(mounted / "orc")["output_fingerprint"] == as_parquet["output_fingerprint"]
    files = (mounted / "orc" / "data").glob("*.orc")
    assert sum(pyarrow.orc.read_table(path).num_rows for path in files) == 300
    cli.ends(0, "verify", mounted / "orc")

    unknown = ["--set", f"output.path={mounted / 'delta'}", "--set", "output.format=delta"]
    outcome = cli("run", configuration, *unknown)
    assert outcome.code == 2
    assert "output.format: this Spark has no data source 'delta'" in outcome.err
    outcome = cli("run", configuration, "--set", "output.format=csv")
    assert outcome.code == 2
    assert "output.format: found the text 'csv', which keeps no types" in outcome.err
