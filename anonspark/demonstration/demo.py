"""The demo: generated people, anonymized with an embedded Spark."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml
from pyspark.sql import SparkSession

from anonspark.configuration import Configuration, parse_configuration
from anonspark.demonstration.people import EDUCATION_ORDER, write_people

__all__ = ["prepare_demo"]


def prepare_demo(spark: SparkSession, directory: Path, rows: int) -> tuple[Path, Configuration]:
    """Generate people, unless they are there, and write a configuration to anonymize them.

    Parameters
    ----------
    spark : SparkSession
    directory : Path
        Gets ``people-<rows>`` (Parquet) and ``people.yaml``.
    rows : int
        People to generate.

    Returns
    -------
    path : Path
        The configuration file.
    configuration : Configuration
    """
    people = directory / f"people-{rows}"
    if not (people / "_SUCCESS").exists():
        shutil.rmtree(people, ignore_errors=True)  # what an interrupted demo left
        write_people(spark, rows, str(people))
    document = {
        "input": {"path": str(people)},
        "attributes": {
            "person_id": "identifier",
            "full_name": "identifier",
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
        "privacy": {"k": 10},
        "model": {"name": "su-mondrian", "rho": 5},
        "evaluate": {"compare_baseline": True},
        "output": {"path": str(directory / "release"), "mode": "overwrite"},
    }
    path = directory / "people.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return path, parse_configuration(document)
