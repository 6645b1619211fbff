"""A configuration that names a coding: what it takes from there, and what it may say beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from anonspark.config.attributes import Attribute
from anonspark.config.coding import CodingKey
from anonspark.config.models import DEFAULT_MODEL
from anonspark.config.plain_copy import copy_document
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import found, key_path, validated
from anonspark.config.reading import TextReader, read_named_text, sibling
from anonspark.config.section import Section
from anonspark.config.yaml_reading import read_document
from anonspark.core.hierarchies.files import hierarchy_digest
from anonspark.errors import ConfigurationError
from anonspark.sharing.coding.agreement import Coding, CodingFile

_EXPECTED = "a mapping with 'name', 'attributes' and 'privacy'"
_LEVELS_MODEL = "full-domain"


class _Naming(Section):
    coding: CodingKey = None


def merge_coding(document: dict[str, Any], read: TextReader, problems: list[str]) -> Coding | None:
    """Put what a coding says into the configuration that names it.

    Parameters, result and errors: :meth:`anonspark.config.coding.CodingReader.merge_coding`.
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
            why = "no such file" if isinstance(error, FileNotFoundError) else "it cannot be read"
            wrong.append(
                f"{key_path(('attributes', name, 'hierarchy'))}: {hierarchy}: {why}. Expected a "
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
            f"attributes: found {found(identifiers)}. Expected a mapping of identifiers next to a "
            "coding, or nothing. Remove it"
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
                f"{where}: found {found(section[key])}, but the coding says {agreed!r}. Expected "
                "the same. Remove it"
            )
        section[key] = agreed


def _merge_privacy(document: dict[str, Any], least: PrivacyOptions, problems: list[str]) -> None:
    """Ask for what the coding asks for at least."""
    privacy = document.get("privacy")
    if privacy is None:
        privacy = {}
    if not isinstance(privacy, dict):
        return  # reported with everything else
    privacy = {"k": least.k, **privacy}
    document["privacy"] = privacy
    try:
        asked = PrivacyOptions.model_validate(privacy)
    except ValidationError:
        return
    if asked.k < least.k:
        problems.append(
            f"privacy.k: found {found(asked.k)}, but the coding asks for {least.k}. Expected at "
            "least that. Raise it, or remove it"
        )
    document["privacy"] = asked.model_dump(mode="json", exclude_defaults=True)
    for key, section in least.sections():
        criterion = section.criterion()
        same = [
            other
            for other in asked.criteria
            if (other.attribute, other.kind) == (criterion.attribute, criterion.kind)
        ]
        if not same:
            listed = document["privacy"].setdefault(key, [])
            listed.append(section.model_dump(mode="json", exclude_defaults=True))
        elif not any(other.is_as_strict_as(criterion) for other in same):
            problems.append(
                f"privacy.{key}: found {same[0].describe()} for attribute {same[0].attribute!r}, "
                f"but the coding asks for {criterion.describe()}. Expected at least that. "
                "Strengthen it, or remove it"
            )


def _merge_levels(document: dict[str, Any], levels: Mapping[str, int], problems: list[str]) -> None:
    """Recode to the levels of the coding."""
    model = document.get("model")
    if model is None:
        model = {"name": _LEVELS_MODEL}
    if not isinstance(model, dict):
        return  # reported with everything else
    name = model.get("name", DEFAULT_MODEL)
    if name != _LEVELS_MODEL:
        problems.append(
            f"model.name: found {found(name)}, but the coding gives levels, by which "
            f"{_LEVELS_MODEL!r} recodes. Expected that model. Remove it"
        )
        return
    agreed = [dict(levels)]
    if model.get("levels", agreed) != agreed:
        problems.append(
            "model.levels: found other levels than in the coding. Expected the same. Remove it"
        )
    document["model"] = {**model, "levels": agreed}
