"""Short forms of a configuration mean what their long forms mean, to the fingerprint."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml
from cases import cases, data_beside
from documents import problems_of, validate_document

from anonspark.config import json_schema, parse_configuration
from anonspark.config.problems import places_of
from anonspark.errors import ConfigurationError

LONG: str = data_beside(__file__)["LONG"]
LISTS: dict[str, Any] = {
    "identifiers": ["ssn"],
    "quasi_identifiers": ["age", "zip"],
    "sensitive": "job",
    "insensitive": ["n"],
}


def document(**changes: Any) -> dict[str, Any]:
    return yaml.safe_load(LONG) | changes


def short(**changes: Any) -> dict[str, Any]:
    written = document(**LISTS) | changes
    if "attributes" not in changes:
        del written["attributes"]
    return written


def test_lists_of_roles_are_attributes() -> None:
    validate_document(short())
    long = parse_configuration(document())
    assert parse_configuration(short()).fingerprint() == long.fingerprint()
    assert list(parse_configuration(short()).attributes) == ["ssn", "age", "zip", "job", "n"]
    detailed = {"zip": {"role": "quasi_identifier", "weight": 2}}
    both = {"quasi_identifiers": ["age"], "attributes": detailed, "sensitive": ["job"]}
    written = {key: one for key, one in document().items() if key != "attributes"} | both
    assert list(parse_configuration(written).attributes) == ["age", "zip", "job"]
    assert parse_configuration(written).attributes["zip"].weight == 2


def test_an_attribute_stands_in_one_place() -> None:
    twice = short(attributes={"age": "sensitive"}, insensitive=["n", "zip", 3])
    assert problems_of(twice) == [
        "quasi_identifiers[0]: found the text 'age', which stands under 'attributes', too. "
        "Expected each attribute once. Remove one of them",
        "insensitive[1]: found the text 'zip', which stands under 'quasi_identifiers', too. "
        "Expected each attribute once. Remove one of them",
        "insensitive[2]: found the whole number 3. Expected the name of a column. Correct it",
    ]
    (problem,) = problems_of(short(insensitive={"n": "text"}))
    assert problem.startswith("insensitive: found a mapping. Expected a list of names of columns")


def test_an_override_changes_an_attribute_that_a_list_names() -> None:
    found = parse_configuration(short(), ["attributes.n=quasi_identifier"]).attributes
    assert found["n"].role == "quasi_identifier"
    found = parse_configuration(short(), ["attributes.zip.weight=2"]).attributes
    assert (found["zip"].role, found["zip"].weight) == ("quasi_identifier", 2)
    by_name = short(insensitive="n")
    assert parse_configuration(by_name, ["attributes.n=identifier"]).attributes["n"].role == (
        "identifier"
    )
    twice = short(insensitive=["n", "zip"])
    with pytest.raises(ConfigurationError, match=r"insensitive\[1\]: found the text 'zip'"):
        parse_configuration(twice, ["attributes.zip.weight=2"])


@cases(__file__, "key", "value", "long")
def test_criteria_where_it_is_clear_what_they_are_about(key: str, value: Any, long: Any) -> None:
    written = document(privacy={"k": 5, key: value})
    validate_document(written)
    expected = parse_configuration(document(privacy={"k": 5, key: long}))
    assert parse_configuration(written).fingerprint() == expected.fingerprint()


def test_a_model_by_its_name() -> None:
    written = document(model="mondrian")
    validate_document(written)
    long = parse_configuration(document(model={"name": "mondrian"}))
    assert parse_configuration(written).fingerprint() == long.fingerprint()
    assert problems_of(document(model="mondrain"))[0].startswith("model.name: found the text")


@pytest.mark.parametrize("names", [[], ["job", "pay"]])
def test_what_is_not_clear_is_asked_for(names: list[str]) -> None:
    (problem,) = problems_of(short(sensitive=names, privacy={"k": 5, "l_diversity": 2}))
    assert problem.startswith("privacy.l_diversity: found the whole number 2")
    assert "{attribute: NAME, l: 2}" in problem
    of_each = {"k": 5, "l_diversity": dict.fromkeys(names, 2)}
    if names:
        criteria = parse_configuration(short(sensitive=names, privacy=of_each)).privacy.criteria
        assert [one.attribute for one in criteria] == names


@cases(__file__, "override", "expected")
def test_a_key_in_another_place(override: str, expected: str) -> None:
    assert problems_of(document(), override) == [expected]


def test_places_of_keys() -> None:
    schema = json_schema()
    assert places_of("model", schema) == ["model.name"]
    assert places_of("task-rows", schema) == ["execution.task_rows"]
    assert places_of("nowhere", schema) == []


def test_the_name_of_a_table_is_a_path_and_a_format() -> None:
    named = short(input={"table": "lake.db.people", "options": {"versionAsOf": 3}})
    validate_document(named)
    source = parse_configuration(named).input
    assert (source.path, source.format, source.paths_of_files) == ("lake.db.people", "table", [])
    assert source.options == {"versionAsOf": "3"}
    for key, value in (("path", "people"), ("format", "delta")):
        both = short(input={"table": "people", key: value})
        assert problems_of(both) == [
            f"input.{key}: found it together with input.table, which is the name of a table in a "
            "catalog. Expected one of them. Remove the other"
        ]
        with pytest.raises(jsonschema.ValidationError):
            validate_document(both)
