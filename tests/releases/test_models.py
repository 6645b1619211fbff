"""The models beyond Mondrian, what all models share, and the model that is chosen for a table."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from cases import cases, one_by_day
from commands import Cli
from data_sets import ADULT, DATA_SETS
from helpers import configuration_file, contents, metrics, published, summary, write_table
from places import require_data

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.models import choosing
from anonspark.models import choosing as rivals
from anonspark.pipeline.run import run
from anonspark.pipeline.run import run as run_pipeline
from anonspark.verification.audit import audit_release

if TYPE_CHECKING:
    pass


MODELS_OF_ADULT = DATA_SETS["Adult"].quasi_identifiers
DIABETES = DATA_SETS["Diabetes"].quasi_identifiers
MODELS = ("smondrian", "su-mondrian", "canon", "u-canon", "microaggregation")
WITH_ROUNDS = ("su-mondrian", "u-canon")
PUBLISHED = {"separation": "always"}
Anonymize = Callable[..., Path]


@pytest.fixture(scope="module")
def adult(adult_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write Adult with nothing but the quasi-identifiers: Canon draws by the whole content."""
    path = tmp_path_factory.mktemp("adult") / "adult.parquet"
    pq.write_table(pc.read_csv(adult_path).select(list(MODELS_OF_ADULT)), path)
    return path


@pytest.fixture(scope="module")
def few(adult: Path) -> Path:
    """Write some people of Adult, who are numbered."""
    path = adult.with_name("few.parquet")
    table = pq.read_table(adult).slice(0, 1_150)
    pq.write_table(table.append_column("record", pa.array(range(table.num_rows))), path)
    return path


@pytest.fixture(scope="module")
def anonymize(tmp_path_factory: pytest.TempPathFactory) -> Anonymize:
    """Run the pipeline and return the path of the release."""
    folder = tmp_path_factory.mktemp("releases")
    numbers = count()

    def run(
        table: Path,
        k: int,
        name: str,
        options: Mapping[str, object] | None = None,
        weights: Mapping[str, float] | None = None,
        **sections: object,
    ) -> Path:
        names = pq.read_schema(table).names
        attributes: dict[str, object] = {
            name: {"role": "quasi_identifier", "weight": (weights or {}).get(name, 1.0)}
            for name in names
            if name in MODELS_OF_ADULT or name in DIABETES
        }
        if "record" in names:
            attributes["record"] = "insensitive"
        path = folder / str(next(numbers))
        document = {
            "input": {"path": str(table)},
            "attributes": attributes,
            "privacy": {"k": k},
            "model": {"name": name, **(options or {})},
            "output": {"path": str(path), "style": "bounds"},
            **sections,
        }
        run_pipeline(LocalEngine(), parse_configuration(document))
        return path

    return run


def rounds(release: Path) -> list[dict[str, Any]]:
    return sorted(metrics(release, "rounds"), key=lambda row: row["round"])


# Diabetes: counts, most of them 0, in which half of the records are equal to others ---------------


@pytest.fixture(scope="module")
def diabetes(data_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = data_directory / "diabetic_data.csv.gz"
    require_data(source)
    with gzip.open(source) as file:
        table = pc.read_csv(file).select(list(DIABETES))
    assert table.num_rows == 101_766
    table = table.slice(0, 8_000)
    path = tmp_path_factory.mktemp("diabetes") / "diabetes.parquet"
    pq.write_table(table.append_column("record", pa.array(range(table.num_rows))), path)
    return path


@pytest.mark.parametrize("name", ["u-canon", "microaggregation"])
def test_diabetes(anonymize: Anonymize, diabetes: Path, name: str) -> None:
    release = anonymize(diabetes, 10, name)
    records = pq.read_table(diabetes).to_pandas()
    found = published(release).to_pandas().sort_values("record").reset_index(drop=True)
    assert found["record"].equals(records["record"])
    ends = [f"{name}_{end}" for name in DIABETES for end in ("min", "max")]
    sizes = found.groupby(ends).size()
    figures = summary(release)
    assert sizes.min() == figures["published_min_class_size"] >= 10
    assert len(sizes) == figures["published_classes"]
    lost = 0.0
    for column in DIABETES:
        values, low, high = records[column], found[f"{column}_min"], found[f"{column}_max"]
        assert ((low <= values) & (values <= high)).all()
        lost += float((high - low).sum()) / float(values.max() - values.min())
    assert figures["gcp_total"] == pytest.approx(lost, rel=1e-9)
    assert figures["gcp"] == pytest.approx(lost / (len(DIABETES) * len(records)), rel=1e-9)


# Weights ------------------------------------------------------------------------------------------


def classes_of(release: Path) -> set[frozenset[int]]:
    """Return the records of each class by published tuple."""
    table = published(release).to_pandas()
    columns = [name for name in table.columns if name != "record"]
    return {frozenset(own) for own in table.groupby(columns)["record"].agg(list)}


def attribute_figures(release: Path, figure: str) -> dict[str, float]:
    return {row["attribute"]: row[figure] for row in metrics(release, "attributes")}


@pytest.fixture(scope="module")
def unweighted(anonymize: Anonymize, few: Path) -> Callable[[str], Path]:
    return cache(lambda name: anonymize(few, 5, name))


@pytest.mark.parametrize("name", one_by_day("su-mondrian", "u-canon", "microaggregation"))
def test_a_weighted_attribute_loses_less(
    anonymize: Anonymize, unweighted: Callable[[str], Path], few: Path, name: str
) -> None:
    release = anonymize(few, 5, name, weights={"age": 8.0})
    figures, before = summary(release), summary(unweighted(name))
    lost, lost_before = (attribute_figures(one, "ncp_total") for one in (release, unweighted(name)))
    # Penalties of an attribute are without its weight, those of all attributes with it.
    assert lost["age"] < 0.8 * lost_before["age"]
    assert sum(lost.values()) > sum(lost_before.values())
    weights = attribute_figures(release, "weight")
    assert weights == dict.fromkeys(MODELS_OF_ADULT, 1.0) | {"age": 8.0}
    total = sum(weights[attribute] * lost[attribute] for attribute in MODELS_OF_ADULT)
    assert figures["gcp_total"] == pytest.approx(total, rel=1e-9)
    assert figures["gcp"] == pytest.approx(total / (12 * figures["rows_in"]), rel=1e-9)
    assert 0 < figures["gcp"] < 1
    assert 0 < figures["iloss"] < 1
    # With the weights of this release the other one would have lost more.
    other = sum(weights[attribute] * lost_before[attribute] for attribute in MODELS_OF_ADULT)
    assert total < other
    assert figures["configuration_fingerprint"] != before["configuration_fingerprint"]


@pytest.mark.parametrize("name", one_by_day("su-mondrian", "u-canon", "microaggregation"))
def test_equal_weights_change_nothing_but_the_unit(
    anonymize: Anonymize, unweighted: Callable[[str], Path], few: Path, name: str
) -> None:
    release = anonymize(few, 5, name, weights=dict.fromkeys(MODELS_OF_ADULT, 2.0))
    figures, expected = summary(release), summary(unweighted(name))
    assert classes_of(release) == classes_of(unweighted(name))
    assert figures["output_fingerprint"] == expected["output_fingerprint"]
    assert figures["gcp_total"] == pytest.approx(2 * expected["gcp_total"], rel=1e-12)
    for figure in ("gcp", "iloss"):
        assert figures[figure] == pytest.approx(expected[figure], rel=1e-12)
    lost, lost_before = (attribute_figures(one, "ncp_total") for one in (release, unweighted(name)))
    assert lost == lost_before


# Rounds -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rounds_as_published(anonymize: Anonymize, few: Path) -> Callable[[str], list[dict[str, Any]]]:
    return cache(lambda name: rounds(anonymize(few, 5, name, PUBLISHED)))


@pytest.mark.parametrize("name", one_by_day(*WITH_ROUNDS))
def test_what_a_release_would_lose_if_it_ended_with_a_round(
    anonymize: Anonymize,
    few: Path,
    rounds_as_published: Callable[[str], list[dict[str, Any]]],
    name: str,
) -> None:
    all_rounds = rounds_as_published(name)
    assert len(all_rounds) > 2
    for rho in (1, 2):
        release = anonymize(few, 5, name, {"rho": rho, **PUBLISHED})
        row = all_rounds[rho - 1]
        assert summary(release)["gcp_total"] == pytest.approx(row["gcp_total_if_last"], rel=1e-12)
        assert len(rounds(release)) == rho
    last = all_rounds[-1]
    assert last["gcp_total_if_last"] == pytest.approx(last["gcp_total_cumulative"], rel=1e-12)


@pytest.mark.parametrize("name", one_by_day(*WITH_ROUNDS))
def test_a_round_that_gains_too_little_is_the_last_one(
    anonymize: Anonymize,
    few: Path,
    rounds_as_published: Callable[[str], list[dict[str, Any]]],
    name: str,
) -> None:
    all_rounds = rounds_as_published(name)
    lost = [row["gcp_total_if_last"] for row in all_rounds]
    gains = [1 - after / before for before, after in pairwise(lost)]
    # Only the round that gains least gains less than is asked for.
    least, second = sorted(max(gain, 0.0) for gain in gains)[:2]
    minimum_gain = (least + second) / 2
    end = next(place for place, gain in enumerate(gains, start=2) if gain < minimum_gain)
    release = anonymize(few, 5, name, {"minimum_gain": minimum_gain, **PUBLISHED})
    found = rounds(release)
    assert len(found) == end <= summary(release)["rho"] == 5
    assert found[:-1] == [row | {"run_id": found[0]["run_id"]} for row in all_rounds[: end - 1]]
    # It keeps its groups whole.
    assert found[-1]["outlier_rows"] == 0
    assert found[-1]["rows"] == all_rounds[end - 1]["rows"]
    assert summary(release)["rows_published"] == 1_150
    assert summary(release)["gcp_total"] == pytest.approx(lost[end - 1], rel=1e-12)
    # The first round has nothing to be compared with, so the second one is the earliest end.
    short = anonymize(few, 5, name, {"minimum_gain": 1.0, **PUBLISHED})
    assert len(rounds(short)) == 2
    assert summary(short)["gcp_total"] == pytest.approx(lost[1], rel=1e-12)


@pytest.mark.parametrize(
    ("name", "baseline", "options"),
    [("su-mondrian", "smondrian", {"refine": 1}), ("u-canon", "canon", {})],
)
def test_the_baseline_is_the_model_without_rounds(
    anonymize: Anonymize, few: Path, name: str, baseline: str, options: dict[str, int]
) -> None:
    weights = {"age": 2.0}
    found = summary(anonymize(few, 5, name, weights=weights, evaluate={"compare_baseline": True}))
    expected = summary(anonymize(few, 5, baseline, options, weights=weights))
    for figure in ("classes", "dm", "mean_class_size"):
        assert found[f"baseline_{figure}"] == expected[figure]
        assert expected[f"baseline_{figure}"] is None
    for rule, figure in (("a", "dm"), ("b", "mean_class_size")):
        assert found[f"rule_{rule}"] == int(found[figure] < expected[figure])
    assert found["baseline_gcp_total"] == pytest.approx(expected["gcp_total"], rel=1e-12)
    assert found["rule_c"] == (found["gcp_total"] < expected["gcp_total"])


@pytest.mark.parametrize("name", MODELS)
def test_weighted_penalties_from_the_published_bounds(
    anonymize: Anonymize, few: Path, name: str
) -> None:
    weights = {"age": 3.0, "capital-gain": 0.25, "hours-per-week": 1.5}
    release = anonymize(few, 3, name, weights=weights)
    records, found = pq.read_table(few).to_pandas(), published(release).to_pandas()
    assert sorted(found["record"]) == list(range(len(records)))
    lost = pd.Series(0.0, index=found.index)
    for column in MODELS_OF_ADULT:
        width = found[f"{column}_max"] - found[f"{column}_min"]
        lost += weights.get(column, 1.0) * width / np.ptp(records[column].to_numpy())
    figures = summary(release)
    assert figures["gcp_total"] == pytest.approx(lost.sum(), rel=1e-9)
    assert figures["gcp"] == pytest.approx(lost.sum() / (6.75 * len(found)), rel=1e-9)
    classes = metrics(release, "classes")
    assert sum(row["size"] * row["ncp"] for row in classes) == pytest.approx(lost.sum(), rel=1e-9)
    assert max(row["ncp"] for row in classes) <= 6.75


NUMBERS = ADULT.quasi_identifiers


@pytest.fixture(scope="module")
def few_numbers(adult_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adult") / "few.parquet"
    table = pc.read_csv(adult_path).select([*NUMBERS, "sex", "marital-status", "income"])
    pq.write_table(table.slice(0, 1_000), path)
    return path


def release_of(
    engine: LocalEngine, table: Path, path: Path, model: dict[str, Any], task_rows: int = 250_000
) -> dict[str, Any]:
    document = {
        "input": {"path": str(table)},
        "attributes": dict.fromkeys([*NUMBERS, "sex", "marital-status"], "quasi_identifier")
        | {"income": "sensitive"},
        "privacy": {"k": 5, "l_diversity": {"attribute": "income", "l": 2}},
        "model": model,
        "output": {"path": str(path)},
        "execution": {"task_rows": task_rows},
    }
    run(engine, parse_configuration(document))
    manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return manifest


@pytest.mark.parametrize("objective", ["loss", "queries"])
def test_the_best_of_all_is_chosen(
    engine: LocalEngine, few_numbers: Path, tmp_path: Path, objective: str
) -> None:
    auto = {"name": "auto", "objective": objective}
    chosen = release_of(engine, few_numbers, tmp_path / "auto", auto)["chosen_model"]
    audit_release(engine, str(tmp_path / "auto")).require()
    assert (chosen["objective"], chosen["rows"]) == (objective, 1_000)
    assert len(chosen["tried"]) == 3
    best = min(chosen["tried"], key=lambda one: one["loss"])
    assert chosen["model"] == best["model"]
    # The release is that of the model named, and it is the same however it is cut into tasks.
    options = best["model"]
    release_of(engine, few_numbers, tmp_path / "named", options)
    again = release_of(engine, few_numbers, tmp_path / "again", auto, task_rows=250)
    assert again["chosen_model"] == chosen
    found = summary(tmp_path / "auto")
    for other in ("named", "again"):
        fingerprint = summary(tmp_path / other)["output_fingerprint"]
        assert fingerprint == found["output_fingerprint"]
    assert found["model"] == "auto"


def test_losses_are_those_of_releases(
    engine: LocalEngine, few_numbers: Path, tmp_path: Path
) -> None:
    """All records are tried, so each candidate is known to lose what its release loses."""
    told = release_of(engine, few_numbers, tmp_path / "auto", {"name": "auto"})["chosen_model"][
        "tried"
    ]
    assert summary(tmp_path / "auto")["loss"] == pytest.approx(min(one["loss"] for one in told))
    for place, one in enumerate(told):
        release_of(engine, few_numbers, tmp_path / str(place), one["model"])
        assert summary(tmp_path / str(place))["loss"] == pytest.approx(one["loss"], rel=1e-9)


def test_a_table_larger_than_the_sample_is_drawn_from(
    engine: LocalEngine, few_numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anonspark.models.choosing._SAMPLED", 500)
    shuffled = tmp_path / "shuffled.parquet"
    table = pq.read_table(few_numbers)
    pq.write_table(table.take(pa.array(range(table.num_rows - 1, -1, -1))), shuffled)
    chosen = release_of(engine, few_numbers, tmp_path / "one", {"name": "auto"})["chosen_model"]
    assert 400 < chosen["rows"] < 600
    other = release_of(engine, shuffled, tmp_path / "other", {"name": "auto"}, task_rows=350)
    assert other["chosen_model"] == chosen


def test_a_sample_that_is_smaller_than_k_chooses_all_the_same(
    engine: LocalEngine, few_numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "_SAMPLED", 20)
    document = {
        "input": {"path": str(few_numbers)},
        "attributes": dict.fromkeys(NUMBERS, "quasi_identifier"),
        "privacy": {"k": 100},
        "model": "auto",
        "output": {"path": str(tmp_path / "out")},
    }
    run(engine, parse_configuration(document))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert 0 < manifest["chosen_model"]["rows"] < 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with clustered records, which microaggregation is good for."""
    folder = tmp_path_factory.mktemp("rivals")
    random = np.random.default_rng(8)
    centre = random.normal(0, 50, (40, 3))[random.integers(0, 40, rivals.LEAST_ROWS)]
    values = (centre + random.normal(0, 1, centre.shape)).round(1)
    table: dict[str, Any] = {name: values[:, place] for place, name in enumerate("abc")}
    write_table(folder / "input.parquet", table)
    return folder


def configured(folder: Path, **sections: Any) -> Path:
    roles = dict.fromkeys("abc", "quasi_identifier")
    return configuration_file(folder, attributes=roles, privacy={"k": 5}, **sections)


def test_a_model_that_loses_much_less_is_named(folder: Path, cli: Cli) -> None:
    path = configured(folder, model={"name": "smondrian"}, output={"mode": "overwrite"})
    first = cli.ends(0, "run", path, "--run-id", "a", "--details")
    (line,) = [one for one in first.out.splitlines() if one.startswith("  better ")]
    words = line.split()
    assert words[1:6] == ["microaggregation", "would", "lose", "about", words[5]]
    assert int(words[5].removesuffix("%")) >= 20
    assert words[6] == "less"
    assert line.endswith("--set model.name=microaggregation")
    assert "microaggregation would lose about" in first.err
    assert "microaggregation" not in json.dumps(
        [text for name, text in contents(folder / "release").items() if name.endswith(".json")],
        default=str,
    )
    # It is the same again, and true of the whole table.
    again = cli("run", path, "--run-id", "a", "--details")
    assert line in again.out
    lost = [
        json.loads(cli("run", path, "--json", "--no-progress", *arguments).out)["summary"]
        for arguments in ([], ["--set", "model.name=microaggregation"])
    ]
    assert lost[1]["gcp"] < 0.9 * lost[0]["gcp"]


@cases(__file__, "model")
def test_nothing_is_said_of_the_best(folder: Path, cli: Cli, model: dict[str, Any]) -> None:
    path = configured(folder, model=model, output={"mode": "overwrite"})
    outcome = cli.ends(0, "run", path, "--no-progress", "--details")
    assert "better" not in outcome.out


def test_nothing_is_tried_unless_asked(folder: Path, cli: Cli) -> None:
    path = configured(folder, model={"name": "smondrian"}, output={"mode": "overwrite"})
    outcome = cli("run", path, "--json", "--no-progress")
    assert "compare models" not in json.loads(outcome.out)["seconds"]
    again = cli("run", path, "--json", "--no-progress", "--details")
    assert "compare models" in json.loads(again.out)["seconds"]
