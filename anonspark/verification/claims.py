"""What a release is verified against: its manifest's promise, a configuration, or named roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from anonspark.config import Configuration
from anonspark.config.coding import CODING
from anonspark.config.evaluate import RiskOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.criterion import Criterion
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.section_owners import owner_of
from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.protocol import Engine
from anonspark.errors import DataError, GuaranteeError
from anonspark.release.layout import LEFT_OUT
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.regions import PublishedAttribute, published_attributes
from anonspark.verification.left_out import most_left_out, read_left_out
from anonspark.verification.measures import Uncertainty
from anonspark.verification.release_files import audit_release_files
from anonspark.verification.statements import Statements, read_statements

_DEFAULT_MARKERS = ("", "?")


@dataclass(frozen=True)
class Claim:
    """What a release is verified against.

    Parameters
    ----------
    privacy : PrivacyOptions
        The criteria.
    columns : list of str
        Published columns that form classes.
    names : tuple of str
        The quasi-identifiers.
    attributes : tuple of PublishedAttribute or None
        How their columns are read; None where that has to be seen from the table.
    sensitive : tuple of str
        Sensitive attributes.
    orders : mapping of str to sequence of str
        Declared orders of sensitive attributes.
    hierarchies : mapping of str to Hierarchy
        Those that come from files and could be read.
    missing_markers : sequence of str
        Texts that mean missing.
    drops_missing : bool
        Whether records with a missing quasi-identifier were left out.
    rows_left_out : int
        Records that found no class and were left out, at most.
    left_out : pyarrow.Table or None
        Counts of their sensitive values.
    suppressed : int or None
        Records of a table of another tool that are suppressed as a whole; None where nobody said
        how they look.
    uncertainty : mapping of str to Uncertainty
        Of the attributes whose distribution in the whole input is not known.
    fingerprint : str or None
        Of the records that were published.
    risk : RiskOptions
        From where on a risk is called high.
    publishable : tuple of str or None
        All columns that a release may have; None where nobody said.
    failures : tuple of str
        What was found not to hold while the promise was read.
    statements : Statements or None
        What manifest and metrics say, to be held against what is counted.
    as_they_came : tuple of str
        Attributes that are published so.
    pseudonyms : tuple of str
        The column that holds pseudonyms of people, or none.
    units : mapping of int to int or None
        Classes of each number of people, as the run counted them; None where it did not.
    criteria_of_people : mapping of Criterion to float or None
        Figures of the criteria, as the run measured them where it counted people for them; None
        where it did not.
    holder : str or None
        The column of a union that tells who held a record: its criteria are those of each holder's
        records.
    """

    privacy: PrivacyOptions
    columns: list[str]
    names: tuple[str, ...]
    attributes: tuple[PublishedAttribute, ...] | None = None
    sensitive: tuple[str, ...] = ()
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)
    missing_markers: Sequence[str] = _DEFAULT_MARKERS
    drops_missing: bool = False
    rows_left_out: int = 0
    left_out: pa.Table | None = None
    suppressed: int | None = None
    uncertainty: Mapping[str, Uncertainty] = field(default_factory=dict)
    fingerprint: str | None = None
    risk: RiskOptions = field(default_factory=RiskOptions)
    publishable: tuple[str, ...] | None = None
    failures: tuple[str, ...] = ()
    statements: Statements | None = None
    as_they_came: tuple[str, ...] = ()
    pseudonyms: tuple[str, ...] = ()
    units: Mapping[int, int] | None = None
    criteria_of_people: Mapping[Criterion, float] | None = None
    holder: str | None = None

    @property
    def warnings(self) -> list[str]:
        """Warnings of what is believed of the release."""
        return [] if self.statements is None else self.statements.warnings()

    @property
    def people_columns(self) -> tuple[str, ...]:
        """The published columns that tell people apart; none where the files do not."""
        if self.pseudonyms:
            return self.pseudonyms
        unit = tuple(self.privacy.unit)
        return unit if all(name in self.as_they_came for name in unit) else ()


def claim_of_manifest(engine: Engine, release: str, manifest: Manifest, *, matched: bool) -> Claim:
    """Return what the manifest of a release promises.

    Parameters
    ----------
    engine : Engine
    release : str
        Its directory.
    manifest : Manifest
    matched : bool
        Whether records will be matched with the release, which takes all hierarchies.

    Raises
    ------
    GuaranteeError
        If the manifest is damaged, or says what cannot be.
    ConfigurationError
        If a hierarchy that is needed cannot be read.

    Notes
    -----
    The files of the release are looked at, and what is said in them:
    :func:`~anonspark.verification.release_files.audit_release_files`,
    :func:`~anonspark.verification.statements.read_statements`.
    """
    described = claim_of_description(
        engine, manifest, matched=matched, where=f"{release}/{MANIFEST}"
    )
    failures = audit_release_files(engine, release, manifest)
    statements = read_statements(
        engine,
        release,
        manifest.document,
        described.privacy,
        described.risk,
        described.hierarchies,
    )
    failures += statements.contradictions()
    unreadable: tuple[type[Exception], ...] = (ValueError, *engine.failures)
    try:
        left_out = read_left_out(engine, release, manifest)
    except unreadable as error:
        told = f"{release}/{LEFT_OUT}: cannot be read; restore the release or publish it again"
        raise GuaranteeError("\n".join([*failures, told])) from error
    return replace(
        described,
        rows_left_out=most_left_out(manifest),
        left_out=left_out.values,
        uncertainty=left_out.uncertainty,
        fingerprint=manifest.fingerprint,
        failures=(*failures, *left_out.failures),
        statements=statements,
        units=statements.units,
        criteria_of_people=_of_people(statements),
    )


def claim_to_measure(engine: Engine, release: str, manifest: Manifest) -> Claim:
    """Return what a release is measured by that its own run has just proven.

    Parameters
    ----------
    engine : Engine
    release : str
    manifest : Manifest

    Raises
    ------
    GuaranteeError, ConfigurationError
        As of :func:`claim_of_description`.

    Notes
    -----
    Of the files only what is told of records left out is read.
    """
    left_out = read_left_out(engine, release, manifest)
    return replace(
        claim_of_description(engine, manifest, matched=True, where=f"{release}/{MANIFEST}"),
        rows_left_out=most_left_out(manifest),
        left_out=left_out.values,
        uncertainty=left_out.uncertainty,
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
            "not one of this version; the file is damaged, or another version wrote it"
        ) from error
    except DataError as error:
        raise GuaranteeError(
            f"{where}: published.quasi_identifier_columns: found others than those of "
            "published.quasi_identifiers; restore the release or publish it again"
        ) from error
    attributes = manifest.attributes
    pseudonyms = tuple((configured["output"].get("pseudonyms") or {}).values())
    return Claim(
        privacy=privacy,
        columns=manifest.quasi_identifier_columns,
        names=_with_role(attributes, "quasi_identifier"),
        attributes=published,
        sensitive=_with_role(attributes, "sensitive"),
        orders=_orders(attributes),
        hierarchies=_hierarchies(
            engine,
            attributes,
            privacy,
            matched=matched,
            agreed=(
                owner_of(CODING).agreed_digests(manifest.coding["document"])
                if manifest.coding
                else {}
            ),
        ),
        missing_markers=manifest.missing_markers,
        drops_missing=manifest.drops_missing,
        risk=risk,
        publishable=_publishable(attributes) + pseudonyms,
        as_they_came=_with_role(attributes, "sensitive") + _with_role(attributes, "insensitive"),
        pseudonyms=pseudonyms,
        holder=manifest.holder_column,
    )


def _of_people(statements: Statements) -> dict[Criterion, float] | None:
    """Return the figures that a run measured by people; None where it did not."""
    figures = statements.criteria_of_people
    return (
        None if figures is None else dict(zip(statements.privacy.criteria, figures, strict=False))
    )


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
    names = _with_role(attributes, "quasi_identifier")
    pseudonyms = tuple(configuration.output.pseudonyms.values())
    others = {*attributes, *pseudonyms} - set(names)
    required = Claim(
        privacy=configuration.privacy,
        columns=published_columns(names, [name for name in found if name not in others]),
        names=names,
        sensitive=_with_role(attributes, "sensitive"),
        orders=_orders(attributes),
        hierarchies=_hierarchies(engine, attributes, configuration.privacy, matched=matched),
        missing_markers=configuration.input.missing_markers,
        drops_missing=configuration.missing == "drop",
        risk=configuration.evaluate.risk,
        publishable=_publishable(attributes) + pseudonyms,
        pseudonyms=tuple(one for one in pseudonyms if one in found),
        as_they_came=_with_role(attributes, "sensitive") + _with_role(attributes, "insensitive"),
    )
    if promise is None:
        return required
    if promise.holder is not None:
        required = _by_holder(required, promise.holder)
    same = set(required.names) == set(promise.names)
    return replace(
        required,
        attributes=promise.attributes if same else None,
        # What was done with missing values is no matter of what is required now.
        missing_markers=promise.missing_markers,
        drops_missing=promise.drops_missing,
        failures=promise.failures,
        rows_left_out=promise.rows_left_out,
        left_out=promise.left_out,
        uncertainty=promise.uncertainty,
        fingerprint=promise.fingerprint,
        statements=promise.statements,
        units=promise.units,
        criteria_of_people=promise.criteria_of_people,
    )


def _by_holder(claim: Claim, holder: str) -> Claim:
    """Return the claim for a union whose classes are each of one holder."""
    return replace(
        claim,
        columns=[*claim.columns, holder],
        names=(*claim.names, holder),
        publishable=(*(claim.publishable or ()), holder),
        holder=holder,
    )


def _with_role(attributes: Mapping[str, Any], role: str) -> tuple[str, ...]:
    return tuple(name for name, one in attributes.items() if one["role"] == role)


def _publishable(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return all columns that a release may have, whatever its style."""
    names = list(_with_role(attributes, "sensitive") + _with_role(attributes, "insensitive"))
    for name in _with_role(attributes, "quasi_identifier"):
        names += [name, f"{name}_min", f"{name}_max", f"{name}_missing"]
    # An identifier may be called like a column that a style would generate.
    identifiers = _with_role(attributes, "identifier")
    return tuple(name for name in names if name not in identifiers)


def _orders(attributes: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    return {
        name: one["order"]
        for name, one in attributes.items()
        if one["role"] == "sensitive" and one.get("order")
    }


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
        expected = (name, f"{name}_min", f"{name}_max", f"{name}_missing")
        own = [column for column in expected if column in found]
        if name not in own and not {f"{name}_min", f"{name}_max"} <= set(own):
            lacking.append(name)
        columns += own
    if lacking:
        raise DataError(
            f"release: lacks the published columns {', '.join(map(repr, lacking))} (or "
            "<name>_min and <name>_max); check their spelling"
        )
    return columns
