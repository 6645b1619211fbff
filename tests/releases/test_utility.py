"""``anonspark evaluate`` and loss as verify measures it: by hand, and as the metrics say."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cases import cases, night
from commands import Cli
from evaluated import (
    ROWS,
    labels,
    people,
    require_figures_of_the_original,
    write_raw_release,
    write_release,
)
from helpers import configuration_file, local_table, published, summary, write_table

from anonspark.config import parse_configuration
from anonspark.core.queries import Queries, draw_queries
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.reporting.build_report import report_release
from anonspark.utility.evaluation import open_evaluation
from anonspark.utility.workload import count_queries, estimate_queries
from anonspark.verification.audit import audit_release


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
    found, released = require_figures_of_the_original(opened)
    macro = {(one.learner, one.trained_on): one.f1_macro for one in found.scores}
    for learner in released:
        expected = pytest.approx(macro[learner, "original_with_test"], abs=1e-9)
        assert macro[learner, "release"] == expected
    # Beside the model that has not seen the test: the differences are those of the scores.
    firsts = {score.learner: score for score in found.scores if score.trained_on == "original"}
    assert [one.learner for one in found.differences] == list(released)
    for one in found.differences:
        first, (accuracy, _, area) = firsts[one.learner], released[one.learner]
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
    original: Path, raw_release: Path, tmp_path: Path, cli: Cli
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
        outcome = cli.ends(0, *arguments, "--holdout", path, "--json")
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
    original: Path, tmp_path: Path, cli: Cli
) -> None:
    table = people()
    data: dict[str, Any] = {name: labels(table[name]) for name in ("age", "born", "job", "weight")}
    data |= {"ill": ["no"] * ROWS}
    release = write_release(tmp_path / "healthy", data, ill="sensitive")
    outcome = cli.ends(0, "evaluate", release, "--original", original, "--target", "ill", "--json")
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


def test_a_real_release_answers_as_its_labels_say(original: Path, tmp_path: Path, cli: Cli) -> None:
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
    cli.ends(0, "run", configuration, "--no-progress")
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
    original: Path, tmp_path: Path, cli: Cli
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
    outcome = cli.ends(0, "evaluate", release, "--original", original, "--target", "visits",
        "--holdout", holdout, "--json",
    )  # fmt: skip
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
def test_evaluate_refuses_tables_that_do_not_fit(
    original: Path,
    raw_release: Path,
    tmp_path: Path,
    cli: Cli,
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
    outcome = cli.ends(code, "evaluate", raw_release, *given)
    assert re.search(words, outcome.err)
    assert "1970" not in outcome.err


def test_a_release_whose_labels_cannot_be_read(original: Path, tmp_path: Path, cli: Cli) -> None:
    release = write_release(tmp_path / "odd", {"age": ["[20-30]", "young"]})
    outcome = cli.ends(3, "evaluate", release, "--original", original)
    assert "labels in the published columns of 'age'" in outcome.err
    assert "young" not in outcome.err
    cli.ends(3, "evaluate", tmp_path, "--original", original, says="not a complete release")


ATTRIBUTES = {
    "age": "quasi_identifier",
    "height": {"role": "quasi_identifier", "weight": 2.5},
    "born": "quasi_identifier",
    "seen": "quasi_identifier",
    "disease": "sensitive",
}


def people_with_loss(missing: bool) -> pa.Table:
    random = np.random.default_rng(3)
    n = 60
    ages: list[int | None] = random.integers(18, 90, n).tolist()
    heights = random.normal(170, 10, n).tolist()
    days = random.integers(0, 9_000, n).tolist()
    seconds = random.integers(0, 10**7, n).tolist()
    if missing:
        ages[:4] = [None] * 4
        heights[2:5] = [float("nan")] * 3
    return pa.table(
        {
            "age": pa.array(ages, pa.int32()),
            "height": heights,
            "born": [date(1970, 1, 1) + timedelta(days=day) for day in days],
            "seen": [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=s) for s in seconds],
            "disease": random.choice(["flu", "gout"], n).tolist(),
        }
    )


@pytest.mark.parametrize("style", ["interval", "bounds"])
@pytest.mark.parametrize("missing", ["error", "category"])
def test_loss_equals_the_metrics(style: str, missing: str, tmp_path: Path, cli: Cli) -> None:
    source = write_table(tmp_path / "input.parquet", people_with_loss(missing == "category"))
    path = configuration_file(
        tmp_path, attributes=ATTRIBUTES, missing=missing, privacy={"k": 4}, output={"style": style}
    )
    cli.ends(0, "run", path)
    told = summary(tmp_path / "release")
    outcome = cli.ends(0, "verify", tmp_path / "release", "--original", source, "--json")
    loss = json.loads(outcome.out)["loss"]
    assert (loss["rows"], loss["rows_left_out"], loss["dm"]) == (60, 0, told["dm"])
    assert loss["gcp_total"] == pytest.approx(told["gcp_total"], rel=1e-12)
    assert loss["gcp"] == pytest.approx(told["gcp"], rel=1e-12)


_DAY = 86_400

# From the year 1 to the year 9999.
_FIRST_DAY, _LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))
_UNITS = {"s": 1, "ms": 10**3, "us": 10**6}
_FLOATS: tuple[Callable[[random.Random], float], ...] = (
    lambda draw: draw.gauss(0, 1),
    lambda draw: 1e16 + 2 * draw.randint(0, 50),
    lambda draw: draw.uniform(-3e38, 3e38),
    lambda draw: draw.randint(0, 30) * 5e-324,
    lambda draw: draw.choice([0.0, -0.0, 1.0]),
)


def whole_numbers(draw: random.Random, low: int, high: int, rows: int) -> list[int]:
    """Return numbers that are near to an end of what is possible, or far apart."""
    width = min(draw.choice([3, 100, 10**6, 10**12, 10**18, high - low]), high - low)
    first = draw.choice([low, high - width, draw.randint(low, high - width)])
    ends = [low, low + 1, high] if draw.random() < 0.2 else [first]
    return [draw.choice([*ends, first + draw.randint(0, width)]) for _ in range(rows)]


def column_of_any_type(draw: random.Random, rows: int) -> pa.Array:
    kind = draw.choice(["integer", "decimal", "float", "date", "timestamp", "text", "boolean"])
    zone = draw.choice([None, "UTC", "Europe/Berlin"])
    match kind:
        case "integer":
            bits, sign = draw.choice([8, 16, 32, 64]), draw.choice(["", "u"])
            # Of 64 bits the largest ones are refused: in int64 it leaves no code for missing ones.
            most = min(2**bits, 10**18) if sign else 2 ** (bits - 1) - 1
            least = 0 if sign else -(2 ** (bits - 1))
            return pa.array(
                whole_numbers(draw, least, most - 1, rows), pa.type_for_alias(f"{sign}int{bits}")
            )
        case "decimal":
            digits, scale = draw.choice([(1, 0), (5, 2), (18, 9), (18, 18), (28, 10), (38, 38)])
            most = 10 ** min(digits, 18) - 1
            decimals = [Decimal(n).scaleb(-scale) for n in whole_numbers(draw, -most, most, rows)]
            return pa.array(decimals, pa.decimal128(digits, scale))
        case "float":
            drawn, width = draw.choice(_FLOATS), draw.choice([np.float32, np.float64])
            return pa.array(np.array([drawn(draw) for _ in range(rows)]).astype(width))
        case "date":
            days = pa.array(whole_numbers(draw, _FIRST_DAY, _LAST_DAY, rows), pa.int32())
            return days.cast(pa.date32()).cast(draw.choice([pa.date32(), pa.date64()]))
        case "timestamp" if draw.random() < 0.25:
            micros = whole_numbers(draw, -(2**63) // 1000 + 1, 2**63 // 1000, rows)
            return pa.array([1000 * n for n in micros]).cast(pa.timestamp("ns", zone))
        case "timestamp":
            unit = draw.choice([*_UNITS])
            ends = ((_FIRST_DAY + 1) * _DAY * _UNITS[unit], _LAST_DAY * _DAY * _UNITS[unit])
            return pa.array(whole_numbers(draw, *ends, rows)).cast(pa.timestamp(unit, zone))
        case "text":
            return pa.array([draw.choice(["a", "{1}", "b, c", "é", " x"]) for _ in range(rows)])
    return pa.array([draw.random() < 0.4 for _ in range(rows)])


@pytest.mark.parametrize(
    "seed", [*range(12), 130, *(pytest.param(seed, marks=night) for seed in range(131, 400))]
)
def test_a_fresh_release_of_any_types_is_proven(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)  # noqa: S311
    rows = draw.randint(20, 60)
    names = ["first", "second"][: draw.choice([1, 1, 2])]
    table = {name: column_of_any_type(draw, rows) for name in (*names, "payload")}
    table["sickness"] = pa.array([draw.choice("abc") for _ in range(rows)])
    source = str(write_table(tmp_path / "input.parquet", pa.table(table)))
    release = str(tmp_path / "release")
    document = {
        "input": {"path": source},
        "attributes": dict.fromkeys(names, "quasi_identifier")
        | {"sickness": "sensitive", "payload": "insensitive"},
        "privacy": {"k": draw.choice([2, 3, 5])},
        "model": {
            "name": draw.choice(["mondrian", "smondrian", "su-mondrian", "microaggregation"])
        },
        "execution": {"seed": 2**40 + seed},
        "output": {"path": release, "style": draw.choice(["interval", "bounds"])},
    }
    engine = LocalEngine()
    run(engine, parse_configuration(document))
    for original in (None, source):
        assert audit_release(engine, release, original=original).failures == []
    assert report_release(engine, release, source).holds


ORIGINAL = {"age": [20, 25, 30, 40, 60, 60], "income": [0, 10, 20, 30, 40, 50]}


def verified(tmp_path: Path, cli: Cli, release: Any) -> dict[str, Any]:
    original = write_table(tmp_path / "original.parquet", ORIGINAL)
    published = write_table(tmp_path / "published.parquet", release)
    roles = ("--quasi-identifier", "age", "--quasi-identifier", "income", "--k", "2")
    outcome = cli("verify", published, *roles, "--original", original, "--json")
    assert outcome.out, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)["loss"]
    return found


def test_labels_of_another_tool(tmp_path: Path, cli: Cli) -> None:
    found = verified(
        tmp_path,
        cli,
        {"age": ["20-30"] * 3 + ["[40, 100["] * 2, "income": ["*"] * 3 + ["30-40"] * 2},
    )
    # One of six is left out. Of age 3 x 10/40, 2 x all, for no label covers more; of income
    # 3 x all, 2 x 10/50.
    expected = 3 * 0.25 + 2 + 3 + 2 * 0.2 + 2 * 1
    assert (found["rows"], found["rows_left_out"], found["dm"]) == (6, 1, 9 + 4 + 6)
    assert found["gcp_total"] == pytest.approx(expected)
    assert found["gcp"] == pytest.approx(expected / 12)


def test_bounds_of_another_tool(tmp_path: Path, cli: Cli) -> None:
    found = verified(
        tmp_path,
        cli,
        {
            "age_min": [20] * 3 + [40] * 3,
            "age_max": [30] * 3 + [60] * 3,
            "income_min": [0] * 3 + [30] * 3,
            "income_max": [20] * 3 + [50] * 3,
        },
    )
    assert (found["rows_left_out"], found["dm"]) == (0, 18)
    assert found["gcp_total"] == pytest.approx(3 * 0.25 + 3 * 0.5 + 6 * 0.4)


def test_categories_have_no_penalty_told(tmp_path: Path, cli: Cli) -> None:
    original = write_table(tmp_path / "original.parquet", {"sex": ["f", "f", "m", "m"]})
    published = write_table(tmp_path / "published.parquet", {"sex": ["f", "f", "m", "m"]})
    roles = ("--quasi-identifier", "sex", "--k", "2")
    outcome = cli("verify", published, *roles, "--original", original, "--json")
    found = json.loads(outcome.out)["loss"]
    assert found == {"rows": 4, "rows_left_out": 0, "dm": 8, "gcp_total": None, "gcp": None}
    details = ("--original", original, "--details")
    outcome = cli("verify", published, *roles, *details)
    assert "discernibility 8" in outcome.out
    assert "loss: gcp" not in outcome.out
