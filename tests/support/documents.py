"""Configurations as documents: their problems, and what the JSON Schema says of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema
import pytest

from anonspark.config import json_schema, models, parse_configuration
from anonspark.errors import ConfigurationError


def problems_of(document: dict[str, Any], *overrides: str) -> list[str]:
    """Return the problems for which a document is refused, each of them one line."""
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(document, overrides)
    assert all("\n" not in problem for problem in refused.value.problems)
    return list(refused.value.problems)


@cache
def _validator(_models: tuple[object, ...]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json_schema())


def validate_document(document: Any) -> None:
    """Hold a document against the schema, which is made once for the models that there are."""
    _validator(tuple(models.options_classes().values())).validate(document)
