"""``anonspark evaluate``: a release as good as its original, small ones by hand, and bad input."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cases import cases
from evaluated import ROWS, labels, people, write_raw_release, write_release
from helpers import command, configuration_file, local_table, published, write_table

from anonspark.core.queries import Queries, draw_queries
from anonspark.engine.local.engine import LocalEngine
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.workload import count_queries, estimate_queries


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_table(tmp_path / "original.parquet", people())


@pytest.fixture
def raw_release(tmp_path: Path) -> Path:
    return write_raw_release(tmp_path / "raw")


def test_a_release_that_tells_everything_is_as_good_as_the_original(
    original: Path, raw_release: Path
) -> None:
    opened = open_evaluation(LocalEngine(), str(raw_release), str(original), "ill")
    workload = opened.workload()
    assert (workload.median, workload.mean, workload.third_quartile) == (0, 0, 0)
    assert workload.attributes == ["age", "born", "job", "weight"]
    assert workload.filters == ["ill"]
    assert 0.01 < workload.selectivity < 0.2
    found = opened.learning()
    assert found is not None
    assert not found.held_out
    assert found.classes == 2
    assert 0.2 * ROWS < found.test_records < 0.4 * ROWS
    originals, released = (
        {
            score.learner: (score.accuracy, score.f1, score.f1_macro, score.roc_auc)
            for score in found.scores
            if score.trained_on == name
        }
        for name in ("original_with_test", "release")
    )
    learners = ["logistic regression", "random forest", "gradient-boosted trees"]
    assert list(released) == learners
    for learner in learners:
        assert released[learner] == pytest.approx(originals[learner], abs=1e-9)
        accuracy, _, _, area = released[learner]
        assert accuracy > found.majority
        assert area is not None
        assert area > 0.7
    # Beside the model that has not seen the test: the differences are those of the scores.
    firsts = {score.learner: score for score in found.scores if score.trained_on == "original"}
    assert [one.learner for one in found.differences] == learners
    for one in found.differences:
        first, (accuracy, _, _, area) = firsts[one.learner], released[one.learner]
        assert one.accuracy.difference == pytest.approx(accuracy - first.accuracy, abs=1e-12)
        assert one.roc_auc is not None
        assert one.roc_auc.difference == pytest.approx(area - first.roc_auc, abs=1e-12)
        assert one.roc_auc.standard_error > 0
    best = [
        max(area for *_, area in released.values()),
        max(one.roc_auc for one in firsts.values()),
    ]
    assert found.loss is not None
    assert found.loss.loss == pytest.approx(best[1] - best[0], abs=1e-12)


def test_models_of_the_same_records_do_not_differ(
    original: Path, raw_release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people()
    healthy = table.set_column(5, "ill", pa.array(["no"] * ROWS))
    unknown = table.set_column(
        5, "ill", pa.array(["perhaps"] * 50 + ["no", None] * (ROWS // 2 - 25))
    )
    held_out = {"same": table, "healthy": healthy, "unknown": unknown}
    found = {}
    for name, one in held_out.items():
        path = write_table(tmp_path / f"{name}.parquet", one)
        arguments = ["evaluate", raw_release, "--original", original, "--target", "ill"]
        outcome = command(capsys, *arguments, "--holdout", path, "--json")
        assert outcome.code == 0, outcome.err
        assert "NaN" not in outcome.out
        told = json.loads(outcome.out)
        found[name] = told["learning"]
        # The sentence comes first.
        assert next(iter(told)) == "sentence"
        if name == "same":
            assert (told["kept"]["share"], told["kept"]["low"], told["kept"]["high"]) == (1, 1, 1)
            assert "100.0% as good as on the original" in told["sentence"]
    for one in found["same"]["differences"]:
        for score in ("accuracy", "roc_auc"):
            assert one[score] == {
                "difference": 0, "standard_error": 0, "low": 0, "high": 0,
                "verdict": "no difference shown",
            }  # fmt: skip
    assert (found["same"]["loss"]["loss"], found["same"]["loss"]["standard_error"]) == (0, 0)
    assert found["same"]["without_area"] is None
    # A test of one class has no curve, and says so.
    healthy = found["healthy"]
    assert healthy["without_area"] == "the test records are of one class"
    assert [score["roc_auc"] for score in healthy["scores"]] == [None] * 6
    assert healthy["loss"] is None
    assert healthy["differences"][0]["accuracy"]["difference"] == 0
    # What the original has no name for is counted and left out.
    assert (found["unknown"]["test_left_out"], found["unknown"]["test_records"]) == (50, 275)


def test_a_release_that_lacks_a_class_of_the_target(
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people()
    data: dict[str, Any] = {name: labels(table[name]) for name in ("age", "born", "job", "weight")}
    data |= {"ill": ["no"] * ROWS}
    release = write_release(tmp_path / "healthy", data, ill="sensitive")
    outcome = command(
        capsys, "evaluate", release, "--original", original, "--target", "ill", "--json"
    )
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)["learning"]
    areas = {one["roc_auc"] for one in found["scores"] if one["trained_on"] == "release"}
    assert areas == {0.5}
    assert all(one["roc_auc"]["verdict"] == "loses" for one in found["differences"])
    assert found["loss"]["loss"] > 0.2


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
    original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    assert command(capsys, "run", configuration, "--no-progress").code == 0
    opened = open_evaluation(LocalEngine(), str(tmp_path / "release"), str(original))
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
    dealt = local_table(opened.release.collect(), 5)
    again = estimate_queries(dealt, *arguments)
    np.testing.assert_array_equal(estimate_queries(opened.release, *arguments), again)


def test_means_are_taken_for_the_values(original: Path, tmp_path: Path) -> None:
    table = people()
    age = [None if value is None else float(value) for value in table["age"].to_pylist()]
    data = {
        "age": pa.array(age, pa.float64()),
        "age_missing": [value is None for value in age],
        "born": table["born"],
        "born_missing": pc.is_null(table["born"]),
        "job": labels(table["job"]),
    }
    release = write_release(tmp_path / "release", data, "mean")
    workload = open_evaluation(LocalEngine(), str(release), str(original)).workload()
    assert workload.filters == []
    assert (workload.median, workload.mean) == (0, 0)


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


@cases(__file__, "arguments", "code", "words")
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
