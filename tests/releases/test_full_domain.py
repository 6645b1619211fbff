"""Whole runs of full-domain recoding and rho-Gain: the rounds of the thesis, small tables."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from cases import data_beside, night
from commands import Cli
from data_sets import ADULT_OF_ARX
from failing_runs import run_all
from helpers import document_file, metrics, of_any_run, published, summary
from places import HIERARCHIES, require_data

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.layers.publish import file_assignment
from anonspark.pipeline.plan import check_input
from anonspark.pipeline.run import run as run_pipeline
from anonspark.verification.audit import audit_release

NAMES = ADULT_OF_ARX.quasi_identifiers
HEIGHTS = data_beside(__file__)["HEIGHTS"]
DIVERSE = {"l_diversity": {"attribute": "native-country", "l": 2}}
CLOSE = {"t_closeness": {"attribute": "native-country", "t": 0.2}}


@pytest.fixture(scope="module")
def adult(data_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_data(data_directory / ADULT_OF_ARX.file)
    options = pc.ConvertOptions(column_types=dict.fromkeys(NAMES, "string"))
    table = pc.read_csv(
        data_directory / ADULT_OF_ARX.file,
        parse_options=pc.ParseOptions(delimiter=";"),
        convert_options=options,
    )
    table = table.append_column("record", pa.array(range(table.num_rows)))
    path = tmp_path_factory.mktemp("adult") / "adult.parquet"
    pq.write_table(table, path)
    return path


def adult_document(
    adult: Path,
    output: Path,
    privacy: dict[str, Any],
    *,
    education: str = "education",
    **model: Any,
) -> dict[str, Any]:
    """Describe an experiment; without criteria the sensitive attribute is a quasi-identifier."""
    attributes: dict[str, Any] = {"record": "insensitive"}
    for name in NAMES:
        file = education if name == "education" else name
        attributes[name] = {
            "role": "quasi_identifier",
            "hierarchy": str(HIERARCHIES / f"{file}.csv"),
        }
    if privacy:
        attributes["native-country"] = "sensitive"
    return {
        "input": {"path": str(adult)},
        "attributes": attributes,
        "privacy": {"k": 5, **privacy},
        "model": {"name": "rho-gain", **model},
        "output": {"path": str(output)},
    }


def node(**levels: int) -> dict[str, int]:
    """Return the levels of all but the sensitive attribute, suppressed where they are not named."""
    named = {name.replace("_", "-"): level for name, level in levels.items()}
    return {name: named.get(name, HEIGHTS[name]) for name in NAMES if name != "native-country"}


def rounds_of(release: Path) -> list[tuple[int, int]]:
    """Return the utility classes and the records left over, round by round."""
    return [(row["classes"], row["outlier_rows"]) for row in metrics(release, "rounds")]


def levels_of(release: Path) -> list[dict[str, int]]:
    """Return the levels below the top, round by round."""
    return [
        {
            name: int(level)
            for name, level in (one.split("=") for one in row["levels"].split(", "))
            if int(level) < HEIGHTS[name]
        }
        for row in metrics(release, "rounds")
    ]


def labels_of(education: str) -> dict[str, dict[str, list[str]]]:
    """Return all labels above every value of every attribute, its own among them."""
    found = {}
    for name in NAMES:
        file = education if name == "education" else name
        rows = [line.split(";") for line in (HIERARCHIES / f"{file}.csv").read_text().splitlines()]
        found[name] = {row[0]: row for row in rows}
    return found


# The thesis ---------------------------------------------------------------------------------------


def test_k_without_other_criteria_gives_the_rounds_of_the_thesis(
    engine: LocalEngine, adult: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    document = adult_document(adult, release, {}, education="education-doctorate-apart")
    document["evaluate"] = {"information": True, "compare_baseline": True}
    run_pipeline(engine, parse_configuration(document))
    # The third round of the thesis, 141 classes and 307 outliers, is no node of its hierarchies.
    assert rounds_of(release) == [(1817, 7549), (754, 1478), (140, 377)]
    assert levels_of(release)[:2] == [
        {"age": 0, "sex": 0, "education": 1, "occupation": 0, "salary-class": 0},
        {"age": 0, "occupation": 0, "salary-class": 0},
    ]
    figures = summary(release)
    assert figures["rows_published"] == 30_162 - 377
    assert figures["rows_suppressed"] == figures["rows_left_out"] == 377
    assert figures["classes"] == figures["published_classes"] == 1817 + 754 + 140
    assert audit_release(engine, str(release)).require().published.smallest == 5

    # What the rounds are like, as the figures of the thesis tell (4-22 to 4-25).
    first, second, _ = metrics(release, "rounds")
    assert first["mean_class_size_with_outliers"] == pytest.approx(16.59076, abs=5e-6)
    assert first["mean_class_size"] == pytest.approx(12.44524, abs=5e-6)
    assert second["mean_class_size_with_outliers"] == pytest.approx(9.99868, abs=5e-6)
    assert second["mean_class_size"] == pytest.approx(8.05172, abs=1e-5)
    risk = {(row["round"], row["attacker"]): row for row in metrics(release, "risk")}
    assert risk[1, "prosecutor"]["highest"] == risk[1, "journalist"]["highest"] == 0.2
    assert risk[1, "marketer"]["average"] == pytest.approx(0.0803, abs=1e-4)
    assert risk[1, "prosecutor"]["at_highest"] == pytest.approx(0.0643, abs=5e-5)
    assert risk[2, "marketer"]["average"] == pytest.approx(0.1241, abs=1e-4)
    assert risk[2, "prosecutor"]["at_highest"] == pytest.approx(0.1293, abs=5e-5)

    # More classes, fewer outliers, the same highest risk: rho-Gain succeeds. The release of the
    # first round alone is the baseline.
    assert (figures["rule_gain_utility"], figures["rule_gain_risk"]) == (1, 1)
    assert figures["rule_gain"] == 1
    assert figures["baseline_classes"] == 1817
    assert (figures["rule_a"], figures["rule_b"], figures["rule_c"]) == (1, 1, 1)
    assert_figures_are_those_of_the_files(adult, release, "education-doctorate-apart")


def assert_figures_are_those_of_the_files(adult: Path, release: Path, education: str) -> None:
    """Recompute the figures of the summary from the published table and the input."""
    labels = labels_of(education)
    input_table = pq.read_table(adult).to_pydict()
    data = published(release).to_pydict()
    rows = len(input_table["record"])
    place = {record: row for row, record in enumerate(data["record"])}
    lost = {"precision": 0.0, "loss": 0.0, "penalty": 0.0, "entropy": 0.0}
    covered_bits = 0.0
    kept = rows - len(place)
    for name in NAMES:
        values = Counter(input_table[name])
        below: dict[str, set[str]] = {}
        level = {"*": HEIGHTS[name]}
        for value, row in labels[name].items():
            for height, label in enumerate(row):
                below.setdefault(label, set()).add(value)
                # A label may stand at several levels, of which the rounds use one.
                if height in {levels.get(name) for levels in levels_of(release)}:
                    level[label] = height
        among = {label: sum(values[one] for one in own) for label, own in below.items()}
        different = {label: sum(one in values for one in own) for label, own in below.items()}
        for record, value in zip(input_table["record"], input_table[name], strict=True):
            label = data[name][place[record]] if record in place else "*"
            assert value in below[label]
            covered = len(below[label])
            lost["precision"] += level[label] / HEIGHTS[name]
            lost["loss"] += (covered - 1) / (len(labels[name]) - 1)
            lost["penalty"] += covered / len(labels[name]) if covered > 1 else 0.0
            lost["entropy"] -= math.log2(values[value] / among[label])
            covered_bits += math.log2(different[label])
    figures = summary(release)
    cells = rows * len(NAMES)
    assert figures["precision"] == pytest.approx(1 - lost["precision"] / cells, rel=1e-9)
    assert figures["loss"] == pytest.approx(lost["loss"] / cells, rel=1e-9)
    assert figures["gcp_total"] == pytest.approx(lost["penalty"], rel=1e-9)
    assert figures["entropy"] == pytest.approx(lost["entropy"], rel=1e-9)
    by_attribute = metrics(release, "attributes")
    assert sum(row["entropy"] for row in by_attribute) == pytest.approx(lost["entropy"], rel=1e-9)
    classes = Counter(zip(*(data[name] for name in NAMES), strict=True))
    squares = sum(size**2 for size in classes.values())
    assert figures["dm"] == squares + rows * kept
    tuples = Counter(zip(*(input_table[name] for name in NAMES), strict=True))
    divergence = sum(count * math.log2(count) for count in tuples.values()) + covered_bits
    divergence -= sum(size * math.log2(size) for size in [*classes.values(), kept])
    assert figures["kl_divergence"] == pytest.approx(divergence / rows, rel=1e-9)


@night
def test_k_and_l(engine: LocalEngine, adult: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    document = adult_document(adult, release, DIVERSE, education="education-doctorate-apart")
    run_pipeline(engine, parse_configuration(document))
    assert rounds_of(release) == [(1032, 9587), (225, 5088), (44, 3506)]
    assert levels_of(release) == [
        {"age": 0, "sex": 0, "marital-status": 1, "occupation": 0, "salary-class": 0},
        {"age": 0, "education": 2, "occupation": 1, "salary-class": 0},
        {"age": 0, "sex": 0},
    ]
    (criterion,) = audit_release(engine, str(release)).require().criteria
    assert criterion.measured == 2
    risk = {(row["round"], row["attacker"]): row for row in metrics(release, "risk")}
    assert risk[3, "prosecutor"]["highest"] == pytest.approx(1 / 6)
    assert risk[3, "marketer"]["average"] == pytest.approx(0.0278, abs=1e-4)


def test_k_and_t_as_in_the_thesis_violates_t(
    engine: LocalEngine, adult: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    release = tmp_path / "release"
    # The thesis' own nodes; of the second round it is not the best (below).
    levels = [
        node(age=0, sex=0, marital_status=1, education=1, occupation=0),
        node(age=0, race=0, marital_status=1, occupation=0),
        node(age=0, occupation=1),
    ]
    document = adult_document(adult, release, CLOSE, rho=2, t_reference="round", levels=levels)
    run_pipeline(engine, parse_configuration(document))
    # 16 classes with 172 records of the first two rounds, and 30 with 1,058 of the third.
    assert "with 1230 records, violate t-closeness" in caplog.text
    assert rounds_of(release) == [(1681, 9028), (608, 4331), (70, 2210)]
    with pytest.raises(GuaranteeError) as violated:
        audit_release(engine, str(release)).require()
    assert "46 of 2,359 classes" in str(violated.value)
    assert "1,230 records, violate t-closeness with t = 0.2" in str(violated.value)
    measured = {row["criterion"]: row["measured"] for row in metrics(release, "privacy")}
    assert measured["equal distance"] == pytest.approx(0.271, abs=5e-4)


def test_k_l_and_t_as_in_the_thesis(engine: LocalEngine, adult: Path, tmp_path: Path) -> None:
    """The third round has two nodes with 110 classes: the other one leaves 2,802 records over."""
    release = tmp_path / "release"
    levels = [
        node(age=0, sex=0, marital_status=1, occupation=0, salary_class=0),
        node(age=0, sex=0, education=1, salary_class=0),
        node(age=0, sex=0, occupation=1),
    ]
    document = adult_document(
        adult, release, DIVERSE | CLOSE, rho=2, t_reference="round", levels=levels
    )
    run_pipeline(engine, parse_configuration(document))
    assert rounds_of(release) == [(876, 11_239), (260, 4_659), (110, 2_889)]
    audit_release(engine, str(release)).require()


@night
def test_k_and_t_of_the_best_nodes(engine: LocalEngine, adult: Path, tmp_path: Path) -> None:
    """The second round finds 648 classes where the thesis has 608."""
    release = tmp_path / "release"
    document = adult_document(adult, release, CLOSE, rho=1, t_reference="round")
    run_pipeline(engine, parse_configuration(document))
    assert rounds_of(release) == [(1681, 9028), (648, 3259)]
    with pytest.raises(GuaranteeError, match="violate t-closeness"):
        audit_release(engine, str(release)).require()


def test_k_and_t_against_the_whole_input_holds(
    engine: LocalEngine, adult: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    # A twelfth of the lattice, which has the best node of the first round: that it is the best of
    # all is above.
    least = {"race": 1, "workclass": 2, "salary-class": 1}
    document = adult_document(adult, release, CLOSE, minimum_levels=least)
    run_pipeline(engine, parse_configuration(document))
    first, *further = rounds_of(release)
    assert first == (1681, 9028)
    assert len(further) == 2
    (criterion,) = audit_release(engine, str(release)).require().criteria
    assert criterion.violating_classes == 0
    # By hand, against the input's distribution.
    table = pq.read_table(adult, columns=["native-country"])["native-country"].to_pylist()
    reference = Counter(table)
    data = published(release).to_pydict()
    names = [name for name in NAMES if name != "native-country"]
    classes: dict[tuple[str, ...], Counter[str]] = {}
    for key, country in zip(
        zip(*(data[name] for name in names), strict=True), data["native-country"], strict=True
    ):
        classes.setdefault(key, Counter())[country] += 1
    largest = max(
        sum(
            abs(own[country] / own.total() - reference[country] / len(table))
            for country in reference
        )
        / 2
        for own in classes.values()
    )
    assert largest == pytest.approx(criterion.measured)
    assert largest <= 0.2
    # The records left out are counted by their value, for without them it could not be verified.
    left_out = pq.read_table(release / "left_out").to_pylist()
    assert sum(row["records"] for row in left_out) == summary(release)["rows_left_out"]
    told = Counter({row["value"]: row["records"] for row in left_out})
    assert told + Counter(data["native-country"]) == reference


# Small tables -------------------------------------------------------------------------------------


def small_table() -> pa.Table:
    """Return 60 people of few ages and cities, and some that are like nobody else."""
    random = np.random.default_rng(5)
    ages = [*random.integers(20, 40, 54).tolist(), 61, 62, 71, 72, 81, 82]
    cities = [*random.choice(["Ulm", "Bonn", "Köln"], 57).tolist(), "Graz", "Wien", "Wien"]
    diseases = random.choice(["flu", "flu", "asthma", "gout"], 60).tolist()
    return pa.table({"age": ages, "city": cities, "disease": diseases, "record": range(60)})


CITIES = "Ulm;Germany;*\nBonn;Germany;*\nKöln;Germany;*\nGraz;Austria;*\nWien;Austria;*\n"


def small_document(
    tmp_path: Path, table: pa.Table | None = None, **sections: Any
) -> dict[str, Any]:
    (tmp_path / "cities.csv").write_text(CITIES, encoding="utf-8")
    pq.write_table(small_table() if table is None else table, tmp_path / "input.parquet")
    document: dict[str, Any] = {
        "input": {"path": str(tmp_path / "input.parquet")},
        "attributes": {
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10, 20]}},
            "city": {"role": "quasi_identifier", "hierarchy": str(tmp_path / "cities.csv")},
            "disease": "sensitive",
            "record": "insensitive",
        },
        "missing": "category",
        "privacy": {"k": 4},
        "model": {"name": "full-domain"},
        "output": {"path": str(tmp_path / "release")},
    }
    for name, section in sections.items():
        document[name] = document.get(name, {}) | section
    return document


def run(engine: LocalEngine, document: dict[str, Any]) -> Path:
    run_pipeline(engine, parse_configuration(document))
    return Path(document["output"]["path"])


def classes_of(release: Path, names: tuple[str, ...] = ("age", "city")) -> Counter[tuple[str, ...]]:
    data = published(release)
    return Counter(zip(*(data[name].to_pylist() for name in names), strict=True))


def test_suppressed_records_are_left_out(engine: LocalEngine, tmp_path: Path) -> None:
    release = run(engine, small_document(tmp_path, model={"suppression_limit": 1.0}))
    figures = summary(release)
    assert 0 < figures["rows_suppressed"] < 60
    assert figures["rows_published"] == 60 - figures["rows_suppressed"]
    assert min(classes_of(release).values()) >= 4
    assert ("*", "*") not in classes_of(release)
    assert (
        figures["dm"]
        == sum(size**2 for size in classes_of(release).values()) + 60 * figures["rows_suppressed"]
    )
    assert (
        json.loads((release / "manifest.json").read_text())["published"]["rows_left_out"]
        == (figures["rows_left_out"])
    )
    assert not (release / "left_out").exists()


def test_suppressed_records_are_published_as_one_class(engine: LocalEngine, tmp_path: Path) -> None:
    options = {"suppression_limit": 1.0, "residual": "suppress"}
    release = run(engine, small_document(tmp_path, model=options))
    figures = summary(release)
    assert figures["rows_published"] == 60
    assert figures["rows_left_out"] == 0
    assert classes_of(release)["*", "*"] == figures["rows_suppressed"] > 0
    assert figures["published_classes"] == figures["classes"] + 1
    # Sensitive and insensitive values are published with them.
    assert sorted(published(release)["record"].to_pylist()) == list(range(60))
    audit_release(engine, str(release)).require()


def test_a_residual_that_is_no_class_is_refused(engine: LocalEngine, tmp_path: Path) -> None:
    table = small_table().slice(0, 55)
    options = {"suppression_limit": 1.0, "residual": "suppress", "maximum_levels": {"city": 1}}
    document = small_document(tmp_path, table, model=options)
    with pytest.raises(GuaranteeError, match=r"model\.residual: the 1 records .* fewer than k = 4"):
        run(engine, document)
    assert not (tmp_path / "release").exists()
    diverse = {"k": 4, "l_diversity": {"attribute": "disease", "l": 3}}
    table = small_table().to_pydict()
    table["disease"][54:] = ["flu"] * 6
    document = small_document(tmp_path, pa.table(table), model=options, privacy=diverse)
    document["model"]["levels"] = [{"age": 1, "city": 1}]
    with pytest.raises(GuaranteeError, match="distinct l-diversity with l = 3 on attribute"):
        run(engine, document)


def test_the_limit_of_suppression(engine: LocalEngine, tmp_path: Path) -> None:
    for limit in (0.0, 0.05, 0.2):
        document = small_document(tmp_path, model={"suppression_limit": limit})
        document["output"]["path"] += str(limit)
        # Fewer than k = 4 records are not counted; those published are.
        assert summary(run(engine, document))["rows_published"] >= (1 - limit) * 60
    bounded = {"suppression_limit": 0.0, "maximum_levels": {"age": 1, "city": 1}}
    with pytest.raises(GuaranteeError, match="no recoding allowed has a class"):
        run(engine, small_document(tmp_path, model=bounded))


def test_levels_are_bounded(engine: LocalEngine, tmp_path: Path) -> None:
    bounds = {"minimum_levels": {"age": 1}, "maximum_levels": {"age": 1, "city": 1}}
    document = small_document(tmp_path, model=bounds | {"suppression_limit": 1.0})
    (row,) = metrics(run(engine, document), "rounds")
    assert row["levels"] in ("age=1, city=0", "age=1, city=1")


def test_no_class_at_all(engine: LocalEngine, tmp_path: Path) -> None:
    table = pa.table({"age": range(30), "city": ["Ulm"] * 30, "disease": ["flu"] * 30})
    table = table.append_column("record", pa.array(range(30)))
    options = {"suppression_limit": 1.0, "maximum_levels": {"age": 0}}
    with pytest.raises(GuaranteeError, match="no recoding allowed has a class"):
        run(engine, small_document(tmp_path, table, model=options))
    document = small_document(tmp_path, table, model={"levels": [{"age": 0, "city": 0}]})
    with pytest.raises(GuaranteeError):
        run(engine, document)
    assert not (tmp_path / "release").exists()


def test_rounds_end_where_nothing_more_can_be_made(engine: LocalEngine, tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    table = pa.table(
        {
            "age": (20 + random.exponential(15, 500)).astype(int),
            "city": random.choice(["Ulm", "Bonn", "Köln", "Graz", "Wien"], 500),
            "disease": random.choice(["flu", "gout"], 500),
            "record": range(500),
        }
    )
    options = {"name": "rho-gain", "rho": 50, "maximum_levels": {"age": 1, "city": 1}}
    release = run(engine, small_document(tmp_path, table, model=options))
    rounds = metrics(release, "rounds")
    assert 1 < len(rounds) < 10
    for before, after in pairwise(rounds):
        assert after["rows"] == before["outlier_rows"]
    assert summary(release)["rows_suppressed"] == rounds[-1]["outlier_rows"] > 0
    assert all(row["classes"] > 0 for row in rounds)


def test_every_record_finds_a_class(engine: LocalEngine, tmp_path: Path) -> None:
    release = run(engine, small_document(tmp_path, model={"suppression_limit": 0.0}))
    assert summary(release)["rows_suppressed"] == 0
    assert summary(release)["rows_published"] == 60
    (row,) = metrics(release, "rounds")
    assert row["mean_class_size"] == row["mean_class_size_with_outliers"]


def test_missing_values(engine: LocalEngine, tmp_path: Path) -> None:
    table = small_table().to_pydict()
    table["city"][::7] = [None] * len(table["city"][::7])
    options = {"name": "rho-gain", "suppression_limit": 1.0}
    release = run(engine, small_document(tmp_path, pa.table(table), model=options))
    groups = {"Ulm": "Germany", "Bonn": "Germany", "Köln": "Germany"}
    seen = set()
    for row in published(release).to_pylist():
        raw = table["city"][row["record"]]
        above = {raw, groups.get(raw, "Austria")} if raw else {"missing"}
        assert row["city"] in above | {"* or missing"}
        seen.add(row["city"])
    assert seen & {"missing", "* or missing"}
    audit_release(engine, str(release)).require()


def test_an_attribute_all_of_whose_values_are_missing(engine: LocalEngine, tmp_path: Path) -> None:
    table = small_table().set_column(0, "age", pa.nulls(60, pa.int32()))
    release = run(engine, small_document(tmp_path, table, model={"suppression_limit": 1.0}))
    assert set(published(release)["age"].to_pylist()) == {"missing"}
    (age, _) = metrics(release, "attributes")
    # The few records that are left out count as lost nowhere.
    assert (age["ncp_total"], summary(release)["rows_suppressed"]) == (0, None)


def few_left_out(engine: LocalEngine, folder: Path, **criterion: Any) -> Path:
    """Make a release that leaves out fewer than k records, whose number is not told."""
    options = {"suppression_limit": 1.0, "maximum_levels": {"age": 1, "city": 1}}
    table = small_table().slice(0, 55)
    document = small_document(folder, table, model=options, privacy={"k": 4, **criterion})
    document["model"]["levels"] = [{"age": 1, "city": 1}]
    release = run(engine, document)
    assert summary(release)["rows_left_out"] is None
    assert not (release / "left_out").exists()
    return release


def test_few_records_left_out_are_not_told(engine: LocalEngine, tmp_path: Path) -> None:
    """Whoever knew how the input was distributed would know the disease of the one left out."""
    release = few_left_out(engine, tmp_path, t_closeness={"attribute": "disease", "t": 0.45})
    assert 55 - 4 < summary(release)["rows_published"] < 55
    assert audit_release(engine, str(release)).require().criteria[0].violating_classes == 0


def gains_of(release: Path, everything: list[str]) -> float:
    """Return by how much a disease is more frequent in a class than among all, at most."""
    data = published(release)
    keys = list(zip(data["age"].to_pylist(), data["city"].to_pylist(), strict=True))
    diseases = data["disease"].to_pylist()
    whole, sizes, pairs = (
        Counter(everything),
        Counter(keys),
        Counter(zip(keys, diseases, strict=True)),
    )
    return max(
        count / sizes[key] / (whole[disease] / len(everything)) - 1
        for (key, disease), count in pairs.items()
    )


def test_no_disease_gains_more_than_beta(engine: LocalEngine, tmp_path: Path) -> None:
    everything = small_table()["disease"].to_pylist()
    careless = gains_of(run(engine, small_document(tmp_path)), everything)
    likeness = {"beta_likeness": {"attribute": "disease", "beta": careless / 2}}
    document = small_document(
        tmp_path, privacy=likeness, model={"suppression_limit": 0.0}, output={"mode": "overwrite"}
    )
    release = run(engine, document)
    (measured,) = audit_release(engine, str(release)).require().criteria
    assert measured.measured == pytest.approx(gains_of(release, everything), abs=1e-12)
    assert measured.measured <= careless / 2
    assert measured.violating_classes == 0


def test_beta_where_the_values_left_out_are_not_told(engine: LocalEngine, tmp_path: Path) -> None:
    """A class holds where the release does not show the opposite: fewer than k may be anything."""
    release = few_left_out(engine, tmp_path, beta_likeness={"attribute": "disease", "beta": 2.0})
    (measured,) = audit_release(engine, str(release)).require().criteria
    told = published(release)["disease"].to_pylist()
    assert measured.violating_classes == 0
    assert measured.measured < gains_of(release, told)


def test_precision_of_a_model_with_local_recoding(engine: LocalEngine, tmp_path: Path) -> None:
    document = small_document(tmp_path, model={"name": "smondrian"})
    document["evaluate"] = {"information": True}
    release = run(engine, document)
    data = published(release)
    levels = {"*": 2, "Germany": 1, "Austria": 1}
    lifted = [levels.get(label, 0) / 2 for label in data["city"].to_pylist()]
    (_, city) = metrics(release, "attributes")
    assert city["height"] == 2
    assert city["precision"] == pytest.approx(1 - sum(lifted) / 60)
    leaves = {"*": 5, "Germany": 3, "Austria": 2}
    lost = [(leaves.get(label, 1) - 1) / 4 for label in data["city"].to_pylist()]
    assert city["loss"] == pytest.approx(sum(lost) / 60)
    values = Counter(small_table()["city"].to_pylist())
    groups = {"*": set(values), "Germany": {"Ulm", "Bonn", "Köln"}, "Austria": {"Graz", "Wien"}}
    bits = [
        math.log2(sum(values[one] for one in groups.get(label, {label})))
        for label in data["city"].to_pylist()
    ]
    own = sum(count * math.log2(count) for count in values.values())
    assert city["entropy"] == pytest.approx(sum(bits) - own)
    assert summary(release)["kl_divergence"] > 0
    assert all(row["levels"] is None for row in metrics(release, "rounds"))


def test_population_of_a_journalist(engine: LocalEngine, tmp_path: Path) -> None:
    table = small_table()
    pq.write_table(pa.concat_tables([table, table, table]), tmp_path / "population.parquet")
    presence = {"population": str(tmp_path / "population.parquet"), "max": 1.0}
    document = small_document(
        tmp_path,
        privacy={"delta_presence": presence},
        model={"suppression_limit": 0.0, "levels": [{"age": 3, "city": 1}]},
        evaluate={"risk": {"threshold": 0.1}},
    )
    release = run(engine, document | {"missing": "drop", "privacy": document["privacy"] | {"k": 3}})
    risk = {row["attacker"]: row for row in metrics(release, "risk") if row["round"] is None}
    assert all(row["population"] for row in risk.values())
    assert risk["journalist"]["highest"] == pytest.approx(risk["prosecutor"]["highest"] / 3)
    assert risk["marketer"]["average"] == pytest.approx(risk["prosecutor"]["average"] / 3)
    assert risk["prosecutor"]["high_highest"] == (risk["prosecutor"]["highest"] > 0.1)


# The cluster --------------------------------------------------------------------------------------

CRITERIA = {
    "k": 4,
    "l_diversity": {"attribute": "disease", "l": 2},
    "t_closeness": {"attribute": "disease", "t": 0.4},
}


@pytest.mark.parametrize("search", ["exhaustive", "pruned"])
def test_tuples_too_many_for_the_driver(engine: LocalEngine, tmp_path: Path, search: str) -> None:
    options = {"name": "rho-gain", "rho": 1, "search": search, "t_reference": "round"}
    options |= {"minimum_levels": {"age": 1}, "maximum_levels": {"age": 2}}
    if search == "pruned":
        options |= {"suppression_limit": 0.3}
    document = small_document(tmp_path, model=options, privacy=CRITERIA)
    expected = of_any_run(run(engine, document))
    document["output"]["path"] += "-distributed"
    document["model"]["driver_tuples"] = 7
    assert of_any_run(run(engine, document)) == expected


@pytest.mark.parametrize("residual", ["drop", "suppress"])
def test_files_do_not_tell_where_records_came_from(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, residual: str
) -> None:
    """Nobody in a class may be known by the file that the input had the person in."""
    monkeypatch.setattr(file_assignment, "_FILE_ROWS", 12)
    options = {"suppression_limit": 1.0, "residual": residual}
    document = small_document(tmp_path, model=options, execution={"task_rows": 12})
    table = pq.read_table(tmp_path / "input.parquet")
    (tmp_path / "input.parquet").unlink()
    (tmp_path / "input.parquet").mkdir()
    releases = []
    order = np.random.default_rng(2).permutation(60)
    for name, parts in (("in-order", np.array_split(np.arange(60), 6)), ("mixed", [order])):
        for number, rows in enumerate(parts):
            path = tmp_path / "input.parquet" / f"{number}.parquet"
            pq.write_table(table.take(rows), path)
        document["output"]["path"] = str(tmp_path / name)
        release = run(engine, document)
        files = sorted((release / "data").glob("*.parquet"))
        releases.append({path.name: path.read_bytes() for path in files})
        for path in (tmp_path / "input.parquet").iterdir():
            path.unlink()
    assert len(releases[0]) > 1
    assert releases[0] == releases[1]


LATTICE_TASKS = ("_CountRecords", "_RollUp", "_Score", "_UtilityClasses")


@pytest.mark.system
def test_tasks_that_fail_and_are_run_again(
    engine: LocalEngine, quick_start: dict[str, str], tmp_path: Path
) -> None:
    options = {"driver_tuples": 1, "suppression_limit": 1.0, "levels": [{"age": 1, "city": 0}]}
    document = small_document(tmp_path, model=options, privacy=CRITERIA)
    expected = of_any_run(run(engine, document))
    document["output"]["path"] += "-again"
    document_file(tmp_path, document)
    lattice = "layers.partition.lattice.distributed"
    kinds = {f"{lattice}.{name}": name == "_Score" for name in LATTICE_TASKS}
    kinds |= {"models.full_domain._Recode": True, "models.full_domain._DescribeClasses": False}
    arguments = [str(tmp_path / "configuration.yaml"), "--master", "local[2,4]"]
    (failed,) = run_all(quick_start, kinds, {tmp_path / "markers": arguments})
    assert failed == {*LATTICE_TASKS, "_Recode", "_DescribeClasses"}
    assert of_any_run(Path(document["output"]["path"])) == expected


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["minimum_levels", "maximum_levels"])
def test_a_level_that_the_hierarchy_has_not(engine: LocalEngine, tmp_path: Path, key: str) -> None:
    document = small_document(tmp_path, model={key: {"city": 3}})
    with pytest.raises(ConfigurationError, match=rf"model\.{key}\.city: found 3, .* levels 0 to 2"):
        run(engine, document)
    with pytest.raises(ConfigurationError, match=rf"model\.{key}\.city"):
        check_input(engine, parse_configuration(document))
    assert not (tmp_path / "release").exists()


def test_a_given_level_that_the_hierarchy_has_not(engine: LocalEngine, tmp_path: Path) -> None:
    document = small_document(tmp_path, model={"levels": [{"age": 0, "city": 9}]})
    with pytest.raises(ConfigurationError, match=r"model\.levels\.0\.city: found 9"):
        run(engine, document)


def test_a_lattice_too_large(engine: LocalEngine, tmp_path: Path) -> None:
    names = [f"q{index}" for index in range(20)]
    table = pa.table({name: ["a", "b"] * 10 for name in names})
    pq.write_table(table, tmp_path / "input.parquet")
    (tmp_path / "letters.csv").write_text("a;*\nb;*\n")
    attribute = {"role": "quasi_identifier", "hierarchy": str(tmp_path / "letters.csv")}
    document = {
        "input": {"path": str(tmp_path / "input.parquet")},
        "attributes": dict.fromkeys(names, attribute),
        "privacy": {"k": 2},
        "model": {"name": "full-domain"},
        "output": {"path": str(tmp_path / "release")},
    }
    with pytest.raises(ConfigurationError, match="the lattice has 1,048,576 nodes"):
        run(engine, document)


def test_plan_and_commands(tmp_path: Path, cli: Cli) -> None:
    document = small_document(tmp_path, model={"name": "rho-gain", "maximum_levels": {"city": 1}})
    path = document_file(tmp_path, document)
    planned = cli.ends(0, "check", path, "--plan")
    assert "nodes of the lattice, each round" in planned.out
    assert "tree levels" not in planned.out
    ended = cli.ends(0, "run", path, "--details")
    assert "records without a class, suppressed" in ended.out
    assert "age=" in ended.out
    # No value of the data.
    assert "Graz" not in ended.out + ended.err
    cli.ends(0, "verify", tmp_path / "release")


def test_categories_without_a_hierarchy(engine: LocalEngine, tmp_path: Path) -> None:
    """Texts and booleans have their values and ``*``; numbers are refused, with the remedy."""
    table = pa.table(
        {
            "sex": ["f", "m", "x"] * 40,
            "job": [f"job {row % 30}" for row in range(120)],
            "member": [row % 2 == 0 for row in range(120)],
            "age": [row % 12 for row in range(120)],
        }
    )
    pq.write_table(table, tmp_path / "people.parquet")
    document: dict[str, Any] = {
        "input": {"path": str(tmp_path / "people.parquet")},
        "quasi_identifiers": ["sex", "job", "member"],
        "privacy": {"k": 5},
        "model": "full-domain",
        "output": {"path": str(tmp_path / "release")},
        "execution": {"seed": 2**40},
    }
    found = run_pipeline(engine, parse_configuration(document))
    assert found.rounds[0]["levels"] == "sex=0, job=1, member=0"
    data = pq.read_table(tmp_path / "release" / "data")
    assert set(data["sex"].to_pylist()) == {"f", "m", "x"}
    assert set(data["job"].to_pylist()) == {"*"}
    original = str(tmp_path / "people.parquet")
    assert audit_release(engine, str(tmp_path / "release"), original=original).holds
    document["quasi_identifiers"].append("age")
    document["output"]["path"] = str(tmp_path / "none")
    with pytest.raises(DataError, match=r"age: found no hierarchy .*intervals.*type to text"):
        check_input(engine, parse_configuration(document))
