"""The demo: generated people, anonymized with an embedded Spark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from anonspark.config import Configuration, parse_configuration
from anonspark.demo.people import EDUCATION_ORDER, write_people
from anonspark.errors import ConfigurationError
from anonspark.ownership import fault_at

if TYPE_CHECKING:
    from anonspark.engine.spark.engine import SparkEngine

# What Spark writes, finished or not, with the checksums of Hadoop's local file system.
_OF_SPARK = re.compile(r"_temporary|\.?_SUCCESS(?:\.crc)?|\.?part-.*")


def prepare_demo(engine: SparkEngine, directory: Path, rows: int) -> tuple[Path, Configuration]:
    """Generate people, unless they are there, and write a configuration to anonymize them.

    Parameters
    ----------
    engine : SparkEngine
        Spark, for people are drawn by its own functions.
    directory : Path
        Gets ``people-<rows>`` (Parquet) and ``people.yaml``.
    rows : int
        People to generate.

    Returns
    -------
    path : Path
        The configuration file.
    configuration : Configuration

    Raises
    ------
    ConfigurationError
        If something that no demo made is where it writes.
    """
    people = directory / f"people-{rows}"
    if not (people / "_SUCCESS").exists():
        _remove_unfinished(people)
        write_people(engine.session, rows, str(people))
    document: dict[str, Any] = {
        "input": {"path": str(people)},
        "attributes": {
            "person_id": "identifier",
            "birth_date": "quasi_identifier",
            "sex": "quasi_identifier",
            "postal_code": "quasi_identifier",
            "education": {"role": "quasi_identifier", "order": list(EDUCATION_ORDER)},
            "income": "quasi_identifier",
            "capital_gain": "quasi_identifier",
            "hours_per_week": "quasi_identifier",
            "diagnosis": "sensitive",
        },
        "missing": "category",
        "privacy": {"k": 10, "l_diversity": 3},
        "model": {"name": "su-mondrian", "rho": 5},
        "evaluate": {"compare_baseline": True},
        "output": {"path": str(directory / "release"), "mode": "overwrite"},
    }
    path = directory / "people.yaml"
    _require_own_configuration(path, document)
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return path, parse_configuration(document)


def _remove_unfinished(people: Path) -> None:
    """Remove what an interrupted demo left, and nothing else."""
    if fault_at(people) or (
        people.exists()
        and not (
            people.is_dir() and all(_OF_SPARK.fullmatch(entry.name) for entry in people.iterdir())
        )
    ):
        raise ConfigurationError(
            f"--out: what is at {people} was not made by the demo; choose another directory, or "
            "remove it yourself"
        )
    if people.exists():
        shutil.rmtree(people)


def _require_own_configuration(path: Path, document: dict[str, Any]) -> None:
    """Check that a configuration that would be replaced is that of a demo, of any size."""
    if not path.exists() and not path.is_symlink():
        return
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        found = None
    is_own = isinstance(found, dict) and all(
        found.get(key) == document[key] for key in document if key not in ("input", "output")
    )
    if fault_at(path) or not is_own:
        raise ConfigurationError(
            f"--out: what is at {path} was not written by the demo, which would replace it; choose "
            "another directory, or move it elsewhere"
        )
