"""The base of all sections of the configuration, and what several of them are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from anonspark.redaction import redact_options, redact_values

NonEmptyText = Annotated[str, Field(min_length=1)]


class Section(BaseModel):
    """Base of all sections: frozen, strict, and closed to unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Return what the text form of a section shows: no credentials."""
        for name, value in super().__repr_args__():
            if name == "options" and isinstance(value, dict):
                yield name, redact_options(value)
            else:
                # Sections inside stay what they are, and show themselves.
                yield name, redact_values(value)


def unique_entries(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema of an optional list that its entries differ."""
    for branch in schema["anyOf"]:
        if branch["type"] == "array":
            branch["uniqueItems"] = True
