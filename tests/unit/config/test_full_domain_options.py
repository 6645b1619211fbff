"""The options of full-domain recoding: what is accepted, and what is wrong without any data."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from cases import cases, data_beside
from documents import validate_document

from anonspark.config import parse_configuration
from anonspark.errors import ConfigurationError

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


def test_every_quasi_identifier_needs_a_hierarchy() -> None:
    document = changed()
    document["attributes"] |= {"age": "quasi_identifier", "sex": "quasi_identifier"}
    with pytest.raises(ConfigurationError) as error:
        parse_configuration(document)
    assert [problem.split(":")[0] for problem in error.value.problems] == [
        "attributes.age",
        "attributes.sex",
    ]
    assert "Give a file or a rule" in str(error.value)


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
