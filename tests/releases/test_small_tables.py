"""Where others fail: small and awkward tables, judged by the files that a run wrote."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from cases import data_beside
from commands import Cli
from helpers import configuration_file, metrics, published, summary, write_table

QI = "quasi_identifier"


# Shortest form of a number, as labels have it.
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"

Anonymize = Callable[..., Path]


@pytest.fixture
def anonymize(tmp_path: Path, cli: Cli) -> Anonymize:
    """Write a table, anonymize it and return the release's directory."""

    def run(table: Any, *, name: str = "release", code: int = 0, **sections: Any) -> Path:
        if table is not None:
            write_table(tmp_path / "input.parquet", table)
        sections["output"] = {"path": str(tmp_path / name)} | sections.get("output", {})
        cli.ends(code, "run", configuration_file(tmp_path, **sections))
        return tmp_path / name

    return run


def class_sizes(release: Path, *names: str) -> list[int]:
    """Count the records of every published tuple."""
    table = published(release).select(names)
    return list(Counter(map(str, table.to_pylist())).values())


def bounds_of_label(label: str) -> tuple[float, float]:
    match = re.fullmatch(rf"\[{NUMBER}-{NUMBER}\]", label)
    low, high = match.groups() if match else (label, label)
    return float(low), float(high)


class TestMissingValues:
    """200 rows, 3 of them without a value: no class below k, and no row lost unseen."""

    @pytest.fixture
    def table(self) -> dict[str, Any]:
        random = np.random.default_rng(1)
        age = [int(value) for value in random.integers(20, 70, 200)]
        return {
            "age": [None if place in (3, 77, 150) else value for place, value in enumerate(age)],
            "height": random.normal(170, 10, 200),
            "disease": ["flu", "cold"] * 100,
        }

    @pytest.mark.parametrize(("policy", "dropped"), [("drop", 3), ("category", 0)])
    @pytest.mark.parametrize("model", ["smondrian", "su-mondrian"])
    def test_every_row_is_accounted_for(
        self, anonymize: Anonymize, table: dict[str, Any], policy: str, dropped: int, model: str
    ) -> None:
        attributes = {"age": QI, "height": QI, "disease": "sensitive"}
        release = anonymize(table, attributes=attributes, missing=policy, model={"name": model})
        row = summary(release)
        # Fewer than k = 5 are not told, nor what would tell them.
        assert row["rows_in"] == (None if dropped else 200)
        assert row["rows_dropped_missing"] == (None if dropped else 0)
        assert row["rows_published"] == published(release).num_rows == 200 - dropped
        sizes = class_sizes(release, "age", "height")
        assert min(sizes) >= 5
        assert min(sizes) == row["published_min_class_size"]
        assert len(sizes) == row["published_classes"]
        missing = [attribute["missing_rows"] for attribute in metrics(release, "attributes")]
        assert missing == ([None, None] if dropped else [3, 0])
        labels = published(release)["age"].to_pylist()
        assert any("missing" in label for label in labels) == (policy == "category")

    def test_five_missing_values_are_a_class(self, anonymize: Anonymize) -> None:
        table = {"age": [None] * 5 + [30] * 5 + [40] * 5, "town": ["Ulm"] * 15}
        attributes = {"age": QI, "town": "insensitive"}
        release = anonymize(
            table, attributes=attributes, missing="category", model={"name": "smondrian"}
        )
        assert Counter(published(release)["age"].to_pylist()) == {"missing": 5, "30": 5, "40": 5}
        assert summary(release)["gcp"] == 0

    def test_markers(self, anonymize: Anonymize) -> None:
        cities = ["Ulm"] * 7 + [" ? ", "", "n/a", None, "?"] + ["Rom"] * 6
        table = {"city": cities, "visit": range(18)}
        release = anonymize(
            table,
            input={"missing_markers": ["?", "", "n/a"]},
            attributes={"city": QI, "visit": "insensitive"},
            missing="category",
            model={"name": "smondrian"},
        )
        counts = Counter(published(release)["city"].to_pylist())
        assert counts == {"missing": 5, "Rom": 6, "Ulm": 7}


@pytest.mark.parametrize("split", ["strict", "relaxed"])
@pytest.mark.parametrize("model", ["smondrian", "su-mondrian"])
def test_more_than_half_zeros(anonymize: Anonymize, model: str, split: str) -> None:
    """The median is the smallest value: a cut rule that looks above it only never cuts."""
    table = {"amount": [0] * 60 + list(range(1, 41))}
    release = anonymize(table, attributes={"amount": QI}, model={"name": model, "split": split})
    sizes = class_sizes(release, "amount")
    assert len(sizes) > 1
    assert min(sizes) >= 5
    assert sum(sizes) == 100
    if split == "strict" and model == "smondrian":
        assert published(release)["amount"].to_pylist().count("0") == 60


@pytest.mark.parametrize(
    ("table", "sections"),
    [
        pytest.param({"a": [7] * 20, "b": [0.5] * 20}, {}, id="all-equal"),
        pytest.param({"a": [0, 1] * 10, "b": [1.0, -1.0] * 10}, {"privacy": {"k": 20}}, id="whole"),
        pytest.param({"a": [-1.7e308, 1.7e308] * 10, "b": [0.0] * 20}, {}, id="widest-floats"),
        pytest.param({"a": [-(2**63), 2**63 - 1] * 10, "b": [1] * 20}, {}, id="widest-integers"),
        pytest.param({"a": [5e-324, 0.0] * 10, "b": [-0.0, 0.0] * 10}, {}, id="smallest-floats"),
        pytest.param(
            {"a": [None, 1] * 10, "b": [2, None] * 10}, {"missing": "category"}, id="half-missing"
        ),
        pytest.param(
            {"a": pa.nulls(20, pa.int64()), "b": pa.nulls(20, pa.string()), "c": range(20)},
            {"missing": "category", "attributes": {"a": QI, "b": QI, "c": "insensitive"}},
            id="all-missing",
        ),
        pytest.param({"a": ["x", "y"] * 10, "b": [True, False] * 10}, {}, id="categories"),
    ],
)
def test_gcp_is_a_share(
    anonymize: Anonymize, table: dict[str, Any], sections: dict[str, Any]
) -> None:
    release = anonymize(table, **{"attributes": {"a": QI, "b": QI}, **sections})
    row = summary(release)
    assert 0 <= row["gcp"] <= 1
    assert 0 <= row["iloss"] <= 1
    assert row["gcp_total"] == pytest.approx(row["gcp"] * 2 * 20)
    assert row["rows_published"] == 20
    for attribute in metrics(release, "attributes"):
        assert 0 <= attribute["ncp"] <= 1
        assert 0 <= attribute["iloss"] <= 1


@pytest.mark.parametrize("model", ["smondrian", "su-mondrian"])
def test_order_tells_nothing_of_the_input(anonymize: Anonymize, model: str) -> None:
    """Rows come sorted by everything; their published order is unrelated to it."""
    rows = 2_000
    table = {"age": sorted(np.arange(rows) % 50), "number": np.arange(rows)}
    attributes = {"age": QI, "number": "insensitive"}
    release = anonymize(table, attributes=attributes, privacy={"k": 10}, model={"name": model})
    data = published(release)
    assert data.column_names == ["age", "number"]
    numbers = data["number"].to_numpy()
    assert sorted(numbers) == list(range(rows))
    # 50 groups in random order have a correlation of 0 +- 0.14.
    assert abs(np.corrcoef(numbers, np.arange(rows))[0, 1]) < 0.5
    # Neither does the order inside a class follow the input's: half of all steps go up.
    labels = data["age"].to_pylist()
    steps = [
        numbers[place + 1] > numbers[place]
        for place in range(rows - 1)
        if labels[place] == labels[place + 1]
    ]
    assert 0.4 < np.mean(steps) < 0.6
    for name in ("classes", "rounds", "attributes", "summary"):
        assert not {"number", "record_hash", "occurrence"} & set(metrics(release, name)[0])


def test_styles(anonymize: Anonymize) -> None:
    """The same classes three times: as labels, as bounds and sets, and as means."""
    random = np.random.default_rng(3)
    rows = 60
    table = {
        "age": random.integers(20, 70, rows),
        "height": random.normal(170, 10, rows).round(1),
        "born": [date(1950, 1, 1) + timedelta(int(n)) for n in random.integers(0, 9999, rows)],
        "city": random.choice(["Ulm", "Rom", "São, Paulo"], rows),
        "number": np.arange(rows),
    }
    attributes = dict.fromkeys(["age", "height", "born", "city"], QI) | {"number": "insensitive"}
    releases = {
        style: anonymize(
            table, name=style, attributes=attributes, missing="category", output={"style": style}
        )
        for style in ("interval", "bounds", "mean")
    }
    tables = {style: published(release) for style, release in releases.items()}

    assert tables["interval"].column_names == list(attributes)
    with_bounds, with_means = [], []
    for name in ("age", "height", "born"):
        with_bounds += [f"{name}_min", f"{name}_max", f"{name}_missing"]
        with_means += [name, f"{name}_missing"]
    assert tables["bounds"].column_names == [*with_bounds, "city", "number"]
    assert tables["mean"].column_names == [*with_means, "city", "number"]
    schema = tables["bounds"].schema
    assert schema.field("age_min").type == pa.int64()
    assert schema.field("born_max").type == pa.date32()
    assert schema.field("city").type.value_type == pa.string()
    assert tables["mean"].schema.field("age").type == pa.float64()
    assert tables["mean"].schema.field("born").type == pa.date32()

    by_number = {
        style: {record["number"]: record for record in published_table.to_pylist()}
        for style, published_table in tables.items()
    }
    members: dict[str, list[int]] = {}
    for number, labels in by_number["interval"].items():
        members.setdefault(str([labels[name] for name in attributes if name != "number"]), [])
        members[str([labels[name] for name in attributes if name != "number"])].append(number)
    for numbers in members.values():
        assert len(numbers) >= 5
        for number in numbers:
            label, bound, mean = (by_number[style][number] for style in tables)
            ages = [int(table["age"][other]) for other in numbers]
            assert bound["age_min"] == min(ages)
            assert bound["age_max"] == max(ages)
            assert bounds_of_label(label["age"]) == (min(ages), max(ages))
            assert mean["age"] == pytest.approx(np.mean(ages))
            born = [table["born"][other] for other in numbers]
            span = (min(born), max(born))
            assert (bound["born_min"], bound["born_max"]) == span
            assert label["born"] == (
                f"[{span[0]}/{span[1]}]" if span[0] < span[1] else str(span[0])
            )
            assert span[0] <= mean["born"] <= span[1]
            cities = sorted({str(table["city"][other]) for other in numbers})
            assert bound["city"] == cities
            assert label["city"] == mean["city"]
            assert all(city.partition(",")[0] in label["city"] for city in cities)
            assert not any(record.get("age_missing") for record in (bound, mean))


def test_formats_and_paths_give_one_release(anonymize: Anonymize, tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    table = pa.table(
        {
            "height": random.normal(170, 10, 120).round(1) + 0.05,
            "share": random.normal(0, 1e-2, 120) + 0.5e-6,
            "city": random.choice(["Ulm", "Rom", "Köln"], 120),
            "disease": random.choice(["flu", "cold"], 120),
        }
    )
    attributes = {"height": QI, "share": QI, "city": QI, "disease": "sensitive"}
    inputs: dict[str, dict[str, Any]] = {}
    for format in ("parquet", "orc", "json", "csv"):
        path = write_table(tmp_path / f"whole.{format}", table, format)
        inputs[format] = {"path": str(path), "format": format}
    inputs["csv"]["options"] = {"header": True, "inferSchema": True}
    parts = [write_table(tmp_path / f"part-{start}", table.slice(start, 50)) for start in (50, 100)]
    write_table(tmp_path / "in" / "a.pq", table.slice(0, 50))
    inputs["several"] = {"path": [*map(str, parts), f"{tmp_path}/in/*.pq"]}

    prints = {}
    expected = None
    for name, source in inputs.items():
        release = anonymize(None, name=f"from-{name}", input=source, attributes=attributes)
        row = summary(release)
        prints[name] = (row["input_fingerprint"], row["output_fingerprint"])
        data = published(release)
        expected = data if expected is None else expected
        assert data.equals(expected)
    assert len(set(prints.values())) == 1, prints


def test_decimals_of_too_many_digits(anonymize: Anonymize) -> None:
    values = pa.array([Decimal(n) + Decimal("1e-18") for n in range(40)], pa.decimal128(38, 18))
    release = anonymize({"value": values}, attributes={"value": QI}, code=3)
    assert not release.exists()


@pytest.mark.parametrize("style", ["interval", "bounds"])
def test_column_names(anonymize: Anonymize, tmp_path: Path, cli: Cli, style: str) -> None:
    names = ["a.b", "with blank", "back`tick", "Straße", "UPPER", "lower", "class_id", "round"]
    random = np.random.default_rng(5)
    table = {name: random.integers(0, 30, 60) for name in names} | {"se.cret `x`": ["flu"] * 60}
    attributes = dict.fromkeys(names, QI) | {"se.cret `x`": "sensitive"}
    release = anonymize(table, attributes=attributes, output={"style": style})
    expected = [
        column
        for name in names
        for column in ([name] if style == "interval" else [f"{name}_min", f"{name}_max"])
    ]
    assert published(release).column_names == [*expected, "se.cret `x`"]
    assert min(class_sizes(release, *expected)) >= 5
    cli.ends(0, "verify", release)
    cli.ends(0, "check", "--plan", tmp_path / "configuration.yaml", "--set",
                   "output.mode=overwrite")  # fmt: skip
    columns = list(metrics(release, "classes")[0])
    assert columns[:6] == ["run_id", "class_id", "round", "size", "a.b_min", "a.b_max"]
    assert [row["attribute"] for row in metrics(release, "attributes")] == names


def test_a_model_without_rounds_is_its_own_baseline(anonymize: Anonymize) -> None:
    release = anonymize(
        {"age": np.random.default_rng(6).integers(0, 90, 60)},
        attributes={"age": QI},
        model={"name": "smondrian"},
        evaluate={"compare_baseline": True},
    )
    assert [summary(release)[f"rule_{rule}"] for rule in "abc"] == [0, 0, 0]


SCHEMAS = data_beside(__file__)["SCHEMAS"]


def test_schemas_and_sums_of_the_metrics(anonymize: Anonymize) -> None:
    """As docs/output.md says: one row, a row a round, a row a class, a row a quasi-identifier."""
    random = np.random.default_rng(7)
    table = {
        "age": pa.array(random.integers(0, 90, 300), pa.int16()),
        "born": [date(1950, 1, 1) + timedelta(int(n)) for n in random.integers(0, 9999, 300)],
        "city": random.choice(["Ulm", "Rom"], 300),
    }
    release = anonymize(table, attributes=dict.fromkeys(table, QI))

    for name, columns in SCHEMAS.items():
        schema = pa.parquet.read_table(release / "metrics" / name).schema
        found = [f"{field.name}:{field.type}".replace(", ", ",") for field in schema]
        expected = columns.split()
        # Of the summary those that tools read.
        assert (set(expected) <= set(found)) if name == "summary" else found == expected

    row = summary(release)
    rounds = sorted(metrics(release, "rounds"), key=lambda one: one["round"])
    classes = metrics(release, "classes")
    attributes = metrics(release, "attributes")
    assert [one["attribute"] for one in attributes] == list(table)
    assert len({one["class_id"] for one in classes}) == len(classes) == row["classes"]
    assert rounds[0]["rows"] == 300
    for this, following in zip(rounds, [*rounds[1:], None], strict=True):
        own = [one["size"] for one in classes if one["round"] == this["round"]]
        assert this["normal_rows"] + this["outlier_rows"] == this["rows"]
        assert this["outlier_rows"] == (following["rows"] if following else 0)
        assert (len(own), sum(own)) == (this["classes"], this["normal_rows"])
        assert this["dm"] == sum(size**2 for size in own)
    assert rounds[-1]["classes_total"] == row["classes"]
    assert rounds[-1]["dm_total"] == row["dm"] == sum(one["size"] ** 2 for one in classes)
    assert rounds[-1]["gcp_total_cumulative"] == pytest.approx(row["gcp_total"])
    assert sum(one["ncp_total"] for one in attributes) == pytest.approx(row["gcp_total"])
    assert sum(one["size"] * one["ncp"] for one in classes) == pytest.approx(row["gcp_total"])
