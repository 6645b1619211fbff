"""``anonspark evaluate``: a release as good as its original, small ones by hand, and bad input."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import command, configuration_file, published, table_of, write_table
from pyspark.sql import functions as sf

from anonspark.core.queries import Queries, draw_queries
from anonspark.engine.spark import learning
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.table import frame_of
from anonspark.release.regions import PublishedAttribute
from anonspark.utility import original as describing
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.original import describe_original
from anonspark.utility.workload import count_queries, estimate_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 600


def people() -> pa.Table:
    """Return people whose illness depends on age and job; some values are missing."""
    random = np.random.default_rng(0)
    age = random.integers(18, 80, ROWS)
    born = [date(2020, 6, 1) - timedelta(days=int(days)) for days in age * 365]
    job = random.choice(["clerk", "cook", "driver", "nurse"], ROWS)
    ill = (age + 20 * (job == "cook") + random.normal(0, 15, ROWS)) > 70
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(ROWS) < 0.05),
            "born": born,
            "job": pa.array(job, mask=random.random(ROWS) < 0.05),
            "weight": np.round(random.normal(70, 10, ROWS), 1),
            "visits": random.poisson(2, ROWS),
            "ill": np.where(ill, "yes", "no"),
        }
    )


KINDS = {
    "age": ("integer", "int64"),
    "born": ("date", "date32[day]"),
    "job": ("category", "string"),
    "weight": ("float", "double"),
}


def write_release(path: Path, data: dict[str, Any], style: str = "interval", **roles: str) -> Path:
    """Write a release that no model made: its records and what reading them takes."""
    columns = [name for name in data if name.partition("_")[0] in KINDS]
    names = [name for name in KINDS if any(one.partition("_")[0] == name for one in columns)]
    attributes = {name: {"role": "quasi_identifier"} for name in names}
    attributes |= {name: {"role": role} for name, role in roles.items()}
    manifest = {
        "configuration": {
            "privacy": {"k": 1},
            "input": {"format": "parquet", "options": {}, "missing_markers": ["", "?"]},
            "attributes": attributes,
            "output": {"style": style},
        },
        "published": {
            "quasi_identifier_columns": columns,
            "quasi_identifiers": [
                {"name": name, "kind": KINDS[name][0], "type": KINDS[name][1]} for name in names
            ],
        },
        "fingerprints": {"output": ""},
    }
    write_table(path / "data" / "part.parquet", data)
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


def labels(column: pa.ChunkedArray) -> list[str]:
    """Return values as labels of classes that cover one value."""
    return ["missing" if value is None else str(value) for value in column.to_pylist()]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn little."""
    monkeypatch.setattr(learning, "LOGISTIC_ITERATIONS", 5)
    monkeypatch.setattr(learning, "FOREST_TREES", 3)
    monkeypatch.setattr(learning, "BOOSTED_TREES", 2)
    monkeypatch.setattr(learning, "DEPTH", 2)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_table(tmp_path / "original.parquet", people())


@pytest.fixture
def raw_release(tmp_path: Path) -> Path:
    """Return a release that tells everything."""
    table = people()
    data: dict[str, Any] = {name: labels(table[name]) for name in KINDS}
    data |= {"visits": table["visits"], "ill": table["ill"]}
    return write_release(tmp_path / "raw", data, visits="insensitive", ill="sensitive")


@pytest.mark.usefixtures("quick")
def test_a_release_that_tells_everything_is_as_good_as_the_original(
    spark: SparkSession, original: Path, raw_release: Path
) -> None:
    opened = open_evaluation(SparkEngine(spark), str(raw_release), str(original), "ill")
    workload = opened.workload()
    assert (workload.median, workload.mean, workload.third_quartile) == (0, 0, 0)
    assert workload.attributes == ["age", "born", "job", "weight"]
    assert workload.filters == ["ill"]
    assert 0.01 < workload.selectivity < 0.2
    found = opened.learning(("original_with_test", "release"))
    assert found is not None
    assert not found.held_out
    assert found.classes == 2
    assert 0.2 * ROWS < found.test_records < 0.4 * ROWS
    originals, released = (
        {
            score.learner: (score.accuracy, score.f1, score.roc_auc)
            for score in found.scores
            if score.trained_on == name
        }
        for name in ("original_with_test", "release")
    )
    learners = ["logistic regression", "random forest", "gradient-boosted trees"]
    assert list(released) == learners
    for learner in learners:
        assert released[learner] == pytest.approx(originals[learner], abs=1e-9)
        accuracy, _, area = released[learner]
        assert accuracy > found.majority
        assert area is not None
        assert area > 0.7


def reference(label: str, low: float, high: float) -> float:
    """Return the share of a label of whole numbers or texts that lies in a range, by counting."""
    label = label.removesuffix(" or missing") + (", missing" if " or missing" in label else "")
    if (interval := re.fullmatch(r"\[(\d+)-(\d+)\](, missing)?", label)) is not None:
        covered: list[float | None] = list(range(int(interval[1]), int(interval[2]) + 1))
        covered += [None] if interval[3] else []
    else:
        jobs = ["clerk", "cook", "driver", "nurse"]
        texts = label.strip("{}").split(", ")
        covered = [
            None if text == "missing" else jobs.index(text) if text in jobs else float(text)
            for text in texts
        ]
    inside = [value is not None and low <= value <= high for value in covered]
    return sum(inside) / len(inside)


def test_a_real_release_answers_as_its_labels_say(
    spark: SparkSession, original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = configuration_file(
        tmp_path,
        input={"path": str(original)},
        attributes={
            "job": {"role": "quasi_identifier", "type": "text"},
            "age": "quasi_identifier",
            "ill": "sensitive",
        },
        missing="category",
    )
    assert command(capsys, "run", configuration, "--quiet").code == 0
    opened = open_evaluation(SparkEngine(spark), str(tmp_path / "release"), str(original))
    (ill,) = opened.others
    axes = opened.quasi_identifiers
    assert [axis.name for axis in axes] == ["age", "job"]
    everything = Queries(
        np.full((3, 1), -np.inf), np.full((3, 1), np.inf), np.array([[False], [False], [True]])
    )
    arguments: Any = (axes, [ill], everything, opened.missing_markers)
    assert count_queries(opened.original, *arguments).tolist() == [ROWS]
    assert estimate_queries(opened.release, *arguments).tolist() == [ROWS]
    queries = draw_queries(
        [axis.domain for axis in axes], [ill.domain], count=40, selectivity=0.1, seed=1
    )
    arguments = (axes, [ill], queries, opened.missing_markers)
    rows = published(tmp_path / "release").to_pylist()
    raw = people().to_pylist()
    estimated, true = [], []
    for query in range(len(queries)):
        low, high, asked = (part[:, query] for part in (queries.low, queries.high, queries.asked))

        def share(
            values: Sequence[str], low: Any = low, high: Any = high, asked: Any = asked
        ) -> float:
            parts = zip(values, low, high, asked, strict=True)
            return float(np.prod([reference(*one) for *one, wanted in parts if wanted]))

        yes = {"no": "0", "yes": "1"}
        estimated.append(sum(share([row["age"], row["job"], yes[row["ill"]]]) for row in rows))
        true.append(
            sum(
                share([str(row["age"] or "missing"), row["job"] or "missing", yes[row["ill"]]])
                for row in raw
            )
        )
    np.testing.assert_allclose(estimate_queries(opened.release, *arguments), estimated, atol=1e-4)
    np.testing.assert_array_equal(count_queries(opened.original, *arguments), true)
    # Whatever the partitions.
    again = estimate_queries(table_of(frame_of(opened.release).repartition(5)), *arguments)
    np.testing.assert_array_equal(estimate_queries(opened.release, *arguments), again)


def test_queries_depend_on_the_records_alone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describing, "_DRAWN", 200)
    table = spark.createDataFrame(people())
    weight = PublishedAttribute("weight", "float", "interval", ("weight",))
    looks = [
        describe_original(table_of(one), [weight], ["job", "visits"], {}, ["?"])
        for one in (table, table.orderBy("visits").repartition(3))
    ]
    (quasi_identifiers, others, rows), again = looks
    assert rows == ROWS
    (axis,) = quasi_identifiers
    weights = people()["weight"].to_numpy()
    assert axis.domain.values[[0, -1]].tolist() == [weights.min(), weights.max()]
    # Spark's hash of doubles and texts decides who is drawn, today as when the figures were told.
    hashes = sf.pmod(sf.xxhash64("weight", "job", sf.col("visits").cast("double")), sf.lit(2**30))
    drawn = table.where(hashes < 200 / ROWS * 2**30).toPandas()["weight"]
    expected = np.unique([weights.min(), *drawn, weights.max()])
    np.testing.assert_array_equal(axis.domain.values, expected)
    assert not axis.whole
    assert [one.texts for one in others] == [("clerk", "cook", "driver", "nurse"), ()]
    for one, other in zip([axis, *others], [*again[0], *again[1]], strict=True):
        np.testing.assert_array_equal(one.domain.values, other.domain.values)
        np.testing.assert_array_equal(one.domain.shares, other.domain.shares)


def test_means_are_taken_for_the_values(
    spark: SparkSession, original: Path, tmp_path: Path
) -> None:
    table = people()
    age = [None if value is None else float(value) for value in table["age"].to_pylist()]
    data = {
        "age": pa.array(age, pa.float64()),
        "age_missing": [value is None for value in age],
        "born": table["born"],
        "job": labels(table["job"]),
    }
    release = write_release(tmp_path / "release", data, "mean")
    workload = open_evaluation(SparkEngine(spark), str(release), str(original)).workload()
    assert workload.filters == []
    assert (workload.median, workload.mean) == (0, 0)


@pytest.mark.usefixtures("spark", "quick")
def test_bounds_a_holdout_and_more_than_two_classes(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people()
    age = [None if value is None else value // 10 * 10 for value in table["age"].to_pylist()]
    data = {
        "age_min": age,
        "age_max": [None if value is None else value + 9 for value in age],
        "age_missing": [value is None for value in age],
        "job": [None if value is None else [value] for value in table["job"].to_pylist()],
        "visits": table["visits"],
        "ill": table["ill"],
    }
    release = write_release(
        tmp_path / "release", data, "bounds", visits="sensitive", ill="insensitive"
    )
    unseen = table.slice(0, 50).set_column(2, "job", pa.array(["pilot", "?"] * 25))
    holdout = write_table(tmp_path / "holdout.parquet", unseen)
    outcome = command(
        capsys, "evaluate", release, "--original", original, "--target", "visits",
        "--holdout", holdout, "--json",
    )  # fmt: skip
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert found["records"] == ROWS
    assert 0 < found["workload"]["median"] < 1
    assert found["workload"]["filters"] == ["visits"]
    assert found["learning"]["held_out"]
    assert found["learning"]["test_records"] == 50
    assert [
        (score["trained_on"], score["learner"], score["roc_auc"])
        for score in found["learning"]["scores"]
    ] == [
        ("original", "logistic regression", None),
        ("original", "random forest", None),
        ("release", "logistic regression", None),
        ("release", "random forest", None),
    ]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--target", "age"], 2, "'age' is not published as it is; expected"),
        (["--target", "income"], 2, "'ill', 'visits'|'visits', 'ill'"),
        (["--holdout", "there"], 2, "--holdout: .* --target"),
        (["--original", "no/such/path"], 3, "--original: nothing is at no/such/path"),
        (["--original", "{lacking}"], 3, "--original: lacks the column 'age'"),
        (["--original", "{empty}"], 3, "holds no records"),
        (["--original", "{other}"], 3, "values of column 'born' cannot be read as a date"),
        (["--target", "ill", "--holdout", "{lacking}"], 3, "--holdout: lacks the column 'age'"),
        (["--target", "ill", "--original", "{healthy}"], 2, "has 1 different values; expected"),
    ],
)
def test_bad_input(
    original: Path,
    raw_release: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    table = people()
    tables = {
        "lacking": table.drop_columns(["age"]),
        "empty": table.slice(0, 0),
        "other": table.set_column(1, "born", pa.array(range(ROWS))),
        "healthy": table.set_column(5, "ill", pa.array(["no"] * ROWS)),
    }
    paths = {name: tmp_path / f"{name}.parquet" for name in tables}
    for name, path in paths.items():
        pq.write_table(tables[name], path)
    given = [one.format(**paths) for one in arguments]
    if "--original" not in given:
        given += ["--original", str(original)]
    outcome = command(capsys, "evaluate", raw_release, *given)
    assert outcome.code == code
    assert re.search(words, outcome.err)
    assert "1970" not in outcome.err


@pytest.mark.usefixtures("spark")
def test_a_release_whose_labels_cannot_be_read(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = write_release(tmp_path / "odd", {"age": ["[20-30]", "young"]})
    outcome = command(capsys, "evaluate", release, "--original", original)
    assert outcome.code == 3
    assert "labels in the published columns of 'age'" in outcome.err
    assert "young" not in outcome.err
    outcome = command(capsys, "evaluate", tmp_path, "--original", original)
    assert outcome.code == 3
    assert "not a complete release" in outcome.err
