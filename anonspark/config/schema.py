"""What a configuration may say: the typed, frozen form of the YAML file.

Types are strict: a text is never taken for a number, nor a boolean for one. Nothing here looks at
data.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    TypeAdapter,
    WithJsonSchema,
    model_validator,
)

from anonspark.config.gates import Gate, unusable_gates
from anonspark.config.metrics import MetricsOptions, unusable_drift
from anonspark.config.models import ModelOptions, options_classes
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Finding, found, impossible, nearest, one_of
from anonspark.config.section import Section
from anonspark.core.criterion import CRITERIA
from anonspark.redaction import redact_options, redact_values

__all__ = [
    "DEFAULT_MODEL",
    "Attribute",
    "AttributeType",
    "Configuration",
    "EvaluateOptions",
    "ExecutionOptions",
    "HierarchyRule",
    "InputOptions",
    "MetricsOptions",
    "MissingPolicy",
    "OutputMode",
    "OutputOptions",
    "OutputStyle",
    "PrivacyOptions",
    "RiskOptions",
    "Role",
]

Role = Literal["identifier", "quasi_identifier", "sensitive", "insensitive"]
AttributeType = Literal["number", "date", "timestamp", "boolean", "text"]
CalendarLevel = Literal["month", "quarter", "year"]
MissingPolicy = Literal["drop", "error", "category"]
MissingColumns = Literal["error", "null"]
OutputMode = Literal["error", "overwrite"]
# What cannot be read back as it was written, or moved.
_NO_TYPES = "keeps no types, nor tells missing values from empty ones"
_UNFIT_FORMATS = {
    **dict.fromkeys(("csv", "json", "text", "xml"), _NO_TYPES),
    "iceberg": "writes absolute paths into its files, so that a release could not be renamed",
    "jdbc": "has no files, so that a release could not be renamed",
}

OutputStyle = Literal["interval", "bounds", "mean"]

DEFAULT_MODEL = "su-mondrian"

NonEmptyText = Annotated[str, Field(min_length=1)]
_PATH: TypeAdapter[str] = TypeAdapter(NonEmptyText, config=ConfigDict(strict=True))
_FILE: TypeAdapter[str | None] = TypeAdapter(NonEmptyText | None, config=ConfigDict(strict=True))
_PATHS: TypeAdapter[list[str]] = TypeAdapter(
    Annotated[list[NonEmptyText], Field(min_length=1)], config=ConfigDict(strict=True)
)


def _path_or_paths(value: object) -> str | list[str]:
    # Chosen by hand: a union would report each mistake once for every member.
    if isinstance(value, list):
        return _PATHS.validate_python(value)
    return _PATH.validate_python(value)


def _option_text(value: object) -> object:
    """Write a YAML boolean or whole number as Spark options are written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value


def _null_as_text(value: object) -> object:
    """Let what YAML takes for nothing be the word that it is."""
    return "null" if value is None else value


def _trim(markers: list[str]) -> list[str]:
    # Values are compared trimmed: a marker with blanks around it would never match.
    return list(dict.fromkeys(marker.strip() for marker in markers))


def _unique_entries(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema of an optional list that its entries differ."""
    for branch in schema["anyOf"]:
        if branch["type"] == "array":
            branch["uniqueItems"] = True


class InputOptions(Section):
    """Where the table comes from.

    Attributes
    ----------
    path : str or list of str
        One path or several; any Hadoop URI.
    format : str
        Name of a Spark data source.
    options : dict
        Options of the data source.
    missing_markers : list of str
        Trimmed text values that mean *missing* in a quasi-identifier.
    missing_columns : str
        What becomes of an attribute that some files of the table lack.
    """

    path: Annotated[
        str | list[str],
        BeforeValidator(_path_or_paths),
        WithJsonSchema(
            {
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {
                        "type": "array",
                        "items": {"type": "string", "minLength": 1},
                        "minItems": 1,
                    },
                ]
            }
        ),
    ] = Field(description="A path or a list of paths; any Hadoop URI.")
    format: NonEmptyText = Field(
        default="parquet",
        description="Name of the Spark data source: parquet, csv, orc, json, ...",
    )
    options: dict[
        str,
        Annotated[
            str,
            BeforeValidator(_option_text),
            WithJsonSchema({"anyOf": [{"type": t} for t in ("string", "boolean", "integer")]}),
        ],
    ] = Field(
        default={},
        description="Options of the Spark data source, such as header and inferSchema of csv.",
    )
    missing_markers: Annotated[list[str], AfterValidator(_trim)] = Field(
        default=["", "?"],
        description=(
            "Texts that mean a missing value in a quasi-identifier, compared after blanks around "
            "the value are taken away."
        ),
    )

    missing_columns: Annotated[
        MissingColumns,
        BeforeValidator(_null_as_text),
        WithJsonSchema(
            {"anyOf": [{"enum": ["error", "null"], "type": "string"}, {"type": "null"}]}
        ),
    ] = Field(
        default="error",
        description=(
            "If some files of the table (Parquet, ORC, Avro) lack an attribute that others have: "
            "error refuses the table, null reads missing values there."
        ),
    )

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths, one or more."""
        return (self.path,) if isinstance(self.path, str) else tuple(self.path)


class HierarchyRule(Section):
    """A hierarchy that is built from a rule, over the values that occur.

    Attributes
    ----------
    intervals : list of float or None
        Widths of intervals of numbers, from fine to coarse.
    origin : float or None
        An end of the intervals of all widths; None means 0.
    prefix : list of int or None
        Numbers of characters masked at the end of codes.
    calendar : list of str or None
        Levels above a date.
    """

    intervals: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] | None = Field(
        default=None,
        min_length=1,
        json_schema_extra=_unique_entries,
        description=(
            "For numbers: widths of half-open intervals from fine to coarse, each a multiple of "
            "the one before, such as [5, 10, 20]."
        ),
    )
    origin: Annotated[float, Field(allow_inf_nan=False)] | None = Field(
        default=None,
        description="With intervals: a number at which intervals of all widths begin; null: 0.",
    )
    prefix: list[Annotated[int, Field(ge=1, le=1000)]] | None = Field(
        default=None,
        min_length=1,
        json_schema_extra=_unique_entries,
        description=(
            "For codes such as postal codes: numbers of characters masked at the end, ascending, "
            "such as [1, 2, 3]."
        ),
    )
    calendar: list[CalendarLevel] | None = Field(
        default=None,
        min_length=1,
        json_schema_extra=_unique_entries,
        description="For dates: the levels above the day, among month, quarter, year, in order.",
    )

    @property
    def kind(self) -> Literal["intervals", "prefix", "calendar"]:
        """Which rule it is."""
        if self.intervals is not None:
            return "intervals"
        return "prefix" if self.prefix is not None else "calendar"

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        findings: list[Finding] = []
        given = [key for key in _HIERARCHY_RULES if getattr(self, key) is not None]
        if len(given) != 1:
            findings.append(
                Finding(
                    (),
                    f"found {' and '.join(map(repr, given)) or 'no rule'}; expected exactly one "
                    f"of {one_of(_HIERARCHY_RULES)}; "
                    + ("keep one of them" if given else "add one, or give the path of a file"),
                )
            )
        elif self.origin is not None and self.intervals is None:
            findings.append(
                Finding(
                    ("origin",),
                    f"found 'origin' together with {given[0]!r}; expected it with 'intervals' "
                    "only; remove it",
                )
            )
        for finer, coarser in pairwise(self.intervals or ()):
            if coarser <= finer or Fraction(repr(coarser)) % Fraction(repr(finer)):
                findings.append(
                    Finding(
                        ("intervals",),
                        f"found {_width(coarser)} after {_width(finer)}; expected widths from fine "
                        "to coarse, each a multiple of the one before; correct one of the two",
                    )
                )
        findings += [
            Finding(
                ("prefix",),
                f"found {found(more)} after {found(fewer)}; expected ascending numbers of masked "
                "characters; sort them, each once",
            )
            for fewer, more in pairwise(self.prefix or ())
            if more <= fewer
        ]
        in_order = [level for level in get_args(CalendarLevel) if level in (self.calendar or ())]
        if self.calendar is not None and self.calendar != in_order:
            findings.append(
                Finding(
                    ("calendar",),
                    "found levels in another order or more than once; expected them from fine to "
                    f"coarse; write [{', '.join(in_order)}]",
                )
            )
        if findings:
            raise impossible(findings)
        return self


_HIERARCHY_RULES = ("intervals", "prefix", "calendar")

# What the values must be for a hierarchy: type that may be declared, and words for it.
_TYPE_FOR_HIERARCHY: dict[str, tuple[AttributeType, str]] = {
    "intervals": ("number", "intervals need a number"),
    "prefix": ("text", "a prefix takes the text of the value"),
    "calendar": ("date", "a calendar needs a date"),
    "file": ("text", "a file takes the text of the value"),
}


def _width(width: float) -> str:
    """Say what a width is, as it was written."""
    return found(int(width) if width.is_integer() else width)


def _file_or_rule(value: object) -> object:
    # Chosen by hand: a union would report each mistake once for every member.
    if value is None or isinstance(value, HierarchyRule):
        return value
    if isinstance(value, Mapping):
        return HierarchyRule.model_validate(value)
    return _FILE.validate_python(value)


_FileOrRule = Annotated[NonEmptyText | HierarchyRule | None, BeforeValidator(_file_or_rule)]


class Attribute(Section):
    """What a column is.

    Attributes
    ----------
    role : str
        Decides whether the column is generalized, published as it is, or not published.
    type : str or None
        What the values are, where the type of the column does not say it.
    order : list of str or None
        Order of the values of a text column.
    weight : float
        How much a quasi-identifier counts.
    hierarchy : str or HierarchyRule or None
        Path of a CSV file with the groups of each value, or a rule that makes them.
    """

    role: Role = Field(
        description=(
            "identifier: never published; quasi_identifier: generalized; sensitive and "
            "insensitive: published as it is."
        )
    )
    type: AttributeType | None = Field(
        default=None,
        description=(
            "What the values of a quasi-identifier are; a text column is cast to it. null: what "
            "the type of the column says."
        ),
    )
    order: list[str] | None = Field(
        default=None,
        min_length=1,
        json_schema_extra=_unique_entries,
        description=(
            "All values of a text quasi-identifier in their order, lowest first; of a sensitive "
            "attribute for t-closeness with the ordered distance."
        ),
    )
    weight: float = Field(
        default=1.0,
        gt=0.0,
        le=1000.0,
        allow_inf_nan=False,
        description=(
            "What the widths, distances and penalties of a quasi-identifier are multiplied by: the "
            "larger, the less of it is lost."
        ),
    )
    hierarchy: _FileOrRule | None = Field(
        default=None,
        description=(
            "Groups of values, from fine to coarse, by which a quasi-identifier is generalized: "
            "the path of a CSV file (each line a value and its groups), or one of the rules "
            "{intervals: [5, 10, 20]}, {prefix: [1, 2, 3]}, {calendar: [month, quarter, year]}. "
            "A file may describe a sensitive attribute, too."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, value: object) -> object:
        return {"role": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        findings: list[Finding] = []
        if self.role != "quasi_identifier":
            findings += [
                Finding(
                    (key,),
                    f"found '{key}' on an attribute with the role '{self.role}'; expected it on a "
                    f"quasi_identifier only; remove '{key}' or change the role",
                )
                for key, is_there in (
                    ("type", self.type is not None),
                    ("order", self.order is not None and self.role != "sensitive"),
                    ("weight", self.weight != 1.0),
                )
                if is_there
            ]
        twice = [value for value, count in Counter(self.order or ()).items() if count > 1]
        if twice:
            listed = ", ".join(found(value) for value in twice)
            findings.append(
                Finding(
                    ("order",),
                    f"found {listed} more than once; expected each value once; remove the "
                    "repetitions",
                )
            )
        findings += self._hierarchy_findings()
        if self.order is not None and self.type not in (None, "text"):
            findings.append(
                Finding(
                    ("order",),
                    f"found an order together with the type '{self.type}'; expected an order for "
                    "text only; remove 'order' or set the type to 'text'",
                )
            )
        if findings:
            raise impossible(findings)
        return self

    @property
    def hierarchy_kind(self) -> Literal["file", "intervals", "prefix", "calendar"] | None:
        """Where the hierarchy comes from, None where there is none."""
        if self.hierarchy is None:
            return None
        return "file" if isinstance(self.hierarchy, str) else self.hierarchy.kind

    def _hierarchy_findings(self) -> list[Finding]:
        """Find what does not go together with the hierarchy."""
        if self.hierarchy_kind is None:
            return []
        findings: list[Finding] = []
        where = ("hierarchy",)
        expected, need = _TYPE_FOR_HIERARCHY[self.hierarchy_kind]
        if self.role not in ("quasi_identifier", "sensitive"):
            findings.append(
                Finding(
                    where,
                    f"found 'hierarchy' on an attribute with the role '{self.role}'; expected it "
                    "on a quasi_identifier, or a file on a sensitive attribute; remove "
                    "'hierarchy' or change the role",
                )
            )
        elif self.role == "sensitive" and self.hierarchy_kind != "file":
            findings.append(
                Finding(
                    where,
                    f"found the rule '{self.hierarchy_kind}' on a sensitive attribute; expected "
                    "the path of a file there; write the groups of its values into a file",
                )
            )
        elif self.type not in (None, expected):
            findings.append(
                Finding(
                    where,
                    f"found a hierarchy together with the type '{self.type}', but {need}; expected "
                    f"no type or '{expected}'; correct 'type' or remove 'hierarchy'",
                )
            )
        if self.order is not None:
            findings.append(
                Finding(
                    where,
                    "found a hierarchy together with an order; expected one of the two, for a "
                    "hierarchy orders the values itself; remove 'order' or 'hierarchy'",
                )
            )
        return findings


class RiskOptions(Section):
    """From where on the risk of re-identification is called high.

    Attributes
    ----------
    threshold : float
        Highest acceptable probability of any record (tau).
    at_risk : float
        Acceptable share of the records above it (alpha).
    average : float
        Acceptable average probability (lambda).
    unique : float
        Acceptable share of unique records (chi, omega).
    """

    threshold: float = Field(
        default=0.2,
        ge=0.0,
        le=1.0,
        description="Highest acceptable probability to re-identify any one record.",
    )
    at_risk: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="Acceptable share of records whose probability exceeds the threshold.",
    )
    average: float = Field(
        default=0.1, ge=0.0, le=1.0, description="Acceptable share of records re-identified."
    )
    unique: float = Field(
        default=0.0, ge=0.0, le=1.0, description="Acceptable share of unique records."
    )


class EvaluateOptions(Section):
    """What is measured beyond the usual.

    Attributes
    ----------
    compare_baseline : bool
        Whether models without outlier handling tell the figures of the decision rules, too.
    information : bool
        Whether entropy and Kullback-Leibler divergence are measured, too.
    risk : RiskOptions
        From where on the risk of re-identification is called high.
    """

    compare_baseline: bool = Field(
        default=False,
        description=(
            "Tell what the same model loses without outlier handling, and the decision rules, also "
            "where the model has none. Models with rounds tell it in any case."
        ),
    )
    information: bool = Field(
        default=False,
        description=(
            "Also measure entropy and Kullback-Leibler divergence of the release; costs some "
            "passes over the input for every quasi-identifier. Not for the style mean."
        ),
    )
    risk: RiskOptions = Field(
        default=RiskOptions(),
        description="From where on the risk of re-identification is called high.",
    )


class OutputOptions(Section):
    """Where the release goes, and what it looks like.

    Attributes
    ----------
    path : str
        Directory of the release; any Hadoop URI.
    mode : str
        What happens if there is something at the path.
    style : str
        How generalized values are written.
    format : str
        Name of the Spark data source that the records are written with.
    """

    path: NonEmptyText = Field(description="Directory of the release; any Hadoop URI.")
    mode: OutputMode = Field(
        default="error",
        description="If there is something at the path: error refuses, overwrite replaces it.",
    )
    style: OutputStyle = Field(
        default="interval",
        description=(
            'How generalized values are written: interval as "[17-25]", bounds as two columns '
            "<name>_min and <name>_max, mean as the mean of the class."
        ),
    )
    format: NonEmptyText = Field(
        default="parquet",
        description=(
            "Name of the Spark data source that the records are written with: parquet, orc, delta, "
            "... It has to keep types and missing values, and to bear a rename of its directory."
        ),
    )

    @model_validator(mode="after")
    def _check_format(self) -> Self:
        why = _UNFIT_FORMATS.get(self.format.lower())
        if why is not None:
            raise impossible(
                [
                    Finding(
                        ("format",),
                        f"found {found(self.format)}, which {why}; expected parquet, orc or delta; "
                        "choose one, and convert the release afterwards",
                    )
                ]
            )
        return self


class ExecutionOptions(Section):
    """How the work is done.

    Attributes
    ----------
    task_rows : int
        Largest number of rows that one task finishes on its own.
    seed : int
        Mixed into record hashes and random choices; a secret.
    seed_file : str or None
        Where the seed was read from; it tells nothing of a release, so no dump has it.
    staging_path : str or None
        Directory below which raw records are staged.
    """

    task_rows: int = Field(
        default=250_000,
        ge=1,
        description="Largest number of rows that one task finishes on its own.",
    )
    seed: int = Field(
        default=0,
        repr=False,
        ge=-(2**63),
        le=2**63 - 1,
        description=(
            "Mixed into record hashes and random choices. Keep it secret in production, and draw "
            "it at random from the whole range, so that its fingerprint does not give it away."
        ),
    )
    seed_file: NonEmptyText | None = Field(
        default=None,
        # The same number makes the same release, wherever it is kept.
        exclude=True,
        description=(
            "File that holds the seed and nothing else, instead of seed: a path of the driver's "
            "local disk, or any Hadoop URI. The environment variable ANONSPARK_SEED is a third "
            "place for it; the seed stands in one of them."
        ),
    )
    staging_path: NonEmptyText | None = Field(
        default=None,
        description=(
            "Private directory that all executors reach, below which a run keeps raw records and "
            "its finished rounds until it ends. null: beside output.path."
        ),
    )

    @model_validator(mode="after")
    def _check_seed(self) -> Self:
        if self.seed_file is not None and "seed" not in self.model_fields_set:
            # Else the file would be passed over, and the seed would be 0.
            raise impossible(
                [
                    Finding(
                        ("seed_file",),
                        "found a file that was not read; expected load_configuration or "
                        "parse_configuration to read it; use one of them",
                    )
                ]
            )
        return self


def _default_model() -> ModelOptions:
    return options_classes()[DEFAULT_MODEL](name=DEFAULT_MODEL)


def _model_options(value: object) -> object:
    """Validate a ``model`` section with the options class of the model that it names."""
    if not isinstance(value, Mapping):
        return value
    classes = options_classes()
    name = value.get("name", DEFAULT_MODEL)
    if not isinstance(name, str) or name not in classes:
        text = f"found {found(name)}; expected {one_of(list(classes))}"
        near = nearest(name, classes) if isinstance(name, str) else None
        if near is not None:
            text += f"; did you mean {near!r}?"
        raise impossible([Finding(("name",), text)])
    return classes[name].model_validate({**value, "name": name})


def _without_later_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without keys that say what was so before there was the key.

    A run that was killed is continued, and a release found again, by a later version.
    """
    if document["input"]["missing_columns"] == "error":
        del document["input"]["missing_columns"]
    model = document.get("model", {})
    if model.get("objective") == "gcp":
        del model["objective"]
    if model.get("passes") == 20:
        del model["passes"]
    privacy = document.get("privacy", {})
    for key in {one.key for one in CRITERIA.values() if one.is_later}:
        if privacy.get(key) == []:
            del privacy[key]
    return document


def _drop_published_separation(section: dict[str, Any], model: ModelOptions) -> None:
    """Leave ``separation`` out of what is fingerprinted where rounds are as before there was it."""
    if not model.has_rounds or section.get("separation") == "always":
        section.pop("separation", None)


class Configuration(Section):
    """A complete configuration.

    Attributes
    ----------
    input : InputOptions
        Where the table comes from.
    attributes : dict
        Column name to :class:`Attribute`; the order is part of the configuration, for it breaks
        ties.
    missing : str
        What happens to records with a missing quasi-identifier.
    privacy : PrivacyOptions
        What the release guarantees.
    model : ModelOptions
        Options of the model, of the class that the model registry gives.
    evaluate : EvaluateOptions
        What is measured beyond the usual.
    gates : dict
        Figure to :class:`Gate`: bounds outside of which nothing is published.
    metrics : MetricsOptions
        How runs are followed over time.
    output : OutputOptions
        Where the release goes, and what it looks like.
    execution : ExecutionOptions
        How the work is done.
    """

    input: InputOptions = Field(description="Where the table comes from.")
    attributes: dict[str, Attribute] = Field(
        description="The columns and their roles; what is not listed is not published."
    )
    missing: MissingPolicy = Field(
        default="drop",
        description=(
            "Records with a missing quasi-identifier: drop leaves them out, error refuses the "
            "table, category treats missing as a value of its own."
        ),
    )
    privacy: PrivacyOptions = Field(description="What the release guarantees.")
    model: Annotated[SerializeAsAny[ModelOptions], BeforeValidator(_model_options)] = Field(
        default_factory=_default_model,
        description="Which model makes the classes, and its options.",
    )
    evaluate: EvaluateOptions = Field(
        default=EvaluateOptions(), description="What is measured beyond the usual."
    )
    gates: dict[str, Gate] = Field(
        default={},
        description=(
            "Bounds on figures of the release, by their names: columns of the table summary, "
            "attributes.<name>.<column> and risk.<attacker>.<column>. Outside of them nothing is "
            "published."
        ),
    )
    metrics: MetricsOptions = Field(
        default=MetricsOptions(), description="How runs are followed over time."
    )
    output: OutputOptions = Field(description="Where the release goes, and what it looks like.")
    execution: ExecutionOptions = Field(
        default=ExecutionOptions(), description="How the work is done."
    )

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        findings = [
            *_unusable_names(self.attributes),
            *_unusable_criteria(self.attributes, self.privacy),
            *_generated_columns(self.attributes, self.output.style, self.missing),
            *self.model.findings(self.attributes, self.output.style),
            *_unmeasurable(self.evaluate, self.output.style),
            *unusable_gates(
                self.gates,
                self.quasi_identifiers,
                information=self.evaluate.information,
                baseline=self.evaluate.compare_baseline or self.model.has_rounds,
            ),
            *unusable_drift(
                self.metrics,
                information=self.evaluate.information,
                baseline=self.evaluate.compare_baseline or self.model.has_rounds,
            ),
        ]
        if not self.quasi_identifiers:
            findings.append(
                Finding(
                    ("attributes",),
                    "found no quasi_identifier; expected at least one; give the role "
                    "'quasi_identifier' to the attributes that could identify a person together",
                )
            )
        if findings:
            raise impossible(findings)
        return self

    @property
    def quasi_identifiers(self) -> list[str]:
        """Names of the quasi-identifiers, in configuration order."""
        return self._with_role("quasi_identifier")

    @property
    def identifiers(self) -> list[str]:
        """Names of the identifiers, in configuration order."""
        return self._with_role("identifier")

    @property
    def published_as_is(self) -> list[str]:
        """Names of the sensitive and insensitive attributes, in configuration order."""
        return self._with_role("sensitive", "insensitive")

    @property
    def sensitive(self) -> list[str]:
        """Names of the sensitive attributes, in configuration order."""
        return self._with_role("sensitive")

    @property
    def sensitive_orders(self) -> dict[str, list[str]]:
        """Declared orders of sensitive attributes."""
        return {
            name: self.attributes[name].order or []
            for name in self._with_role("sensitive")
            if self.attributes[name].order is not None
        }

    def _with_role(self, *roles: Role) -> list[str]:
        return [name for name, attribute in self.attributes.items() if attribute.role in roles]

    def fingerprint(self) -> str:
        """Return what tells this configuration from every other one.

        The order of the attributes counts, as it breaks ties; the order of all other keys does
        not, nor does it matter whether a default is written out. The seed enters through its own
        hash.

        Returns
        -------
        str
            SHA-256 of the canonical JSON, in hexadecimal digits.
        """
        document = _without_later_defaults(self.model_dump(mode="json"))
        _drop_published_separation(document["model"], self.model)
        document["attributes"] = list(document["attributes"].items())
        document["execution"]["seed"] = self._seed_hash()
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return _sha256(canonical)

    def input_fingerprint(self) -> str:
        """Return what tells whether two configurations prepare the same records.

        Returns
        -------
        str
            SHA-256 of what :func:`anonspark.pipeline.preparing.prepare` depends on, in hexadecimal
            digits.
        """
        document = _without_later_defaults(
            self.model_dump(mode="json", include={"input", "attributes", "missing"})
        )
        document["attributes"] = list(document["attributes"].items())
        document["seed"] = self._seed_hash()
        return _sha256(json.dumps(document, sort_keys=True, separators=(",", ":")))

    def settings_fingerprint(self) -> str:
        """Return what tells whether the figures of two releases can be compared.

        It covers what decides what becomes of a given table: attributes, policy for missing
        values, criteria, model and style. Paths, formats, seed and everything that changes no
        class may differ. A default that is written out counts as one that is not.

        Returns
        -------
        str
            SHA-256 of the canonical JSON, in hexadecimal digits.
        """
        document = self.model_dump(
            mode="json",
            include={"attributes", "missing", "privacy", "model"},
            exclude_defaults=True,
        )
        for attribute in document["attributes"].values():
            if isinstance(attribute.get("hierarchy"), str):
                attribute["hierarchy"] = "file"
        for place in ("population", "format", "options"):
            document["privacy"].get("delta_presence", {}).pop(place, None)
        document["attributes"] = list(document["attributes"].items())
        document["model"] = {"name": self.model.name, **document.get("model", {})}
        document["model"] |= self.model.model_dump(include={"separation"})
        _drop_published_separation(document["model"], self.model)
        document["style"] = self.output.style
        document["missing_markers"] = self.input.missing_markers
        return _sha256(json.dumps(document, sort_keys=True, separators=(",", ":")))

    def public_dict(self) -> dict[str, Any]:
        """Return the configuration as the manifest shows it, without its secrets.

        The seed is replaced by ``seed_fingerprint``, the declared order of a quasi-identifier
        (which lists raw values of it) by ``order_entries`` and ``order_fingerprint``, and
        credentials in data source options and in all texts by ``(redacted)``.

        Returns
        -------
        dict
            Nothing but JSON values, in configuration order.
        """
        document = self.model_dump(mode="json")
        del document["execution"]["seed"]
        document["execution"]["seed_fingerprint"] = self._seed_hash()[:16]
        for attribute in document["attributes"].values():
            # The values of a sensitive attribute are published, and verifying needs their order.
            order = None if attribute["role"] == "sensitive" else attribute.pop("order")
            if order is not None:
                attribute["order_entries"] = len(order)
                attribute["order_fingerprint"] = _sha256(json.dumps(order))[:16]
        for source in (document["input"], document["privacy"]["delta_presence"] or {}):
            if "options" in source:
                source["options"] = redact_options(source["options"])
        public: dict[str, Any] = redact_values(document)
        # These are values of the data and names of columns, which verifying compares.
        presence = public["privacy"]["delta_presence"]
        public["privacy"] = document["privacy"] | {"delta_presence": presence}
        public["input"]["missing_markers"] = document["input"]["missing_markers"]
        for name, attribute in document["attributes"].items():
            if "order" in attribute:
                public["attributes"][name]["order"] = attribute["order"]
        return public

    def _seed_hash(self) -> str:
        return _sha256(f"anonspark-seed:{self.execution.seed}")


def _sha256(text: str) -> str:
    # Paths from a command line may hold bytes that are no text, as lone surrogates.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _folded(name: str) -> str:
    # As Spark compares column names unless it is told otherwise.
    return name.lower()


def _unusable_names(attributes: Mapping[str, Attribute]) -> list[Finding]:
    """Find empty names, and names that Spark does not tell apart."""
    findings: list[Finding] = []
    first: dict[str, str] = {}
    for name in attributes:
        if name == "":
            findings.append(
                Finding(
                    ("attributes", name),
                    "found an empty name; expected the name of a column; correct or remove it",
                )
            )
        other = first.setdefault(_folded(name), name)
        if other != name:
            findings.append(
                Finding(
                    ("attributes", name),
                    f"found the name {other!r} again, but for upper and lower case, which Spark "
                    "does not tell apart; expected each column once; remove one of the two",
                )
            )
    return findings


def _unusable_criteria(
    attributes: Mapping[str, Attribute], privacy: PrivacyOptions
) -> list[Finding]:
    """Find criteria about attributes that are not sensitive, or lack what the criterion needs."""
    findings = []
    sensitive = [name for name, attribute in attributes.items() if attribute.role == "sensitive"]
    for location, name in privacy.locations():
        if name not in sensitive:
            role = f"has the role '{attributes[name].role}'" if name in attributes else "is none"
            near = nearest(name, sensitive)
            hint = f"; did you mean {near!r}?" if near else ""
            findings.append(
                Finding(
                    ("privacy", *location),
                    f"found {found(name)}, which {role}; expected the name of an attribute with "
                    f"the role 'sensitive'{hint or '; list it among the attributes'}",
                )
            )
    ordered = {one.attribute for one in privacy.t_closeness if one.distance == "ordered"}
    for place, closeness in enumerate(privacy.t_closeness):
        if closeness.distance == "hierarchical" and closeness.attribute in ordered:
            findings.append(
                Finding(
                    ("privacy", "t_closeness", place, "distance"),
                    "found 'hierarchical' beside 'ordered' for the same attribute; expected one of "
                    "the two, for a hierarchy orders the values, too; remove one",
                )
            )
        attribute = attributes.get(closeness.attribute)
        if (
            closeness.distance == "hierarchical"
            and attribute is not None
            and attribute.role == "sensitive"
            and attribute.hierarchy is None
        ):
            findings.append(
                Finding(
                    ("privacy", "t_closeness", place, "distance"),
                    "found 'hierarchical' for an attribute without a hierarchy; expected 'equal' "
                    "or 'ordered'; give the attribute a hierarchy file or change the distance",
                )
            )
    return findings


def _unmeasurable(evaluate: EvaluateOptions, style: OutputStyle) -> list[Finding]:
    """Find figures that cannot be measured in what is published."""
    if not evaluate.information or style != "mean":
        return []
    return [
        Finding(
            ("evaluate", "information"),
            "found true together with output.style 'mean', which does not tell what values a class "
            "covers; expected another style; choose 'interval' or 'bounds', or set it to false",
        )
    ]


def _generated_columns(
    attributes: Mapping[str, Attribute], style: OutputStyle, missing: MissingPolicy
) -> list[Finding]:
    """Find published attributes with the name of a column that the release generates."""
    suffixes = ["_min", "_max"] if style == "bounds" else []
    if missing == "category" and style != "interval":
        suffixes.append("_missing")
    generated = {
        _folded(name + suffix): (name, suffix)
        for name, attribute in attributes.items()
        if attribute.role == "quasi_identifier"
        for suffix in suffixes
    }
    findings: list[Finding] = []
    for name, attribute in attributes.items():
        if attribute.role == "identifier" or _folded(name) not in generated:
            continue
        source, suffix = generated[_folded(name)]
        cause = f"output.style '{style}'"
        if suffix == "_missing":
            cause += " with missing 'category'"
        findings.append(
            Finding(
                ("attributes", name),
                f"found the name of the column {source + suffix!r}, which {cause} generates for "
                f"{source!r}; expected a name of its own; rename the column in the input, choose "
                "another output.style, or do not publish it",
            )
        )
    return findings
