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

    Parameters
    ----------
    privacy : PrivacyOptions
        The criteria.
    columns : list of str
        Published columns that form classes.
    names : tuple of str
        The quasi-identifiers.
    sensitive : tuple of str
        Sensitive attributes.
    orders : mapping of str to sequence of str
        Declared orders of sensitive attributes.
    hierarchies : mapping of str to Hierarchy
        Those that come from files and could be read.
    risk : RiskOptions
        From where on a risk is called high.
    publishable : tuple of str or None
        All columns that a release may have. None if it is unknown.
    as_they_came : tuple of str
        Attributes that are published so.
    pseudonyms : tuple of str
        The column that holds pseudonyms of people, or none.
    holder : str or None
        The column of a union that names the holder of a record: its criteria are those of each
        holder's records.
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
        """Return the published column of sampling weights. None without one."""
        return self.risk.weights if self.risk.weights in self.as_they_came else None

    @property
    def people_columns(self) -> tuple[str, ...]:
        """The published columns that identify people. None where the files do not."""
        unit = tuple(self.privacy.unit)
        return self.pseudonyms or (unit if set(unit) <= set(self.as_they_came) else ())

    def by_holder(self, holder: str) -> Requirements:
        """Return the same of a union whose classes are each of one holder."""
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

    Parameters
    ----------
    attributes : tuple of PublishedAttribute or None
        How the columns of quasi-identifiers are read. None where the table has to show it.
    missing_markers : sequence of str
        Texts that mean missing.
    drops_missing : bool
        Whether records with a missing quasi-identifier were left out.
    left_out : LeftOut
        Records that found no class, or are suppressed as a whole.
    failures : tuple of str
        What was found not to hold while the promise was read.
    statements : Statements or None
        What manifest and metrics say, to be held against what is counted.
    units : mapping of int to int, or None
        Classes of each number of people, as the run counted them. None where it did not.
    of_people : sequence of MeasuredCriterion, or None
        The criteria as the run measured them where it counted people. None where it did not.
    values : mapping of str to SensitiveValues
        Of sensitive attributes, as a run knows them in its whole input: it measures what is
        required with them, and nothing else.
    class_weights : tuple of int64 and float64 ndarray, or None
        Records and sampling weights of each class, where a run has added them up.
    recipient : mapping
        That of the manifest. Empty without one.
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
        """Return whether all that is required is what the release's own manifest promises."""
        said = self.statements
        return said is not None and (self.privacy, self.risk) == (said.privacy, said.risk)


def claim_of_manifest(
    engine: Engine,
    release: str,
    manifest: Manifest,
    *,
    matched: bool,
    replaced: Collection[str] = (),
) -> Claim:
    """Return what the manifest of a release promises.

    Parameters
    ----------
    engine : Engine
    release : str
        Its directory.
    manifest : Manifest
    matched : bool
        Whether records will be matched with the release, which takes all hierarchies.
    replaced : collection of str
        Files that the caller writes again, so that those there may be any: a stopped report's.

    Raises
    ------
    GuaranteeError
        If the manifest is damaged, or says what cannot be.
    ConfigurationError
        If a hierarchy that is needed cannot be read.

    Notes
    -----
    The files of the release are looked at, and what is said in them:
    :func:`~anonspark.verification.proof.release_files.audit_release_files`,
    :func:`~anonspark.verification.claims.statements.read_statements`.
    """
    # Late: a run imports what it uses.
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
    """Return what a manifest promises of records, whatever it says of figures and files.

    Parameters
    ----------
    engine : Engine
    manifest : Manifest
        Of a release, or of one that is being made: without what is counted in it.
    matched : bool
        Whether records will be matched with the release, which takes all hierarchies.
    where : str
        The manifest, for messages.

    Raises
    ------
    GuaranteeError
        If the manifest is damaged, or says what cannot be.
    ConfigurationError
        If a hierarchy that is needed cannot be read.
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
    """Return what a manifest says of criteria that count people: not how many classes violate."""
    if figures is None:
        return None
    measured = [math.inf if figure is None else figure for figure in figures]
    return [
        MeasuredCriterion(one, figure, int(not satisfies(one, np.array([figure]))[0]), 0)
        for one, figure in zip(privacy.criteria, measured, strict=False)
    ]


def claim_of_configuration(
    engine: Engine,
    configuration: Configuration,
    found: Sequence[str],
    promise: Claim | None,
    *,
    matched: bool,
) -> Claim:
    """Return what a configuration requires.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
    found : sequence of str
        Columns of the release.
    promise : Claim or None
        What its manifest promises, if it has one: then its labels are read as that says.
    matched : bool
        See :func:`claim_of_manifest`.

    Raises
    ------
    DataError
        If the release lacks columns.
    ConfigurationError
        If a hierarchy that is needed cannot be read.
    """
    attributes = configuration.model_dump(mode="json")["attributes"]
    pseudonyms = configuration.output.pseudonyms.values()
    names = _with_role(attributes, "quasi_identifier")
    others = {*attributes, *pseudonyms} - set(names)
    required = _requirements(
        engine,
        attributes,
        configuration.privacy,
        published_columns(names, [name for name in found if name not in others]),
        configuration.evaluate.risk,
        pseudonyms,
        matched=matched,
    )
    required = replace(required, pseudonyms=tuple(one for one in pseudonyms if one in found))
    if promise is None:
        return Claim(
            **vars(required),
            missing_markers=configuration.input.missing_markers,
            drops_missing=configuration.missing == "drop",
        )
    if promise.holder is not None:
        required = required.by_holder(promise.holder)
    # What was done with missing values is no matter of what is required now.
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
    """Return what configured attributes and privacy ask for."""
    sensitive = _with_role(attributes, "sensitive")
    as_they_came = sensitive + _with_role(attributes, "insensitive")
    names = _with_role(attributes, "quasi_identifier")
    # Whatever the style; and an identifier may be called like a column that one would generate.
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
    return tuple(name for name, one in attributes.items() if one["role"] == role)


def _columns_of(name: str) -> tuple[str, ...]:
    """Return the columns that may describe a quasi-identifier, in any style."""
    return name, f"{name}_min", f"{name}_max", f"{name}_missing"


def _hierarchies(
    engine: Engine,
    attributes: Mapping[str, Any],
    privacy: PrivacyOptions,
    *,
    matched: bool,
    agreed: Mapping[str, str] | None = None,
) -> dict[str, Hierarchy]:
    """Read the hierarchies that are needed: their files may have stayed where the run was."""
    by_hierarchy = {
        one.attribute for one in privacy.criteria if one.kind == "hierarchical distance"
    }
    matched = matched or privacy.delta_presence is not None
    paths = {
        name: one["hierarchy"]
        for name, one in attributes.items()
        if isinstance(one.get("hierarchy"), str)
        and (name in by_hierarchy or (matched and one["role"] == "quasi_identifier"))
    }
    return read_hierarchy_files(engine.files, paths, agreed)


def published_columns(names: Sequence[str], found: Sequence[str]) -> list[str]:
    """Return the published columns of quasi-identifiers, whatever the style."""
    columns: list[str] = []
    lacking = []
    for name in names:
        own = [column for column in _columns_of(name) if column in found]
        if name not in own and not {*_columns_of(name)[1:3]} <= set(own):
            lacking.append(name)
        columns += own
    if lacking:
        raise DataError(
            f"release: lacks the published columns {', '.join(map(repr, lacking))} (or "
            "<name>_min and <name>_max). Check their spelling"
        )
    return columns
