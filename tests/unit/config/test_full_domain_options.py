"""The options of full-domain recoding: what is accepted, and what is wrong without any data."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

from anonspark.config import json_schema, parse_configuration
from anonspark.errors import ConfigurationError

DOCUMENT: dict[str, Any] = {
    "input": {"path": "in.parquet"},
    "attributes": {
        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 10]}},
        "city": {"role": "quasi_identifier", "hierarchy": "cities.csv"},
        "disease": "sensitive",
    },
    "privacy": {"k": 5},
    "model": {"name": "rho-gain"},
    "output": {"path": "out"},
}


def changed(**model: Any) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    document["model"] |= model
    return document


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"name": "full-domain"},
        {"rho": 0},
        {"objective": "entropy", "suppression_limit": 0.0},
        {"suppression_limit": 1},
        {"minimum_levels": {"age": 1}, "maximum_levels": {"age": 1, "city": 0}},
        {"levels": [{"age": 1, "city": 0}, {"age": 2, "city": 0}]},
        {"search": "pruned", "t_reference": "round", "residual": "suppress", "driver_tuples": 1},
    ],
)
def test_accepted(model: dict[str, Any]) -> None:
    parse_configuration(changed(**model))
    jsonschema.validate(changed(**model), json_schema())


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"objective": "los"}, "model.objective: found the text 'los'; expected"),
        ({"suppression_limit": 1.5}, "model.suppression_limit: found the number 1.5; expected"),
        ({"rho": -1}, "model.rho: found the whole number -1; expected"),
        ({"minimum_levels": {"age": -1}}, "model.minimum_levels.age: found the whole number -1"),
        (
            {"minimum_levels": {"agee": 1}},
            "model.minimum_levels: found the text 'agee', which is no quasi-identifier; expected "
            "names of quasi-identifiers; did you mean 'age'?",
        ),
        (
            {"maximum_levels": {"disease": 1}},
            "model.maximum_levels: found the text 'disease', which is no quasi-identifier",
        ),
        (
            {"minimum_levels": {"age": 2}, "maximum_levels": {"age": 1}},
            "model.minimum_levels.age: found 2, more than in maximum_levels",
        ),
        (
            {"levels": [{"age": 1, "city": 0}, {"age": 1}]},
            "found levels of 1 attributes; expected one level for each of the 2 quasi-identifiers",
        ),
        ({"split": "strict"}, "model.split"),
    ],
)
def test_refused(model: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        parse_configuration(changed(**model))
    assert expected in str(error.value)


def test_every_quasi_identifier_needs_a_hierarchy() -> None:
    document = changed()
    document["attributes"] |= {"age": "quasi_identifier", "sex": "quasi_identifier"}
    with pytest.raises(ConfigurationError) as error:
        parse_configuration(document)
    assert [problem.split(":")[0] for problem in error.value.problems] == [
        "attributes.age",
        "attributes.sex",
    ]
    assert "give a file or a rule" in str(error.value)


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
