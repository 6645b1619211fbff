"""Options of models: full-domain recoding, and ``model.published`` for a publication's settings."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from cases import cases, data_beside
from documents import problems_of, validate_document

from anonspark.config import HierarchyRule, parse_configuration
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
