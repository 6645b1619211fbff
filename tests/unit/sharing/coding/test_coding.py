"""A coding: what its file may say, what a configuration takes from it, and its fingerprint."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from cases import cases, data_beside
from documents import problems_of, validate_document
from helpers import document_file
from places import REPOSITORY

from anonspark.config import Configuration, load_configuration, parse_configuration
from anonspark.errors import SparkNeededError
from anonspark.sharing.coding.agreement import agreed_digests, coding_fingerprint, coding_privacy

CODING: dict[str, Any] = data_beside(__file__)["CODING"]
TOWNS = "Adana;south;*\nBursa;north;*\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Give the folder of the coding and its hierarchy file."""
    (tmp_path / "towns.csv").write_text(TOWNS)
    written(tmp_path, CODING)
    return tmp_path


def written(folder: Path, coding: dict[str, Any]) -> str:
    return str(document_file(folder, coding, "hospitals.yaml"))


def following(folder: Path, **sections: Any) -> dict[str, Any]:
    return {
        "input": {"path": "own.parquet"},
        "coding": str(folder / "hospitals.yaml"),
        "output": {"path": "out"},
    } | sections


def without_coding(folder: Path) -> dict[str, Any]:
    """Return what the coding says, written out."""
    attributes = copy.deepcopy(CODING["attributes"])
    attributes["town"]["hierarchy"] = str(folder / "towns.csv")
    return {
        "input": {"path": "own.parquet"},
        "attributes": attributes,
        "privacy": CODING["privacy"],
        "output": {"path": "out"},
    }


def same_but_for_coding(one: Configuration, other: Configuration) -> bool:
    return one.model_dump(exclude={"coding"}) == other.model_dump(exclude={"coding"})


def test_a_configuration_takes_all_from_the_coding(place: Path) -> None:
    configuration = parse_configuration(following(place))
    assert same_but_for_coding(configuration, parse_configuration(without_coding(place)))
    assert list(configuration.attributes) == list(CODING["attributes"])
    assert configuration.coding is not None
    assert configuration.agreed_coding is not None
    assert configuration.coding.fingerprint == configuration.agreed_coding.fingerprint
    validate_document(following(place))
    with pytest.raises(jsonschema.ValidationError):
        validate_document({"input": {"path": "a"}, "output": {"path": "b"}})


def test_the_example_of_the_documentation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "holders.md").read_text().partition("\n## The coding\n")[2]
    coding, own, *_ = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    document = yaml.safe_load(own) | {"input": {"path": "a"}, "output": {"path": "b"}}
    place = tmp_path / document["coding"]
    place.parent.mkdir()
    place.write_text(coding)
    (place.parent / "towns.csv").write_text(TOWNS)
    monkeypatch.chdir(tmp_path)
    configuration = parse_configuration(document)
    assert list(configuration.attributes) == [*yaml.safe_load(coding)["attributes"], "patient_id"]
    assert configuration.privacy.unit == ["patient_id"]


def test_the_file_is_found_from_where_the_command_runs(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.parent)
    document = following(place, coding=f"{place.name}/hospitals.yaml")
    path = place / "own" / "configuration.yaml"
    path.parent.mkdir()
    path.write_text(yaml.safe_dump(document))
    configuration = load_configuration(str(path))
    assert configuration.attributes["town"].hierarchy == f"{place.name}/towns.csv"


def test_what_is_said_twice_is_the_same(place: Path) -> None:
    document = following(place, missing="drop", output={"path": "out", "style": "interval"})
    document["attributes"] = copy.deepcopy(CODING["attributes"])
    assert same_but_for_coding(
        parse_configuration(document), parse_configuration(without_coding(place))
    )
    document["attributes"]["town"]["hierarchy"] = str(place / "towns.csv")
    parse_configuration(document)
    document["attributes"]["sex"] = {"role": "quasi_identifier", "order": ["male", "female"]}
    document["missing"] = "category"
    document["output"]["style"] = "bounds"
    found = [problem.partition(":")[0] for problem in problems_of(document)]
    assert found == ["attributes.sex", "missing", "output.style"]
    assert problems_of(following(place, attributes=["sex"]))[0].startswith(
        "attributes: found a list"
    )


def test_a_holder_has_identifiers_of_its_own(place: Path) -> None:
    document = following(place, attributes={"person_id": "identifier"}, privacy={})
    document["privacy"]["unit"] = "person_id"
    configuration = parse_configuration(document)
    assert list(configuration.attributes) == [*CODING["attributes"], "person_id"]
    assert configuration.privacy.unit == ["person_id"]
    assert configuration.privacy.k == 10
    document["attributes"]["ward"] = "insensitive"
    document["output"]["pseudonyms"] = {"person_id": "pseudonym"}
    found = [problem.partition(":")[0] for problem in problems_of(document)]
    assert found == ["attributes.ward", "output.pseudonyms"]


def test_a_wrong_attribute_is_told_as_ever(place: Path) -> None:
    (problem,) = problems_of(following(place, attributes={"person_id": "identifer"}))
    assert "Did you mean 'identifier'?" in problem


@cases(__file__, "own", "key")
def test_a_holder_may_ask_for_more(place: Path, own: dict[str, Any], key: str | None) -> None:
    document = following(place, privacy=own)
    if key is not None:
        (problem,) = problems_of(document)
        assert problem.startswith(f"{key}: ")
        return
    privacy = parse_configuration(document).privacy
    assert privacy.k == own.get("k", 10)
    # What the holder does not say stays, beside what it adds.
    assert privacy.l_diversity[0].l == own.get("l_diversity", {"l": 3})["l"]
    assert len(privacy.criteria) == 1 + ("t_closeness" in own)


@cases(__file__, "least", "own", "enough")
def test_criteria_are_compared_by_kind(
    place: Path, least: dict[str, Any], own: dict[str, Any], enough: bool
) -> None:
    written(
        place, CODING | {"privacy": {"k": 2, "l_diversity": {"attribute": "diagnosis", **least}}}
    )
    document = following(place, privacy={"l_diversity": {"attribute": "diagnosis", **own}})
    if enough:
        parse_configuration(document)
    else:
        assert problems_of(document)[0].startswith("privacy.l_diversity: ")


def test_the_fingerprint_is_that_of_the_contents(place: Path) -> None:
    def fingerprint() -> str:
        configuration = parse_configuration(following(place))
        assert configuration.agreed_coding is not None
        return configuration.agreed_coding.fingerprint

    first = fingerprint()
    # Neither where it lies, nor how it is written, nor what is default.
    attributes = {name: CODING["attributes"][name] for name in CODING["attributes"]}
    attributes["diagnosis"] = {"role": "sensitive", "weight": 1.0}
    listed = {"k": 10, "l_diversity": [{"attribute": "diagnosis", "kind": "distinct", "l": 3.0}]}
    written(
        place,
        {"style": "interval", "missing": "drop", "privacy": listed}
        | {"attributes": attributes, "name": CODING["name"]},
    )
    (place / "towns.csv").write_bytes(b"\xef\xbb\xbf" + TOWNS.replace("\n", "\r\n").encode())
    assert fingerprint() == first
    different = {first}
    for change in (
        {"name": "hospitals-2027"},
        {"missing": "error"},
        {"style": "bounds"},
        {"privacy": {"k": 10}},
        {"attributes": dict(reversed(CODING["attributes"].items()))},
        {"attributes": CODING["attributes"] | {"ward": "insensitive"}},
    ):
        written(place, CODING | change)
        different.add(fingerprint())
    written(place, CODING)
    (place / "towns.csv").write_text(TOWNS.replace("south", "north").replace("Bursa", "Rize"))
    different.add(fingerprint())
    assert len(different) == 8


def test_the_document_tells_all_but_the_files(place: Path) -> None:
    coding = parse_configuration(following(place)).agreed_coding
    assert coding is not None
    document = json.loads(json.dumps(coding.document))
    digest = hashlib.sha256(TOWNS.encode()).hexdigest()
    assert document == {
        "name": "hospitals-2026",
        "attributes": [
            {
                "name": "birth_year",
                "role": "quasi_identifier",
                "hierarchy": {"intervals": [5.0, 10.0, 20.0]},
            },
            {"name": "sex", "role": "quasi_identifier", "order": ["female", "male", "other"]},
            {"name": "town", "role": "quasi_identifier", "hierarchy": {"sha256": digest}},
            {"name": "diagnosis", "role": "sensitive"},
        ],
        "missing": "drop",
        "style": "interval",
        "privacy": {"k": 10, "l_diversity": [{"attribute": "diagnosis", "l": 3.0}]},
    }
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert coding.fingerprint == hashlib.sha256(canonical.encode()).hexdigest()
    assert coding_fingerprint(document) == coding.fingerprint
    assert coding_privacy(document) == coding.file.privacy
    assert agreed_digests(document) == {"town": digest}
    assert coding.as_dict()["name"] == coding.name


def test_another_file_than_agreed_on_is_refused(place: Path) -> None:
    coding = parse_configuration(following(place)).agreed_coding
    assert coding is not None
    agreed = {"path": str(place / "hospitals.yaml"), "fingerprint": coding.fingerprint}
    parse_configuration(following(place, coding=agreed))
    (place / "towns.csv").write_text(TOWNS + "Rize;north;*\n")
    (problem,) = problems_of(following(place, coding=agreed))
    assert problem.startswith("coding.fingerprint: ")
    wrong = problems_of(following(place, coding=agreed | {"fingerprint": "abc"}))
    assert wrong == [
        "coding.fingerprint: found the text 'abc'. Expected 64 hexadecimal digits, as anonspark "
        "check prints them. Correct it, or remove it"
    ]


def test_fingerprints_of_configurations(place: Path) -> None:
    plain = parse_configuration(without_coding(place))
    configuration = parse_configuration(following(place))
    assert configuration.fingerprint() != plain.fingerprint()
    assert configuration.input_fingerprint() == plain.input_fingerprint()
    assert configuration.settings_fingerprint() == plain.settings_fingerprint()
    other = place / "other.yaml"
    other.write_text((place / "hospitals.yaml").read_text())
    moved = parse_configuration(following(place, coding=str(other)))
    assert moved.fingerprint() == configuration.fingerprint()
    written(place, CODING | {"name": "another"})
    assert parse_configuration(following(place)).fingerprint() != configuration.fingerprint()


def test_orders_stay_hidden_in_the_configuration_that_a_manifest_shows(place: Path) -> None:
    public = parse_configuration(following(place)).public_dict()
    assert "order" not in public["attributes"]["sex"]
    assert public["coding"]["path"] == str(place / "hospitals.yaml")


def test_copies_know_the_coding(place: Path) -> None:
    configuration = parse_configuration(following(place))
    assert configuration.agreed_coding is not None
    pickled = pickle.dumps(configuration)
    for copied in (configuration.with_input({"a": "b"}), pickle.loads(pickled)):  # noqa: S301
        assert copied.agreed_coding == configuration.agreed_coding


@cases(__file__, "change", "more", "told")
def test_wrong_codings(
    place: Path, change: dict[str, Any], more: dict[str, Any], told: str
) -> None:
    attributes = {"attributes": CODING["attributes"] | more}
    path = written(place, CODING | attributes | change)
    found = problems_of(following(place))
    assert any(one.startswith(f"coding: {path}: ") and told in one for one in found)


def test_codings_that_cannot_be_read(place: Path, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.yaml")
    assert problems_of(following(place, coding=absent)) == [
        f"coding: {absent}: no such file. Expected a coding in YAML. Check the path"
    ]
    assert problems_of(following(place, coding=3))[0].startswith("coding: found the whole number 3")
    found = problems_of(following(place, coding={"file": "a"}))
    assert any(one.startswith("coding.file: unknown key") for one in found)
    (place / "hospitals.yaml").write_text("name: a\nname: b\nprivacy: [\n")
    assert "not valid YAML" in problems_of(following(place))[0]
    (place / "hospitals.yaml").write_text(yaml.safe_dump(CODING) + "name: twice\n")
    assert any("found the key twice" in one for one in problems_of(following(place)))
    written(place, CODING)
    (place / "towns.csv").unlink()
    (problem,) = problems_of(following(place))
    assert "attributes.town.hierarchy: " in problem
    assert "no such file" in problem
    with pytest.raises(SparkNeededError):
        parse_configuration(following(place, coding="hdfs://host/hospitals.yaml"))


def test_levels_are_those_of_full_domain(place: Path) -> None:
    attributes = {name: one for name, one in CODING["attributes"].items() if name != "sex"}
    levels = {"birth_year": 1, "town": 0}
    written(place, CODING | {"attributes": attributes, "levels": levels})
    for model in ({}, {"model": {"name": "full-domain"}}):
        configuration = parse_configuration(following(place, **model))
        assert configuration.model.name == "full-domain"
        assert configuration.model.model_dump()["levels"] == [levels]
    (problem,) = problems_of(following(place, model={"name": "smondrian"}))
    assert problem.startswith("model.name: found the text 'smondrian', but the coding gives levels")
    same = {"name": "full-domain", "levels": [levels]}
    parse_configuration(following(place, model=same))
    (problem,) = problems_of(
        following(place, model=same | {"levels": [{"birth_year": 2, "town": 0}]})
    )
    assert problem.startswith("model.levels: ")
