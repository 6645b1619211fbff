"""model.suppression_limit of models that cut: the classes that lose most are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import by_name, cases, data_beside, one_by_day
from commands import interrupted
from forgeries import list_files, read_table, save_table
from helpers import configuration_file, metrics, published, summary, write_table

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError
from anonspark.pipeline import run as running
from anonspark.release.layout import LEFT_OUT
from anonspark.release.manifest import read_manifest
from anonspark.reporting.build_report import make_report
from anonspark.verification.audit import Verification, audit_release
from anonspark.verification.claims.claim import claim_of_manifest

ROWS = 900
QUASI_IDENTIFIERS = ("age", "income", "children")
WEIGHTS = {"age": 1.0, "income": 2.0, "children": 0.5}

MODELS: dict[str, dict[str, Any]] = {
    "relaxed, at night": {"name": "smondrian", "split": "relaxed"},
    "su-mondrian": {"name": "su-mondrian"},
    "su-mondrian as published, at night": {"name": "su-mondrian", "published": "canbay-2019"},
    "canon, at night": {"name": "canon"},
    "u-canon": {"name": "u-canon", "separation": "always"},
    "microaggregation": {"name": "microaggregation"},
}

PRIVACY: dict[str, dict[str, Any]] = data_beside(__file__)["PRIVACY"]


@pytest.fixture(scope="module", autouse=True)
def visits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write visits with few long ways to the next: what is outlying loses much."""
    random = np.random.default_rng(11)
    columns = {
        "record": np.arange(ROWS),
        "patient": random.integers(0, ROWS // 2, ROWS),
        "age": random.integers(18, 90, ROWS),
        "income": (random.pareto(1.5, ROWS) * 1000).round(2),
        "children": random.poisson(0.7, ROWS),
        "disease": random.choice(["asthma", "flu", "gout", "ulcer"], ROWS),
    }
    return write_table(tmp_path_factory.mktemp("visits") / "visits.parquet", columns)


def released(
    folder: Path, visits: Path, options: Mapping[str, Any] | None = None, **sections: Any
) -> Path:
    """Publish a release with options of a run, and return where."""
    folder.mkdir(exist_ok=True)
    attributes = {
        name: {"role": "quasi_identifier", "weight": WEIGHTS[name]} for name in QUASI_IDENTIFIERS
    }
    others = {"record": "insensitive", "patient": "insensitive", "disease": "sensitive"}
    path = configuration_file(
        folder,
        **{
            "input": {"path": str(visits)},
            "attributes": {**attributes, **others},
            "output": {"style": "bounds"},
            "execution": {"seed": 31},
            **sections,
        },
    )
    running.run(LocalEngine(), load_configuration(path), **(options or {}))
    return folder / "release"


def proven(release: Path, visits: Path) -> Verification:
    path = release.parent / "configuration.yaml"
    return audit_release(
        LocalEngine(), str(release), configuration=load_configuration(path), original=str(visits)
    ).require()


def classes_of(release: Path) -> list[tuple[float, int, frozenset[int]]]:
    """Return what a record of each class loses, its size and its records, the worst first."""
    records = published(release).to_pandas()
    ranges = {one: records[f"{one}_max"].max() - records[f"{one}_min"].min() for one in WEIGHTS}
    ends = [f"{name}_{end}" for name in WEIGHTS for end in ("min", "max")]
    found = []
    for bounds, own in records.groupby(ends):
        widths = np.diff(np.array(bounds).reshape(-1, 2))[:, 0]
        pairs = zip(WEIGHTS.items(), widths, strict=True)
        loss = sum(weight * width / ranges[name] for (name, weight), width in pairs)
        found.append((loss, len(own), frozenset(own["record"])))
    return sorted(found, key=lambda one: -one[0])


@pytest.mark.parametrize("name", by_name(MODELS))
def test_the_classes_that_lose_most_are_left_out(tmp_path: Path, visits: Path, name: str) -> None:
    model = MODELS[name]
    before = classes_of(released(tmp_path / "all", visits, model=model))
    release = released(tmp_path / "most", visits, model={**model, "suppression_limit": 0.05})
    stay = {records for _, _, records in classes_of(release)}
    gone = [own for own in before if own[2] not in stay]
    # Nothing but whole classes of before, and those with the greatest losses.
    assert stay == {records for _, _, records in before} - {records for *_, records in gone}
    assert gone == before[: len(gone)]
    left_out = sum(size for _, size, _ in gone)
    # One more would have been too many.
    assert 0 < left_out <= 0.05 * ROWS < left_out + before[len(gone)][1]
    figures = summary(release)
    counts = ("rows_in", "rows_published", "rows_left_out", "rows_suppressed")
    assert [figures[name] for name in counts] == [ROWS, ROWS - left_out, left_out, left_out]
    lost = sum(loss * size for loss, size, _ in before[len(gone) :])
    assert figures["gcp_total"] == pytest.approx(lost + left_out * sum(WEIGHTS.values()), rel=1e-9)
    assert metrics(release, "rounds")[-1]["outlier_rows"] == left_out


@pytest.mark.parametrize("name", by_name(PRIVACY))
@pytest.mark.parametrize("model", one_by_day("su-mondrian", "microaggregation"))
def test_criteria_hold_and_verification_counts_what_is_left_out(
    tmp_path: Path, visits: Path, model: str, name: str
) -> None:
    privacy = PRIVACY[name]
    asked = {"privacy": {"k": 5, **privacy}, "output": {"style": "interval"}}
    limited = {"name": model, "suppression_limit": 0.1}
    release = released(tmp_path, visits, model=limited, **asked)
    found = proven(release, visits)
    assert (found.failures, found.truthfulness.left_out) == ([], summary(release)["rows_left_out"])
    assert 0.08 * ROWS < found.truthfulness.left_out <= 0.1 * ROWS
    assert (release / "left_out").exists() == ("t_closeness" in privacy)
    assert (
        "left out because the model suppressed them"
        in make_report(LocalEngine(), str(release)).html
    )


@pytest.mark.parametrize("model", one_by_day("su-mondrian", "canon", "smondrian"))
def test_tasks_change_nothing(tmp_path: Path, visits: Path, model: str) -> None:
    limited = {"name": model, "suppression_limit": 0.08}
    prints = {
        summary(
            released(
                tmp_path / str(rows),
                visits,
                model=limited,
                execution={"seed": 31, "task_rows": rows},
            )
        )["output_fingerprint"]
        for rows in (60, 250, 100_000)
    }
    assert len(prints) == 1


def test_classes_of_equal_loss_are_chosen_by_their_names(tmp_path: Path) -> None:
    """Half of the classes lose alike, and more than the limit allows."""
    # Of each of 40 pairs of neighbouring values k records, far from the others.
    ages = np.repeat(np.arange(40) * 1000, 5) + np.tile([0, 0, 1, 1, 1], 40)
    table = {"age": ages, "record": np.arange(200)}
    path = write_table(tmp_path / "pairs.parquet", table)
    attributes = {"age": "quasi_identifier", "record": "insensitive"}
    prints = set()
    for rows in (40, 1000):
        limited = {"name": "smondrian", "suppression_limit": 0.24}
        release = released(
            tmp_path / str(rows),
            path,
            attributes=attributes,
            model=limited,
            execution={"seed": 31, "task_rows": rows},
        )
        figures = summary(release)
        assert 0 < figures["rows_left_out"] <= 48
        prints.add(figures["output_fingerprint"])
    assert len(prints) == 1


def test_classes_that_lose_nothing_stay(tmp_path: Path) -> None:
    table = {"age": np.repeat(np.arange(20), 10), "record": np.arange(200)}
    path = write_table(tmp_path / "equal.parquet", table)
    release = released(
        tmp_path / "out",
        path,
        attributes={"age": "quasi_identifier", "record": "insensitive"},
        model={"name": "smondrian", "suppression_limit": 0.5},
    )
    assert summary(release)["rows_left_out"] == 0
    assert summary(release)["gcp_total"] == 0


def test_a_limit_below_k_leaves_nothing_out(tmp_path: Path, visits: Path) -> None:
    model = {"name": "su-mondrian", "suppression_limit": 0.004}
    release = released(tmp_path / "limited", visits, model=model)
    every = released(tmp_path / "every", visits, model={"name": "su-mondrian"})
    same = [summary(one)["output_fingerprint"] for one in (release, every)]
    assert same[0] == same[1]
    assert summary(release)["rows_left_out"] == 0


def test_a_run_that_is_continued(tmp_path: Path, visits: Path) -> None:
    """The rounds are finished, and their classes are chosen from again."""

    sections = {"model": {"name": "su-mondrian", "suppression_limit": 0.05}}
    expected = summary(released(tmp_path / "at once", visits, **sections))
    options = {"run_id": "one", "resume": True}
    with interrupted("begin"):
        released(tmp_path / "twice", visits, options, **sections)
    found = summary(released(tmp_path / "twice", visits, options, **sections))
    assert found["output_fingerprint"] == expected["output_fingerprint"]
    assert found["rows_left_out"] == expected["rows_left_out"] > 0


@cases(__file__, "sections", "shown")
def test_a_baseline_of_a_part_of_the_classes_is_refused(
    tmp_path: Path, visits: Path, sections: dict[str, Any], shown: str
) -> None:
    """A gate on it was refused after all the work of the run, and nothing said there is none."""
    model = {"name": "su-mondrian", "suppression_limit": 0.1}
    with pytest.raises(ConfigurationError, match=shown):
        released(tmp_path, visits, model=model, **sections)


@pytest.mark.parametrize("figure", ["gcp", "gcp_total", "dm"])
def test_loss_with_records_left_out_is_compared_with_the_original(
    tmp_path: Path, visits: Path, figure: str
) -> None:
    """It was believed as soon as one record was left out."""
    release = released(tmp_path, visits, model={"name": "smondrian", "suppression_limit": 0.1})
    found = proven(release, visits)
    claim = claim_of_manifest(
        LocalEngine(), str(release), read_manifest(LocalEngine().files, str(release)), matched=True
    )
    assert claim.statements is not None
    assert found.loss is not None
    other = replace(found.loss, **{figure: getattr(found.loss, figure) * 2})
    failures = claim.statements.mismeasured(replace(found, loss=other), ROWS)
    assert any(f"summary.{figure}: found" in one for one in failures)


def test_limits_of_all_records_are_refused(tmp_path: Path, visits: Path) -> None:
    model = {"name": "canon", "suppression_limit": 1.0}
    with pytest.raises(ConfigurationError, match=r"model\.suppression_limit"):
        released(tmp_path, visits, model=model)


def one_column(folder: Path, columns: Mapping[str, Any], **sections: Any) -> tuple[Path, Path]:
    """Publish a table whose only quasi-identifier is the age. Return both."""
    table = write_table(folder / "table.parquet", columns)
    roles = {"age": "quasi_identifier", "person": "identifier", "disease": "sensitive"}
    attributes = {name: roles[name] for name in columns}
    return released(folder, table, attributes=attributes, **sections), table


@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_nothing_shows_how_many_people_have_no_published_record(
    tmp_path: Path, limit: float
) -> None:
    """Of the six people who were left out one had no other records, which two figures showed."""
    columns = {"age": [*range(90), *range(1000, 1060, 10)], "person": [*range(90), *range(5), 99]}
    release, table = one_column(
        tmp_path,
        columns,
        privacy={"k": 6, "unit": "person", "allow_alone": True},
        model={"name": "smondrian", "suppression_limit": limit},
        output={"pseudonyms": {"person": "who"}},
    )
    figures = summary(release)
    people = set(published(release)["who"].to_pylist())
    assert (figures["rows_left_out"], len(people)) == ((6, 90) if limit else (0, 91))
    assert figures["units"] == (None if limit else 91)
    proven(release, table)


@pytest.mark.parametrize("model", ["smondrian", "su-mondrian", "microaggregation"])
def test_the_limit_is_the_same_for_the_run_and_its_proof(tmp_path: Path, model: str) -> None:
    """29 of 100 records are 0.29 of them, which is less than 29 as a product of floats."""
    columns = {"age": [0] * 71 + [10_000 + 100 * n for n in range(29)]}
    release, table = one_column(
        tmp_path, columns, privacy={"k": 29}, model={"name": model, "suppression_limit": 0.29}
    )
    assert summary(release)["rows_left_out"] == 29
    proven(release, table)


def test_there_is_no_baseline_of_a_part_of_the_classes(tmp_path: Path, visits: Path) -> None:
    figures = {
        limit: summary(
            released(tmp_path / str(limit), visits, model={"name": "su-mondrian"} | limits)
        )
        for limit, limits in ((0.0, {}), (0.3, {"suppression_limit": 0.3}))
    }
    assert figures[0.0]["baseline_classes"] > 0
    assert figures[0.3]["baseline_classes"] is None


def test_values_of_records_left_out_are_those_of_the_original(tmp_path: Path, visits: Path) -> None:
    """Distances are measured from them, and they were believed."""
    limited = {"name": "su-mondrian", "suppression_limit": 0.1}
    release = released(tmp_path, visits, model=limited, privacy={"k": 5, **PRIVACY["l and t"]})
    assert LEFT_OUT in audit_release(LocalEngine(), str(release)).claimed
    assert LEFT_OUT not in proven(release, visits).claimed
    told = read_table(release, LEFT_OUT)
    counts = told["records"].to_pylist()
    counts[:2] = counts[0] + 1, counts[1] - 1
    save_table(release, LEFT_OUT, told.set_column(2, told.schema.field(2), pa.array(counts)))
    list_files(release)
    forged = audit_release(LocalEngine(), str(release), original=str(visits))
    assert any("left_out: its values of disease are not" in one for one in forged.failures)
