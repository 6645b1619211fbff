"""Sections of a manifest that a room above owns, which checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from anonspark.core.extensions import owner_of

OWNED = ("coding", "parts")
"""Keys of such sections. A manifest has few of them or none."""


class SectionOwner(Protocol):
    """The owner of a section, who knows its meaning."""

    def form_problems(self, manifest: Mapping[str, Any]) -> Iterator[str]:
        """Return the errors in the form of the section, one line each, by the path of a key."""


def owners(manifest: Mapping[str, Any]) -> list[SectionOwner]:
    """Return who owns sections of a manifest.

    Raises
    ------
    ConfigurationError
        If no room owns one.
    """
    return [owner_of(key) for key in OWNED if manifest.get(key) is not None]
