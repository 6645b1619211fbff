"""privacy.unit: every class is about k people, whatever number of records each of them has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import command, configuration_file, metrics, published, summary, write_table

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.pipeline.run import run as run_pipeline
from anonspark.report.making import make_report
from anonspark.verification.audit import verify_release

K = 5
QUASI_IDENTIFIERS = ["age", "zone", "sex"]
MODELS: dict[str, dict[str, Any]] = {
    "smondrian": {"name": "smondrian"},
    "relaxed": {"name": "smondrian", "split": "relaxed"},
    "published": {"name": "smondrian", "cut": "published", "span": "cell"},
    "su-mondrian": {"name": "su-mondrian", "rho": 3},
    "su-mondrian as published": {"name": "su-mondrian", "rho": 3, "separation": "always"},
    "auto": {"name": "auto"},
    "canon": {"name": "canon"},
    "u-canon": {"name": "u-canon", "rho": 3, "separation": "always"},
    "microaggregation": {"name": "microaggregation", "block_rows": 1000},
    "full-domain": {"name": "full-domain"},
    "full-domain in tasks": {"name": "full-domain", "driver_tuples": 1000},
    "rho-gain": {"name": "rho-gain", "rho": 2},
}


def visits(rows: int = 2500, people: int = 400) -> dict[str, Any]:
    """Return visits of people, of whom few come often: one has a tenth of all visits."""
    generator = np.random.default_rng(3)
    patient = generator.zipf(1.7, rows) % people
    patient[: rows // 10] = 7
    # Near visits are often of one patient.
    age = np.clip(20 + patient % 60 + generator.integers(0, 4, rows), 18, 90)
    return {
        "patient": patient,
        "age": age,
        "zone": generator.integers(0, 40, rows),
        "sex": np.where(patient % 2, "f", "m"),
        "disease": generator.choice(["asthma", "flu", "gout", "ulcer"], rows),
    }


def configured(folder: Path, **sections: Any) -> Path:
    hierarchy = folder / "sex.csv"
    hierarchy.write_text("f,*\nm,*\n")
    return configuration_file(
        folder,
        **{
            "attributes": {
                "patient": "insensitive",
                "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
                "zone": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20]}},
                "sex": {"role": "quasi_identifier", "hierarchy": str(hierarchy)},
                "disease": "sensitive",
            },
            "privacy": {"k": K, "unit": "patient"},
            "execution": {"seed": 5},
        }
        | sections,
    )


def run(path: Path) -> Path:
    run_pipeline(LocalEngine(), load_configuration(path))
    return path.parent / "release"


def people_of_classes(release: Path) -> pd.Series[int]:
    """Count the patients of each published tuple, with pandas alone."""
    table = published(release).to_pandas()
    key = table[QUASI_IDENTIFIERS].astype(str)
    return table.groupby([key[name] for name in QUASI_IDENTIFIERS])["patient"].nunique()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("units")
    write_table(folder / "input.parquet", visits())
    return folder


def place(folder: Path, name: str) -> Path:
    own = folder / name
    own.mkdir(exist_ok=True)
    return own


def with_input(folder: Path, own: Path, **sections: Any) -> Path:
    return configured(own, input={"path": str(folder / "input.parquet")}, **sections)


@pytest.mark.parametrize("model", MODELS)
def test_every_class_is_about_k_people(folder: Path, model: str) -> None:
    own = place(folder, model)
    release = run(with_input(folder, own, model=MODELS[model]))
    counted = people_of_classes(release)
    assert counted.min() >= K
    assert len(counted) > 5
    figures = summary(release)
    assert figures["units"] == len(set(visits()["patient"].tolist()))
    # Classes of one tuple are one class to whoever sees the release.
    assert K <= figures["smallest_units"] <= counted.min()
    assert counted.sum() < figures["rows_published"]


@pytest.mark.parametrize("model", ["smondrian", "relaxed", "published", "canon"])
def test_any_size_of_tasks_makes_one_release(folder: Path, model: str) -> None:
    found = set()
    for task_rows in (100, 350, 10_000):
        own = place(folder, f"{model}-{task_rows}")
        release = run(
            with_input(
                folder,
                own,
                model=MODELS[model],
                execution={"seed": 5, "task_rows": task_rows},
                attributes=dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
                | {"patient": "insensitive"},
            )
        )
        found.add(json.loads((release / "manifest.json").read_text())["fingerprints"]["output"])
    assert len(found) == 1


@pytest.mark.parametrize("model", ["smondrian", "canon"])
def test_a_predicted_tree_counts_people_too(tmp_path: Path, model: str) -> None:
    """Of large tables a sample tells most of the tree, but nothing of people."""
    write_table(tmp_path / "input.parquet", visits(30_000, 3_000))
    found = set()
    for task_rows in (700, 100_000):
        release = run(
            with_input(
                tmp_path,
                place(tmp_path, str(task_rows)),
                model=MODELS[model],
                privacy={"k": 40, "unit": "patient"},
                execution={"seed": 5, "task_rows": task_rows},
                attributes=dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
                | {"patient": "insensitive"},
            )
        )
        found.add(json.loads((release / "manifest.json").read_text())["fingerprints"]["output"])
    assert len(found) == 1
    assert people_of_classes(release).min() >= 40


def test_k_people_are_k_different_values_of_their_number(folder: Path) -> None:
    """Distinct l-diversity of the number, with l = k, is the same promise, kept by other code."""
    found = []
    for name, privacy in (
        ("as-units", {"k": K, "unit": "patient"}),
        ("as-values", {"k": K, "l_diversity": {"attribute": "patient", "l": K}}),
    ):
        release = run(
            with_input(
                folder,
                place(folder, name),
                model={"name": "smondrian"},
                privacy=privacy,
                attributes=dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
                | {"patient": "sensitive"},
            )
        )
        found.append(sorted(map(str, published(release).to_pylist())))
    assert found[0] == found[1]


@pytest.mark.parametrize("model", ["su-mondrian", "microaggregation", "full-domain"])
def test_one_record_a_person_is_as_if_nobody_had_asked(tmp_path: Path, model: str) -> None:
    table = visits()
    table["patient"] = np.random.default_rng(1).permutation(len(table["age"]))
    write_table(tmp_path / "input.parquet", table)
    found = []
    for name, privacy in (("without", {"k": K}), ("with", {"k": K, "unit": "patient"})):
        own = place(tmp_path, name)
        release = run(with_input(tmp_path, own, model=MODELS[model], privacy=privacy))
        manifest = json.loads((release / "manifest.json").read_text())
        files = [
            (one["path"], one["sha256"]) for one in manifest["files"] if "data/" in one["path"]
        ]
        found.append((files, manifest["fingerprints"]["output"]))
        assert ("smallest_units" in manifest["summary"]) == (name == "with")
    assert found[0] == found[1]


def test_the_number_is_not_published(folder: Path) -> None:
    own = place(folder, "identifier")
    path = with_input(
        folder,
        own,
        attributes={"patient": "identifier"} | dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier"),
    )
    release = run(path)
    assert published(release).schema.names == QUASI_IDENTIFIERS
    verified = verify_release(LocalEngine(), str(release))
    assert verified.units is not None
    assert verified.units.not_published == ("patient",)
    assert verified.units.fewest == summary(release)["smallest_units"]
    assert any("'patient' is not published" in one for one in verified.warnings)
    # The warning that k counts records is for those who have not said that it counts people.
    manifest = json.loads((release / "manifest.json").read_text())
    assert not [one for one in manifest["warnings"] if one["code"].startswith("identifier")]


@pytest.mark.parametrize(
    ("role", "told"), [("identifier", "as the run counted"), ("insensitive", "repeat the proof")]
)
def test_the_report_tells_of_people(folder: Path, role: str, told: str) -> None:
    own = place(folder, f"report-{role}")
    path = with_input(
        folder,
        own,
        attributes={"patient": role} | dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier"),
    )
    page = make_report(LocalEngine(), str(run(path)))
    assert "people of the class that has the fewest" in page
    assert told in page
    assert ("as the run counted" in page) == (role == "identifier")


def test_a_published_number_proves_it(folder: Path) -> None:
    own = place(folder, "proven")
    release = run(with_input(folder, own, model={"name": "smondrian"}))
    verified = verify_release(LocalEngine(), str(release))
    assert verified.units is not None
    assert verified.units.not_published == ()
    counted = people_of_classes(release).value_counts()
    assert verified.units.classes == {int(n): int(c) for n, c in counted.items()}
    assert verified.as_dict()["units"]["proven"]
    highest = next(one for one in verified.risk if one["attacker"] == "prosecutor")["highest"]
    assert highest == 1 / verified.units.fewest
    (stated,) = [
        row
        for row in metrics(release, "risk")
        if row["attacker"] == "prosecutor" and row["round"] is None
    ]
    assert stated["highest"] == highest


def test_a_release_about_fewer_people_fails(folder: Path, tmp_path: Path) -> None:
    """Whoever changes the numbers of a release is found out by counting them."""
    release = run(with_input(folder, place(folder, "changed"), model={"name": "smondrian"}))
    table = published(release)
    table = table.set_column(
        table.schema.get_field_index("patient"), "patient", pa.repeat(1, len(table)).cast("int64")
    )
    pq.write_table(table, tmp_path / "table.parquet")
    configuration = load_configuration(with_input(folder, place(folder, "asked")))
    with pytest.raises(GuaranteeError, match="about 1 people, expected k = 5"):
        verify_release(LocalEngine(), str(tmp_path / "table.parquet"), configuration=configuration)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"patient": ["a", None, "b", " ", "?"]}, "3 records do not tell whom they are about"),
        ({"patient": ["a", " a", "b", "b ", "c"]}, "the input is about 3, told apart by patient"),
        ({"patient": [1.5, float("nan"), 2.0, 3.0, 4.0]}, "1 records do not tell whom"),
    ],
)
def test_records_of_nobody_and_too_few_people(
    tmp_path: Path, rows: Mapping[str, Any], told: str
) -> None:
    write_table(tmp_path / "input.parquet", {**rows, "age": [1, 2, 3, 4, 5]})
    path = configuration_file(
        tmp_path,
        input={"path": str(tmp_path / "input.parquet"), "missing_markers": ["?"]},
        attributes={"patient": "identifier", "age": "quasi_identifier"},
        privacy={"k": 4, "unit": ["patient"]},
    )
    with pytest.raises(DataError, match=told):
        run(path)
    assert not (tmp_path / "release").exists()


def test_several_columns_tell_people_apart(tmp_path: Path) -> None:
    rows = 120
    table = {
        "hospital": ["a", "b"] * (rows // 2),
        "number": [one // 4 for one in range(rows)],
        "age": [one % 50 for one in range(rows)],
    }
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={"hospital": "identifier", "number": "identifier", "age": "quasi_identifier"},
        privacy={"k": 3, "unit": ["hospital", "number"]},
    )
    assert summary(run(path))["units"] == 2 * len(set(table["number"]))


def test_check_counts_people_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = with_input(folder, place(folder, "checked"), privacy={"k": 1000, "unit": "patient"})
    outcome = command(capsys, "check", path)
    assert outcome.code == 3
    assert "needs at least 1000 people" in outcome.err


@pytest.mark.parametrize(
    ("privacy", "told"),
    [
        ({"unit": "patent"}, r"privacy.unit\[0\]: found the text 'patent', which is.*'patient'"),
        ({"unit": ["patient", "patient"]}, r"privacy.unit\[1\]: found the text 'patient' twice"),
        (
            {"unit": "patient", "l_diversity": {"attribute": "disease", "l": 2}},
            "privacy.unit: found it beside privacy.l_diversity, which count records",
        ),
        (
            {"unit": "patient", "delta_presence": {"population": "p", "max": 0.5}},
            "privacy.unit: found it beside privacy.delta_presence",
        ),
    ],
)
def test_units_that_cannot_be(tmp_path: Path, privacy: Mapping[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        load_configuration(configured(tmp_path, privacy={"k": K, **privacy}))


def test_types_that_tell_nobody_apart(tmp_path: Path) -> None:
    table = {"patient": pa.array([[1], [2], [3]]), "age": [1, 2, 3]}
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={"patient": "identifier", "age": "quasi_identifier"},
        privacy={"k": 2, "unit": "patient"},
    )
    with pytest.raises(DataError, match="people cannot be told apart by a column of type"):
        run(path)


def test_a_residual_of_too_few_people_is_not_published(tmp_path: Path) -> None:
    """Records without a class are a class: of k records, but of one person."""
    rows = 40
    table = {
        "patient": [*range(rows), *[1000] * 6],
        "age": [*[20] * rows, *[80, 81, 82, 83, 84, 85]],
    }
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={
            "patient": "identifier",
            "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [10]}},
        },
        privacy={"k": 5, "unit": "patient"},
        model={
            "name": "full-domain",
            "suppression_limit": 0.5,
            "maximum_levels": {"age": 1},
            "residual": "suppress",
        },
    )
    with pytest.raises(GuaranteeError, match="are about fewer than k = 5 people"):
        run(path)
