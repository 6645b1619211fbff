"""The JSON Schema of the configuration file, for editors and for our own messages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from anonspark.config.attributes import Role
from anonspark.config.configuration import Configuration
from anonspark.config.models import DEFAULT_MODEL, default_model, foreign_model, options_classes
from anonspark.config.privacy import PrivacyOptions, privacy_class
from anonspark.config.short_forms import ROLE_LISTS, bound_of
from anonspark.core import extensions
from anonspark.core.criterion import foreign_criterion

JsonObject = dict[str, Any]


class _Sections:
    """The definitions of all sections, as pydantic makes them, to be completed in place."""

    def __init__(self) -> None:
        self.models: dict[type[BaseModel], list[str]] = {}
        for name, options in options_classes().items():
            self.models.setdefault(options, []).append(name)
        keys = frozenset(extensions.loaded(extensions.CRITERIA))
        privacy = privacy_class(keys) if keys else PrivacyOptions
        sections: list[type[BaseModel]] = [Configuration, privacy, *self.models]
        self._references, document = models_json_schema(
            [(section, "validation") for section in sections]
        )
        self.definitions: dict[str, JsonObject] = document["$defs"]
        if privacy is not PrivacyOptions:
            self.definitions["PrivacyOptions"] = self.definitions.pop(privacy.__name__)

    def reference(self, model: type[BaseModel]) -> JsonObject:
        """Return the reference that stands for a section elsewhere."""
        return self._references[(model, "validation")]

    def of(self, model: type[BaseModel]) -> JsonObject:
        """Return the definition of a section."""
        return self.definitions[self.reference(model)["$ref"].rpartition("/")[2]]


def json_schema() -> JsonObject:
    """Make the JSON Schema (2020-12) of the whole configuration file, a new object each time.

    It covers the short form of an attribute, the options of all our models, and those of loaded
    packages (see :func:`load_extensions`). Rules about several sections, such as colliding column
    names, are left to :func:`anonspark.config.load_configuration`.
    """
    sections = _Sections()
    root = sections.of(Configuration)
    _allow_each_model(root["properties"]["model"], sections)
    _allow_a_coding(root)
    _allow_role_lists(root)
    _allow_a_table(sections.definitions["InputOptions"])
    _allow_one_for_a_list(sections.definitions["PrivacyOptions"]["properties"])
    for section in sections.definitions.values():
        # Where one attribute is sensitive, a criterion need not name it.
        if "attribute" in section.get("required", ()):
            section["required"] = [key for key in section["required"] if key != "attribute"]
    _allow_short_attributes(root["properties"]["attributes"], sections.definitions["Attribute"])
    for section in sections.definitions.values():
        # Editors show it as it is: the first paragraph of the docstring will do.
        section["description"] = section.get("description", "").partition("\n\n")[0]
    for unused in ("Configuration", "ModelOptions"):
        sections.definitions.pop(unused, None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": "Configuration of anonspark",
        "description": "What to anonymize, how, and where the release goes.",
        "$defs": sections.definitions,
    }


def known_schema() -> Mapping[str, Any]:
    """Return the result of :func:`json_schema`, made once: to be read, never to be changed."""
    criteria = tuple(extensions.loaded(extensions.CRITERIA))
    return _schema_of(tuple(options_classes().items()), criteria)


@cache
def _schema_of(
    _models: tuple[tuple[str, type[BaseModel]], ...], _criteria: tuple[str, ...]
) -> Mapping[str, Any]:
    return json_schema()


def load_extensions() -> None:
    """Load models and criteria of all packages, or raise ConfigurationError for an unusable one."""
    for name in extensions.names(extensions.MODELS):
        foreign_model(name)
    for key in extensions.names(extensions.CRITERIA):
        foreign_criterion(key)


def _allow_each_model(model: JsonObject, sections: _Sections) -> None:
    """Let the name of a model choose its options."""
    alternatives = []
    for options, names in sections.models.items():
        section = sections.of(options)
        section["properties"]["name"]["enum"] = names
        section["properties"]["name"].pop("const", None)
        if DEFAULT_MODEL not in names:
            # Without a name the section means the default model, and no other.
            section["properties"]["name"].pop("default", None)
            others = [key for key in section.get("required", []) if key != "name"]
            section["required"] = ["name", *others]
        alternatives.append(sections.reference(options))
    description = model["description"]
    model.clear()
    model |= {
        "anyOf": [*alternatives, {"type": "string", "enum": list(options_classes())}],
        "default": default_model().model_dump(mode="json"),
        "description": description,
    }


def _allow_a_coding(root: JsonObject) -> None:
    """Let a path be short for a coding, which stands for what is required otherwise."""
    root["properties"]["coding"]["anyOf"].insert(0, {"type": "string", "minLength": 1})
    root["required"] = [key for key in root["required"] if key not in ("attributes", "privacy")]
    coding = {"required": ["coding"], "properties": {"coding": {"type": ["string", "object"]}}}
    attributes = [{"required": [key]} for key in ("attributes", "quasi_identifiers")]
    root["if"], root["else"] = coding, {"required": ["privacy"], "anyOf": attributes}


def _allow_role_lists(root: JsonObject) -> None:
    """Let lists of columns stand beside the attributes."""
    name = {"type": "string", "minLength": 1}
    for key, role in ROLE_LISTS.items():
        root["properties"][key] = {
            "anyOf": [name, {"type": "array", "items": name}, {"type": "null"}],
            "description": f"Columns with the role {role}, instead of attributes.",
        }


def _allow_a_table(source: JsonObject) -> None:
    """Let the name of a table in a catalog be short for a path and a format."""
    source["properties"]["table"] = {
        "type": "string",
        "minLength": 1,
        "description": "Name of a table or view in a Spark catalog.",
    }
    del source["required"]
    source["oneOf"] = [
        {"required": ["path"]},
        {"required": ["table"], "properties": {"format": False}},
    ]


def _allow_one_for_a_list(criteria: JsonObject) -> None:
    """Allow one mapping instead of a list of one, and bounds instead of criteria."""
    for name, section in criteria.items():
        if section.get("type") == "array":
            items = section["items"]
            bound = {"type": "number"}
            bounds = [bound, {"type": "object", "additionalProperties": bound}]
            criteria[name] = {
                "anyOf": [
                    items,
                    {"type": "array", "items": items},
                    *(bounds if bound_of(name) else ()),
                ],
                "default": [],
                "description": section["description"],
            }


def _allow_short_attributes(attributes: JsonObject, attribute: JsonObject) -> None:
    """Let a role be short for an attribute that has nothing else, and relate its other keys."""
    role = attribute["properties"]["role"]["description"]
    attributes["additionalProperties"] = {
        "anyOf": [
            {
                "type": "string",
                "enum": list(get_args(Role)),
                "description": f"Short for {{role: ...}}. {role}",
            },
            {"$ref": "#/$defs/Attribute"},
        ]
    }
    attributes["minProperties"] = 1
    attributes["propertyNames"] = {"minLength": 1}
