"""Decide whether two releases have the same people, by their manifests or as stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from anonspark.errors import ConfigurationError
from anonspark.release.manifest import Manifest

Relation = Literal["same people", "second inside first", "first inside second", "unknown"]
"""Relations of the people of two releases, before records without a class were left out."""

Statement = Literal["same people", "inside"]
"""Relations that may be stated if manifests do not show them."""


@dataclass(frozen=True)
class People:
    """The people of a release: its manifest, if it has one, and its published records."""

    manifest: Manifest | None
    rows: int


def statement_of(*, same_people: bool, inside: bool) -> Statement | None:
    """Return the statement that two options of the command line make.

    Raises ConfigurationError if both are set.

    >>> statement_of(same_people=False, inside=True)
    'inside'
    """
    if same_people and inside:
        raise ConfigurationError(
            "--same-people, --inside: found both. The people of two releases are the same, or "
            "those of one are among those of the other: leave one of the two out"
        )
    return "same people" if same_people else "inside" if inside else None


def relation_of(first: People, second: People, stated: Statement | None) -> Relation:
    """Return how the people of two releases are related, by their manifests or else as stated.

    The release with fewer records is inside the other one. Raises ConfigurationError if a release
    has no manifest and nothing is stated.

    >>> relation_of(People(None, 9), People(None, 5), "inside")
    'second inside first'
    """
    shown = None
    if first.manifest is not None and second.manifest is not None:
        shown = _stated_relation(first.manifest, second.manifest)
    if shown is not None:
        return shown
    if stated == "same people":
        return "same people"
    if stated == "inside":
        return "second inside first" if first.rows >= second.rows else "first inside second"
    if first.manifest is None or second.manifest is None:
        raise ConfigurationError(
            "verify --with: found a release without a manifest, so that the people in it are "
            "unknown. Say --same-people, or --inside if the people of one are among those of the "
            "other"
        )
    return "unknown"


def _stated_relation(first: Manifest, second: Manifest) -> Relation | None:
    """Return how the people of two releases are related by their manifests, or None if unknown.

    Releases for recipients are related if they select from the same source, and the rows withheld
    from them are the same or none.
    """
    left, right = first.recipient, second.recipient
    if not left and not right:
        return "same people" if _made_of_the_same(first, second) else None
    source = left.get("source_fingerprint")
    if not source or source != right.get("source_fingerprint"):
        return None
    # Recipients of one plan lack the same people. Another plan may withhold others.
    one_plan = left.get("run_id") is not None and left.get("run_id") == right.get("run_id")
    is_complete = [one_plan or section.get("rows_withheld") == 0 for section in (left, right)]
    if (left.get("where") or {}) == (right.get("where") or {}):
        counts = [
            (section.get("rows_requested"), section.get("rows_withheld"), _published(manifest))
            for section, manifest in ((left, first), (right, second))
        ]
        return "same people" if counts[0] == counts[1] and all(is_complete) else None
    if not left.get("where") and is_complete[0]:
        return "second inside first"
    return "first inside second" if not right.get("where") and is_complete[1] else None


def _published(manifest: Manifest) -> object:
    """Return the number of records of a release, if that of the withheld ones is null."""
    if manifest.recipient.get("rows_withheld") is not None:
        return None
    return (manifest.document.get("summary") or {}).get("rows_published")


def _made_of_the_same(first: Manifest, second: Manifest) -> bool:
    """Return whether two runs certainly read the same records.

    Equal fingerprints prove that the values of the attributes are equal, and the path that they are
    not equal by chance. Different ones prove nothing, because they depend on attributes and seed.
    """
    fingerprints = [manifest.document["fingerprints"].get("input") for manifest in (first, second)]
    paths = [_path_of(manifest.input) for manifest in (first, second)]
    return bool(
        fingerprints[0]
        and fingerprints[0] == fingerprints[1]
        and paths[0] is not None
        and paths[0] == paths[1]
        and set(first.attributes) == set(second.attributes)
    )


def _path_of(described: Mapping[str, Any]) -> object:
    """Return the path of an input."""
    return described.get("path")
