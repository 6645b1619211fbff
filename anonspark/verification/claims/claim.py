"""Define what a release is verified against: its manifest, a configuration, or named roles."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from anonspark.config import Configuration
from anonspark.config.combinations import labels_of_records
from anonspark.config.configuration import CODING
from anonspark.config.gates import RiskOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.extensions import owner_of
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import Engine
from anonspark.errors import DataError, GuaranteeError, raise_if_limit_reached
from anonspark.labels.regions import PublishedAttribute, published_attributes
from anonspark.release.layout import LEFT_OUT
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.risk import Floats, Sizes
from anonspark.verification.claims.left_out import NOTHING_LEFT_OUT, LeftOut, read_left_out
from anonspark.verification.proof.criteria import MeasuredCriterion, satisfies
from anonspark.verification.proof.measures import SensitiveValues

if TYPE_CHECKING:
    from anonspark.verification.claims.statements import Statements

_DEFAULT_MARKERS = ("", "?")


@dataclass(frozen=True)
class Requirements:
    """The requirements for a release.

    ``columns`` are the published ones that form classes, ``names`` the quasi-identifiers.
    ``orders`` are declared for sensitive attributes, ``hierarchies`` come from files that could be
    read. ``publishable`` are all columns that a release may have, or None if they are unknown,
    ``as_they_came`` the attributes that are published unchanged, ``pseudonyms`` the column of
    pseudonyms or none. ``holder`` is the column of a union that names the holder of a record: its
    criteria are those of each holder's records.
    """

    privacy: PrivacyOptions
    columns: list[str]
    names: tuple[str, ...]
    sensitive: tuple[str, ...] = ()
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    risk: RiskOptions = field(default_factory=RiskOptions)
    publishable: tuple[str, ...] | None = None
    as_they_came: tuple[str, ...] = ()
    pseudonyms: tuple[str, ...] = ()
    holder: str | None = None

    @property
    def weights(self) -> str | None:
        """The published column of sampling weights, or None."""
        return self.risk.weights if self.risk.weights in self.as_they_came else None

    @property
    def people_columns(self) -> tuple[str, ...]:
        """The published columns that identify people, or none if the files do not."""
        unit = tuple(self.privacy.unit)
        return self.pseudonyms or (unit if set(unit) <= set(self.as_they_came) else ())

    def by_holder(self, holder: str) -> Requirements:
        """Return the requirements of a union whose classes are each of one holder."""
        return replace(
            self,
            columns=[*self.columns, holder],
            names=(*self.names, holder),
            publishable=(*(self.publishable or ()), holder),
            holder=holder,
        )


@dataclass(frozen=True)
class Claim(Requirements):
    """The requirements for a release, and the statements about it.

    ``attributes`` say how the columns of quasi-identifiers are read, or None if the table has to
    show it. ``left_out`` are records that found no class, or are suppressed as a whole.
    ``failures`` were found while the promise was read. ``statements`` of manifest and metrics are
    to be compared with counts. ``units`` are the classes of each number of people and ``of_people``
    the criteria as the run measured them, or None if it did not. ``values`` are those that a run
    knows of sensitive attributes in its whole input: it measures what is required with them, and
    nothing else. ``class_weights`` are records and sampling weights of each class if a run has
    added them up.
    """

    attributes: tuple[PublishedAttribute, ...] | None = None
    missing_markers: Sequence[str] = _DEFAULT_MARKERS
    drops_missing: bool = False
    left_out: LeftOut = NOTHING_LEFT_OUT
    failures: tuple[str, ...] = ()
    statements: Statements | None = None
    units: Mapping[int, int] | None = None
    of_people: Sequence[MeasuredCriterion] | None = None
    values: Mapping[str, SensitiveValues] = field(default_factory=dict)
    class_weights: tuple[Sizes, Floats] | None = None
    recipient: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_of_manifest(self) -> bool:
        """Whether all that is required is what the release's own manifest promises."""
        stated = self.statements
        return stated is not None and (self.privacy, self.risk) == (stated.privacy, stated.risk)


def claim_of_manifest(
    engine: Engine,
    release: str,
    manifest: Manifest,
    *,
    matched: bool,
    replaced: Collection[str] = (),
) -> Claim:
    """Return what the manifest of a release promises, after a check of its files.

    They are listed and read, and the statements in them:
    :func:`~anonspark.verification.proof.release_files.audit_release_files`,
    :func:`~anonspark.verification.claims.statements.read_statements`. With ``matched`` records will
    be matched with the release, which takes all hierarchies. ``replaced`` are files that the caller
    writes again, such as those of a stopped report. Raises GuaranteeError if the manifest is
    damaged or contradicts itself, and ConfigurationError if a hierarchy that is needed cannot be
    read.
    """
    # Imported late, because a run does not need it.
    from anonspark.verification.claims.statements import read_statements
    from anonspark.verification.proof.release_files import audit_release_files

    described = claim_of_description(
        engine, manifest, matched=matched, where=f"{release}/{MANIFEST}"
    )
    encoded_elsewhere = audit_release_files(engine, release, manifest, replaced)
    statements = read_statements(
        engine,
        release,
        manifest.document,
        described.privacy,
        described.risk,
        described.hierarchies,
    )
    statements.claimed.update(encoded_elsewhere)
    failures = statements.misformed()
    unreadable: tuple[type[Exception], ...] = (ValueError, *engine.failures)
    try:
        left_out = read_left_out(engine, release, manifest)
    except unreadable as error:
        raise_if_limit_reached(error)
        problem = f"{release}/{LEFT_OUT}: cannot be read. Restore the release or publish it again"
        raise GuaranteeError("\n".join([*failures, problem])) from error
    failures += left_out.failures
    return replace(
        described,
        left_out=left_out,
        failures=(*described.failures, *failures),
        statements=statements,
    )


def claim_of_description(
    engine: Engine, manifest: Manifest, *, matched: bool, where: str = MANIFEST
) -> Claim:
    """Return what a manifest promises about records, without its figures and files.

    The release may still be in the making. Parameters and errors are those of
    :func:`claim_of_manifest`, and ``where`` names the manifest in messages.
    """
    configured = manifest.configuration
    try:
        privacy = PrivacyOptions.model_validate(configured["privacy"])
        risk = RiskOptions.model_validate(configured.get("evaluate", {}).get("risk", {}))
        published = published_attributes(manifest)
    except ValidationError as error:
        raise GuaranteeError(
            f"{where}: its section configuration.privacy or configuration.evaluate is "
            "not one of this version. The file is damaged, or another version wrote it"
        ) from error
    except DataError as error:
        raise GuaranteeError(
            f"{where}: published.quasi_identifier_columns: found others than those of "
            "published.quasi_identifiers. Restore the release or publish it again"
        ) from error
    required = _requirements(
        engine,
        manifest.attributes,
        privacy,
        manifest.quasi_identifier_columns,
        risk,
        (configured["output"].get("pseudonyms") or {}).values(),
        matched=matched,
        agreed=owner_of(CODING).agreed_digests(manifest.coding["document"])
        if manifest.coding
        else None,
    )
    problem = privacy.delta_presence and labels_of_records(
        configured["model"], configured.get("missing", "drop")
    )
    return Claim(
        **{**vars(required), "holder": manifest.holder_column},
        failures=(f"privacy.delta_presence: {problem}",) if problem else (),
        attributes=published,
        missing_markers=manifest.missing_markers,
        drops_missing=manifest.drops_missing,
        units=dict(manifest.published.get("units") or ()) or None,
        of_people=_criteria_of_people(privacy, manifest.published.get("criteria_of_people")),
        recipient=manifest.recipient,
    )


def _criteria_of_people(
    privacy: PrivacyOptions, figures: Sequence[float | None] | None
) -> list[MeasuredCriterion] | None:
    """Return the criteria that count people with the figures of a manifest."""
    if figures is None:
        return None
    measured = []
    for criterion, figure in zip(privacy.criteria, figures, strict=False):
        worst = math.inf if figure is None else figure
        violates = not satisfies(criterion, np.array([worst]))[0]
        measured.append(MeasuredCriterion(criterion, worst, int(violates), 0))
    return measured


def claim_of_configuration(
    engine: Engine,
    configuration: Configuration,
    columns: Sequence[str],
    promise: Claim | None,
    *,
    matched: bool,
) -> Claim:
    """Return what a configuration requires of a release with some columns.

    Labels are read as the manifest promises, if there is one. Raises DataError if columns are
    missing, and ConfigurationError if a hierarchy that is needed cannot be read.
    """
    attributes = configuration.model_dump(mode="json")["attributes"]
    pseudonyms = configuration.output.pseudonyms.values()
    names = _with_role(attributes, "quasi_identifier")
    others = {*attributes, *pseudonyms} - set(names)
    required = _requirements(
        engine,
        attributes,
        configuration.privacy,
        published_columns(names, [name for name in columns if name not in others]),
        configuration.evaluate.risk,
        pseudonyms,
        matched=matched,
    )
    required = replace(required, pseudonyms=tuple(name for name in pseudonyms if name in columns))
    if promise is None:
        return Claim(
            **vars(required),
            missing_markers=configuration.input.missing_markers,
            drops_missing=configuration.missing == "drop",
        )
    if promise.holder is not None:
        required = required.by_holder(promise.holder)
    # How missing values were treated stays as the manifest says.
    claim = replace(promise, **vars(required))
    return claim if set(claim.names) == set(promise.names) else replace(claim, attributes=None)


def _requirements(
    engine: Engine,
    attributes: Mapping[str, Any],
    privacy: PrivacyOptions,
    columns: list[str],
    risk: RiskOptions,
    pseudonyms: Iterable[str],
    *,
    matched: bool,
    agreed: Mapping[str, str] | None = None,
) -> Requirements:
    """Derive requirements from configured attributes and privacy."""
    sensitive = _with_role(attributes, "sensitive")
    as_they_came = sensitive + _with_role(attributes, "insensitive")
    names = _with_role(attributes, "quasi_identifier")
    # In any style. An identifier may have the name of a generated column, so it is taken out below.
    publishable = (*as_they_came, *(column for name in names for column in _columns_of(name)))
    identifiers = _with_role(attributes, "identifier")
    return Requirements(
        privacy,
        columns,
        names,
        sensitive,
        {name: attributes[name]["order"] for name in sensitive if attributes[name].get("order")},
        _hierarchies(engine, attributes, privacy, matched=matched, agreed=agreed),
        risk,
        (*(name for name in publishable if name not in identifiers), *pseudonyms),
        as_they_came,
        tuple(pseudonyms),
    )


def _with_role(attributes: Mapping[str, Any], role: str) -> tuple[str, ...]:
    """Return the attributes that have a role.

    >>> _with_role({"pay": {"role": "sensitive"}}, "sensitive")
    ('pay',)
    """
    return tuple(name for name, options in attributes.items() if options["role"] == role)


def _columns_of(name: str) -> tuple[str, ...]:
    """Return the columns that may describe a quasi-identifier, in any style.

    >>> _columns_of("age")
    ('age', 'age_min', 'age_max', 'age_missing')
    """
    return name, f"{name}_min", f"{name}_max", f"{name}_missing"


def _hierarchies(
    engine: Engine,
    attributes: Mapping[str, Any],
    privacy: PrivacyOptions,
    *,
    matched: bool,
    agreed: Mapping[str, str] | None = None,
) -> dict[str, Hierarchy]:
    """Read only the hierarchies that are needed. Others may have stayed where the run was."""
    kinds = ((criterion.attribute, criterion.kind) for criterion in privacy.criteria)
    by_hierarchy = {attribute for attribute, kind in kinds if kind == "hierarchical distance"}
    matched = matched or privacy.delta_presence is not None
    paths = {
        name: criterion["hierarchy"]
        for name, criterion in attributes.items()
        if isinstance(criterion.get("hierarchy"), str)
        and (name in by_hierarchy or (matched and criterion["role"] == "quasi_identifier"))
    }
    return read_hierarchy_files(engine.files, paths, agreed)


def published_columns(names: Sequence[str], existing: Sequence[str]) -> list[str]:
    """Return the published columns of quasi-identifiers, whatever the style.

    >>> published_columns(["age", "sex"], ["sex", "age_min", "age_max"])
    ['age_min', 'age_max', 'sex']
    """
    columns: list[str] = []
    lacking = []
    for name in names:
        present = [column for column in _columns_of(name) if column in existing]
        if name not in present and not {*_columns_of(name)[1:3]} <= set(present):
            lacking.append(name)
        columns += present
    if lacking:
        raise DataError(
            f"release: lacks the published columns {', '.join(map(repr, lacking))} (or "
            "<name>_min and <name>_max). Check their spelling"
        )
    return columns
