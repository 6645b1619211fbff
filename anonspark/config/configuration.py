"""Define a configuration: the typed, frozen form of the YAML file.

Types are strict: a text is never taken for a number, nor a boolean for one. Nothing here looks at
data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, SerializeAsAny

from anonspark.config.attributes import Attribute, Role, order_as_told
from anonspark.config.budget import BudgetOptions
from anonspark.config.combinations import (
    generated_columns,
    lacking_quasi_identifiers,
    unmeasurable,
    unusable_criteria,
    unusable_names,
    unusable_presence,
    unusable_pseudonyms,
    unusable_published,
    unusable_suppression,
    unusable_unit,
    unusable_weights,
    unusable_where,
)
from anonspark.config.gates import (
    EvaluateOptions,
    Gate,
    MetricsOptions,
    unusable_drift,
    unusable_gates,
)
from anonspark.config.input import InputOptions, MissingPolicy
from anonspark.config.models import CuttingOptions, ModelOptions, default_model, model_options
from anonspark.config.output import ExecutionOptions, OutputOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.config.problems import Finding, in_words
from anonspark.config.reading import TextReader
from anonspark.config.section import NonEmptyText, Section
from anonspark.config.yaml_reading import Places
from anonspark.core.figures import ENDS, Need
from anonspark.redaction import redact_options, redact_values

CODING = "coding"
"""The section, whose owner is a :class:`CodingReader` (:mod:`anonspark.core.extensions`)."""

_DIGITS = frozenset("0123456789abcdef")


def _require_digits(text: str) -> str:
    if len(text) != 64 or not _DIGITS.issuperset(text):
        raise ValueError(
            f"found {in_words(text)}. Expected 64 hexadecimal digits, as anonspark check prints "
            "them. Correct it, or remove it"
        )
    return text


class CodingOptions(Section):
    """The coding that a configuration follows."""

    path: NonEmptyText
    """The file of the coding: a local path, or any Hadoop URI."""

    fingerprint: Annotated[str, AfterValidator(_require_digits)] | None = None
    """Fingerprint of the agreed coding, as check prints it. Any other coding or hierarchy file is
    refused."""


def _path_alone(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


CodingKey = Annotated[CodingOptions | None, BeforeValidator(_path_alone)]
"""The form of the key ``coding`` of a configuration."""


class AgreedCoding(Protocol):
    """What a configuration needs to know of the coding that it follows."""

    @property
    def name(self) -> str:
        """Return the name of this configuration's owner among the holders."""

    @property
    def fingerprint(self) -> str:
        """Return a fingerprint that differs from that of every other coding."""

    @property
    def digests(self) -> Mapping[str, str]:
        """SHA-256 of the agreed hierarchy files, by attribute."""

    def as_dict(self) -> dict[str, object]:
        """Return the entry of the manifest about the coding."""


class CodingReader(Protocol):
    """Reads a coding: ``sharing`` registers it, because ``config`` may not import that room."""

    def merge_coding(
        self, document: dict[str, Any], read: TextReader, problems: list[str]
    ) -> AgreedCoding | None:
        """Put what a coding says into the unchecked configuration that names it, which is changed.

        Return None if the coding cannot be read: then nothing is known of the attributes. ``read``
        reads files at addresses, others are local. Problems are appended. Raises SparkNeededError
        if the coding lies where only Spark's Hadoop reaches it.
        """


_Line = Annotated[str, Field(min_length=1, max_length=200)]


class ReportOptions(Section):
    """The title, purpose and contact in the report. They do not change the release."""

    title: _Line | None = None
    """Title of the report. null: the name of the release's directory."""

    purpose: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    """What the release is for, in a sentence or two. It is at the top of the report."""

    contact: _Line | None = None
    """Who answers questions about the release: a name, an address."""


class Configuration(Section):
    """A complete configuration."""

    input: InputOptions
    """Where the table comes from."""

    coding: CodingKey = None
    """File that several holders agreed on: its path, or path and fingerprint. It replaces
    attributes, missing and output.style, and sets the minimum guarantees of every release."""

    attributes: dict[str, Attribute]
    """The columns and their roles. Unlisted columns are not published."""

    missing: MissingPolicy = "drop"
    """Records with a missing quasi-identifier. drop leaves them out, error refuses the table,
    category treats missing as a separate value."""

    privacy: SerializeAsAny[PrivacyOptions]
    """What the release guarantees."""

    model: Annotated[SerializeAsAny[ModelOptions], BeforeValidator(model_options)] = Field(
        default_factory=default_model
    )
    """Which model makes the classes, and its options."""

    evaluate: EvaluateOptions = EvaluateOptions()
    """Additional measures."""

    gates: dict[str, Gate] = Field(default={})
    """Bounds on figures of the release: columns of the table summary, attributes.<name>.<column>
    and risk.<attacker>.<column>. If a figure is out of bounds, nothing is published."""

    metrics: MetricsOptions = MetricsOptions()
    """Tables and bounds that compare runs over time."""

    output: OutputOptions
    """Where and how the release is written."""

    execution: ExecutionOptions = ExecutionOptions()
    """How the work is done."""

    ledger: BudgetOptions | None = None
    """Ledger of everything that is published about the people in a data set. A run adds an entry,
    anonspark select spends from its limit. null: none."""

    report: ReportOptions = ReportOptions()
    """Title, purpose and contact in the report."""

    _coding: AgreedCoding | None = PrivateAttr(default=None)
    _places: Places = PrivateAttr(default=Places())
    _is_placed_by_caller: bool = PrivateAttr(default=True)

    def _problems(self) -> Iterator[Finding]:
        """Find contradictions between sections, in the order of the checks."""
        yield from (
            *unusable_names(self.attributes),
            *unusable_where(self.attributes, self.input.where),
            *unusable_criteria(self.attributes, self.privacy),
            *unusable_unit(self.attributes, self.privacy),
            *unusable_presence(self.model, self.missing, self.privacy),
            *unusable_pseudonyms(self.attributes, self.privacy, self.output.pseudonyms),
            *generated_columns(
                self.attributes, self.output.style, self.missing, self.output.pseudonyms
            ),
            *self.model.findings(self.attributes, self.output.style),
            *unmeasurable(self.evaluate, self.output.style),
            *unusable_published(self.attributes, self.evaluate),
            *unusable_weights(self.evaluate.risk, self.privacy),
            *unusable_suppression(self.model, self.evaluate),
            *unusable_gates(self.gates, self.quasi_identifiers, self.measured),
            *unusable_drift(self.metrics, self.measured),
            *lacking_quasi_identifiers(self.attributes),
        )

    @property
    def measured(self) -> frozenset[Need]:
        """Return the requested conditions of figures."""
        is_whole = not (isinstance(self.model, CuttingOptions) and self.model.suppression_limit)
        asked: dict[Need, bool] = {
            "information": self.evaluate.information,
            "association": self.evaluate.association is not None,
            "weights": self.evaluate.risk.weights is not None,
            "baseline": is_whole and (self.evaluate.compare_baseline or self.model.most_rounds > 1),
            "bounds": self.output.style != "mean",
            "people": bool(self.people_columns),
            "ends": ENDS in self.gates,
        }
        return frozenset(need for need, is_asked in asked.items() if is_asked)

    @property
    def quasi_identifiers(self) -> list[str]:
        """Names of the quasi-identifiers, in configuration order."""
        return self._with_role("quasi_identifier")

    @property
    def required(self) -> list[str]:
        """Names of the columns without a value in which a record is left out."""
        return self.quasi_identifiers if self.missing == "drop" else []

    @property
    def identifiers(self) -> list[str]:
        """Names of the identifiers, in configuration order."""
        return self._with_role("identifier")

    @property
    def published_as_is(self) -> list[str]:
        """Names of the sensitive and insensitive attributes, in configuration order."""
        return self._with_role("sensitive", "insensitive")

    @property
    def columns_of_records(self) -> list[str]:
        """Names of the columns of which every record must have a value in at least one."""
        names = (*self.quasi_identifiers, *self.published_as_is, *self.privacy.unit)
        return list(dict.fromkeys(names))

    @property
    def people_columns(self) -> list[str]:
        """Names of the published columns that show which records are of one person, or none."""
        unit = self.privacy.unit
        shown = unit if set(unit) <= set(self.published_as_is) else []
        return list(self.output.pseudonyms.values()) or shown

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

    @property
    def agreed_coding(self) -> AgreedCoding | None:
        """The coding after it was read, or None if the configuration follows none."""
        return self._coding

    def with_coding(self, coding: AgreedCoding) -> Configuration:
        """Return a copy that knows the coding that it names."""
        copied = self.model_copy()
        copied._coding = coding
        return copied

    @property
    def places(self) -> Places:
        """The positions of its keys in its file, or none if it was in memory."""
        return self._places

    def with_places(self, places: Places) -> Configuration:
        """Return a copy that knows the positions of its keys."""
        copied = self.model_copy()
        copied._places = places
        return copied

    def with_drawn_output(self) -> Configuration:
        """Return a copy whose output path was drawn, so that fingerprints leave it out."""
        copied = self.model_copy()
        copied._is_placed_by_caller = False
        return copied

    def with_input(self, options: Mapping[str, str]) -> Configuration:
        """Return a copy with the input as it was recognized, which is not recognized again."""
        return self.model_copy(update={"input": self.input.settled(options)})

    def fingerprint(self) -> str:
        """Return the SHA-256 of the canonical JSON of the configuration, in hexadecimal digits.

        The order of the attributes counts, because it breaks ties. The order of all other keys does
        not, nor does it matter whether a default is written out. The seed enters through its own
        hash. An output path that was drawn does not enter.
        """
        # Where it is written down or copied to, who signs it, and what is said of its purpose,
        # change nothing of a release.
        # The manifest has the settings of model.published under their own keys.
        untold: dict[str, Any] = {"ledger": True, "report": True, "model": {"published"}}
        untold["input"] = {"where"} if self.input.where is None else set()
        untold["output"] = {"signing_key", "table", "table_mode", "table_partition"}
        document = self.model_dump(mode="json", exclude=untold)
        if document["coding"] is not None:
            # Wherever its file lies.
            document["coding"] = document["coding"]["fingerprint"]
        document["attributes"] = list(document["attributes"].items())
        document["execution"]["seed"] = self._seed_hash()
        if not self._is_placed_by_caller:
            document["output"]["path"] = None
        return _hash_of(document)

    def input_fingerprint(self) -> str:
        """Return a SHA-256 that is equal for configurations that prepare the same records.

        It covers what :func:`anonspark.pipeline.preparing.prepare` depends on.
        """
        document = self.model_dump(mode="json", include={"input", "attributes", "missing"})
        document["attributes"] = list(document["attributes"].items())
        if self.privacy.unit:
            document["unit"] = self.privacy.unit
        if self.output.pseudonyms:
            document["pseudonyms"] = True
        if self.evaluate.risk.weights in self.identifiers:
            document["weights"] = self.evaluate.risk.weights
        grids = [attribute.grid for attribute in self.attributes.values()]
        if getattr(self.model, "published", None) and "auto" in grids:
            # Their ranges end at values of records.
            document["exact"] = True
        return _hash_of(document | {"seed": self._seed_hash()})

    def settings_fingerprint(self) -> str:
        """Return a SHA-256 that is equal for releases whose figures can be compared.

        It covers the settings that change the classes of a given table: attributes, policy for
        missing values, criteria, model and style. Paths, formats and the seed may differ. A default
        that is written out counts as one that is not.
        """
        document = self.model_dump(
            mode="json",
            include={"attributes", "missing", "privacy", "model"},
            exclude={"model": {"published"}},
            exclude_defaults=True,
        )
        for attribute in document["attributes"].values():
            if isinstance(attribute.get("hierarchy"), str):
                attribute["hierarchy"] = "file"
        for key in ("population", "format", "options"):
            document["privacy"].get("delta_presence", {}).pop(key, None)
        document["attributes"] = list(document["attributes"].items())
        document["model"] = {"name": self.model.name, **document.get("model", {})}
        document["model"] |= self.model.model_dump(include={"separation"})
        document["style"] = self.output.style
        document["missing_markers"] = self.input.missing_markers
        return _hash_of(document)

    def public_dict(self) -> dict[str, Any]:
        """Return the configuration as JSON values for the manifest, without its secrets.

        The seed is replaced by ``seed_fingerprint``, the declared order of a quasi-identifier
        (which lists raw values of it) by ``order_entries`` and ``order_fingerprint``, and
        credentials in data source options and in all texts by ``(redacted)``. The paths of the
        ledger and of the signing key are left out, because recipients of the release need not know
        them.
        """
        document = self.model_dump(mode="json", exclude={"ledger": True, "output": {"signing_key"}})
        if self.report == ReportOptions():
            # Manifests written before the section existed have no such key.
            del document["report"]
        del document["execution"]["seed"]
        document["execution"]["seed_fingerprint"] = self._seed_hash()[:16]
        for attribute in document["attributes"].values():
            # The values of a sensitive attribute are published, and verifying needs their order.
            order = None if attribute["role"] == "sensitive" else attribute.pop("order")
            if order is not None:
                attribute.update(order_as_told(order))
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


def _hash_of(document: Mapping[str, Any]) -> str:
    return _sha256(json.dumps(document, sort_keys=True, separators=(",", ":")))


def _sha256(text: str) -> str:
    # Paths from a command line may hold bytes that are no text, as lone surrogates.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
