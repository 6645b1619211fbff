"""Configurations and grids that lie on a Hadoop file system instead of the local disk.

Runs with such a configuration: test_file_systems.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from commands import Cli
from helpers import configuration_file, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTRIBUTES = {"age": "quasi_identifier", "disease": "sensitive"}


@pytest.fixture
def mounted(spark: SparkSession, tmp_path: Path) -> str:
    """Mount the temporary folder where no local path leads; return its address."""
    settings = spark._jsc.hadoopConfiguration()
    settings.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./data", tmp_path.as_uri())
    return f"viewfs://{tmp_path.name}/data"


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    table = {"age": list(range(60)), "disease": ["flu", "cold"] * 30}
    write_table(tmp_path / "input.parquet", table)
    return configuration_file(tmp_path, attributes=ATTRIBUTES)


@pytest.mark.usefixtures("spark")
def test_check_with_a_file_address(configuration: Path, cli: Cli) -> None:
    # Written as some editors do, with a mark in front.
    configuration.write_text("\ufeff" + configuration.read_text(encoding="utf-8"), "utf-8")
    cli.ends(0, "check", configuration.as_uri())


def test_addresses_without_a_configuration(
    mounted: str, configuration: Path, tmp_path: Path, cli: Cli
) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("input: Zürich".encode("latin-1"))
    for address, told in {
        f"{mounted}/nowhere.yaml": "no such file. Expected a configuration in YAML",
        f"{mounted}/input.parquet/..": "it cannot be opened as a file",
        latin.as_uri(): "not UTF-8",
        "nothing://host/a.yaml": "Hadoop cannot reach it",
    }.items():
        outcome = cli("check", address)
        assert (outcome.code, outcome.out) == (2, "")
        assert address in outcome.err
        assert told in outcome.err
    assert configuration.exists()


def test_grid_with_its_base_beside_it(
    mounted: str, configuration: Path, tmp_path: Path, cli: Cli
) -> None:
    grid = {
        "base": configuration.name,
        "axes": {"privacy.k": [6]},
        "output": str(tmp_path / "compared"),
    }
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid), encoding="utf-8")
    cli.ends(0, "compare", f"{mounted}/grid.yaml")
    assert (tmp_path / "compared").is_dir()
