"""Sections of a manifest that a room above owns, which checks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from anonspark.config.privacy import PrivacyOptions
from anonspark.core.section_owners import owner_of

OWNED = ("coding", "parts")
"""Keys of such sections. A manifest has few of them or none."""


class Statement(NamedTuple):
    """The content of a manifest or a table of metrics, and its value by everything else.

    Parameters
    ----------
    key : str
        Its path, or what the message calls it.
    found, expected : object
    table : str or None
        Of the metrics. None for the manifest.
    """

    key: str
    found: Any
    expected: Any
    table: str | None = None


class SectionOwner(Protocol):
    """The owner of a section, who knows its meaning."""

    def form_problems(self, manifest: Mapping[str, Any]) -> Iterator[str]:
        """Return the errors in the form of the section, one line each, by the path of a key."""

    def comparisons(
        self, manifest: Mapping[str, Any], privacy: PrivacyOptions
    ) -> Iterator[Statement]:
        """Compare the section with the rest of a manifest that is sound in form."""


def owners(manifest: Mapping[str, Any]) -> list[SectionOwner]:
    """Return who owns sections of a manifest.

    Raises
    ------
    ConfigurationError
        If no room owns one.
    """
    return [owner_of(key) for key in OWNED if manifest.get(key) is not None]
