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

from pydantic import Field, SerializeAsAny, ValidationError

from anonspark.config.attributes import Attribute, order_as_told
from anonspark.config.combinations import (
    generated_columns,
    lacking_quasi_identifiers,
    unusable_criteria,
    unusable_names,
)
from anonspark.config.configuration import CodingKey
from anonspark.config.input import MissingPolicy
from anonspark.config.loading import copy_document
from anonspark.config.models import DEFAULT_MODEL
from anonspark.config.output import OutputStyle
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Finding, in_words, key_path, validated
from anonspark.config.reading import TextReader, read_named_text, sibling
from anonspark.config.section import NonEmptyText, Section
from anonspark.config.yaml_reading import read_document
from anonspark.core.hierarchies.files import hierarchy_digest
from anonspark.errors import ConfigurationError
from anonspark.redaction import Redacted

_DEFAULTS = {name: field.default for name, field in Attribute.model_fields.items()}

# A coding names a hierarchy file by its hash, a manifest by its path.
_DESCRIBED_OTHERWISE = {"hierarchy", "order", "order_entries", "order_fingerprint"}


def not_as_coded(configured: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    """Return the keys of a manifest's configuration whose values differ from the agreed coding.

    ``document`` is that of :attr:`Coding.document`. The keys of ``privacy`` are not among them:
    :func:`is_at_least` compares these.
    """
    agreed = {attribute["name"]: attribute for attribute in document["attributes"]}
    listed = {
        name: attribute
        for name, attribute in configured["attributes"].items()
        if attribute["role"] != "identifier"
    }
    keys = [] if list(listed) == list(agreed) else ["attributes"]
    keys += [
        f"attributes.{name}"
        for name, attribute in listed.items()
        if name in agreed and not _is_as_agreed(attribute, agreed[name])
    ]
    output = configured["output"]
    for key, stated, expected in (
        ("missing", configured.get("missing", "drop"), document.get("missing")),
        ("output.style", output["style"], document.get("style")),
        ("output.pseudonyms", bool(output.get("pseudonyms")), False),
    ):
        if stated != expected:
            keys.append(key)
    return keys


def _is_as_agreed(attribute: Mapping[str, Any], agreed: Mapping[str, Any]) -> bool:
    """Return whether an attribute has the options of the coding. A manifest only counts orders."""
    same = all(
        value == agreed.get(key, _DEFAULTS.get(key))
        for key, value in attribute.items()
        if key not in _DESCRIBED_OTHERWISE
    )
    order = agreed.get("order")
    if attribute.get("order") is not None or order is None:
        options, expected = {"order": attribute.get("order")}, {"order": order}
    else:
        expected = order_as_told(order)
        options = {key: attribute.get(key) for key in expected}
    return same and options == expected


def is_at_least(options: PrivacyOptions, least: PrivacyOptions) -> bool:
    """Return whether options ask for at least what a coding asks for.

    >>> is_at_least(PrivacyOptions(k=5), PrivacyOptions(k=3))
    True
    """
    return options.k >= least.k and all(
        any(criterion.is_as_strict_as(required) for criterion in options.criteria)
        for required in least.criteria
    )


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
        """Find settings that each holder configures separately."""
        yield from (
            Finding(
                ("attributes", name),
                "found an identifier. Expected published columns only. Remove it, and let each "
                "holder list its own identifiers in its configuration",
            )
            for name, attribute in self.attributes.items()
            if attribute.role == "identifier"
        )
        for key, is_there, reason in (
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
                    f"{reason}. Move it there",
                )

    def _unusable_levels(self) -> Iterator[Finding]:
        """Find levels for attributes that cannot have any, and attributes without a level."""
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
                f"found {in_words(self.style)} together with 'levels', whose labels are those of "
                "hierarchies. Expected 'interval'. Remove one of the two",
            )


@dataclass(frozen=True, repr=False)
class Coding(Redacted):
    """A coding with the contents of its hierarchy files.

    ``file`` is as it was written, ``attributes`` are as a configuration has them: with hierarchy
    files at their paths on this machine. ``digests`` are the SHA-256 of these, by attribute
    (:func:`anonspark.core.hierarchies.files.hierarchy_digest`).
    """

    file: CodingFile
    attributes: Mapping[str, Attribute]
    digests: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name among the holders."""
        return self.file.name

    @property
    def document(self) -> dict[str, object]:
        """The coding as a manifest shows it: defaults left out, hierarchy files by their SHA-256.

        It is public as a whole, also the orders of quasi-identifiers.
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
        """The fingerprint, which differs from that of every other coding."""
        return coding_fingerprint(self.document)

    def as_dict(self) -> dict[str, object]:
        """Return the section of a manifest."""
        return {"name": self.name, "fingerprint": self.fingerprint, "document": self.document}


def coding_fingerprint(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a coding's canonical JSON: keys in order, no blanks, lower-case hex.

    >>> coding_fingerprint({"b": 1, "a": 2}) == coding_fingerprint({"a": 2, "b": 1})
    True
    """
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def agreed_digests(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the hierarchy files of a coding, by attribute.

    >>> agreed_digests({"attributes": [{"name": "job", "hierarchy": {"sha256": "0f"}}]})
    {'job': '0f'}
    """
    return {
        attribute["name"]: attribute["hierarchy"]["sha256"]
        for attribute in document.get("attributes", [])
        if "sha256" in attribute.get("hierarchy", {})
    }


def coding_privacy(document: Mapping[str, Any]) -> PrivacyOptions:
    """Return what every release of a coding guarantees at least.

    Raises pydantic.ValidationError if the section of the document is not one of this version.

    >>> coding_privacy({"privacy": {"k": 5}}).k
    5
    """
    return PrivacyOptions.model_validate(document["privacy"])


_EXPECTED = "a mapping with 'name', 'attributes' and 'privacy'"
_LEVELS_MODEL = "full-domain"


class _Naming(Section):
    coding: CodingKey = None


def merge_coding(document: dict[str, Any], read: TextReader, problems: list[str]) -> Coding | None:
    """Merge a coding into the configuration that names it.

    Parameters, result and errors: :meth:`anonspark.config.configuration.CodingReader.merge_coding`.
    """
    naming = validated(_Naming, {"coding": document["coding"]}, problems)
    options = None if naming is None else naming.coding
    if options is None:
        return None
    coding = _load(options.path, read, problems)
    if coding is None:
        return None
    if options.fingerprint not in (None, coding.fingerprint):
        problems.append(
            f"coding.fingerprint: found another than that of {options.path}, which is "
            f"{coding.fingerprint}. Expected the coding that was agreed on. The file, or one of "
            "its hierarchy files, was changed since: restore it, or agree on the new one"
        )
    document["coding"] = {"path": options.path, "fingerprint": coding.fingerprint}
    _merge_attributes(document, coding, problems)
    _merge_form(document, coding.file, problems)
    _merge_privacy(document, coding.file.privacy, problems)
    if coding.file.levels:
        _merge_levels(document, coding.file.levels, problems)
    return coding


def _load(path: str, read: TextReader, problems: list[str]) -> Coding | None:
    """Read a coding with its hierarchy files, or return None if there are problems."""

    def read_named(named: str) -> str:
        return read_named_text(named, read)

    wrong: list[str] = []
    try:
        written, twice = read_document(path, "a coding", _EXPECTED, read_named)
    except ConfigurationError as error:
        if type(error) is not ConfigurationError:
            raise  # it can be read through Spark alone
        problems += [f"coding: {problem}" for problem in error.problems]
        return None
    wrong += twice
    document = copy_document(written, (), wrong)
    file = validated(CodingFile, document, wrong)
    if file is None or wrong:
        problems += [f"coding: {path}: {problem}" for problem in dict.fromkeys(wrong)]
        return None
    attributes, digests = {}, {}
    for name, attribute in file.attributes.items():
        attributes[name] = attribute
        if not isinstance(attribute.hierarchy, str):
            continue
        hierarchy = sibling(path, attribute.hierarchy)
        attributes[name] = attribute.model_copy(update={"hierarchy": hierarchy})
        try:
            digests[name] = hierarchy_digest(read_named(hierarchy))
        except (OSError, ValueError) as error:
            reason = "no such file" if isinstance(error, FileNotFoundError) else "it cannot be read"
            wrong.append(
                f"{key_path(('attributes', name, 'hierarchy'))}: {hierarchy}: {reason}. Expected a "
                "CSV file in UTF-8, named relative to the coding. Check the path"
            )
    problems += [f"coding: {path}: {problem}" for problem in wrong]
    return None if wrong else Coding(file, attributes, digests)


def _merge_attributes(document: dict[str, Any], coding: Coding, problems: list[str]) -> None:
    """Take the attributes from the coding, and the identifiers from the holder."""
    identifiers = document.get("attributes")
    merged: dict[str, Any] = {
        name: attribute.model_dump(mode="json", exclude_defaults=True)
        for name, attribute in coding.attributes.items()
    }
    if identifiers is not None and not isinstance(identifiers, Mapping):
        problems.append(
            f"attributes: found {in_words(identifiers)}. Expected a mapping of identifiers next to "
            "a coding, or nothing. Remove it"
        )
        identifiers = None
    for name, written in (identifiers or {}).items():
        try:
            attribute = Attribute.model_validate(written)
        except ValidationError:
            merged[name] = written  # reported with everything else
            continue
        where = key_path(("attributes", name))
        if name not in coding.attributes:
            merged[name] = written
            if attribute.role != "identifier":
                problems.append(
                    f"{where}: found the role {attribute.role!r} for a column that the coding does "
                    "not list. Expected identifiers only, which are never published. Remove it"
                )
        elif attribute not in (coding.attributes[name], coding.file.attributes[name]):
            problems.append(
                f"{where}: found something else than in the coding. Expected the same. Remove it"
            )
    document["attributes"] = merged


def _merge_form(document: dict[str, Any], coding: CodingFile, problems: list[str]) -> None:
    """Take the policy for missing values and the style from the coding."""
    output = document.get("output")
    sections: list[tuple[str, dict[str, Any], str, str]] = [
        ("missing", document, "missing", coding.missing)
    ]
    if isinstance(output, dict):
        sections.append(("output.style", output, "style", coding.style))
        if output.get("pseudonyms"):
            problems.append(
                "output.pseudonyms: found a column that the coding does not list. Expected the "
                "columns of the coding only. Remove it"
            )
    for where, section, key, agreed in sections:
        if section.get(key, agreed) != agreed:
            problems.append(
                f"{where}: found {in_words(section[key])}, but the coding says {agreed!r}. "
                "Expected the same. Remove it"
            )
        section[key] = agreed


def _merge_privacy(document: dict[str, Any], least: PrivacyOptions, problems: list[str]) -> None:
    """Require at least what the coding requires, and more if the holder does."""
    privacy = document.get("privacy")
    if privacy is None:
        privacy = {}
    if not isinstance(privacy, dict):
        return  # reported with everything else
    privacy = {"k": least.k, **privacy}
    document["privacy"] = privacy
    try:
        options = PrivacyOptions.model_validate(privacy)
    except ValidationError:
        return
    if options.k < least.k:
        problems.append(
            f"privacy.k: found {in_words(options.k)}, but the coding asks for {least.k}. Expected "
            "at least that. Raise it, or remove it"
        )
    document["privacy"] = options.model_dump(mode="json", exclude_defaults=True)
    for key, section in least.sections():
        criterion = section.criterion()
        same = [
            similar
            for similar in options.criteria
            if (similar.attribute, similar.kind) == (criterion.attribute, criterion.kind)
        ]
        if not same:
            listed = document["privacy"].setdefault(key, [])
            listed.append(section.model_dump(mode="json", exclude_defaults=True))
        elif not any(similar.is_as_strict_as(criterion) for similar in same):
            problems.append(
                f"privacy.{key}: found {same[0].describe()} for attribute {same[0].attribute!r}, "
                f"but the coding asks for {criterion.describe()}. Expected at least that. "
                "Strengthen it, or remove it"
            )


def _merge_levels(document: dict[str, Any], levels: Mapping[str, int], problems: list[str]) -> None:
    """Set the levels of the coding as those of the model.

    >>> document = {}
    >>> _merge_levels(document, {"age": 2}, [])
    >>> document
    {'model': {'name': 'full-domain', 'levels': [{'age': 2}]}}
    """
    model = document.get("model")
    if model is None:
        model = {"name": _LEVELS_MODEL}
    if not isinstance(model, dict):
        return  # reported with everything else
    name = model.get("name", DEFAULT_MODEL)
    if name != _LEVELS_MODEL:
        problems.append(
            f"model.name: found {in_words(name)}, but the coding gives levels, by which "
            f"{_LEVELS_MODEL!r} recodes. Expected that model. Remove it"
        )
        return
    agreed = [dict(levels)]
    if model.get("levels", agreed) != agreed:
        problems.append(
            "model.levels: found other levels than in the coding. Expected the same. Remove it"
        )
    document["model"] = {**model, "levels": agreed}


__all__ = ["agreed_digests", "form_problems", "merge_coding"]


def form_problems(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Find errors in the section of a manifest with name, fingerprint and document of a coding."""
    coding = manifest["coding"]
    document = coding["document"]
    if coding["name"] != document.get("name"):
        yield "coding.name: expected that of coding.document"
    if coding["fingerprint"] != coding_fingerprint(document):
        yield "coding.fingerprint: expected that of coding.document"
    # A stand-in for the path of a file of which only the hash is known.
    attributes = {
        str(attribute.get("name")): {
            key: "-" if key == "hierarchy" and "sha256" in value else value
            for key, value in attribute.items()
            if key != "name"
        }
        for attribute in document["attributes"]
    }
    try:
        CodingFile.model_validate({**document, "attributes": attributes})
    except ValidationError:
        yield "coding.document: expected what anonspark writes there"
