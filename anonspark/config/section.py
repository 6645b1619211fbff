"""The base of all sections of the configuration, and what several of them are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from anonspark.config.problems import Finding, impossible
from anonspark.redaction import redact_options, redact_values


def one_or_more(value: object) -> object:
    """Return a mapping as a list of one, and anything else as it is."""
    return [value] if isinstance(value, dict) else value


def name_or_names(value: object) -> object:
    """Return a text as a list of one, and anything else as it is."""
    return [value] if isinstance(value, str) else value


NonEmptyText = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """Base of all sections: frozen, strict, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

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


def unique_entries(schema: dict[str, Any]) -> None:
    """Add to the JSON Schema of an optional list that its entries differ."""
    for branch in schema["anyOf"]:
        if branch["type"] == "array":
            branch["uniqueItems"] = True
