"""The JSON Schema of the configuration file, for editors and for our own messages."""

from __future__ import annotations

from typing import Any, get_args

from pydantic.json_schema import models_json_schema

from anonspark.config.models import options_classes
from anonspark.config.schema import (
    DEFAULT_MODEL,
    Configuration,
    Role,
)

__all__ = ["json_schema"]


def _hierarchy_type(rule: dict[str, Any], value_type: str) -> dict[str, Any]:
    """Say that a hierarchy allows one declared type only."""
    return {
        "if": {"required": ["hierarchy"], "properties": {"hierarchy": rule}},
        "then": {"properties": {"type": {"enum": [value_type, None]}}},
    }


def _given(key: str, kind: str = "array") -> dict[str, Any]:
    return {"type": "object", "required": [key], "properties": {key: {"type": kind}}}


# The rules between the keys of a hierarchy's rule.
_HIERARCHY_RULES: list[dict[str, Any]] = [
    {"oneOf": [_given("intervals"), _given("prefix"), _given("calendar")]},
    {"if": _given("origin", "number"), "then": _given("intervals")},
]

# The rules between the keys of one attribute, which the fields alone do not say.
_ATTRIBUTE_RULES: list[dict[str, Any]] = [
    {
        "if": {"required": ["order"], "properties": {"order": {"type": "array"}}},
        "then": {
            "properties": {
                "role": {"enum": ["quasi_identifier", "sensitive"]},
                "type": {"enum": ["text", None]},
            }
        },
    },
    {
        "if": {"required": ["weight"], "properties": {"weight": {"not": {"const": 1}}}},
        "then": {"properties": {"role": {"const": "quasi_identifier"}}},
    },
    {
        "if": {"required": ["type"], "properties": {"type": {"type": "string"}}},
        "then": {"properties": {"role": {"const": "quasi_identifier"}}},
    },
    {
        "if": {
            "required": ["hierarchy"],
            "properties": {"hierarchy": {"type": ["string", "object"]}},
        },
        "then": {
            "properties": {
                "role": {"enum": ["quasi_identifier", "sensitive"]},
                "order": {"type": "null"},
            }
        },
    },
    {
        "if": {"required": ["hierarchy"], "properties": {"hierarchy": {"type": "object"}}},
        "then": {"properties": {"role": {"const": "quasi_identifier"}}},
    },
    _hierarchy_type({"type": "string"}, "text"),
    _hierarchy_type(_given("prefix"), "text"),
    _hierarchy_type(_given("intervals"), "number"),
    _hierarchy_type(_given("calendar"), "date"),
]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the whole configuration file.

    It knows the short form of an attribute and the options of every registered model. What takes
    more than one section to see, such as colliding column names, is left to
    :func:`anonspark.config.load_configuration`.

    Returns
    -------
    dict
        Nothing but JSON values; a new one each time.
    """
    classes = options_classes()
    names: dict[Any, list[str]] = {}
    for name, options in classes.items():
        names.setdefault(options, []).append(name)
    references, document = models_json_schema(
        [(Configuration, "validation"), *((options, "validation") for options in names)]
    )
    definitions: dict[str, Any] = document["$defs"]

    def definition(model: Any) -> dict[str, Any]:
        reference: str = references[(model, "validation")]["$ref"]
        found: dict[str, Any] = definitions[reference.rpartition("/")[2]]
        return found

    alternatives = []
    for options, accepted in names.items():
        section = definition(options)
        section["properties"]["name"]["enum"] = accepted
        section["properties"]["name"].pop("const", None)
        if DEFAULT_MODEL not in accepted:
            # Without a name the section means the default model, and no other.
            section["properties"]["name"].pop("default", None)
            others = [key for key in section.get("required", []) if key != "name"]
            section["required"] = ["name", *others]
        alternatives.append(references[(options, "validation")])

    root = definition(Configuration)
    model = root["properties"]["model"]
    root["properties"]["model"] = {
        "anyOf": alternatives,
        "default": classes[DEFAULT_MODEL](name=DEFAULT_MODEL).model_dump(mode="json"),
        "description": model["description"],
    }

    for name, section in definitions["PrivacyOptions"]["properties"].items():
        if section.get("type") == "array":
            # One mapping is short for a list of one.
            items, described = section["items"], section["description"]
            definitions["PrivacyOptions"]["properties"][name] = {
                "anyOf": [items, {"type": "array", "items": items}],
                "default": [],
                "description": described,
            }

    attribute = definitions["Attribute"]
    attribute["allOf"] = _ATTRIBUTE_RULES
    definitions["HierarchyRule"]["allOf"] = _HIERARCHY_RULES
    root["properties"]["attributes"]["additionalProperties"] = {
        "anyOf": [
            {
                "type": "string",
                "enum": list(get_args(Role)),
                "description": "Short for {role: ...}. "
                + attribute["properties"]["role"]["description"],
            },
            {"$ref": "#/$defs/Attribute"},
        ]
    }
    root["properties"]["attributes"]["minProperties"] = 1
    root["properties"]["attributes"]["propertyNames"] = {"minLength": 1}

    for section in definitions.values():
        # Editors show it as it is: the first paragraph of the docstring will do.
        section["description"] = section.get("description", "").partition("\n\n")[0]
    for unused in ("Configuration", "ModelOptions"):
        definitions.pop(unused, None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": "Configuration of anonspark",
        "description": "What to anonymize, how, and where the release goes.",
        "$defs": definitions,
    }
