"""Both engines make the same release, and prove the same of it.

The same records in the same files and order, the same classes and figures, the same fingerprints;
though Spark reads the records from other files, in another order, and works in other tasks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from cases import by_name
from generated_people import generate_people
from helpers import configuration_file, of_any_run, write_files

from anonspark.config import load_configuration
from anonspark.demo.people import EDUCATION_ORDER
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.pipeline.run import run
from anonspark.verification.audit import audit_release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTRIBUTES: dict[str, Any] = {
    "birth_date": "quasi_identifier",
    "postal_code": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 3]}},
    "education": {"role": "quasi_identifier", "order": list(EDUCATION_ORDER)},
    "body_mass_index": "quasi_identifier",
    "marital_status": "quasi_identifier",
    "diagnosis": "sensitive",
    "last_visit": "insensitive",
    "income": "insensitive",
}

# What a value is, both engines ask the same functions: these are for the ways that rows take. More
# models, criteria and styles are run on the engine without Java in tests/releases.
CASES: dict[str, dict[str, Any]] = {
    "smondrian": {
        "model": {
            "name": "smondrian",
            "split": "relaxed",
            "span": "cell",
            "suppression_limit": 0.05,
        },
        "attributes": {
            **ATTRIBUTES,
            "birth_date": {"role": "quasi_identifier", "range": ["1850-01-01", "2030-12-31"]},
            "body_mass_index": {"role": "quasi_identifier", "range": [5, 99.5]},
        },
        "missing": "drop",
        "output": {"style": "bounds"},
    },
    "criteria of units": {
        "model": {"name": "su-mondrian", "rho": 2, "separation": "always"},
        # City and sex stand for a person who has several records.
        "attributes": {
            **ATTRIBUTES,
            "city": "insensitive",
            "sex": "insensitive",
            "income": "sensitive",
        },
        "privacy": {
            "k": 4,
            "unit": ["city", "sex"],
            "l_diversity": [
                {"attribute": "diagnosis", "l": 3},
                {"attribute": "income", "l": 2},
            ],
        },
    },
    "refined groups": {
        "model": {"name": "su-mondrian", "refine": 2},
        "attributes": {
            **ATTRIBUTES,
            "birth_date": {"role": "quasi_identifier", "hierarchy": {"calendar": ["decade"]}},
            "city": "insensitive",
            "sex": "insensitive",
        },
        "privacy": {
            "k": 4,
            "unit": ["city", "sex"],
            "l_diversity": {"attribute": "diagnosis", "l": 3},
        },
    },
    "microaggregation, at night": {
        "model": {"name": "microaggregation", "suppression_limit": 0.1},
        "output": {"style": "mean"},
    },
    "full-domain of units, at night": {
        "model": {"name": "full-domain", "driver_tuples": 1000},
        "attributes": {
            "postal_code": {"role": "quasi_identifier", "hierarchy": {"keep": [4, 2]}},
            "birth_date": {"role": "quasi_identifier", "hierarchy": {"calendar": ["decade"]}},
            "body_mass_index": {
                "role": "quasi_identifier",
                "hierarchy": {"intervals": [5, 20], "top": 35},
            },
            "diagnosis": "sensitive",
            "city": "insensitive",
            "sex": "insensitive",
        },
        "privacy": {
            "k": 4,
            "unit": ["city", "sex"],
            "l_diversity": {"attribute": "diagnosis", "l": 3},
        },
    },
}


@pytest.fixture(scope="module")
def people(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    generate_people(spark_session, 900, partitions=3).write.parquet(str(folder / "input.parquet"))
    return folder / "input.parquet"


@pytest.fixture(scope="module")
def shuffled(people: Path) -> Path:
    """The same records out of order, in more files."""
    return write_files(pq.read_table(people), people.parent / "shuffled", 7, shuffled=True)


def released(
    engine: Engine, folder: Path, people: Path, sections: dict[str, Any], task_rows: int = 250
) -> Path:
    """Make a release, and return where it is."""
    folder.mkdir()
    sections = {
        "attributes": ATTRIBUTES,
        "missing": "category",
        # Fewer than there are: the tree begins on the cluster.
        "execution": {"task_rows": task_rows},
        **sections,
        "input": {"path": str(people)},
    }
    run(engine, load_configuration(str(configuration_file(folder, **sections))))
    return folder / "release"


def told(release: Path) -> dict[str, Any]:
    """Return what the manifests of two equal releases have in common."""
    manifest = json.loads((release / "manifest.json").read_text())
    # The configuration names the output.
    del manifest["fingerprints"]["configuration"]
    names = ("fingerprints", "published", "warnings", "privacy")
    found = {name: manifest.get(name) for name in names}
    found["data"] = [one for one in manifest["files"] if one["path"].startswith("data/")]
    return found


def proven(engine: Engine, release: Path, people: Path) -> dict[str, Any]:
    """Return what a proof finds, but for the release's place."""
    style = json.loads((release / "manifest.json").read_text())["configuration"]["output"]["style"]
    # Means hide the regions that originals are matched with.
    original = None if style == "mean" else str(people)
    found = audit_release(engine, str(release), original=original).as_dict()
    return json.loads(json.dumps(found, default=str).replace(str(release), "release"))


@pytest.mark.parametrize("case", by_name(CASES))
def test_releases_and_proofs(
    spark: SparkSession, people: Path, shuffled: Path, tmp_path: Path, case: str
) -> None:
    engines: dict[str, Engine] = {"local": LocalEngine(), "spark": SparkEngine(spark)}
    local = released(engines["local"], tmp_path / "local", people, CASES[case])
    other = released(engines["spark"], tmp_path / "spark", shuffled, CASES[case], task_rows=400)
    assert of_any_run(local) == of_any_run(other)
    assert told(local) == told(other)
    expected = proven(engines["local"], other, people)
    assert expected["holds"]
    assert proven(engines["spark"], other, people) == expected
