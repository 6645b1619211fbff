"""The base of all sections of the configuration, and what several of them are made of."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from anonspark.config.problems import Finding, impossible, in_words
from anonspark.redaction import redact_options, redact_values


def one_or_more(value: object) -> object:
    """Return a mapping as a list of one, and anything else unchanged.

    >>> one_or_more({"l": 3}), one_or_more([])
    ([{'l': 3}], [])
    """
    return [value] if isinstance(value, dict) else value


def name_or_names(value: object) -> object:
    """Return a text as a list of one, and anything else unchanged."""
    return [value] if isinstance(value, str) else value


NonEmptyText = Annotated[str, Field(min_length=1)]


@cache
def _field_docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of a module's classes: none if it has no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError):
        return {}
    docstrings: dict[str, dict[str, str]] = {}
    for node in tree.body:
        for field, text in pairwise(node.body if isinstance(node, ast.ClassDef) else ()):
            match node, field, text:
                case (
                    ast.ClassDef(name=section),
                    ast.AnnAssign(target=ast.Name(id=key)),
                    ast.Expr(value=ast.Constant(value=str(docstring))),
                ):
                    docstrings.setdefault(section, {})[key] = " ".join(docstring.split())
    return docstrings


class Section(BaseModel):
    """Base of all sections: frozen, strict, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the keys by the docstrings of the fields.

        Pydantic's ``use_attribute_docstrings`` does so when a class is made, which costs every
        start of the program a fifth of a second.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for section in (base for base in cls.__mro__ if issubclass(base, Section)):
            docstrings = _field_docstrings(section.__module__).get(section.__name__, {})
            for name in docstrings.keys() & cls.model_fields.keys():
                key = cls.model_fields[name].alias or name
                properties[key].setdefault("description", docstrings[name])
        return schema

    def _problems(self) -> Iterable[Finding]:
        """Yield what is wrong beyond types and bounds, with locations inside the section."""
        return ()

    @model_validator(mode="after")
    def _require_no_problems(self) -> Self:
        findings = list(self._problems())
        if findings:
            raise impossible(findings)
        return self

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Return what the text form of a section shows: no credentials."""
        for name, value in super().__repr_args__():
            if name == "options" and isinstance(value, dict):
                yield name, redact_options(value)
            else:
                # Sections inside stay what they are, and show themselves.
                yield name, redact_values(value)


def reversed_bounds(low: float | None, high: float | None) -> Iterator[Finding]:
    """Report a ``min`` above its ``max``.

    >>> [finding.line() for finding in reversed_bounds(3, 2)]
    ['min: found the whole number 3, more than max. Expected at most max. Correct one']
    """
    if low is not None and high is not None and low > high:
        text = f"found {in_words(low)}, more than max. Expected at most max. Correct one"
        yield Finding(("min",), text)


def unique_entries(schema: dict[str, Any]) -> None:
    """Add to the JSON Schema of an optional list that its entries differ."""
    for branch in schema["anyOf"]:
        if branch["type"] == "array":
            branch["uniqueItems"] = True
