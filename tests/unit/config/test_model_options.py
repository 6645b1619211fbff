"""Options of models, and short forms of a configuration that mean what long ones mean."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
import yaml
from cases import cases, data_beside
from documents import problems_of, validate_document

from anonspark.config import HierarchyRule, json_schema, parse_configuration
from anonspark.config.problems import places_of
from anonspark.errors import ConfigurationError

COMMON = {"separation": "always", "reference": "lof", "minimum_gain": 0.0}
MONDRIAN = {**COMMON, "cut": "published", "span": "cell", "refine": 0}
CANON = {**COMMON, "vantage": "random"}
SPELLED_OUT = {
    "smondrian": MONDRIAN,
    "mondrian": MONDRIAN,
    "su-mondrian": MONDRIAN,
    "u-mondrian": MONDRIAN,
    "canon": CANON,
    "u-canon": CANON,
}
OTHERS: dict[str, Any] = data_beside(__file__)["OTHERS"]


def document(model: dict[str, Any]) -> dict[str, Any]:
    return {
        "input": {"path": "people.csv"},
        "attributes": {"age": {"role": "quasi_identifier"}},
        "privacy": {"k": 5},
        "model": model,
        "output": {"path": "release"},
    }


@pytest.mark.parametrize("name", SPELLED_OUT)
@pytest.mark.parametrize("others", [{}, {"rho": 3, "lof_neighbors": 7}])
def test_it_is_its_settings_spelled_out(name: str, others: dict[str, Any]) -> None:
    by_key = parse_configuration(document({"name": name, "published": "canbay-2019", **others}))
    spelled = parse_configuration(document({"name": name, **SPELLED_OUT[name], **others}))
    options = by_key.model.model_dump()
    assert options == {**spelled.model.model_dump(), "published": "canbay-2019"}
    # One release, found again and compared whichever way it was asked for.
    assert by_key.fingerprint() == spelled.fingerprint()
    assert by_key.settings_fingerprint() == spelled.settings_fingerprint()
    assert by_key.public_dict()["model"] == options
    assert spelled.public_dict()["model"]["published"] is None


def test_the_default_is_another_algorithm() -> None:
    default = parse_configuration(document({}))
    published = parse_configuration(document({"published": "canbay-2019"}))
    assert default.fingerprint() != published.fingerprint()


@pytest.mark.parametrize("name", ["su-mondrian", "u-canon"])
def test_a_key_that_contradicts_is_named_with_it(name: str) -> None:
    settings = SPELLED_OUT[name]
    for key, value in settings.items():
        (line,) = problems_of(
            document({"name": name, "published": "canbay-2019", key: OTHERS[key]})
        )
        assert line.startswith(f"model.{key}: found ")
        assert f"Expected {value!r}, which model.published: canbay-2019 sets" in line
        assert line.endswith(f"Remove model.{key} or model.published")
        # Said twice it is no contradiction.
        said = parse_configuration(document({"name": name, "published": "canbay-2019", key: value}))
        assert getattr(said.model, key) == value
    contradicted = {key: OTHERS[key] for key in settings}
    assert len(
        problems_of(document({"name": name, "published": "canbay-2019", **contradicted}))
    ) == len(settings)


@cases(__file__, "model", "expected")
def test_what_it_does_not_take(model: dict[str, Any], expected: str) -> None:
    (line,) = problems_of(document(model))
    assert expected in line


@pytest.mark.parametrize("name", ["smondrian", "u-canon"])
def test_editors_see_a_contradiction(name: str) -> None:
    allowed = {"name": name, "published": "canbay-2019", **SPELLED_OUT[name]}
    validate_document(document(allowed))
    for key in SPELLED_OUT[name]:
        # Without the key of the publication both are fine.
        free = {"name": name, key: OTHERS[key]}
        validate_document(document(free))
        with pytest.raises(jsonschema.ValidationError):
            validate_document(document({**free, "published": "canbay-2019"}))


def test_the_earlier_word_for_adaptive() -> None:
    """Configurations that have it are read, and mean and fingerprint the same."""
    earlier, now = (
        parse_configuration(document({"name": "su-mondrian", "separation": word}))
        for word in ("paying", "adaptive")
    )
    assert earlier.model == now.model
    assert earlier.fingerprint() == now.fingerprint()
    assert earlier.public_dict()["model"]["separation"] == "adaptive"


DOCUMENT: dict[str, Any] = data_beside(__file__)["DOCUMENT"]


def changed(**model: Any) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document["model"] |= model
    return document


@cases(__file__, "model")
def test_accepted(model: dict[str, Any]) -> None:
    parse_configuration(changed(**model))
    validate_document(changed(**model))


@cases(__file__, "model", "expected")
def test_refused(model: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_configuration(changed(**model))
    assert expected in str(error.value)


def test_quasi_identifiers_without_a_hierarchy() -> None:
    """Texts have one level above their values; of other types and of orders there is none."""
    document = changed()
    typed = {"role": "quasi_identifier", "type": "number"}
    ordered = {"role": "quasi_identifier", "order": ["f", "m"]}
    document["attributes"] |= {"age": typed, "sex": ordered, "city": "quasi_identifier"}
    with pytest.raises(ConfigurationError) as error:
        parse_configuration(document)
    assert [problem.split(":")[0] for problem in error.value.problems] == [
        "attributes.age",
        "attributes.sex",
    ]
    assert "Give a file or a rule" in str(error.value)
    del document["attributes"]["age"], document["attributes"]["sex"]
    city = parse_configuration(document).attributes["city"]
    assert city.hierarchy == HierarchyRule(keep=[])
    document["model"] = "smondrian"
    assert parse_configuration(document).attributes["city"].hierarchy is None


@pytest.mark.parametrize("style", ["bounds", "mean"])
def test_labels_are_what_is_published(style: str) -> None:
    document = changed()
    document["output"]["style"] = style
    with pytest.raises(ConfigurationError, match=rf"output\.style: found the text '{style}' with"):
        parse_configuration(document)


def test_limits_of_the_models() -> None:
    for name, share in (("full-domain", 0.05), ("rho-gain", 1.0)):
        options = parse_configuration(changed(name=name)).model
        assert options.largest_share == share  # type: ignore[attr-defined]
    options = parse_configuration(changed(suppression_limit=0.2)).model
    assert options.largest_share == 0.2  # type: ignore[attr-defined]


def test_information_cannot_be_measured_in_means() -> None:
    document = changed(name="smondrian")
    document["evaluate"] = {"information": True}
    document["output"]["style"] = "mean"
    with pytest.raises(ConfigurationError, match=r"evaluate\.information: found true together"):
        parse_configuration(document)


LONG: str = data_beside(__file__)["LONG"]
LISTS: dict[str, Any] = {
    "identifiers": ["ssn"],
    "quasi_identifiers": ["age", "zip"],
    "sensitive": "job",
    "insensitive": ["n"],
}


def short_document(**changes: Any) -> dict[str, Any]:
    return yaml.safe_load(LONG) | changes


def short(**changes: Any) -> dict[str, Any]:
    written = short_document(**LISTS) | changes
    if "attributes" not in changes:
        del written["attributes"]
    return written


def test_lists_of_roles_are_attributes() -> None:
    validate_document(short())
    long = parse_configuration(short_document())
    assert parse_configuration(short()).fingerprint() == long.fingerprint()
    assert list(parse_configuration(short()).attributes) == ["ssn", "age", "zip", "job", "n"]
    detailed = {"zip": {"role": "quasi_identifier", "weight": 2}}
    both = {"quasi_identifiers": ["age"], "attributes": detailed, "sensitive": ["job"]}
    written = {key: one for key, one in short_document().items() if key != "attributes"} | both
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
    written = short_document(privacy={"k": 5, key: value})
    validate_document(written)
    expected = parse_configuration(short_document(privacy={"k": 5, key: long}))
    assert parse_configuration(written).fingerprint() == expected.fingerprint()


def test_a_model_by_its_name() -> None:
    written = short_document(model="mondrian")
    validate_document(written)
    long = parse_configuration(short_document(model={"name": "mondrian"}))
    assert parse_configuration(written).fingerprint() == long.fingerprint()
    assert problems_of(short_document(model="mondrain"))[0].startswith("model.name: found the text")


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
    assert problems_of(short_document(), override) == [expected]


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
