"""The parts of a union: releases of one coding that fit together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow as pa

from anonspark.config.privacy import PrivacyOptions
from anonspark.engine.files import Files
from anonspark.engine.raw_columns import type_name
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.release.manifest import MANIFEST, Manifest, read_manifest
from anonspark.sharing.coding.agreement import coding_privacy
from anonspark.sharing.coding.comparing import is_at_least, not_as_coded
from anonspark.sharing.pairs.relation import People, relation_of
from anonspark.verification.opening import OpenedRelease

_INTEGERS = ("int", "uint")


@dataclass(frozen=True)
class Part:
    """A release that becomes a part of a union.

    Parameters
    ----------
    path : str
        Its directory.
    manifest : Manifest
        Sound in form, so that the fingerprint of its coding is that of the coding's document.
    """

    path: str
    manifest: Manifest

    @property
    def name(self) -> str:
        """Return the name of the directory, by which a column names the holder."""
        return self.path.rpartition("/")[2]

    @property
    def rows(self) -> int:
        """Published records, as the manifest says."""
        return int(self.manifest.published["rows"])

    @property
    def stored(self) -> int:
        """Bytes of the published records on the disk."""
        files = self.manifest.files or ()
        return sum(file["bytes"] for file in files if file["path"].startswith("data/"))


def read_parts(files: Files, releases: Sequence[str]) -> list[Part]:
    """Read the manifests of releases, and check that these are parts of one union.

    Parameters
    ----------
    files : Files
    releases : sequence of str
        Their directories.

    Returns
    -------
    list of Part
        In the order of their run ids: that of the releases counts nowhere.

    Raises
    ------
    ConfigurationError
        If there are fewer than two, one has no coding or another one, is a union itself, is there
        twice, is about the same people as another, or publishes other columns.
    DataError
        If there is no complete release.
    GuaranteeError
        If a manifest is damaged, or contradicts its coding.
    """
    if len(releases) < 2:
        raise ConfigurationError(
            f"union: found {len(releases)} release. Expected at least two, of holders who agreed "
            "on one coding"
        )
    parts = [Part(path, read_manifest(files, path)) for path in releases]
    for part in parts:
        _require_usable(part)
    _require_one_coding(parts)
    parts.sort(key=lambda part: part.manifest.run_id)
    for one, other in combinations(parts, 2):
        _require_different(one, other)
    for part in parts:
        _require_as_coded(part)
    first, *others = parts
    for part in others:
        _require_same_columns(first, part)
    return parts


def _require_usable(part: Part) -> None:
    if part.manifest.parts:
        raise ConfigurationError(
            f"{part.path}: is a union of releases itself. Name its parts, so that none comes in "
            "twice"
        )
    if not part.manifest.coding:
        raise ConfigurationError(
            f"{part.path}: was made without a coding, so nothing says that its labels mean the "
            "same as those of other releases. Let each holder run anonspark with the same coding"
        )


def _require_one_coding(parts: Sequence[Part]) -> None:
    first, *others = parts
    agreed = first.manifest.coding
    for part in others:
        coding = part.manifest.coding
        if coding["fingerprint"] != agreed["fingerprint"]:
            raise ConfigurationError(
                f"union: found two codings: {agreed['name']!r} ({agreed['fingerprint']}) in "
                f"{first.path} and {coding['name']!r} ({coding['fingerprint']}) in {part.path}. "
                "Expected one. Let the holders agree, and publish again by that coding"
            )


def _require_different(one: Part, other: Part) -> None:
    mine, others = one.manifest, other.manifest
    if mine.run_id == others.run_id or mine.fingerprint == others.fingerprint:
        raise ConfigurationError(
            f"union: {one.path} and {other.path} are one release (the same run or the same "
            "records). Name each release once, else its people count twice"
        )
    people = [People(part.manifest, part.rows) for part in (one, other)]
    tables = [own.document["fingerprints"].get("input") for own in (mine, others)]
    # Equal tables of two places may be two by chance; a union rather takes none of them.
    one_table = bool(tables[0]) and tables[0] == tables[1]
    if one_table or relation_of(people[0], people[1], None) != "unknown":
        raise ConfigurationError(
            f"union: {one.path} and {other.path} are about the same people, as their manifests "
            "show. Holders of a union have different people. Otherwise a person counts twice in k"
        )


def _require_as_coded(part: Part) -> None:
    """Check that a release was configured as its coding says.

    Raises
    ------
    GuaranteeError
    """
    manifest = part.manifest
    configured, document = manifest.configuration, manifest.coding["document"]
    found = not_as_coded(configured, document)
    privacy = PrivacyOptions.model_validate(configured["privacy"])
    if not is_at_least(privacy, coding_privacy(document)):
        found.append("privacy")
    if found:
        raise GuaranteeError(
            f"{part.path}/{MANIFEST}: its configuration is not that of its coding "
            f"({', '.join(found)}). Restore the release or publish it again"
        )


def _require_same_columns(first: Part, part: Part) -> None:
    """Check what manifests say of columns. The types of the files are looked at when opened."""
    mine, others = first.manifest.published, part.manifest.published
    if mine["columns"] != others["columns"]:
        raise ConfigurationError(
            f"union: {first.path} and {part.path} publish other columns: "
            f"{', '.join(mine['columns'])} and {', '.join(others['columns'])}. Expected the same. "
            "Publish again by the coding"
        )
    for one, other in zip(mine["quasi_identifiers"], others["quasi_identifiers"], strict=True):
        types = [_type_of(described) for described in (one, other)]
        if types[0] != types[1]:
            raise ConfigurationError(_other_types(one["name"], (first, part), types))


def _type_of(described: Mapping[str, Any]) -> str:
    """Return the type of an attribute, as far as labels show it: integers of any width."""
    kind, found = str(described["kind"]), str(described.get("type", ""))
    return "integer" if kind == "integer" and found.startswith(_INTEGERS) else found


def _other_types(name: str, parts: Sequence[Part], types: Sequence[str]) -> str:
    text = " and ".join(f"{found} in {part.path}" for part, found in zip(parts, types, strict=True))
    return (
        f"union: attributes.{name}: found {text}. Expected one type. Let the coding say 'type' of "
        "the attribute, or store the column in the same type, and publish again"
    )


def require_same_types(parts: Sequence[Part], opened: Sequence[OpenedRelease]) -> pa.Schema:
    """Check that the columns of all parts have the same types, and return them.

    Parameters
    ----------
    parts : sequence of Part
    opened : sequence of OpenedRelease
        The same, with their records.

    Raises
    ------
    ConfigurationError
        Naming the first column that differs, with both types.
    """
    columns = parts[0].manifest.published["columns"]
    first = opened[0].data.schema
    for part, one in zip(parts[1:], opened[1:], strict=True):
        schema = one.data.schema
        for name in columns:
            types = [own.field(name).type for own in (first, schema)]
            if types[0] != types[1]:
                type_names = [type_name(found) for found in types]
                raise ConfigurationError(_other_types(name, (parts[0], part), type_names))
    return pa.schema([first.field(name) for name in columns])
