"""What a manifest has to look like: every key that anonspark reads is there and of its type."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.config.json_schema import known_schema
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Location, explain, key_path
from anonspark.core.extensions import CRITERIA, MODELS, loaded
from anonspark.core.figures import SUMMARY
from anonspark.core.kinds import Kind
from anonspark.release.sections import owners

FORM = 2
"""Manifests of this form list the files of their release, and have every key."""

_MOST_PROBLEMS = 5

EXTENSION = re.compile(
    r"anonspark\.(models|criteria)\.[^.\s]{1,80} [A-Za-z0-9][\w.-]{0,80} [A-Za-z0-9][\w.+!-]{0,40}"
)
"""Entry point of another package, and the package's name and version."""

Count = Annotated[int, Field(ge=0)]
Digits = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    # A later version may say more.
    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


class _File(_Part):
    path: Annotated[str, Field(min_length=1)]
    bytes: Count
    rows: Count | None
    sha256: Digits


class _Hierarchy(_Part):
    height: Count
    leaves: Count


class _QuasiIdentifier(_Part):
    name: str
    kind: Kind
    type: str = ""
    hierarchy: _Hierarchy = _Hierarchy(height=0, leaves=0)


class _Published(_Part):
    rows: Count = 0
    # Null where fewer than k records were left out.
    rows_left_out: Count | None = 0
    left_out_values: Literal["told", "withheld"] = "told"
    sensitive_values: dict[str, Count] = {}
    units: list[Annotated[list[Count], Field(min_length=2, max_length=2)]] = []
    # Null where it is infinite.
    criteria_of_people: list[float | None] = []
    columns: list[str] = []
    quasi_identifier_columns: list[str]
    quasi_identifiers: list[_QuasiIdentifier]


class _Fingerprints(_Part):
    configuration: str = ""
    input: str = ""
    output: str


class _Versions(_Part):
    anonspark: str = ""
    python: str = ""
    spark: str = ""
    pyspark: str = ""
    pyarrow: str = ""
    numpy: str = ""
    numba: str = ""
    pandas: str = ""
    # By the entry points of its model and its criteria.
    extensions: dict[str, str] = {}

    @field_validator("extensions")
    @classmethod
    def _of_packages(cls, packages: dict[str, str]) -> dict[str, str]:
        if not all(EXTENSION.fullmatch(" ".join(each)) for each in packages.items()):
            raise ValueError("no name and version of a package")
        return packages


class _Gate(_Part):
    metric: str
    found: float | None
    min: float | None
    max: float | None
    withheld: bool = False


class _Drift(_Part):
    metric: str
    found: float | None
    before: float | None
    max: float
    run_id: str | None


class _Warning(_Part):
    code: str
    attribute: str | None
    text: str
    figures: dict[str, Any]


class _Attribute(_Part):
    role: Literal["identifier", "quasi_identifier", "sensitive", "insensitive"]
    weight: float = 1.0
    range: Annotated[list[int | float | str], Field(min_length=2, max_length=2)] | None = None
    order: list[str] | None = None
    hierarchy: str | dict[str, Any] | None = None


class _Input(_Part):
    format: str
    options: dict[str, str] = {}
    missing_markers: list[str]


class _Privacy(_Part):
    k: Annotated[int, Field(ge=1)]


class _Output(_Part):
    style: Literal["interval", "bounds", "mean"]
    format: str = "parquet"


class _Configured(_Part):
    """Of a configuration as much as reading a release takes."""

    input: _Input
    attributes: dict[str, _Attribute]
    missing: Literal["drop", "error", "category"] = "drop"
    model: dict[str, Any] = {}
    evaluate: dict[str, Any] = {}
    gates: dict[str, Any] = {}
    metrics: dict[str, Any] = {}
    report: dict[str, str | None] = {}
    privacy: _Privacy
    output: _Output


class _CodedAttribute(_Part):
    name: str
    hierarchy: dict[str, Any] = {}


class _CodingDocument(_Part):
    attributes: list[_CodedAttribute]
    privacy: dict[str, Any]


class _Coding(_Part):
    name: str
    fingerprint: Digits
    document: _CodingDocument


class _Manifest(_Part):
    form: Literal[2] = 2
    run_id: str = ""
    started: str = ""
    seconds: dict[str, Annotated[float, Field(ge=0)]] = {}
    versions: _Versions = _Versions()
    configuration: _Configured
    fingerprints: _Fingerprints
    input_version: dict[str, str] = {}
    published: _Published
    summary: dict[str, Any] = {}
    gates: list[_Gate] = []
    drift: list[_Drift] = []
    attempt: Count = 1
    chosen_model: dict[str, Any] = {}
    recipient: dict[str, Any] = {}
    coding: _Coding | None = None
    warnings: list[_Warning] = []
    files: list[_File] = []


class _UnionInput(_Part):
    missing_markers: list[str]


class _UnionConfigured(_Part):
    """What a union has of a configuration: no run made it."""

    input: _UnionInput
    attributes: dict[str, _Attribute]
    missing: Literal["drop", "error", "category"]
    evaluate: dict[str, Any]
    privacy: _Privacy
    output: _Output


class _UnionFingerprints(_Part):
    output: str


class _UnionPublished(_Part):
    rows: Count
    sensitive_values: dict[str, Count]
    columns: list[str]
    quasi_identifier_columns: list[str]
    quasi_identifiers: list[_QuasiIdentifier]


class _PartOfUnion(_Part):
    run_id: str
    output_fingerprint: str
    rows: Count
    privacy: dict[str, Any]
    holder: str | None


class _Union(_Part):
    """The manifest of a union of releases."""

    form: Literal[2]
    run_id: str
    started: str
    seconds: dict[str, Annotated[float, Field(ge=0)]]
    versions: _Versions
    configuration: _UnionConfigured
    coding: _Coding
    holder_column: str | None
    parts: Annotated[list[_PartOfUnion], Field(min_length=2)]
    fingerprints: _UnionFingerprints
    published: _UnionPublished
    summary: dict[str, Any]
    warnings: list[_Warning]
    files: list[_File]


def extensions_of(configured: Mapping[str, Any]) -> dict[str, str]:
    """Return the packages that a configuration's model and criteria are of, by entry point.

    Parameters
    ----------
    configured : mapping
        As a manifest has it; those of other packages are loaded.
    """
    asked = {CRITERIA: configured["privacy"], MODELS: [configured.get("model", {}).get("name")]}
    return {
        f"{group}.{name}": known.package
        for group, names in asked.items()
        for name, known in loaded(group).items()
        if name in names
    }


# What is there by its nature only: a hierarchy of an attribute that has one.
_OPTIONAL = {
    "_QuasiIdentifier": {"hierarchy"},
    "_Configured": {"report"},
    "_Attribute": {"order", "range", "weight"},
    "_CodedAttribute": {"hierarchy"},
    "_Manifest": {"chosen_model", "coding", "input_version", "recipient"},
    # Of releases that count people.
    "_Published": {"units", "criteria_of_people"},
    # Of releases that Spark has made, and of those of other packages.
    "_Versions": {"spark", "pyspark", "pandas", "extensions"},
}

# Those that every run has.
_STAGES = ("prepare", "evaluate", "publish", "verify")

_EXPECTED = {
    "missing": "a value there; the key is missing",
    "int_type": "a whole number",
    "greater_than_equal": "a larger number",
    "float_type": "a number",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}


def manifest_problems(manifest: object) -> list[str]:
    """Tell what is wrong with the form of a manifest.

    Parameters
    ----------
    manifest : object
        As it was read from JSON.

    Returns
    -------
    list of str
        One line each, which begins with the path of a key; of many the first ones.
    """
    if not isinstance(manifest, dict):
        return ["expected a mapping with the keys that anonspark writes"]
    is_union = "parts" in manifest
    parsed: _Manifest | _Union
    try:
        parsed = (_Union if is_union else _Manifest).model_validate(manifest)
    except ValidationError as error:
        return [
            f"{key_path(_location(detail['loc']))}: expected "
            f"{_EXPECTED.get(detail['type'], 'what anonspark writes there')}"
            for detail in error.errors(include_url=False, include_input=False)
        ][:_MOST_PROBLEMS]
    problems = [*_unsound_files(parsed), *_unnamed_attributes(manifest["configuration"])]
    for owner in owners(manifest):
        problems += owner.form_problems(manifest)
    if parsed.versions.extensions.keys() - extensions_of(manifest["configuration"]).keys():
        problems.append("versions.extensions: expected those of configuration")
    is_whole = "form" in manifest or "files" in manifest
    if is_whole:
        problems += [f"{key_path(place)}: the key is missing" for place in _absent(parsed, ())]
        problems += [
            f"seconds.{stage}: the key is missing"
            for stage in _STAGES
            if "seconds" in manifest and stage not in parsed.seconds and not is_union
        ]
    # Another version may have other figures and options.
    is_ours = is_whole and parsed.versions.anonspark == __version__
    problems += _summary_problems(parsed.summary, is_ours=is_ours, is_union=is_union)
    if is_ours and not is_union:
        problems += _configuration_problems(manifest["configuration"])
    return problems[:_MOST_PROBLEMS]


def _location(found: tuple[int | str, ...]) -> Location:
    """Leave out what pydantic says of the members of a union."""
    return tuple(part for part in found if not (isinstance(part, str) and "[" in part))


def _absent(part: _Part, place: Location) -> Iterator[Location]:
    """Find keys that were not given, at any depth."""
    optional = _OPTIONAL.get(type(part).__name__, set())
    for name in type(part).model_fields:
        value = getattr(part, name)
        if name not in part.model_fields_set:
            if name not in optional:
                yield (*place, name)
        elif isinstance(value, _Part):
            yield from _absent(value, (*place, name))
        elif isinstance(value, list | dict):
            inside = enumerate(value) if isinstance(value, list) else value.items()
            for key, one in inside:
                if isinstance(one, _Part):
                    yield from _absent(one, (*place, name, key))


def _unsound_files(manifest: _Manifest | _Union) -> Iterator[str]:
    """Find paths that lead out of the release, or are listed twice."""
    seen = set()
    for place, file in enumerate(manifest.files):
        where = key_path(("files", place, "path"))
        parts = file.path.split("/")
        if file.path in seen:
            yield f"{where}: expected each file once"
        elif any(part in ("", ".", "..") for part in parts) or file.path == "manifest.json":
            yield f"{where}: expected a path inside of the release, other than the manifest's"
        seen.add(file.path)


def _unnamed_attributes(configured: Mapping[str, Any]) -> Iterator[str]:
    """Find criteria about attributes that are not published as sensitive ones."""
    try:
        locations = PrivacyOptions.model_validate(configured["privacy"]).locations()
    except ValidationError:
        return  # reported where it is read
    for location, name in locations:
        if (configured["attributes"].get(name) or {}).get("role") != "sensitive":
            where = key_path(("configuration", "privacy", *location))
            yield f"{where}: expected a sensitive attribute"


_SUMMARY = tuple(
    figure
    for figure in SUMMARY
    if not figure.name.endswith("_fingerprint") and figure.name not in ("run_id", "started")
)
_NEVER_NULL = ("k", "rows_published", "published_classes", "published_min_class_size")


def _summary_problems(
    summary: Mapping[str, Any], *, is_ours: bool, is_union: bool
) -> Iterator[str]:
    for figure in _SUMMARY:
        name = figure.name
        if name not in summary:
            if is_ours and figure.needs is None:
                yield f"summary.{name}: the key is missing"
            continue
        value = summary[name]
        if figure.type == "string":
            # No model made a union.
            sound, expected = isinstance(value, str) or (is_union and value is None), "a text"
        else:
            types = (int, float) if figure.type == "double" else (int,)
            sound = isinstance(value, types) and not isinstance(value, bool)
            sound = sound or (value is None and name not in _NEVER_NULL)
            expected = "a number" if figure.type == "double" else "a whole number"
        if not sound:
            yield f"summary.{name}: expected {expected}"


def _configuration_problems(configured: Mapping[str, Any]) -> list[str]:
    """Find what is not as this version writes the configuration of a manifest."""
    document = copy.deepcopy(dict(configured))
    problems = _without_stand_ins(document)
    if problems:
        return problems
    try:
        expected = Configuration.model_validate(document).public_dict()
    except ValidationError as error:
        return [
            f"{key_path(('configuration', *finding.location))}: {finding.text}"
            for finding in explain(error, document, known_schema())
        ] or ["configuration: it is not one of this version"]
    expected["execution"]["seed_fingerprint"] = ""
    for name, attribute in configured["attributes"].items():
        for key in ("order_entries", "order_fingerprint"):
            if key in attribute:
                expected["attributes"][name][key] = attribute[key]
    return list(_differences(expected, configured, ("configuration",)))


def _without_stand_ins(document: dict[str, Any]) -> list[str]:
    """Take out what stands for the seed and for orders, after a look at it."""
    problems = []
    execution = document.get("execution")
    if not isinstance(execution, dict):
        return ["configuration.execution: expected a mapping"]
    if not isinstance(execution.pop("seed_fingerprint", None), str):
        problems.append("configuration.execution.seed_fingerprint: expected a text")
    for name, attribute in document["attributes"].items():
        place: Location = ("configuration", "attributes", name)
        entries, fingerprint = (
            attribute.pop(key, None) for key in ("order_entries", "order_fingerprint")
        )
        if (entries is None) != (fingerprint is None):
            lacking = "order_entries" if entries is None else "order_fingerprint"
            problems.append(f"{key_path((*place, lacking))}: the key is missing")
        elif entries is not None and (type(entries) is not int or entries < 1):
            problems.append(f"{key_path((*place, 'order_entries'))}: expected a whole number")
        elif fingerprint is not None and not isinstance(fingerprint, str):
            problems.append(f"{key_path((*place, 'order_fingerprint'))}: expected a text")
    return problems


def _differences(expected: object, found: object, place: Location) -> Iterator[str]:
    """Compare keys and types, not values: the validation has looked at those."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from _differences(value, found[key], (*place, key))
            else:
                yield f"{key_path((*place, key))}: the key is missing"
    elif isinstance(expected, list) and isinstance(found, list):
        for number, (one, other) in enumerate(zip(expected, found, strict=False)):
            yield from _differences(one, other, (*place, number))
    elif _type(expected) is not _type(found):
        yield f"{key_path(place)}: expected {_WORDS[_type(expected)]}"


def _type(value: object) -> type:
    return float if type(value) is int else type(value)


_WORDS = {
    dict: "a mapping",
    list: "a list",
    str: "a text",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
