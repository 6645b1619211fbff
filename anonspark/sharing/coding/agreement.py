"""The coding: one public file by which several holders anonymize, so that releases fit together.

It says what is published, in which form, and what every class satisfies at least. Nothing in it is
computed from any data, so it is known to all before there is a release.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, SerializeAsAny

from anonspark.config.attributes import Attribute
from anonspark.config.combinations import (
    generated_columns,
    lacking_quasi_identifiers,
    unusable_criteria,
    unusable_names,
)
from anonspark.config.input import MissingPolicy
from anonspark.config.output import OutputStyle
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Finding, found
from anonspark.config.section import NonEmptyText, Section
from anonspark.redaction import Redacted


class CodingFile(Section):
    """The content of the file of a coding."""

    name: NonEmptyText
    """What the holders call it."""

    attributes: dict[str, Attribute] = Field(min_length=1)
    """The published columns and their roles, in this order."""

    missing: MissingPolicy = "drop"
    """Records with a missing quasi-identifier."""

    style: OutputStyle = "interval"
    """How generalized values are written."""

    privacy: SerializeAsAny[PrivacyOptions]
    """What every release guarantees at least."""

    levels: dict[str, Annotated[int, Field(ge=0)]] = Field(default={})
    """Level of each quasi-identifier, for the model full-domain."""

    def _problems(self) -> Iterator[Finding]:
        yield from (
            *unusable_names(self.attributes),
            *unusable_criteria(self.attributes, self.privacy),
            *generated_columns(self.attributes, self.style, self.missing, {}),
            *self._own_matters(),
            *self._unusable_levels(),
            *lacking_quasi_identifiers(self.attributes),
        )

    @property
    def quasi_identifiers(self) -> list[str]:
        """Names of the quasi-identifiers, in order."""
        return [
            name
            for name, attribute in self.attributes.items()
            if attribute.role == "quasi_identifier"
        ]

    def _own_matters(self) -> Iterator[Finding]:
        """Find what is not the same at all holders."""
        yield from (
            Finding(
                ("attributes", name),
                "found an identifier. Expected published columns only. Remove it, and let each "
                "holder list its own identifiers in its configuration",
            )
            for name, attribute in self.attributes.items()
            if attribute.role == "identifier"
        )
        for key, is_there, why in (
            ("unit", bool(self.privacy.unit), "for it names a column that each holder has"),
            (
                "delta_presence",
                self.privacy.delta_presence is not None,
                "for it is about the population of each holder",
            ),
        ):
            if is_there:
                yield Finding(
                    ("privacy", key),
                    f"found it in a coding. Expected it in the configurations of the holders, "
                    f"{why}. Move it there",
                )

    def _unusable_levels(self) -> Iterator[Finding]:
        """Find levels of what has none, and attributes without one."""
        if not self.levels:
            return
        if set(self.levels) != set(self.quasi_identifiers):
            yield Finding(
                ("levels",),
                f"found levels of {len(self.levels)} attributes. Expected one level for each "
                f"of the {len(self.quasi_identifiers)} quasi-identifiers, and no others. "
                "Complete or correct it",
            )
        yield from (
            Finding(
                ("levels", name),
                "found the level of an attribute without a hierarchy. Expected one of a hierarchy. "
                "Give the attribute a file or a rule, or remove 'levels'",
            )
            for name in self.levels
            if name in self.attributes and self.attributes[name].hierarchy is None
        )
        if self.style != "interval":
            yield Finding(
                ("style",),
                f"found {found(self.style)} together with 'levels', whose labels are those of "
                "hierarchies. Expected 'interval'. Remove one of the two",
            )


@dataclass(frozen=True, repr=False)
class Coding(Redacted):
    """A coding with the contents of its hierarchy files.

    Parameters
    ----------
    file : CodingFile
        As it was written.
    attributes : mapping of str to Attribute
        The same as a configuration has them: hierarchy files where this machine finds them.
    digests : mapping of str to str
        SHA-256 of the hierarchy files, by attribute
        (:func:`anonspark.core.hierarchies.files.hierarchy_digest`).
    """

    file: CodingFile
    attributes: Mapping[str, Attribute]
    digests: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return its name among the holders."""
        return self.file.name

    @property
    def document(self) -> dict[str, object]:
        """The coding as a manifest shows it: defaults left out, hierarchy files by their SHA-256.

        It is public as a whole, the orders of quasi-identifiers, too.
        """
        attributes = []
        for name, attribute in self.file.attributes.items():
            section = attribute.model_dump(mode="json", exclude_defaults=True)
            if name in self.digests:
                section["hierarchy"] = {"sha256": self.digests[name]}
            attributes.append({"name": name, **section})
        document: dict[str, object] = {
            "name": self.name,
            "attributes": attributes,
            "missing": self.file.missing,
            "style": self.file.style,
            "privacy": self.file.privacy.model_dump(mode="json", exclude_defaults=True),
        }
        return document | ({"levels": dict(self.file.levels)} if self.file.levels else {})

    @property
    def fingerprint(self) -> str:
        """Return its fingerprint, which differs from that of every other coding."""
        return coding_fingerprint(self.document)

    def as_dict(self) -> dict[str, object]:
        """Return what a manifest says of it."""
        return {"name": self.name, "fingerprint": self.fingerprint, "document": self.document}


def coding_fingerprint(document: Mapping[str, Any]) -> str:
    """Return the fingerprint of a coding.

    Parameters
    ----------
    document : mapping
        Of :attr:`Coding.document`, or of a manifest.

    Returns
    -------
    str
        SHA-256 of its canonical JSON, with keys in order and without blanks, in hexadecimal digits.
    """
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def agreed_digests(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the hierarchy files of a coding, by attribute."""
    return {
        attribute["name"]: attribute["hierarchy"]["sha256"]
        for attribute in document.get("attributes", [])
        if "sha256" in attribute.get("hierarchy", {})
    }


def coding_privacy(document: Mapping[str, Any]) -> PrivacyOptions:
    """Return what every release of a coding guarantees at least.

    Parameters
    ----------
    document : mapping
        Of :attr:`Coding.document`, or of a manifest.

    Raises
    ------
    pydantic.ValidationError
        If the section is not one of this version.
    """
    return PrivacyOptions.model_validate(document["privacy"])
