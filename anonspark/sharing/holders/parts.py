"""The parts of a union: releases of one coding that fit together, and the union's form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from anonspark.config import Attribute
from anonspark.config.gates import EvaluateOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import key_path
from anonspark.engine.files import Files
from anonspark.engine.raw_columns import type_name
from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.release.manifest import MANIFEST, Manifest, read_manifest
from anonspark.sharing.coding.agreement import coding_privacy, is_at_least, not_as_coded
from anonspark.sharing.pairs.relation import People, relation_of
from anonspark.verification.opening import OpenedRelease

_INTEGERS = ("int", "uint")


@dataclass(frozen=True)
class Part:
    """A release that becomes a part of a union.

    Its manifest is sound in form, so its coding's fingerprint is that of the document.
    """

    path: str
    manifest: Manifest

    @property
    def name(self) -> str:
        """The name of the directory, by which a column names the holder.

        >>> Part("/data/clinic", Manifest({})).name
        'clinic'
        """
        return self.path.rpartition("/")[2]

    @property
    def rows(self) -> int:
        """Published records, by the manifest."""
        return int(self.manifest.published["rows"])

    @property
    def stored(self) -> int:
        """Bytes of the published records on the disk."""
        return sum(file.bytes for file in self.manifest.files if file.path.startswith("data/"))


def read_parts(files: Files, releases: Sequence[str]) -> list[Part]:
    """Read the manifests of releases, and check that these are parts of one union.

    Parts are in the order of their run ids, so the order of the paths does not matter. Raises
    ConfigurationError if there are fewer than two, or one has no coding or another coding, is a
    union itself, is named twice, is about the same people as another, or publishes other columns,
    DataError if there is no complete release, and GuaranteeError if a manifest is damaged, or
    contradicts its coding.
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
    for first, other in combinations(parts, 2):
        _require_different(first, other)
    for part in parts:
        _require_as_coded(part)
    reference, *others = parts
    for part in others:
        _require_same_columns(reference, part)
    return parts


def _require_usable(part: Part) -> None:
    """Refuse a union, and a release without a coding."""
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
    """Refuse releases of different codings."""
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


def _require_different(first: Part, other: Part) -> None:
    """Raise ConfigurationError for two releases of the same records or people."""
    left, right = first.manifest, other.manifest
    if left.run_id == right.run_id or left.fingerprint == right.fingerprint:
        raise ConfigurationError(
            f"union: {first.path} and {other.path} are one release (the same run or the same "
            "records). Name each release once, else its people count twice"
        )
    people = [People(part.manifest, part.rows) for part in (first, other)]
    inputs = [side.document["fingerprints"].get("input") for side in (left, right)]
    # Two holders may have equal tables by chance. A union refuses them, to be safe.
    is_one_table = bool(inputs[0]) and inputs[0] == inputs[1]
    if is_one_table or relation_of(people[0], people[1], None) != "unknown":
        raise ConfigurationError(
            f"union: {first.path} and {other.path} are about the same people, as their manifests "
            "show. Holders of a union have different people. Otherwise a person counts twice in k"
        )


def _require_as_coded(part: Part) -> None:
    """Raise GuaranteeError if a release was configured otherwise than its coding says."""
    manifest = part.manifest
    configured, document = manifest.configuration, manifest.coding["document"]
    wrong = not_as_coded(configured, document)
    privacy = PrivacyOptions.model_validate(configured["privacy"])
    if not is_at_least(privacy, coding_privacy(document)):
        wrong.append("privacy")
    if wrong:
        raise GuaranteeError(
            f"{part.path}/{MANIFEST}: its configuration is not that of its coding "
            f"({', '.join(wrong)}). Restore the release or publish it again"
        )


def _require_same_columns(first: Part, part: Part) -> None:
    """Compare the columns of manifests. The types of files are compared when these are opened."""
    mine, others = first.manifest.published, part.manifest.published
    if mine["columns"] != others["columns"]:
        raise ConfigurationError(
            f"union: {first.path} and {part.path} publish other columns: "
            f"{', '.join(mine['columns'])} and {', '.join(others['columns'])}. Expected the same. "
            "Publish again by the coding"
        )
    entries = (side["quasi_identifiers"] for side in (mine, others))
    for pair in zip(*entries, strict=True):
        types = [_type_of(described) for described in pair]
        if types[0] != types[1]:
            raise ConfigurationError(_other_types(pair[0]["name"], (first, part), types))


def _type_of(described: Mapping[str, Any]) -> str:
    """Return the type of an attribute, as far as labels show it: integers of any width are equal.

    >>> _type_of({"kind": "integer", "type": "int16"})
    'integer'
    """
    kind, typed = str(described["kind"]), str(described.get("type", ""))
    return "integer" if kind == "integer" and typed.startswith(_INTEGERS) else typed


def _other_types(name: str, parts: Sequence[Part], types: Sequence[str]) -> str:
    """Say that an attribute has two types, and what to do."""
    text = " and ".join(f"{kind} in {part.path}" for part, kind in zip(parts, types, strict=True))
    return (
        f"union: attributes.{name}: found {text}. Expected one type. Let the coding say 'type' of "
        "the attribute, or store the column in the same type, and publish again"
    )


def require_same_types(parts: Sequence[Part], opened: Sequence[OpenedRelease]) -> pa.Schema:
    """Return the schema of the columns of all parts, which have the same types.

    Raises ConfigurationError with the first column that differs, and both types.
    """
    columns = parts[0].manifest.published["columns"]
    first = opened[0].data.schema
    for part, item in zip(parts[1:], opened[1:], strict=True):
        schema = item.data.schema
        for name in columns:
            types = [side.field(name).type for side in (first, schema)]
            if types[0] != types[1]:
                type_names = [type_name(kind) for kind in types]
                raise ConfigurationError(_other_types(name, (parts[0], part), type_names))
    return pa.schema([first.field(name) for name in columns])


def form_problems(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Find a column of holders that is no quasi-identifier, and parts that promise nothing."""
    holder = manifest["holder_column"]
    if holder is not None and (
        holder not in manifest["configuration"]["attributes"]
        or holder not in manifest["published"]["quasi_identifier_columns"]
    ):
        yield "holder_column: expected a quasi-identifier of the union"
    for index, part in enumerate(manifest["parts"]):
        try:
            # A union does not name the population of a holder, so there is none to check.
            PrivacyOptions.model_validate(part["privacy"] | {"delta_presence": None})
        except ValidationError:
            yield f"{key_path(('parts', index, 'privacy'))}: expected what anonspark writes there"


# Every engine writes Parquet.
_FORMAT = "parquet"


@dataclass(frozen=True)
class Form:
    """The form of a union, which is known before anything is counted in it.

    ``description`` has the keys of the manifest that a reader of the union needs, ``privacy`` are
    the options of the coding. ``holders`` are the values of ``holder_column`` for each part, or
    nothing without that column.
    """

    description: dict[str, Any]
    privacy: PrivacyOptions
    holder_column: str | None
    holders: tuple[str, ...]

    @property
    def manifest(self) -> Manifest:
        """The manifest as a reader of the union knows it, without figures and files."""
        return Manifest(self.description)

    @property
    def columns(self) -> list[str]:
        """All published columns."""
        return list(self.description["published"]["columns"])


def form_of(parts: Sequence[Part], holder_column: str | None) -> Form:
    """Return the form of a union. Without a holder column no holder is published.

    Raises ConfigurationError if the column cannot have this name, two parts have the same name, or
    the coding demands what a union cannot promise.
    """
    first = parts[0].manifest
    privacy = coding_privacy(first.coding["document"])
    _require_countable(privacy)
    attributes = {
        name: dict(attribute)
        for name, attribute in first.attributes.items()
        if attribute["role"] != "identifier"
    }
    columns = list(first.published["columns"])
    quasi_identifier_columns = first.quasi_identifier_columns
    quasi_identifiers = [dict(identifier) for identifier in first.quasi_identifiers]
    for position, identifier in enumerate(quasi_identifiers):
        if len({part.manifest.quasi_identifiers[position]["type"] for part in parts}) > 1:
            # Only integers may differ, in their width, which no label shows.
            identifier["type"] = "int64"
    holders: tuple[str, ...] = ()
    if holder_column is not None:
        holders = _holders(parts, holder_column, columns, attributes)
        attributes[holder_column] = _described_holder()
        columns.append(holder_column)
        quasi_identifier_columns.append(holder_column)
        quasi_identifiers.append({"name": holder_column, "kind": "category", "type": "string"})
    markers = sorted({marker for part in parts for marker in part.manifest.missing_markers})
    configuration = {
        "input": {"missing_markers": markers},
        "attributes": attributes,
        "missing": first.configuration.get("missing", "drop"),
        "evaluate": EvaluateOptions().model_dump(mode="json", include={"risk"}),
        "privacy": privacy.model_dump(mode="json"),
        "output": {"style": first.style, "format": _FORMAT},
    }
    description = {
        "configuration": configuration,
        "coding": dict(first.coding),
        "holder_column": holder_column,
        "parts": [
            {
                "run_id": part.manifest.run_id,
                "output_fingerprint": part.manifest.fingerprint,
                "rows": part.rows,
                "privacy": _guarantees_of(part.manifest.configuration["privacy"]),
                "holder": holders[index] if holders else None,
            }
            for index, part in enumerate(parts)
        ],
        "published": {
            "columns": columns,
            "quasi_identifier_columns": quasi_identifier_columns,
            "quasi_identifiers": quasi_identifiers,
        },
    }
    return Form(description, privacy, holder_column, holders)


def _guarantees_of(privacy: Mapping[str, Any]) -> dict[str, object]:
    """Return what a part guarantees, without the path of its holder's population.

    >>> _guarantees_of({"k": 5, "delta_presence": {"min": 0.1, "max": 0.9, "population": "p.csv"}})
    {'k': 5, 'delta_presence': {'min': 0.1, 'max': 0.9}}
    """
    presence = privacy.get("delta_presence")
    bounds = None if presence is None else {key: presence[key] for key in ("min", "max")}
    return {**privacy, "delta_presence": bounds}


def _require_countable(privacy: PrivacyOptions) -> None:
    """Raise ConfigurationError if the files of a union cannot prove what its coding demands."""
    for key, is_set, reason in (
        (
            "delta_presence",
            privacy.delta_presence is not None,
            "which is about one population. The union has another one",
        ),
        (
            "unit",
            bool(privacy.unit),
            "which identifies people. The people of two holders cannot be compared",
        ),
    ):
        if is_set:
            raise ConfigurationError(
                f"union: the coding asks for privacy.{key}, {reason}. Agree on a coding without it"
            )


def _described_holder() -> dict[str, Any]:
    """Return the configuration of the column of holders."""
    described = Attribute(role="quasi_identifier", type="text").model_dump(mode="json")
    del described["order"]
    return described


def _holders(
    parts: Sequence[Part], column: str, columns: Sequence[str], attributes: Mapping[str, Any]
) -> tuple[str, ...]:
    """Name the holder of each part by its directory, or raise ConfigurationError."""
    in_use = {name.lower() for name in (*columns, *attributes)}
    in_use |= {name.lower() for part in parts for name in part.manifest.attributes}
    if not column.strip() or column.lower() in in_use:
        raise ConfigurationError(
            f"--holder-column: found {column!r}. Expected a name that no column of the parts has. "
            "Choose another"
        )
    names = [part.name for part in parts]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(
            f"--holder-column: {names.count(twice[0])} releases lie in directories called "
            f"{twice[0]!r}, so the column could not distinguish them. Expected different names. "
            "Rename the directories"
        )
    if any(name in (".", "..") for name in names):
        raise ConfigurationError(
            "--holder-column: found a release that is called '.' or '..', which names no holder. "
            "Expected the name of its directory. Give the path from another place"
        )
    return tuple(names)
