"""Check the form of a manifest: every key that anonspark reads is there and of its type."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.config.attributes import Attribute
from anonspark.config.gates import EvaluateOptions
from anonspark.config.json_schema import known_schema
from anonspark.config.models import options_classes
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Location, explain, key_path
from anonspark.core.extensions import owner_of
from anonspark.core.figures import SUMMARY
from anonspark.core.grids import CalendarUnit
from anonspark.core.labels import Kind
from anonspark.core.warning_codes import WarningCode
from anonspark.release.conditions import ConditionFile
from anonspark.release.manifest import EXTENSION, FORM, MANIFEST, VERSION, extensions_of
from anonspark.release.signatures import KEY, SIGNATURE

OWNED = ("coding", "parts")
"""Keys of sections that a room above owns, which checks them. Most manifests have none."""

_MOST_PROBLEMS = 5

_MOST_SIGNS = 20_000
"""Longest text that a person wrote, such as a name or a condition."""

Count = Annotated[int, Field(ge=0)]
Digits = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=_MOST_SIGNS)]
Name = Annotated[str, Field(min_length=1, max_length=1_000)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Version = Annotated[str, Field(pattern=VERSION)]
SigningKey = Annotated[str, Field(pattern=KEY)]
Instant = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$")]
Type = Annotated[
    str,
    Field(
        pattern=r"^[a-z]+\d*(_[a-z]+)?(\[(s|ms|us|ns|day)(, tz=[\w/:+-]{1,40})?\]|\(\d+, -?\d+\))?$"
    ),
]
_STAGES = "prepare|evaluate|publish|verify|warnings|association|information|drift|metrics|suppress"
_OTHER_STAGES = r"compare models|choose a model|read the mapping|verify parts|round \d+ of \d+"
Seconds = dict[
    Annotated[str, Field(pattern=f"^({_STAGES}|{_OTHER_STAGES})$")], Annotated[float, Field(ge=0)]
]
Metric = float | None
# Default of keys that some releases lack. A key that is present is not null.
_ABSENT: Any = None


class SectionOwner(Protocol):
    """The room that owns a section of manifests and checks it."""

    def form_problems(self, manifest: Mapping[str, Any]) -> Iterator[str]:
        """Yield the errors in the form of the section, one line each, which begins with a key."""


class _Part(BaseModel):
    # Built where a manifest is read: most runs read none, and building takes as long as to start.
    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True
    )


class _File(_Part):
    path: Name
    bytes: Count
    rows: Count | None
    sha256: Digits


class _Hierarchy(_Part):
    height: Count
    leaves: Count


class _QuasiIdentifier(_Part):
    name: Name
    kind: Kind
    type: Type
    # Only of attributes with a hierarchy or a grid.
    hierarchy: _Hierarchy = _ABSENT
    grid: Annotated[float, Field(gt=0)] | CalendarUnit = _ABSENT


class _Published(_Part):
    rows: Count
    # Null if fewer than k records were left out.
    rows_left_out: Count | None
    sensitive_values: dict[Name, Count]
    left_out_values: Literal["told", "withheld"]
    columns: list[Name]
    quasi_identifier_columns: list[Name]
    quasi_identifiers: list[_QuasiIdentifier]
    # Only of releases that count people.
    units: list[Annotated[list[Count], Field(min_length=2, max_length=2)]] = _ABSENT
    # Null if it is infinite.
    criteria_of_people: list[Metric] = _ABSENT


class _Fingerprints(_Part):
    configuration: Digits
    input: Digits
    output: Digits


class _Versions(_Part):
    anonspark: Version
    python: Version
    # Only of releases that Spark has made.
    spark: Version = _ABSENT
    pyspark: Version = _ABSENT
    pandas: Version = _ABSENT
    pyarrow: Version
    numpy: Version
    numba: Version
    # By the entry points of its model and its criteria.
    extensions: dict[str, str] = _ABSENT

    @field_validator("extensions")
    @classmethod
    def _of_packages(cls, packages: dict[str, str]) -> dict[str, str]:
        if not all(EXTENSION.fullmatch(" ".join(item)) for item in packages.items()):
            raise ValueError("no name and version of a package")
        return packages


class _Gate(_Part):
    metric: Name
    found: Metric
    min: Metric
    max: Metric
    withheld: bool


class _Drift(_Part):
    metric: Name
    found: Metric
    before: Metric
    max: float
    run_id: Id | None


class _Dependency(_Part):
    attribute: Name
    share: float
    within: Metric


class _WarningFigures(_Part):
    """The possible figures of any kind of warning."""

    gives_away: list[_Dependency] | None = None
    columns: list[Name] | None = None
    exact: bool | None = None
    records: Metric = None
    releases: Metric = None
    rows: Metric = None
    values: Metric = None
    homogeneous_records: Metric = None
    missing_share: Metric = None
    records_below_k: Metric = None
    records_of_k_identifiers: Metric = None
    repeated_share: Metric = None
    share: Metric = None
    share_below_k: Metric = None
    unique_records: Metric = None
    unique_share: Metric = None


class _Warning(_Part):
    code: WarningCode
    attribute: Name | None
    text: Text
    figures: _WarningFigures


class _Configured(BaseModel):
    """The part of a configuration that decides the form of a manifest."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True, defer_build=True)

    attributes: dict[Name, dict[str, object]]
    privacy: dict[str, object]


class _CodingDocument(_Part):
    name: Name
    attributes: list[dict[str, object]]
    missing: Text
    style: Text
    privacy: dict[str, object]
    levels: dict[Name, Count] = _ABSENT


class _Coding(_Part):
    name: Name
    fingerprint: Digits
    document: _CodingDocument


class _TriedModel(_Part):
    model: dict[str, Any]
    loss: Metric


class _ChosenModel(_Part):
    model: dict[str, Any]
    objective: Literal["loss", "queries"]
    rows: Count
    tried: list[_TriedModel]


class _Collusion(_Part):
    k: Count
    l_diversity: dict[Name, float]


class _Recipient(_Part):
    name: Name
    purpose: Text | None
    approved: Text | None
    until: Text | None
    run_id: Id
    strategy: Name
    collusion: _Collusion
    where: dict[Name, ConditionFile]
    source_fingerprint: Text
    rows_requested: Count | None
    rows_withheld: Count | None


class _InputVersion(_Part):
    """Options that were recognized in the files of the input, or in its table's newest version."""

    header: Literal["true"] = _ABSENT
    sep: Annotated[str, Field(min_length=1, max_length=1)] = _ABSENT
    encoding: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,30}$")] = _ABSENT
    inferSchema: Literal["true"] = _ABSENT  # noqa: N815 - Spark's name of it
    format: Annotated[str, Field(pattern=r"^[a-z]{1,20}$")] = _ABSENT
    versionAsOf: Annotated[str, Field(pattern=r"^\d{1,20}$")] = _ABSENT  # noqa: N815


class _Manifest(_Part):
    form: Literal[2]
    run_id: Id
    started: Instant
    seconds: Seconds
    versions: _Versions
    configuration: _Configured
    fingerprints: _Fingerprints
    published: _Published
    summary: dict[str, object]
    gates: list[_Gate]
    drift: list[_Drift]
    attempt: Count
    recipient: _Recipient = _ABSENT
    input_version: _InputVersion = _ABSENT
    coding: _Coding = _ABSENT
    chosen_model: _ChosenModel = _ABSENT
    warnings: list[_Warning]
    signer: SigningKey = _ABSENT
    files: list[_File]


class _UnionInput(_Part):
    missing_markers: list[Text]


class _UnionOutput(_Part):
    style: Literal["interval", "bounds", "mean"]
    format: Literal["parquet"]


class _UnionConfigured(_Part):
    """The configuration of a union, which has no run."""

    input: _UnionInput
    attributes: dict[Name, dict[str, object]]
    missing: Literal["drop", "error", "category"]
    evaluate: dict[str, object]
    privacy: dict[str, object]
    output: _UnionOutput


class _UnionFingerprints(_Part):
    output: Digits


class _UnionPublished(_Part):
    rows: Count
    sensitive_values: dict[Name, Count]
    columns: list[Name]
    quasi_identifier_columns: list[Name]
    quasi_identifiers: list[_QuasiIdentifier]


class _PartOfUnion(_Part):
    run_id: Id
    output_fingerprint: Digits
    rows: Count
    privacy: dict[str, object]
    holder: Name | None


class _Union(_Part):
    """The manifest of a union of releases."""

    form: Literal[2]
    run_id: Id
    started: Instant
    seconds: Seconds
    versions: _Versions
    configuration: _UnionConfigured
    coding: _Coding
    holder_column: Name | None
    parts: Annotated[list[_PartOfUnion], Field(min_length=2)]
    published: _UnionPublished
    fingerprints: _UnionFingerprints
    summary: dict[str, object]
    warnings: list[_Warning]
    signer: SigningKey = _ABSENT
    files: list[_File]


# Stages that every run has.
_ALL_RUNS = ("prepare", "evaluate", "publish", "verify")

_EXPECTED = {
    "missing": "a value there. The key is missing",
    "int_type": "a whole number",
    "greater_than_equal": "a larger number",
    "float_type": "a number",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "extra_forbidden": "no such key",
    "string_too_long": "a shorter text",
}


def manifest_problems(manifest: object) -> list[str]:
    """Return the first errors in the form of a manifest, read from JSON: a line each, key first.

    >>> manifest_problems([])
    ['expected a mapping with the keys that anonspark writes']
    >>> manifest_problems({"form": 1})
    ['form: expected 2']
    """
    if not isinstance(manifest, dict):
        return ["expected a mapping with the keys that anonspark writes"]
    if manifest.get("form") != FORM:
        return [f"form: expected {FORM}"]
    is_union = "parts" in manifest
    parsed: _Manifest | _Union
    location: Location = ()
    try:
        parsed = (_Union if is_union else _Manifest).model_validate(manifest)
        is_ours = parsed.versions.anonspark == __version__
        location = ("summary",)
        _summary_form(is_ours=is_ours, is_union=is_union).model_validate(manifest["summary"])
    except ValidationError as error:
        return [
            f"{key_path((*location, *_location(detail['loc'])))}: expected "
            f"{_EXPECTED.get(detail['type'], 'what anonspark writes there')}"
            for detail in error.errors(include_url=False, include_input=False)
        ][:_MOST_PROBLEMS]
    if isinstance(parsed, _Union):
        problems = _union_configuration_problems(manifest["configuration"])
    else:
        problems = _configuration_problems(manifest["configuration"], is_ours=is_ours)
    if problems:
        return problems[:_MOST_PROBLEMS]
    problems = [*_unsound_files(parsed), *_unnamed_attributes(manifest)]
    for owner in [owner_of(key) for key in OWNED if manifest.get(key) is not None]:
        problems += owner.form_problems(manifest)
    if (parsed.versions.extensions or {}) != extensions_of(manifest["configuration"]):
        problems.append("versions.extensions: expected those of configuration")
    if isinstance(parsed, _Manifest):
        problems += [
            f"seconds.{stage}: the key is missing"
            for stage in _ALL_RUNS
            if stage not in parsed.seconds
        ]
        problems += _chosen_problems(parsed.chosen_model)
        units = [number for number, _ in parsed.published.units or ()]
        if units != sorted({*units}):
            problems.append("published.units: expected each number once, the smallest first")
    return problems[:_MOST_PROBLEMS]


def in_order(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest of sound form with its keys in the order in which they are written.

    Its configuration is not sorted: :func:`_differences` checks that order.
    """
    form: type[_Manifest | _Union] = _Union if "parts" in manifest else _Manifest
    like = form.model_validate(manifest).model_dump(exclude_unset=True)
    ordered_sections = ("fingerprints", "files", "published", "versions")
    like |= {key: value for key, value in manifest.items() if key not in ordered_sections}
    ordered: dict[str, Any] = _in_order_of(like, manifest)
    return ordered


def _in_order_of(like: Any, values: Any) -> Any:
    """Sort the keys of all mappings as those of other values, of the same form, are.

    >>> _in_order_of({"a": [{"b": 0, "c": 0}]}, {"a": [{"c": 1, "b": 2}]})
    {'a': [{'b': 2, 'c': 1}]}
    """
    if isinstance(like, dict):
        return {key: _in_order_of(value, values[key]) for key, value in like.items()}
    if isinstance(like, list):
        return [_in_order_of(*pair) for pair in zip(like, values, strict=True)]
    return values


def _location(location: tuple[int | str, ...]) -> Location:
    """Leave out the parts by which pydantic names the members of a union of types."""
    return tuple(part for part in location if not (isinstance(part, str) and "[" in part))


def _unsound_files(manifest: _Manifest | _Union) -> Iterator[str]:
    """Find paths that lead out of the release, or are listed twice."""
    seen = set()
    for index, file in enumerate(manifest.files):
        where = key_path(("files", index, "path"))
        parts = file.path.split("/")
        if file.path in seen:
            yield f"{where}: expected each file once"
        elif any(part in ("", ".", "..") for part in parts) or file.path in (MANIFEST, SIGNATURE):
            yield f"{where}: expected a path inside of the release, other than the manifest's"
        seen.add(file.path)


def _unnamed_attributes(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Find criteria and warnings about columns that the configuration does not have."""
    configured = manifest["configuration"]
    attributes, privacy = configured["attributes"], configured["privacy"]
    named = [
        (("configuration", "privacy", *location), name)
        for location, name in PrivacyOptions.model_validate(privacy).locations()
    ]
    named += [
        (("published", "sensitive_values", name), name)
        for name in manifest["published"]["sensitive_values"]
    ]
    for location, name in named:
        if (attributes.get(name) or {}).get("role") != "sensitive":
            yield f"{key_path(location)}: expected a sensitive attribute"
    for index, warning in enumerate(manifest["warnings"]):
        figures = warning["figures"]
        subjects = {warning["attribute"], *(figures.get("columns") or ())}
        subjects |= {lead["attribute"] for lead in figures.get("gives_away") or ()}
        if subjects - {None} - attributes.keys():
            yield f"{key_path(('warnings', index))}: expected attributes of the configuration"
        if not warning["text"].isprintable():
            yield f"{key_path(('warnings', index, 'text'))}: expected a line of text"


def _chosen_problems(chosen: _ChosenModel | None) -> Iterator[str]:
    """Find a chosen or tried model whose options are none of a model."""
    for model in [] if chosen is None else [chosen.model, *(trial.model for trial in chosen.tried)]:
        try:
            options_classes()[model.get("name", "")].model_validate(model)
        except (KeyError, TypeError, ValidationError):
            yield "chosen_model: expected options of models"


_NEVER_NULL = ("k", "rows_published", "published_classes", "published_min_class_size")
_FIGURES: Mapping[str, Any] = {
    "string": Annotated[str, Field(pattern=r"^[\w.+-]{1,80}$")],
    "double": Metric,
}


@cache
def _summary_form(*, is_ours: bool, is_union: bool) -> type[BaseModel]:
    """Return the form of the section ``summary``: figures under their names, most may be null."""
    fields: dict[str, Any] = {}
    for figure in SUMMARY:
        if figure.name.endswith("_fingerprint") or figure.name in ("run_id", "started"):
            continue
        figure_type = _FIGURES.get(figure.type, int)
        # A union has no model, so its text figures are null.
        if figure.name not in _NEVER_NULL and (is_union or figure.type != "string"):
            figure_type |= None
        fields[figure.name] = (figure_type, ... if is_ours and figure.needs is None else None)
    return create_model("_Summary", __base__=_Part, **fields)


def _configuration_problems(configured: Mapping[str, Any], *, is_ours: bool) -> list[str]:
    """Find differences from how this version writes the configuration of a manifest.

    A key that another version does not have means its default.
    """
    document = copy.deepcopy(dict(configured))
    try:
        problems = without_stand_ins(document)
        expected = Configuration.model_validate(document).public_dict() if not problems else {}
    except ValidationError as error:
        return [
            f"{key_path(('configuration', *finding.location))}: {finding.text}"
            for finding in explain(error, document, known_schema())
        ] or ["configuration: it is not one of this version"]
    if problems:
        return problems
    expected["execution"]["seed_fingerprint"] = configured["execution"]["seed_fingerprint"]
    for name, attribute in configured["attributes"].items():
        for key in ("order_entries", "order_fingerprint"):
            if key in attribute:
                expected["attributes"][name][key] = attribute[key]
    return list(_differences(expected, configured, ("configuration",), is_ours=is_ours))


_HEX = re.compile(r"[0-9a-f]{16}")


def without_stand_ins(document: dict[str, Any]) -> list[str]:
    """Check and remove the keys that stand for the seed and for orders. Return the errors."""
    problems = []
    execution = document.get("execution")
    if not isinstance(execution, dict):
        return ["configuration.execution: expected a mapping"]
    if not _HEX.fullmatch(str(execution.pop("seed_fingerprint", None))):
        problems.append("configuration.execution.seed_fingerprint: expected 16 hexadecimal digits")
    return problems + _orders_taken_out(document["attributes"])


def _orders_taken_out(attributes: dict[str, Any]) -> list[str]:
    """Remove the keys that stand for orders of quasi-identifiers, and return their errors.

    >>> attributes = {"age": {"order_entries": 3}}
    >>> _orders_taken_out(attributes), attributes
    (['configuration.attributes.age.order_fingerprint: the key is missing'], {'age': {}})
    """
    problems = []
    for name, attribute in attributes.items():
        location: Location = ("configuration", "attributes", name)
        entries, fingerprint = (
            attribute.pop(key, None) for key in ("order_entries", "order_fingerprint")
        )
        if (entries is None) != (fingerprint is None):
            lacking = "order_entries" if entries is None else "order_fingerprint"
            problems.append(f"{key_path((*location, lacking))}: the key is missing")
        elif entries is not None and (type(entries) is not int or entries < 1):
            problems.append(f"{key_path((*location, 'order_entries'))}: expected a whole number")
        elif fingerprint is not None and not _HEX.fullmatch(str(fingerprint)):
            problems.append(f"{key_path((*location, 'order_fingerprint'))}: expected 16 digits")
    return problems


def _union_configuration_problems(configured: Mapping[str, Any]) -> list[str]:
    """Find unknown or malformed sections of a union's configuration."""
    attributes = copy.deepcopy(dict(configured["attributes"]))
    problems = _orders_taken_out(attributes)
    sections: tuple[tuple[Location, Any, type[BaseModel]], ...] = (
        (("evaluate",), configured["evaluate"], EvaluateOptions),
        (("privacy",), configured["privacy"], PrivacyOptions),
        *((("attributes", name), attribute, Attribute) for name, attribute in attributes.items()),
    )
    for location, section, options in sections:
        try:
            options.model_validate(section)
        except ValidationError:
            where = key_path(("configuration", *location))
            problems.append(f"{where}: expected what anonspark writes there")
    return problems


def _differences(
    expected: object, value: object, path: Location, *, is_ours: bool
) -> Iterator[str]:
    """Yield the keys at which a configuration differs from the expected one, or from its order.

    >>> list(_differences({"k": 5}, {"k": 5.0}, ("privacy",), is_ours=True))
    ['privacy.k: expected the value as anonspark writes it']
    """
    if isinstance(expected, dict) and isinstance(value, dict):
        for key in dict.fromkeys((*expected, *value)):
            if key not in value and is_ours:
                yield f"{key_path((*path, key))}: the key is missing"
            elif key not in expected:
                yield f"{key_path((*path, key))}: expected no such key"
            elif key in value:
                yield from _differences(expected[key], value[key], (*path, key), is_ours=is_ours)
        if [key for key in value if key in expected] != [key for key in expected if key in value]:
            yield f"{key_path(path)}: expected its keys in the order in which they are written"
    elif expected != value or json.dumps(expected) != json.dumps(value):
        yield f"{key_path(path)}: expected the value as anonspark writes it"
