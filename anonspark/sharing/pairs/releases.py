"""Attack releases together, from their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import Any

from anonspark.config import Configuration
from anonspark.core.labels import Kind
from anonspark.engine.protocol import Engine, Table
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.labels.regions import published_attributes
from anonspark.progress import report_step
from anonspark.redaction import Redacted, redact
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.originals import open_by_suffix, open_original
from anonspark.sharing.pairs.classes import ReadRelease, compatible_pairs, read_cells
from anonspark.sharing.pairs.figures import (
    Diversity,
    PairFigures,
    bound_pairs,
    figures_of_pairs,
)
from anonspark.sharing.pairs.original import (
    PairCandidates,
    attributes_of_all,
    count_pair_candidates,
    leaves_of,
)
from anonspark.sharing.pairs.relation import People, Relation, Statement, relation_of
from anonspark.verification.audit import audit_opened
from anonspark.verification.claims.roles import Roles
from anonspark.verification.opening import OpenedRelease, open_release
from anonspark.verification.result import Verification

_LEAST_VALUES = 2


@dataclass(frozen=True, repr=False)
class PairVerification(Redacted):
    """What two releases reveal together.

    ``relation`` is that of their people, ``k`` the number of people among whom each should be
    hidden. ``common`` are quasi-identifiers of both, ``payload`` columns that both publish
    unchanged. ``original`` is None without it. ``failures`` and ``warnings`` have one sentence
    each.
    """

    first: str
    second: str
    relation: Relation
    k: int
    common: list[str]
    payload: list[str]
    figures: PairFigures
    original: PairCandidates | None
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """Return all figures as plain values."""
        return {
            "first": redact(self.first),
            "second": redact(self.second),
            "relation": self.relation,
            "k": self.k,
            "common": self.common,
            "payload": self.payload,
            **asdict(self.figures),
            "original": None if self.original is None else asdict(self.original),
            "failures": list(map(redact, self.failures)),
            "warnings": list(map(redact, self.warnings)),
        }


@dataclass(frozen=True, repr=False)
class JointVerification(Redacted):
    """The result for the files of several releases, of each by itself and of every two."""

    releases: list[Verification]
    pairs: list[PairVerification]

    @property
    def failures(self) -> list[str]:
        """What does not hold, one sentence each."""
        texts = [text for item in self.releases for text in item.failures]
        return texts + [text for item in self.pairs for text in item.failures]

    @property
    def warnings(self) -> list[str]:
        """What holds, but may mean less than it seems to."""
        texts = [text for item in self.releases for text in item.warnings]
        return texts + [text for item in self.pairs for text in item.warnings]

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not self.failures

    def require(self) -> JointVerification:
        """Return this verification, or raise GuaranteeError with everything that does not hold."""
        if self.failures:
            raise GuaranteeError("\n".join(self.failures))
        return self

    def as_dict(self) -> dict[str, object]:
        """Return all figures as plain values, for JSON."""
        return {
            "holds": self.holds,
            "failures": list(map(redact, self.failures)),
            "warnings": list(map(redact, self.warnings)),
            "releases": [item.as_dict() for item in self.releases],
            "pairs": [item.as_dict() for item in self.pairs],
        }


@dataclass(frozen=True)
class Attack:
    """The settings of a joint attack on releases.

    ``said`` is how their people are related if manifests do not show it, ``joint_k`` the number of
    people among whom each should be hidden, or None for that of the manifests. ``original`` is a
    table or path. ``population`` and ``signers`` are those of
    :func:`~anonspark.verification.audit.audit_release`.
    """

    said: Statement | None = None
    joint_k: int | None = None
    original: str | Table | None = None
    population: str | None = None
    signers: str | None = None


def audit_releases(
    engine: Engine,
    paths: Sequence[str],
    configuration: Configuration | None = None,
    *,
    roles: Roles | None = None,
    attack: Attack | None = None,
) -> JointVerification:
    """Verify at least two releases, each by itself and every two of them together.

    ``configuration`` and ``roles`` are those of
    :func:`~anonspark.verification.audit.audit_release`: roles count for tables without a manifest.
    Raises ConfigurationError if a release is named twice, publishes means, or the relation of their
    people is unknown, and DataError if releases cannot be compared, people cannot be related as
    stated, or there are too many classes or pairs of classes.

    The jobs of :func:`~anonspark.verification.audit.audit_release` for each release. For every two
    those of :func:`~anonspark.sharing.pairs.classes.read_cells` and, with the original, one over
    its quasi-identifiers. Pairs and bounds are made by the driver, with 100 bytes a pair of classes
    and payload.
    """
    attack = attack or Attack()
    if attack.joint_k is not None and attack.joint_k < 2:
        raise ConfigurationError(
            f"--joint-k: found {attack.joint_k}. Expected a number of people, at least 2"
        )
    _require_two(paths)
    report_step("reading the files")
    opened = [_open(engine, path, configuration, roles, attack.signers) for path in paths]
    _require_different(opened)
    people = [People(release.manifest, release.rows(engine)) for release in opened]
    relations = {
        (i, j): relation_of(people[i], people[j], attack.said)
        for i, j in combinations(range(len(opened)), 2)
    }
    partial = _partial(opened, relations)
    releases = [
        audit_opened(
            engine,
            release,
            original=None if index in partial else attack.original,
            population=attack.population,
        )
        for index, release in enumerate(opened)
    ]
    pairs = []
    for (i, j), relation in relations.items():
        report_step(f"attacking releases {i + 1} and {j + 1} together")
        with engine.reading((opened[i].where, opened[j].where), key=""):
            pair = _attack_pair(engine, opened[i], opened[j], relation, attack)
        whole = not partial & {i, j}
        pairs.append(
            replace(
                pair,
                failures=_failures(pair, whole=whole),
                warnings=_warnings(pair, whole=whole),
            )
        )
    return JointVerification(releases, pairs)


def _require_two(paths: Sequence[str]) -> None:
    """Raise ConfigurationError unless there are two different paths."""
    addresses = [path.rstrip("/") for path in paths]
    twice = sorted({path for path in addresses if addresses.count(path) > 1})
    if twice:
        raise ConfigurationError(f"--with: found {twice[0]} twice. Name each release once")
    if len(addresses) < 2:
        raise ConfigurationError("--with: found one release. Expected at least two")


def _require_different(opened: Sequence[OpenedRelease]) -> None:
    """Raise ConfigurationError if a release is a copy of another."""
    with_manifest = [item for item in opened if item.manifest is not None]
    for item, other in combinations(with_manifest, 2):
        if item.manifest == other.manifest:
            raise ConfigurationError(
                f"--with: {other.path} is a copy of {item.path}. Name each release once"
            )


def _open(
    engine: Engine,
    path: str,
    configuration: Configuration | None,
    roles: Roles | None,
    signers: str | None,
) -> OpenedRelease:
    """Open a release. A table without a manifest gets the roles of the columns that it has."""
    has_manifest = engine.files.exists(f"{path.rstrip('/')}/{MANIFEST}")
    chosen = None
    if not has_manifest and roles is not None:
        with engine.reading((path,), key=""):
            names = open_by_suffix(engine, path, "release").schema.names
        chosen = roles.among(names)
        if not chosen.quasi_identifiers:
            raise DataError(
                f"{path}: has none of the quasi-identifiers that are named. Check their spelling"
            )
    return open_release(engine, path, configuration, roles=chosen, matched=True, signers=signers)


def _partial(
    opened: Sequence[OpenedRelease], relations: Mapping[tuple[int, int], Relation]
) -> set[int]:
    """Return the indices of releases that lack some people of the original."""
    partial = {
        index
        for index, release in enumerate(opened)
        if release.manifest is not None
        # Null if few are withheld.
        and (
            release.manifest.recipient.get("where")
            or release.manifest.recipient.get("rows_withheld", 0) != 0
        )
    }
    for (i, j), relation in relations.items():
        if relation == "second inside first":
            partial.add(j)
        elif relation == "first inside second":
            partial.add(i)
    return partial


def _attack_pair(
    engine: Engine, first: OpenedRelease, other: OpenedRelease, relation: Relation, attack: Attack
) -> PairVerification:
    """Bound what two releases reveal together, and look up the original if it is given."""
    original = attack.original
    paths = (original,) if isinstance(original, str) else ()
    if isinstance(original, str):
        larger = other if relation == "first inside second" else first
        described = larger.manifest or Manifest({})
        with engine.reading(paths, key="--original: "):
            original = open_original(engine, original, described)
    attributes = attributes_of_all((first, other), None if original is None else original.schema)
    releases = [
        ReadRelease(release.path, release.data, release.claim, rows, _raw_kinds(release.manifest))
        for release, rows in zip((first, other), attributes, strict=True)
    ]
    hierarchies = [leaves_of(release) for release in (first, other)]
    cells = read_cells(*releases)
    compatible = compatible_pairs(releases, cells, hierarchies)
    bounded, rounds = bound_pairs(cells, compatible, relation)
    k = _joint_k(first, other, attack.joint_k)
    diversity = {name: _diversity(name, (first.manifest, other.manifest)) for name in cells.values}
    figures = figures_of_pairs(cells, compatible, bounded, rounds, k=k, diversity=diversity)
    candidates = None
    if original is not None:
        with engine.reading(paths, key="--original: "):
            candidates = count_pair_candidates(
                releases,
                cells,
                bounded,
                original,
                hierarchies,
                k=k,
                required=[name for name, bound in diversity.items() if bound.required],
                missing_markers=first.claim.missing_markers,
            )
    names = [[attribute.name for attribute in side] for side in attributes]
    common = [name for name in names[0] if name in names[1]]
    return PairVerification(
        first.path, other.path, relation, k, common, list(cells.payload), figures, candidates
    )


def _raw_kinds(manifest: Manifest | None) -> dict[str, Kind]:
    """Return what the numbers were that rules of intervals made labels of."""
    if manifest is None:
        return {}
    types = {str(item["name"]): str(item.get("type") or "") for item in manifest.quasi_identifiers}
    return {
        item.name: "integer" if types[item.name].startswith(("int", "uint")) else "float"
        for item in published_attributes(manifest)
        if item.rule == "intervals"
        and types[item.name].startswith(("int", "uint", "float", "double", "half"))
    }


def _collusion(manifest: Manifest | None) -> Mapping[str, Any]:
    """Return what a plan promised of joint classes."""
    return {} if manifest is None else manifest.recipient.get("collusion") or {}


def _joint_k(first: OpenedRelease, other: OpenedRelease, joint_k: int | None) -> int:
    """Return the k of both together: that of the command line, of plans, or the smaller one."""
    if joint_k is not None:
        return joint_k
    promised = [_collusion(release.manifest).get("k") for release in (first, other)]
    ks = [int(k) for k in promised if k is not None]
    return min(ks or [release.claim.privacy.k for release in (first, other)])


def _diversity(name: str, manifests: Sequence[Manifest | None]) -> Diversity:
    """Return how many values the manifests require a pair of classes to have.

    >>> _diversity("pay", [None, None])
    Diversity(least=2, required=False)
    """
    by_attribute = [_collusion(manifest).get("l_diversity") or {} for manifest in manifests]
    required = [int(item[name]) for item in by_attribute if name in item]
    return Diversity(max(required, default=_LEAST_VALUES), bool(required))


def _failures(pair: PairVerification, *, whole: bool) -> list[str]:
    """List what recipients of both releases can certainly infer, in counts.

    With ``whole`` both releases hold all original records: otherwise the original proves nothing.
    """
    where = f"{pair.first} and {pair.second} together"
    figures, original = pair.figures, pair.original
    failures = []
    if figures.breaches:
        absent = figures.breaches_absent
        of_them = f", {absent:,} of them by their absence from one" if absent else ""
        failures.append(
            f"{where}: {figures.breaches:,} pairs of classes{of_them} certainly hold "
            f"{figures.persons_in_breaches:,} people among fewer than k = {pair.k}. A recipient of "
            "both can single them out. Withdraw one, or make both of one plan with strategy: nested"
        )
    if figures.disclosed_required:
        failures.append(
            f"{where}: {figures.disclosed_required:,} pairs of classes certainly hold a person and "
            "leave fewer values of a sensitive attribute than collusion.l_diversity requires. "
            "Withdraw one, or make both of one plan with strategy: nested"
        )
    if original is not None and original.persons_below_k and whole:
        failures.append(
            f"{where}: {original.persons_below_k:,} of {original.records:,} original records match "
            f"fewer than k = {pair.k} people. A recipient of both who knows their "
            "quasi-identifiers can single them out. Withdraw one, or make both of one plan with "
            "strategy: nested"
        )
    if original is not None and original.persons_disclosed_required and whole:
        failures.append(
            f"{where}: of {original.persons_disclosed_required:,} of {original.records:,} original "
            "records one value of a sensitive attribute is left, and collusion.l_diversity "
            "requires more. Withdraw one, or make both of one plan with strategy: nested"
        )
    return failures


def _warnings(pair: PairVerification, *, whole: bool) -> list[str]:
    """List what the files leave undecided. See :func:`_failures`."""
    where = f"{pair.first} and {pair.second} together"
    warnings = []
    if pair.relation == "unknown":
        warnings.append(
            f"{where}: it is unknown whether their people are the same, so that nothing is proven. "
            "Say --same-people or --inside if you know it"
        )
    if pair.figures.possible and pair.original is None:
        warnings.append(
            f"{where}: {pair.figures.possible:,} pairs of classes can hold fewer than k = "
            f"{pair.k} people, if they hold any. The files do not decide it: --original or the "
            "ledger does"
        )
    if pair.original is not None and pair.original.persons_below_k and not whole:
        warnings.append(
            f"{where}: {pair.original.persons_below_k:,} of {pair.original.records:,} original "
            f"records match fewer than k = {pair.k} people, if they are in both releases. One of "
            "them holds a part of the people only, so that this does not decide it: the ledger does"
        )
    return warnings
