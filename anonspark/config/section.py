"""The base of all sections of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from anonspark.redaction import redact_options, redact_values

__all__ = ["Section"]


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
