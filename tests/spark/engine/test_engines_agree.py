"""Both engines make the same release, and prove the same of it.

The same records in the same files and order, the same classes and figures, the same fingerprints;
though Spark reads the records from other files, in another order, and works in other tasks.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import configuration_file, of_any_run, write_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anonspark.config import load_configuration, parse_configuration
from anonspark.demo.people import EDUCATION_ORDER, generate_people
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.errors import AnonsparkError
from anonspark.pipeline.plan import check_input
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

# Each model, kind of criterion, unit, style and format once; more of their combinations are run on
# the engine without Java in tests/releases. The models that are simplest are drawn below.
CASES: dict[str, dict[str, Any]] = {
    "smondrian": {
        "model": {"name": "smondrian", "split": "relaxed", "span": "cell"},
        "attributes": {
            **ATTRIBUTES,
            "birth_date": {"role": "quasi_identifier", "range": ["1850-01-01", "2030-12-31"]},
            "body_mass_index": {"role": "quasi_identifier", "range": [5, 99.5]},
        },
        "missing": "drop",
        "output": {"style": "bounds"},
    },
    "su-mondrian": {
        "model": {"name": "su-mondrian", "rho": 2},
        "privacy": {
            "k": 5,
            "l_diversity": {"attribute": "diagnosis", "l": 3},
            "t_closeness": {"attribute": "diagnosis", "t": 0.4},
        },
        "output": {"format": "orc"},
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
                {"attribute": "diagnosis", "l": 1.5, "kind": "entropy"},
            ],
            "t_closeness": {"attribute": "income", "t": 0.7, "distance": "ordered"},
        },
    },
    "density of units": {
        "model": {
            "name": "u-canon",
            "reference": "density",
            "rho": 2,
            "separation": "always",
        },
        "attributes": {**ATTRIBUTES, "city": "insensitive"},
        "privacy": {"k": 5, "unit": "city"},
    },
    "shares of units with pseudonyms": {
        "model": {"name": "canon", "vantage": "random"},
        "attributes": {**ATTRIBUTES, "city": "identifier", "sex": "identifier"},
        "privacy": {
            "k": 4,
            "unit": ["city", "sex"],
            "alpha_k_anonymity": {"attribute": "diagnosis", "alpha": 0.9},
            "beta_likeness": {"attribute": "diagnosis", "beta": 3.0},
            # Met by any class: its figure is measured all the same.
            "t_closeness": {"attribute": "diagnosis", "t": 1.0},
        },
        "output": {"pseudonyms": {"city": "person"}},
    },
    "microaggregation": {"model": {"name": "microaggregation"}, "output": {"style": "mean"}},
    "auto": {"model": {"name": "auto"}},
    "full-domain of units": {
        "model": {"name": "full-domain", "driver_tuples": 1000},
        "attributes": {
            "postal_code": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 3]}},
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

# Where Spark proves what no other of its proofs has in it.
PROVED_BY_SPARK = set(CASES) - {"density of units", "auto"}

# Further cases of units, which `make systems` runs.
WITH_SYSTEMS = {"density of units", "shares of units with pseudonyms"}


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
    if manifest["configuration"]["output"]["format"] == "parquet":
        found["data"] = [one for one in manifest["files"] if one["path"].startswith("data/")]
    # The bytes of ORC are those of two writers.
    return found


def proven(engine: Engine, release: Path, people: Path) -> dict[str, Any]:
    """Return what a proof finds, but for the release's place."""
    style = json.loads((release / "manifest.json").read_text())["configuration"]["output"]["style"]
    # Means hide the regions that originals are matched with.
    original = None if style == "mean" else str(people)
    found = audit_release(engine, str(release), original=original).as_dict()
    return json.loads(json.dumps(found, default=str).replace(str(release), "release"))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.system) if case in WITH_SYSTEMS else case
        for case in CASES
    ],
)
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
    if case in PROVED_BY_SPARK:
        assert proven(engines["spark"], other, people) == expected


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "byte": st.one_of(st.none(), st.integers(-128, 127)),
            "long": st.integers(-(2**62), 2**62),
            "float": st.one_of(
                st.sampled_from([None, 0.0, -0.0, float("nan"), 1e-7, 1e22]),
                st.floats(allow_nan=False, allow_infinity=False, width=32),
            ),
            "exact": st.one_of(st.none(), st.integers(-(10**9), 10**9).map(Decimal)),
            "flag": st.one_of(st.none(), st.booleans()),
            "day": st.one_of(st.none(), st.dates(date(1, 1, 1), date(9999, 12, 31))),
            "moment": st.integers(0, 10**12).map(
                lambda micros: datetime(1950, 1, 1, tzinfo=UTC) + timedelta(milliseconds=micros)
            ),
            "word": st.sampled_from([None, "", "?", "a", "ä", "Ä b", "𝄞", '"', "1"]),
            "number": st.sampled_from([None, "1", " 2", "3e2", "?", "-0.5", "NaN"]),
            "items": st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=2)),
        }
    ),
    min_size=6,
    max_size=40,
)

SCHEMA = pa.schema(
    [
        ("byte", pa.int8()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("exact", pa.decimal128(12, 2)),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("word", pa.string()),
        ("number", pa.string()),
        ("items", pa.list_(pa.int64())),
    ]
)


@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(
    rows=ROWS,
    missing=st.sampled_from(["category", "drop", "error"]),
    model=st.sampled_from(["smondrian", "su-mondrian", "canon", "microaggregation"]),
    style=st.sampled_from(["interval", "bounds", "mean"]),
)
def test_any_table(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    missing: str,
    model: str,
    style: str,
) -> None:
    """Releases of tables of every type, and what is wrong with them."""
    folder = tmp_path_factory.mktemp("any")
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), folder / "input.parquet")
    roles: dict[str, Any] = dict.fromkeys(SCHEMA.names[:8], "quasi_identifier")
    roles["number"] = {"role": "quasi_identifier", "type": "number"}
    found = {}
    engines: dict[str, Engine] = {"local": LocalEngine(), "spark": SparkEngine(spark)}
    for name, engine in engines.items():
        configuration = parse_configuration(
            {
                "input": {"path": str(folder / "input.parquet")},
                "attributes": roles | {"items": "insensitive"},
                "missing": missing,
                "privacy": {"k": 2},
                "model": {"name": model},
                "output": {"path": str(folder / name), "style": style},
                "execution": {"task_rows": 10},
            }
        )
        try:
            check_input(engine, configuration)
            run(engine, configuration)
        except AnonsparkError as error:
            found[name] = {"error": str(error).replace(name, "")}
        else:
            found[name] = of_any_run(folder / name) | told(folder / name)
    assert found["local"] == found["spark"]
