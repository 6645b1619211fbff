"""The plan: who asks for what of one table, checked as a whole before any data is touched."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from anonspark.config import Configuration, parse_configuration
from anonspark.config.combinations import labels_of_records
from anonspark.config.loading import assign, parse_overrides, written_overrides
from anonspark.config.models import CuttingOptions
from anonspark.config.problems import did_you_mean, in_words, key_path, one_of, validated
from anonspark.config.reading import TextReader, read_local_text, sibling
from anonspark.config.short_forms import write_out
from anonspark.config.yaml_reading import read_base, read_document
from anonspark.core.criterion import Criterion
from anonspark.engine.choice import Work
from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.redaction import Redacted
from anonspark.release.conditions import Condition
from anonspark.sharing.ledger.joint_classes import Demand
from anonspark.sharing.recipients.plan_file import (
    PlanFile,
    PresenceFile,
    RequestFile,
)

_NOWHERE = "-"

_NESTED_MODEL = "smondrian"
NESTED_MODELS = ("smondrian", "su-mondrian", "canon", "u-canon", "microaggregation", "full-domain")
"""Models whose groups, or whose levels, can be those of all releases of a plan."""

# Options of models by which records are left out, and what to choose in their place.
_LEFT_OUT = (("residual", "drop", "suppress"), ("unfit", "suppress", "merge or refuse"))
# Sections of a request that are those of a configuration.
_SECTIONS = ("model", "output", "gates", "evaluate", "metrics")


@dataclass(frozen=True, repr=False)
class Recipient(Redacted):
    """The request of one recipient, and the release's configuration: base and request together."""

    name: str
    request: RequestFile
    conditions: tuple[Condition, ...]
    configuration: Configuration

    @property
    def presence(self) -> PresenceFile | None:
        """The bound on presence, if there is one."""
        return self.request.presence


@dataclass(frozen=True, repr=False)
class Plan(Redacted):
    """The requests of recipients for one table.

    ``base`` is what may be given at all, with a stand-in for its output, ``source`` the same of the
    requested attributes alone. ``partition`` is the configuration of the groups that no release of
    a nested plan divides: all requested quasi-identifiers, missing values as a category, and what
    is demanded of joint classes, which is ``demand``. ``recipients`` are in the order of their
    names, which is that of the bits of patterns.
    """

    file: PlanFile
    base: Configuration
    source: Configuration
    partition: Configuration
    demand: Demand
    recipients: tuple[Recipient, ...]

    @property
    def output(self) -> str:
        """Directory of the releases."""
        return self.file.output.rstrip("/")

    @property
    def names(self) -> list[str]:
        """Names of the recipients, in their order."""
        return [recipient.name for recipient in self.recipients]

    def work(self) -> Work:
        """Return what decides which engine carries it out."""
        of_base = Work.of(self.base)
        written = [recipient.configuration.output.path for recipient in self.recipients]
        ledger = self.file.ledger
        written += [self.output, *([] if ledger is None else [ledger.path])]
        return replace(of_base, written=(*of_base.written[1:], *written))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all settings that decide which data are given, in hexadecimal digits."""
        document = {
            "base": self.base.fingerprint(),
            "subject": self.file.subject,
            **({"record": self.file.record} if self.file.record else {}),
            "strategy": self.file.strategy,
            "collusion": self.file.collusion.model_dump(mode="json"),
            "reuse": self.file.base_partition.reuse,
            "recipients": {
                recipient.name: [
                    recipient.configuration.fingerprint(),
                    recipient.request.model_dump(mode="json"),
                ]
                for recipient in self.recipients
            },
        }
        text = json.dumps(document, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def load_plan(
    path: str | Path,
    overrides: Sequence[str] = (),
    only: Sequence[str] = (),
    read: TextReader = read_local_text,
) -> Plan:
    """Read a plan file and check every request in it.

    ``path`` is a YAML file on the local disk, or of ``read``, which also reads the base.
    ``overrides``, of ``--set``, replace values of the plan. ``only`` are the recipients that get a
    release, or all if it is empty. Raises ConfigurationError with all problems of the file, the
    base and all requests, each once.
    """
    expected = "a mapping with 'base', 'output' and 'recipients'"
    document, problems = read_document(path, "a plan", expected, read, variables=True)
    with document.locating_problems(is_whole=False):
        return _build(document, problems, path, overrides, only, read)


def parse_plan(mapping: Mapping[str, Any], read: TextReader = read_local_text) -> Plan:
    """Check a plan that is in memory. See :func:`load_plan`."""
    return _build(mapping, [], ".", (), (), read)


def _build(
    mapping: Mapping[str, Any],
    problems: list[str],
    path: str | Path,
    overrides: Sequence[str],
    only: Sequence[str],
    read: TextReader,
) -> Plan:
    """Check a plan with its overrides and its base."""
    document = deepcopy(dict(mapping))
    for assignment in parse_overrides(overrides, problems):
        assign(document, assignment, problems)
    file = validated(PlanFile, document, problems)
    if file is None:
        raise ConfigurationError(*problems)
    base = _base_document(file, path, problems, read)
    if problems:
        raise ConfigurationError(*problems)
    reading = _Reading(file, base, cache(read))
    plan = reading.plan(only)
    problems = list(dict.fromkeys(reading.problems))
    if plan is None or problems:
        raise ConfigurationError(*problems)
    return plan


def _base_document(
    file: PlanFile, path: str | Path, problems: list[str], read: TextReader
) -> dict[str, Any]:
    """Return the base as a document, with the values that the plan sets in it."""
    if isinstance(file.base, str):
        expected = "a mapping with 'input', 'attributes' and 'privacy'"
        base: dict[str, Any] | None = read_base(sibling(path, file.base), expected, read, problems)
    else:
        base = deepcopy(dict(file.base))
    if base is None:
        return {}
    for assignment in parse_overrides(written_overrides(file.settings), problems):
        assign(base, assignment, problems, "set.")
    write_out(base, problems)
    if base.get("coding") is not None:
        problems.append(
            "base.coding: found a coding, whose releases have all its columns. Expected none, for "
            "each recipient chooses columns. Write its attributes into the base"
        )
    privacy = base.get("privacy")
    if file.record and file.subject and isinstance(privacy, dict):
        # With several records a person, people are counted.
        base["privacy"] = {"unit": list(file.subject), **privacy}
    if file.strategy == "nested" and "model" not in base:
        base["model"] = {"name": _NESTED_MODEL}
    output = base.get("output") if isinstance(base.get("output"), dict) else {}
    base["output"] = {**(output or {}), "path": _NOWHERE}
    return base


class _Reading:
    """A plan file on its way to a plan. What is wrong is collected."""

    def __init__(self, file: PlanFile, base: dict[str, Any], read: TextReader) -> None:
        self.file, self.document, self.read = file, base, read
        self.problems: list[str] = []

    def plan(self, only: Sequence[str]) -> Plan | None:
        """Return the plan, or None if there are problems."""
        try:
            base = parse_configuration(self.document, (), self.read)
        except SparkNeededError:
            raise
        except ConfigurationError as error:
            self.problems += [f"base: {problem}" for problem in error.problems]
            return None
        self._check_base(base)
        names = self._chosen(only)
        recipients = list(filter(None, (self._recipient(name, base) for name in names)))
        if self.problems or not recipients:
            return None
        demand = self._demand(base, recipients)
        self._check_watched(recipients)
        self._check_left_out(recipients)
        source = self._source(base, recipients)
        partition = self._partition(base, recipients, demand)
        if self.problems or source is None or partition is None:
            return None
        return Plan(self.file, base, source, partition, demand, tuple(recipients))

    def _chosen(self, only: Sequence[str]) -> list[str]:
        """Return the recipients that get something, in the order of their names."""
        names = sorted(self.file.recipients)
        for name in only:
            if name not in names:
                hint = did_you_mean(name, names, f"Expected {one_of(names)}")
                self.problems.append(f"--only: the plan has no recipient {in_words(name)}. {hint}")
        return [name for name in names if not only or name in only]

    def _check_base(self, base: Configuration) -> None:
        """Check the base, and that the plan fits it."""
        file, attributes = self.file, base.attributes
        for key, names in (("subject", file.subject), ("record", file.record)):
            for name in names:
                if name not in attributes:
                    self._unknown(key, name, list(attributes))
                elif attributes[name].role != "identifier":
                    self.problems.append(
                        f"{key}: {name!r} has the role {attributes[name].role} in the base. "
                        "Expected identifier, because no release has it. Correct base.attributes"
                    )
        self._check_record()
        self._check_people(base)
        self._check_strategy(base)
        self._check_collusion(base)

    def _check_people(self, base: Configuration) -> None:
        """Check that base and plan count the same people."""
        file = self.file
        if base.ledger is not None:
            self.problems.append(
                "base.ledger: found the ledger of a data set, which releases of a plan are not "
                "listed in. Expected it in configurations of runs alone. Remove it"
            )
        unit = base.privacy.unit
        if unit and sorted(unit) != sorted(file.subject):
            self.problems.append(
                f"subject: found {', '.join(file.subject) or 'nothing'}, but the base's "
                f"privacy.unit is {', '.join(unit)}. Expected the same people in both. Correct one"
            )
        if file.ledger is not None and not file.subject:
            self.problems.append(
                "subject: missing. A ledger has to recognize people. Expected the column, or "
                "columns, that identify them. Add it"
            )
        if base.privacy.delta_presence is not None:
            self.problems.append(
                "base.privacy.delta_presence: found a population. In a plan the source is the "
                "population of each recipient. Write recipients.<name>.presence instead"
            )

    def _check_strategy(self, base: Configuration) -> None:
        """Check that the base's model can make the groups of a nested plan."""
        if self.file.strategy != "nested":
            return
        if base.model.name not in NESTED_MODELS:
            self.problems.append(
                f"base.model.name: found {in_words(base.model.name)}, whose groups cannot be those "
                f"of all releases. Expected {one_of(NESTED_MODELS)}. Set one, or use strategy: "
                "independent"
            )
        if isinstance(base.model, CuttingOptions) and base.model.suppression_limit > 0:
            self.problems.append(
                f"base.model.suppression_limit: found {base.model.suppression_limit}. Expected 0 "
                "in a nested plan, because each of its groups is part of every release. Remove it, "
                "or use strategy: independent"
            )

    def _check_collusion(self, base: Configuration) -> None:
        """Check the attributes and the groups of the section ``collusion``."""
        collusion = self.file.collusion
        for index, criterion in enumerate(collusion.l_diversity):
            if criterion.attribute not in base.sensitive:
                self.problems.append(
                    f"collusion.l_diversity[{index}].attribute: {criterion.attribute!r} is not "
                    "sensitive in the base. Expected one of "
                    f"{', '.join(base.sensitive) or 'none there'}. Correct it"
                )
        seen: dict[str, int] = {}
        for index, group in enumerate(collusion.together):
            for name in group:
                if name in seen:
                    self.problems.append(
                        f"collusion.together[{index}]: {name!r} is in a list before, too. Expected "
                        "each name once. Put those who are one into one list"
                    )
                seen[name] = index

    def _check_watched(self, recipients: Sequence[Recipient]) -> None:
        """Check that no two releases share a row or a file of the tables of all runs."""
        watched: dict[str, list[str]] = {}
        for recipient in recipients:
            metrics = recipient.configuration.metrics
            # Files are named by the run, which all releases share.
            if metrics.append_to is not None:
                for key in (f"tables {metrics.append_to}", f"job {metrics.job}"):
                    watched.setdefault(key, []).append(recipient.name)
        for names in sorted({tuple(names) for names in watched.values() if len(names) > 1}):
            self.problems.append(
                f"recipients.{names[0]}.metrics: found the append_to or the job of "
                f"{', '.join(names[1:])}, too. Expected a directory and a name of its own for each "
                "that is watched. Set recipients.<name>.metrics, or remove it from the base"
            )

    def _check_left_out(self, recipients: Sequence[Recipient]) -> None:
        """Check that no release of a ledger's plan counts the records that its model leaves out."""
        if self.file.ledger is None:
            return
        for recipient in recipients:
            model = recipient.configuration.model
            where = "base" if recipient.request.model is None else f"recipients.{recipient.name}"
            # Null may mean suppress.
            options = [row for row in _LEFT_OUT if getattr(model, row[0], "") in (row[1], None)]
            if isinstance(model, CuttingOptions) and model.suppression_limit:
                options.append(("suppression_limit", str(model.suppression_limit), "0"))
            self.problems += [
                f"{where}.model.{key}: found {getattr(model, key) or 'null'}. Expected {remedy} in "
                "a plan with a ledger, because the number of records that a model leaves out shows "
                "by the difference of two nights what became of a single one. Set it"
                for key, _, remedy in options
            ]

    def _check_record(self) -> None:
        """Check that no option conflicts with several records a person."""
        file = self.file
        if not file.record:
            return
        if not file.subject:
            self.problems.append(
                "record: found without subject. Expected also the column, or columns, that "
                "identify people. Add subject"
            )
        if set(file.record) <= set(file.subject):
            self.problems.append(
                "record: found only columns of subject, by which every person would have one "
                "record. Expected columns that distinguish the records of a person. Correct it, or "
                "remove it"
            )
        if file.collusion.l_diversity:
            self.problems.append(
                "collusion.l_diversity: found together with record. Expected one of the two, "
                "because values of joint classes are counted by records. Remove one"
            )
        self.problems += [
            f"recipients.{name}.presence: found together with record. Expected one of the two, "
            "because presence is counted by records. Remove one"
            for name, request in file.recipients.items()
            if request.presence is not None
        ]

    def _unknown(self, where: str, name: str, names: Sequence[str]) -> None:
        """Report an attribute that the base does not have."""
        hint = did_you_mean(name, names, "Add it to the base, or remove it here")
        self.problems.append(
            f"{where}: found {in_words(name)}. Expected an attribute of the base. {hint}"
        )

    def _recipient(self, name: str, base: Configuration) -> Recipient | None:
        """Return the request of a recipient, or None if there are problems."""
        request = self.file.recipients[name]
        before = len(self.problems)
        where = f"recipients.{name}"
        self._check_columns(where, request, base)
        conditions = tuple(self._conditions(where, request, base))
        if self.file.strategy == "nested" and request.model is not None:
            self.problems.append(
                f"{where}.model: found a model. In a nested plan all releases are made of the "
                "base's groups. Remove it, or use strategy: independent"
            )
        if len(self.problems) > before:
            return None
        configuration = self._configuration(where, name, request, base)
        if configuration is None:
            return None
        return Recipient(name, request, conditions, configuration)

    def _check_columns(self, where: str, request: RequestFile, base: Configuration) -> None:
        """Check the columns that a recipient asks for."""
        for index, name in enumerate(request.columns):
            at = f"{where}.columns[{index}]"
            if name not in base.attributes:
                self._unknown(at, name, list(base.attributes))
            elif base.attributes[name].role == "identifier":
                self.problems.append(
                    f"{at}: {name!r} is an identifier, which no recipient gets. Remove it"
                )
        if not set(request.columns) & set(base.quasi_identifiers):
            self.problems.append(
                f"{where}.columns: found no quasi_identifier of the base. Expected one at least. "
                "Add one"
            )
        if len(set(request.columns)) < len(request.columns):
            self.problems.append(f"{where}.columns: found a column twice. Remove one")

    def _conditions(
        self, where: str, request: RequestFile, base: Configuration
    ) -> Iterator[Condition]:
        """Yield the conditions of a request, and report those that reveal people."""
        for name, value in request.where.items():
            at = f"{where}.{key_path(('where', name))}"
            if name not in base.attributes:
                self._unknown(at, name, list(base.attributes))
                continue
            role = base.attributes[name].role
            if role == "identifier":
                self.problems.append(
                    f"{at}: a condition on an identifier picks people by name. Remove it"
                )
            elif role == "sensitive" and request.presence is None:
                self.problems.append(
                    f"{at}: a condition on a sensitive attribute shows it of every person in the "
                    f"release. Add {where}.presence, or drop the condition"
                )
            yield Condition(name, value)

    def _configuration(
        self, where: str, name: str, request: RequestFile, base: Configuration
    ) -> Configuration | None:
        """Return the configuration of a release, or None if there are problems."""
        document = self._document(name, request, base)
        requested = self._parsed(where, document)
        if requested is None:
            return None
        self._check_request(where, request, requested, base)
        missing = self._missing_criteria(where, requested, base)
        if not missing:
            return requested
        for key, sections in missing.items():
            listed = request.privacy.get(key, [])
            requested_sections = [listed] if isinstance(listed, dict) else listed
            document["privacy"][key] = [*deepcopy(requested_sections), *sections]
        return self._parsed(where, document)

    def _document(self, name: str, request: RequestFile, base: Configuration) -> dict[str, Any]:
        """Return the configuration file of a release, without the criteria of the base."""
        document = self._restricted(request.columns, base)
        options = {section: getattr(request, section) for section in _SECTIONS}
        document |= {key: deepcopy(part) for key, part in options.items() if part is not None}
        path = f"{self.file.output.rstrip('/')}/{name}"
        output = deepcopy(self.document["output"])
        document["output"] = {**output, "path": path, **(request.output or {})}
        document["privacy"] = {"k": base.privacy.k, **deepcopy(request.privacy)}
        if base.privacy.unit:
            document["privacy"]["unit"] = list(base.privacy.unit)
        return document

    def _check_request(
        self, where: str, request: RequestFile, requested: Configuration, base: Configuration
    ) -> None:
        """Note what a recipient requests but no plan may give."""
        if requested.privacy.delta_presence is not None:
            self.problems.append(
                f"{where}.privacy.delta_presence: found a population. In a plan that is the "
                f"source. Write {where}.presence instead"
            )
        if requested.output.table is not None:
            text = "found a table, to which a plan writes no release. Remove it"
            self.problems.append(f"{where}.output.table: {text}")
        problem = labels_of_records(requested.model.model_dump(), requested.missing)
        if request.presence is not None and problem is not None:
            self.problems.append(f"{where}.presence: {problem}")
        if requested.output.pseudonyms:
            self.problems.append(
                f"{where}.output.pseudonyms: found {', '.join(requested.output.pseudonyms)}. "
                "Expected none in a plan, for recipients who know which records are of one person "
                "learn more together than is checked. Remove it, here or in the base"
            )
        if requested.privacy.k < base.privacy.k:
            self.problems.append(
                f"{where}.privacy.k: found {requested.privacy.k}. The base requires at least "
                f"{base.privacy.k}. Raise it"
            )

    def _missing_criteria(
        self, where: str, requested: Configuration, base: Configuration
    ) -> dict[str, list[dict[str, Any]]]:
        """Find the criteria of the base that a request omits, and report those that it weakens."""
        missing: dict[str, list[dict[str, Any]]] = {}
        for key, section in base.privacy.sections():
            criterion: Criterion = section.criterion()
            if criterion.attribute not in requested.attributes:
                continue
            same = [
                other
                for other in requested.privacy.criteria
                if (other.attribute, other.kind, other.c)
                == (criterion.attribute, criterion.kind, criterion.c)
            ]
            if not same:
                missing.setdefault(key, []).append(section.model_dump(mode="json"))
            elif not any(other.is_as_strict_as(criterion) for other in same):
                self.problems.append(
                    f"{where}.privacy.{key}: found {same[0].describe()} on attribute "
                    f"{criterion.attribute!r}. The base requires {criterion.describe()}. "
                    "Strengthen it"
                )
        return missing

    def _restricted(self, columns: Sequence[str], base: Configuration) -> dict[str, Any]:
        """Return the base with only some columns, and those that identify people."""
        document = deepcopy(self.document)
        names = {*columns, *base.privacy.unit}
        document["attributes"] = {
            name: attribute for name, attribute in document["attributes"].items() if name in names
        }
        gates = document.get("gates") or {}
        absent = [f"attributes.{name}." for name in base.attributes if name not in names]
        document["gates"] = {
            name: gate for name, gate in gates.items() if not name.startswith(tuple(absent))
        }
        return document

    def _parsed(self, where: str, document: dict[str, Any]) -> Configuration | None:
        """Parse a configuration, or return None and report its problems under a key."""
        try:
            return parse_configuration(document, (), self.read)
        except SparkNeededError:
            raise
        except ConfigurationError as error:
            sections = ("privacy", *_SECTIONS)
            self.problems += [
                f"{where}{'.' if problem.startswith(sections) else ': '}{problem}"
                for problem in error.problems
            ]
            return None

    def _demand(self, base: Configuration, recipients: Sequence[Recipient]) -> Demand:
        """Return the k and the l that joint classes of recipients have to keep, and check them."""
        collusion = self.file.collusion
        smallest = min(recipient.configuration.privacy.k for recipient in recipients)
        k = smallest if collusion.k is None else collusion.k
        if k > smallest:
            name = min(recipients, key=lambda release: release.configuration.privacy.k).name
            self.problems.append(
                f"collusion.k: found {k}, but recipients.{name}.privacy.k is {smallest}. Expected "
                "at most the smallest k of the recipients. Lower it, or raise theirs"
            )
        if k == 1 and collusion.k is not None and not base.privacy.allow_k_1:
            self.problems.append(
                "collusion.k: found 1, which protects no one from recipients who combine what they "
                "have. Expected at least 2. Raise it, or set privacy.allow_k_1 of the base to true "
                "if you only compare"
            )
        diversity = {criterion.attribute: criterion.l for criterion in collusion.l_diversity}
        return Demand(k, diversity)

    def _source(self, base: Configuration, recipients: Sequence[Recipient]) -> Configuration | None:
        """Return the configuration of the source that all releases share."""
        columns = {name for recipient in recipients for name in recipient.request.columns}
        columns |= {criterion.attribute for criterion in self.file.collusion.l_diversity}
        document = self._restricted(sorted(columns), base)
        document["gates"] = {}
        document["privacy"] = {"k": 1, "allow_k_1": True}
        if base.privacy.unit:
            document["privacy"]["unit"] = list(base.privacy.unit)
        return self._parsed("base", document)

    def _partition(
        self, base: Configuration, recipients: Sequence[Recipient], demand: Demand
    ) -> Configuration | None:
        """Return the configuration of the base partition, whose groups no release divides."""
        published = {name for recipient in recipients for name in recipient.request.columns}
        columns = (published & set(base.quasi_identifiers)) | set(demand.diversity)
        document = self._restricted(sorted(columns), base)
        document["gates"] = {}
        document["missing"] = "category"
        diversity = [{"attribute": name, "l": number} for name, number in demand.diversity.items()]
        document["privacy"] = {"k": demand.k, "l_diversity": diversity}
        if demand.k == 1:
            document["privacy"]["allow_k_1"] = True
        if base.privacy.unit:
            document["privacy"]["unit"] = list(base.privacy.unit)
        return self._parsed("base", document)
