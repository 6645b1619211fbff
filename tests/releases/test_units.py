"""privacy.unit: every class is about k people, whatever number of records each of them has."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases, data_beside
from commands import Cli
from forgeries import list_files, read_table, save_table
from forgeries import verified as proven
from helpers import configuration_file, metrics, published, summary, write_table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anonspark.config import load_configuration
from anonspark.config.privacy import PrivacyOptions
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.pipeline.run import run as run_pipeline
from anonspark.reporting.build_report import make_report
from anonspark.verification.audit import audit_release, audit_table
from anonspark.verification.claims.claim import Claim

K = 5
ALONE = "agree with no one else in the classes of all their records"
QUASI_IDENTIFIERS = ["age", "zone", "sex"]
MODELS: dict[str, dict[str, Any]] = data_beside(__file__)["MODELS"]


@cache
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
    more = sections.pop("more_attributes", {})
    return configuration_file(
        folder,
        **{
            "attributes": {
                "patient": "insensitive",
                "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
                "zone": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20]}},
                "sex": {"role": "quasi_identifier", "hierarchy": str(hierarchy)},
                "disease": "sensitive",
            }
            | more,
            "privacy": {"k": K, "unit": "patient"},
            "execution": {"seed": 5},
        }
        | sections,
    )


def run(path: Path) -> Path:
    run_pipeline(LocalEngine(), load_configuration(path))
    return path.parent / "release"


def of_tuples(release: Path, *names: str) -> list[list[Any]]:
    """Return what some columns hold in the records of each published tuple."""
    table = published(release)
    found: dict[tuple[str, ...], list[Any]] = {}
    keys = zip(*(map(str, table[name].to_pylist()) for name in QUASI_IDENTIFIERS), strict=True)
    told = zip(*(table[name].to_pylist() for name in names), strict=True)
    for key, one in zip(keys, told, strict=True):
        found.setdefault(key, []).append(one)
    return list(found.values())


def people_of_classes(release: Path) -> list[int]:
    """Count the patients of each published tuple."""
    return [len(set(own)) for own in of_tuples(release, "patient")]


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


# All models: test_criteria_count_people.
@pytest.mark.parametrize("model", ["su-mondrian", "microaggregation", "full-domain"])
def test_every_class_is_about_k_people(folder: Path, model: str) -> None:
    own = place(folder, model)
    release = run(with_input(folder, own, model=MODELS[model]))
    counted = people_of_classes(release)
    assert min(counted) >= K
    assert len(counted) > 5
    figures = summary(release)
    people = len(set(visits()["patient"].tolist()))
    assert figures["units"] == (None if figures["rows_left_out"] else people)
    # Classes of one tuple are one class to whoever sees the release.
    assert K <= figures["smallest_units"] <= min(counted)
    assert sum(counted) < figures["rows_published"]


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
    assert min(people_of_classes(release)) >= 40


ONE = {"l_diversity": {"attribute": "disease", "l": 3}}
TWO = {"l_diversity": [*ONE.values(), {"attribute": "ward", "l": 2}]}


@cache
def sick(rows: int = 2500, people: int = 400) -> dict[str, Any]:
    """Return visits, of which those of a patient are mostly for one disease."""
    table = dict(visits(rows, people))
    generator = np.random.default_rng(11)
    usual = generator.integers(0, 4, people)
    disease = np.where(generator.random(rows) < 0.7, usual[table["patient"]], table["zone"] % 4)
    table["disease"] = np.array(["asthma", "flu", "gout", "ulcer"])[disease]
    table["stage"] = disease + generator.integers(0, 3, rows)
    table["ward"] = np.array(["a", "b", "c"])[(table["patient"] + disease) % 3]
    return table


def matching(owners: list[set[int]]) -> int:
    """Return how many values can have a person of their own each."""
    taken: dict[int, int] = {}

    def find(value: int, asked: set[int]) -> bool:
        for one in owners[value] - asked:
            asked.add(one)
            if one not in taken or find(taken[one], asked):
                taken[one] = value
                return True
        return False

    return sum(find(value, set()) for value in range(len(owners)))


def values_of_people(release: Path, attribute: str) -> list[tuple[int, dict[Any, set[int]]]]:
    """Return the people of each published tuple, and those with each value."""
    found = []
    for own in of_tuples(release, "patient", attribute):
        having: dict[Any, set[int]] = {}
        for patient, value in own:
            having.setdefault(value, set()).add(patient)
        found.append((len(set().union(*having.values())), having))
    return found


def require_people(release: Path, privacy: Mapping[str, Any]) -> None:
    """Check the criteria in the published tuples, by their definitions."""
    asked = privacy["l_diversity"]
    for one in asked if isinstance(asked, list) else [asked]:
        for _, having in values_of_people(release, one["attribute"]):
            assert matching(list(having.values())) >= one["l"]


def with_sick(folder: Path, **sections: Any) -> Path:
    write_table(folder / "input.parquet", sick())
    return configured(
        folder,
        **{
            "more_attributes": {"ward": "sensitive", "stage": "sensitive"},
            "input": {"path": str(folder / "input.parquet")},
            **sections,
        },
    )


@pytest.mark.parametrize(
    ("model", "criteria"), [(model, (ONE, TWO)[place % 2]) for place, model in enumerate(MODELS)]
)
def test_distinct_values_of_people(tmp_path: Path, model: str, criteria: dict[str, Any]) -> None:
    privacy = {"k": K, "unit": "patient", **criteria}
    release = run(with_sick(tmp_path, model=MODELS[model], privacy=privacy))
    assert min(people_of_classes(release)) >= K
    assert len(people_of_classes(release)) > 3
    require_people(release, criteria)
    verified = audit_release(LocalEngine(), str(release)).require()
    assert verified.failures == []
    assert all("no criterion forbids" in one or ALONE in one for one in verified.warnings)
    stated = {
        row["attribute"]: row["measured"]
        for row in metrics(release, "privacy")
        if row["attribute"] is not None
    }
    assert stated == {one.criterion.attribute: one.measured for one in verified.criteria}


@pytest.mark.parametrize("model", ["smondrian", "relaxed", "published", "canon"])
def test_distinct_values_of_people_whatever_the_tasks_hold(tmp_path: Path, model: str) -> None:
    found = set()
    for task_rows in (300, 10_000):
        path = with_sick(
            place(tmp_path, str(task_rows)),
            model=MODELS[model],
            privacy={"k": K, "unit": "patient", **ONE},
            execution={"seed": 5, "task_rows": task_rows},
            attributes=dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
            | {"patient": "insensitive", "disease": "sensitive", "ward": "sensitive"},
            more_attributes={},
        )
        release = run(path)
        found.add(json.loads((release / "manifest.json").read_text())["fingerprints"]["output"])
    assert len(found) == 1
    require_people(release, ONE)


VISITS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(20, 60), st.integers(0, 9), st.sampled_from("abc")),
    min_size=20,
    max_size=60,
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=VISITS, model=st.sampled_from(list(MODELS)), task_rows=st.sampled_from([8, 1000]))
def test_any_visits(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, int, int, str]],
    model: str,
    task_rows: int,
) -> None:
    """Whatever people have, a release keeps the criteria, or there is none and it says why."""
    folder = tmp_path_factory.mktemp("any")
    names = ("patient", "age", "zone", "disease")
    table: dict[str, Any] = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    table["sex"] = np.where(table["zone"] % 2, "f", "m")
    write_table(folder / "input.parquet", table)
    privacy = {"k": 2, "unit": "patient", "l_diversity": {"attribute": "disease", "l": 2}}
    path = configured(
        folder,
        input={"path": str(folder / "input.parquet")},
        model=MODELS[model],
        privacy=privacy,
        execution={"seed": 5, "task_rows": task_rows},
    )
    try:
        release = run(path)
    except (DataError, GuaranteeError) as error:
        told = str(error)
        assert "bug" not in told
        assert not (folder / "release").exists()
        return
    assert min(people_of_classes(release)) >= 2
    counts = summary(release)
    if not counts["rows_left_out"]:
        require_people(release, privacy)
    assert audit_release(LocalEngine(), str(release)).require().failures == []


def test_criteria_of_people_who_are_not_published(tmp_path: Path) -> None:
    privacy = {"k": K, "unit": "patient", **ONE}
    attributes = dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
    attributes |= {"patient": "identifier", "disease": "sensitive"}
    path = with_sick(tmp_path, privacy=privacy, attributes=attributes, more_attributes={})
    release = run(path)
    verified = audit_release(LocalEngine(), str(release)).require()
    assert verified.failures == []
    assert [one.measured for one in verified.criteria] == [3.0]
    assert any("k and the criteria beyond it count people" in one for one in verified.warnings)
    asked = {"l_diversity": {"attribute": "disease", "l": 2}}
    own = place(tmp_path, "other")
    other = with_sick(own, privacy={**privacy, **asked}, attributes=attributes, more_attributes={})
    with pytest.raises(DataError, match="the run did not measure it"):
        audit_release(
            LocalEngine(), str(release), configuration=load_configuration(other)
        ).require()


def test_criteria_of_people_where_labels_are_sets(tmp_path: Path) -> None:
    privacy = {"k": K, "unit": "patient", **ONE}
    attributes = dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier")
    attributes |= {"patient": "insensitive", "disease": "sensitive"}
    output = {"path": str(tmp_path / "release"), "style": "bounds"}
    sections = {"privacy": privacy, "attributes": attributes, "output": output}
    release = run(with_sick(tmp_path, **sections, more_attributes={}))
    assert published(release).schema.field("sex").type == pa.list_(pa.string())
    verified = audit_release(LocalEngine(), str(release)).require()
    assert (verified.failures, verified.criteria[0].measured) == ([], 3.0)


def test_an_input_that_violates_a_criterion_by_people(tmp_path: Path) -> None:
    """One person has all diseases but one: three values of records, two with a person each."""
    people = 50
    table = {
        "patient": [*range(people), 0, 0],
        "age": [one % 40 for one in range(people + 2)],
        "disease": ["flu"] * people + ["gout", "ulcer"],
    }
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={"patient": "identifier", "age": "quasi_identifier", "disease": "sensitive"},
        privacy={"k": 3, "unit": "patient", "l_diversity": {"attribute": "disease", "l": 3}},
    )
    with pytest.raises(GuaranteeError, match="where people are counted"):
        run(path)


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


CRITERIA: dict[str, Any] = {
    "k alone": {},
    "l-diversity": {"l_diversity": {"attribute": "disease", "l": 3}},
}


@cases(__file__, "model", "criteria")
def test_one_record_a_person_is_as_if_nobody_had_asked(
    tmp_path: Path, model: str, criteria: str
) -> None:
    table = dict(visits())
    table["patient"] = np.random.default_rng(1).permutation(len(table["age"]))
    write_table(tmp_path / "input.parquet", table)
    found = []
    for name, unit in (("without", {}), ("with", {"unit": "patient"})):
        privacy = {"k": K, **unit, **CRITERIA[criteria]}
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
    verified = audit_release(LocalEngine(), str(release)).require()
    assert verified.units is not None
    assert verified.units.not_published == ("patient",)
    assert verified.units.fewest == summary(release)["smallest_units"]
    assert any("'patient' is not published" in one for one in verified.warnings)
    manifest = json.loads((release / "manifest.json").read_text())
    assert not [one for one in manifest["warnings"] if one["code"].startswith("identifier")]


def test_no_identifier_makes_k_count_fewer_people(tmp_path: Path, cli: Cli) -> None:
    # The warning that k counts records is for those who have not said that it counts people.
    write_table(tmp_path / "input.parquet", visits() | {"mail": visits()["patient"]})
    path = configured(
        tmp_path,
        attributes={"patient": "identifier", "mail": "identifier"}
        | dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier"),
    )
    manifest = json.loads((run(path) / "manifest.json").read_text())
    assert not [one for one in manifest["warnings"] if one["code"].startswith("identifier")]
    outcome = cli.ends(0, "check", path, f"--set=output.path={tmp_path / 'other'}")
    assert "of another record" not in outcome.out + outcome.err


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
    page, _ = make_report(LocalEngine(), str(run(path)))
    assert "people of the class that has the fewest" in page
    assert told in page
    assert ("as the run counted" in page) == (role == "identifier")
    # Who knows all records of a person sees them together where the number is published.
    assert ("people who agree in the classes" in page) == (role == "insensitive")
    # Risks are of people; what a class tells of a sensitive attribute is of records.
    assert "People above each threshold of risk" in page
    assert "of one record of a person, and nothing else" in page


def test_a_published_number_proves_it(folder: Path) -> None:
    own = place(folder, "proven")
    release = run(with_input(folder, own, model={"name": "smondrian"}))
    verified = audit_release(LocalEngine(), str(release)).require()
    assert verified.units is not None
    assert verified.units.not_published == ()
    assert verified.units.classes == Counter(people_of_classes(release))
    assert verified.as_dict()["units"]["proven"]
    highest = next(one for one in verified.risk if one["attacker"] == "prosecutor")["highest"]
    assert highest == 1 / verified.units.fewest
    (stated,) = [
        row
        for row in metrics(release, "risk")
        if row["attacker"] == "prosecutor" and row["round"] is None
    ]
    assert stated["highest"] == highest


@pytest.mark.parametrize(("column", "value"), [("patient", 1), ("person", "a" * 32)])
def test_a_release_about_fewer_people_fails(
    folder: Path, tmp_path: Path, column: str, value: int | str
) -> None:
    """Whoever changes the numbers of a release, or takes a pseudonym of another, is found out."""
    make = with_input if column == "patient" else with_pseudonyms
    table = published(run(make(folder, place(tmp_path, "released"))))
    changed = pa.repeat(value, len(table))
    table = table.set_column(table.schema.get_field_index(column), column, changed)
    pq.write_table(table, tmp_path / "table.parquet")
    asked = load_configuration(make(folder, place(tmp_path, "asked")))
    audit = audit_release(LocalEngine(), str(tmp_path / "table.parquet"), configuration=asked)
    with pytest.raises(GuaranteeError, match="about 1 people, expected k = 5"):
        audit.require()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"patient": ["a", None, "b", " ", "?"]}, "3 records have no person"),
        (
            {"patient": ["a", " a", "b", "b ", "c"]},
            ("but the input is about 3, identified by patient"),
        ),
        ({"patient": [1.5, float("nan"), 2.0, 3.0, 4.0]}, "1 records have no person"),
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


def test_check_counts_people_too(folder: Path, cli: Cli) -> None:
    path = with_input(folder, place(folder, "checked"), privacy={"k": 1000, "unit": "patient"})
    cli.ends(3, "check", path, says="needs at least 1000 people")


@cases(__file__, "privacy", "told")
def test_units_that_cannot_be(tmp_path: Path, privacy: Mapping[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        load_configuration(configured(tmp_path, privacy={"k": K, **privacy}))


def test_what_counts_records_where_people_have_several(folder: Path) -> None:
    privacy = {
        "k": K,
        "unit": "patient",
        "delta_presence": {"population": str(folder / "input.parquet"), "max": 0.5},
    }
    told = "privacy.delta_presence: found together with privacy.unit, and a person has"
    model = {
        "name": "full-domain",
        "levels": [{"age": 4, "zone": 3, "sex": 1}],
        "suppression_limit": 0.0,
    }
    with pytest.raises(DataError, match=told):
        run(with_input(folder, place(folder, "records"), privacy=privacy, model=model))


def test_types_that_tell_nobody_apart(tmp_path: Path) -> None:
    table = {"patient": pa.array([[1], [2], [3]]), "age": [1, 2, 3]}
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={"patient": "identifier", "age": "quasi_identifier"},
        privacy={"k": 2, "unit": "patient"},
    )
    with pytest.raises(DataError, match="people cannot be identified by a column of type"):
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


HIDDEN: dict[str, Any] = {"patient": "identifier"} | dict.fromkeys(
    QUASI_IDENTIFIERS, "quasi_identifier"
)


def with_pseudonyms(folder: Path, own: Path, **sections: Any) -> Path:
    output = {"path": str(own / "release"), "pseudonyms": {"patient": "person"}}
    given = {
        "input": {"path": str(folder / "input.parquet")},
        "attributes": HIDDEN,
        "privacy": {"k": K, "unit": "patient", "allow_alone": True},
    }
    return configured(own, **{**given, "output": output, **sections})


def persons(release: Path) -> list[list[tuple[str, ...]]]:
    """Return the tuples of the records of each pseudonym."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for row in published(release).to_pylist():
        key = tuple(str(row[name]) for name in QUASI_IDENTIFIERS)
        found.setdefault(row["person"], []).append(key)
    return [sorted(own) for own in found.values()]


@pytest.mark.parametrize("model", ["smondrian", "su-mondrian", "full-domain"])
def test_pseudonyms_keep_records_of_a_person_together(folder: Path, model: str) -> None:
    # Passes share out records that are equal but for what identifies a person.
    options = MODELS[model] | ({"refine": 0} if model == "su-mondrian" else {})
    plain = run(with_input(folder, place(folder, f"plain-{model}"), model=options))
    attributes: dict[str, Any] = {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "zone": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10, 20]}},
        "sex": {"role": "quasi_identifier", "hierarchy": str(folder / f"plain-{model}/sex.csv")},
        "disease": "sensitive",
    }
    release = run(
        with_pseudonyms(
            folder,
            place(folder, f"pseudonyms-{model}"),
            model=options,
            attributes={"patient": "identifier", **attributes},
        )
    )
    table = published(release)
    assert table.schema.names == ["person", *QUASI_IDENTIFIERS, "disease"]
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in table["person"].to_pylist())
    # The same records of the same people, by another name of each.
    by_patient: dict[int, list[tuple[str, ...]]] = {}
    for row in published(plain).to_pylist():
        key = tuple(str(row[name]) for name in QUASI_IDENTIFIERS)
        by_patient.setdefault(row["patient"], []).append(key)
    assert sorted(persons(release)) == sorted(sorted(own) for own in by_patient.values())
    original = str(folder / "input.parquet")
    verified = audit_release(LocalEngine(), str(release), original=original)
    assert verified.failures == []
    assert all("no criterion forbids" in one or ALONE in one for one in verified.warnings)
    assert verified.units is not None
    assert verified.units.not_published == ()
    assert verified.units.fewest >= K
    alike = Counter(Counter(map(tuple, persons(release))).values())
    assert verified.units.agreeing == dict(alike)
    assert verified.as_dict()["units"]["fewest_agreeing"] == min(alike)
    assert verified.as_dict()["units"]["alone"] == alike.get(1, 0)


@pytest.mark.parametrize("role", ["pseudonym", "insensitive"])
def test_people_who_are_alone_in_their_combination(tmp_path: Path, cli: Cli, role: str) -> None:
    """300 people with 2 to 5 records are in 16 classes of each day, so hardly two of them agree."""
    generator = np.random.default_rng(1)
    person = np.repeat(np.arange(300), generator.integers(2, 6, 300))
    columns = {
        "patient": person,
        "age": generator.integers(18, 90, 300)[person],
        "day": generator.integers(0, 1000, len(person)),
        "disease": generator.choice(list("abcdef"), len(person)),
    }
    write_table(tmp_path / "input.parquet", columns)
    hidden, output = role == "pseudonym", {"path": str(tmp_path / "release")}
    path = configuration_file(
        tmp_path,
        attributes={
            "patient": "identifier" if hidden else role,
            **dict.fromkeys(("age", "day"), "quasi_identifier"),
            "disease": "sensitive",
        },
        privacy={"k": 10, "unit": "patient", "l_diversity": {"attribute": "disease", "l": 3}},
        model={"name": "su-mondrian", "refine": 0},
        output=output | ({"pseudonyms": {"patient": "person"}} if hidden else {}),
    )
    if hidden:
        refused = cli("run", path)
        assert (refused.code, (tmp_path / "release").exists()) == (4, False)
        assert f"output.pseudonyms: 278 people {ALONE}" in refused.err
        assert "set privacy.allow_alone to true" in refused.err
    allowed = ("run", path, "--set", "privacy.allow_alone=true")
    refused = cli(*allowed, "--set", "gates.alone={max: 0}")
    assert (refused.code, "gates.alone: found 278, expected at most 0" in refused.err) == (4, True)
    assert f"278 people {ALONE}" in cli(*(allowed if hidden else ("run", path))).err
    release = tmp_path / "release"
    codes = [one["code"] for one in json.loads((release / "manifest.json").read_text())["warnings"]]
    assert ("people_alone" in codes, summary(release)["alone"]) == (True, 278)
    cli.ends(0, "verify", release, says=f"278 people {ALONE}")
    page, _ = make_report(LocalEngine(), str(release))
    assert "People found by all their records" in page
    assert "278 people agree with no one else in the" in page


def test_nobody_is_known_to_be_alone_where_files_do_not_show_people(folder: Path) -> None:
    own = place(folder, "hidden")
    path = with_input(folder, own, attributes=HIDDEN, gates={"alone": {"max": 0}})
    with pytest.raises(ConfigurationError, match="which is not measured"):
        load_configuration(path)


def test_pseudonyms_of_one_record_a_person(tmp_path: Path) -> None:
    """The classes are those of a run without, and every record has a pseudonym of its own."""
    table = dict(visits(500))
    table["patient"] = np.random.default_rng(1).permutation(500)
    write_table(tmp_path / "input.parquet", table)
    plain = run(with_input(tmp_path, place(tmp_path, "plain"), attributes=HIDDEN))
    release = run(with_pseudonyms(tmp_path, place(tmp_path, "pseudonyms")))
    own = published(release)
    assert len(set(own["person"].to_pylist())) == 500
    keys = [(name, "ascending") for name in QUASI_IDENTIFIERS]
    assert own.select(QUASI_IDENTIFIERS).sort_by(keys) == published(plain).sort_by(keys)
    verified = audit_release(LocalEngine(), str(release)).require()
    assert verified.units is not None
    assert verified.units.fewest_agreeing == verified.units.fewest == verified.published.smallest
    # Names in their place were accepted.
    own = read_table(release, "data")
    place_of = own.schema.get_field_index("person")
    names = pa.array([f"Jane Doe {number}" for number in range(500)])
    save_table(release, "data", own.set_column(place_of, "person", names))
    list_files(release)
    assert "holds other values than pseudonyms in 'person'" in str(proven(release))


def test_criteria_of_people_are_proven_by_pseudonyms(tmp_path: Path) -> None:
    privacy = {"k": K, "unit": "patient", "allow_alone": True, **ONE}
    output = {"path": str(tmp_path / "release"), "pseudonyms": {"patient": "person"}}
    path = with_sick(
        tmp_path,
        privacy=privacy,
        output=output,
        attributes=HIDDEN | {"disease": "sensitive"},
        more_attributes={},
    )
    release = run(path)
    verified = audit_release(LocalEngine(), str(release)).require()
    assert verified.failures == []
    assert all("no criterion forbids" in one or ALONE in one for one in verified.warnings)
    (stated,) = [row for row in metrics(release, "privacy") if row["criterion"] == "distinct"]
    assert verified.criteria[0].measured == stated["measured"]


@cases(__file__, "sections", "told")
def test_pseudonyms_that_cannot_be(tmp_path: Path, sections: Mapping[str, Any], told: str) -> None:
    output = {"pseudonyms": {"patient": "person"}, **sections.get("output", {})}
    changed = {**sections, "output": {"path": str(tmp_path / "release"), **output}}
    with pytest.raises(ConfigurationError, match=told):
        load_configuration(configured(tmp_path, **changed))


def test_labels_that_differ_in_blanks_are_classes_of_their_own() -> None:
    table = pa.table(
        {
            "town": ["a", "a", "a ", "a "],
            "patient": ["1", "1 ", "2", "2"],
            "disease": ["flu", "gout", "flu", "gout"],
        }
    )
    asked = Claim(
        PrivacyOptions(k=2, unit=["patient"], l_diversity={"attribute": "disease", "l": 2}),
        ["town"],
        ("town",),
        sensitive=("disease",),
        as_they_came=("patient", "disease"),
    )
    found = audit_table(LocalEngine().table(table), asked)
    # Two spellings of a number are one person; two labels are read as they are written.
    assert found.units is not None
    assert (found.published.classes, found.units.classes, found.units.agreeing) == (
        2,
        {1: 2},
        {1: 2},
    )
    assert [one.measured for one in found.criteria] == [1.0]
    assert "about 1 people, expected k = 2" in "\n".join(found.failures)
