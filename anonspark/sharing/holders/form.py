"""Define the form of a union: the columns, criteria and holders in its manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonspark.config import Attribute
from anonspark.config.evaluate import EvaluateOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.errors import ConfigurationError
from anonspark.release.manifest import Manifest
from anonspark.sharing.coding.agreement import coding_privacy
from anonspark.sharing.holders.parts import Part

# As Parquet is written on every engine.
_FORMAT = "parquet"


@dataclass(frozen=True)
class Form:
    """The form of a union, which is known before anything is counted in it.

    Parameters
    ----------
    description : dict
        The keys of the manifest that reading the union takes.
    privacy : PrivacyOptions
        Those of the coding.
    holder_column : str or None
    holders : tuple of str
        What stands in that column for each part. Empty without it.
    """

    description: dict[str, Any]
    privacy: PrivacyOptions
    holder_column: str | None
    holders: tuple[str, ...]

    @property
    def manifest(self) -> Manifest:
        """As who reads the union knows it, without figures and files."""
        return Manifest(self.description)

    @property
    def columns(self) -> list[str]:
        """All published columns."""
        return list(self.description["published"]["columns"])


def form_of(parts: Sequence[Part], holder_column: str | None) -> Form:
    """Return how the union of parts is published.

    Parameters
    ----------
    parts : sequence of Part
        Of :func:`anonspark.sharing.holders.parts.read_parts`.
    holder_column : str or None
        Name of the column with the holder of each record. None publishes no holders.

    Raises
    ------
    ConfigurationError
        If the column cannot have this name, or two parts the same one, or the coding asks for what
        a union cannot promise.
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
    """Return what a part guarantees, without the place of its holder's population."""
    presence = privacy.get("delta_presence")
    bounds = None if presence is None else {key: presence[key] for key in ("min", "max")}
    return {**privacy, "delta_presence": bounds}


def _require_countable(privacy: PrivacyOptions) -> None:
    """Check that the files of a union can show whatever its coding asks for."""
    for key, asked, why in (
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
        if asked:
            raise ConfigurationError(
                f"union: the coding asks for privacy.{key}, {why}. Agree on a coding without it"
            )


def _described_holder() -> dict[str, Any]:
    described = Attribute(role="quasi_identifier", type="text").model_dump(mode="json")
    del described["order"]
    return described


def _holders(
    parts: Sequence[Part], column: str, columns: Sequence[str], attributes: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return what the column of holders says of each part: the names of their directories."""
    taken = {name.lower() for name in (*columns, *attributes)}
    taken |= {name.lower() for part in parts for name in part.manifest.attributes}
    if not column.strip() or column.lower() in taken:
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
