"""Read the release whose mapping a run applies, compare it with the new table, and encode it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from anonspark.config import Configuration
from anonspark.config.models import FullDomainOptions, MappingOptions
from anonspark.core.encoding import QuasiIdentifier
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import require_levels
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError
from anonspark.labels import region_matching
from anonspark.labels.regions import leaves_by_label, published_attributes
from anonspark.models.full_domain import FullDomain
from anonspark.models.mapped_regions import MappedRegions, read_class_regions, widened
from anonspark.models.mapping import MappedRelease
from anonspark.pipeline.tasks import ModelMaker
from anonspark.release.manifest import MANIFEST, Manifest, read_manifest
from anonspark.release.metric_tables import read_metrics

_KEY = "model.release"


@dataclass(frozen=True)
class AppliedMapping:
    """The parts of an earlier release that a run needs.

    The ranges of the ``quasi_identifiers`` of the new table hold all regions.
    """

    quasi_identifiers: tuple[QuasiIdentifier, ...]
    make_model: ModelMaker


def apply_mapping(
    engine: Engine,
    options: MappingOptions,
    configuration: Configuration,
    quasi_identifiers: tuple[QuasiIdentifier, ...],
    hierarchies: Mapping[str, Hierarchy],
) -> AppliedMapping:
    """Read the release that ``model.release`` names, as a model that maps new records to it.

    ``quasi_identifiers`` are those of the new table, and ``hierarchies`` come from files. Raises
    ConfigurationError if there is no release, or it has other quasi-identifiers, and DataError if
    it cannot be read, or has more than 1,000,000 classes. One job over the published records of the
    release, whose different classes are collected.
    """
    path = options.release.rstrip("/")
    manifest = read_mappable(engine.files, options)
    _require_alike(manifest, quasi_identifiers)
    if str(manifest.configuration["model"]["name"]) in ("full-domain", "rho-gain"):
        return AppliedMapping(quasi_identifiers, _recoding(engine, manifest, options, path))
    if manifest.style == "mean":
        raise ConfigurationError(
            f"{_KEY}: the release publishes means, which have no regions. Name one of style "
            "interval or bounds"
        )
    with engine.reading((path,), f"{_KEY}: "):
        attributes = published_attributes(manifest)
        classes = region_matching.collect_classes(
            engine.published(f"{path}/data", manifest.data_format), attributes
        )
        leaves = {name: leaves_by_label(hierarchy) for name, hierarchy in hierarchies.items()}
        covered = read_class_regions(classes, attributes, leaves)
    configured = configuration.attributes
    wide = tuple(
        widened(identifier, regions, declared=configured[identifier.name].order is not None)
        for identifier, regions in zip(quasi_identifiers, covered.regions, strict=True)
    )
    regions = MappedRegions.of(covered, wide)
    if not regions.number:
        raise ConfigurationError(
            f"{_KEY}: no class of the release covers a region of the new table. Expected at least "
            "one. Name another release"
        )
    return AppliedMapping(wide, partial(MappedRelease, options, regions))


def read_mappable(files: Files, options: MappingOptions) -> Manifest:
    """Read the manifest of the release that ``model.release`` names. No job.

    Raises ConfigurationError if there is no release, or it has no mapping, or too many classes.
    """
    path = options.release.rstrip("/")
    if not files.exists(f"{path}/{MANIFEST}"):
        raise ConfigurationError(
            f"{_KEY}: found no release at {path} (it has no {MANIFEST}). Check the path"
        )
    manifest = read_manifest(files, path)
    if manifest.parts:
        raise ConfigurationError(
            f"{_KEY}: the release is a union, whose parts each had a mapping of their own. Name "
            "one of them"
        )
    classes, limit = manifest.summary.get("published_classes") or 0, region_matching.MOST_CLASSES
    if classes > limit and manifest.configuration["model"]["name"] != "full-domain":
        raise ConfigurationError(
            f"{_KEY}: the release has {classes:,} classes, whose regions would travel to every "
            f"task. Expected at most {limit:,}. Name one with a larger k, or one by full-domain"
        )
    return manifest


def _require_alike(manifest: Manifest, quasi_identifiers: Sequence[QuasiIdentifier]) -> None:
    """Raise ConfigurationError unless release and table have the same quasi-identifiers."""
    before = {item["name"]: item["kind"] for item in manifest.quasi_identifiers}
    now = {identifier.name: identifier.kind for identifier in quasi_identifiers}
    if list(before) != list(now):
        raise ConfigurationError(
            f"{_KEY}: the release has the quasi-identifiers {', '.join(before)}. The configuration "
            f"has {', '.join(now)}. Expected the same in the same order. Correct attributes"
        )
    problems = [
        f"{_KEY}: {name} is of kind {kind} in the release, and {now[name]} now. Expected the same. "
        f"Correct attributes.{name}"
        for name, kind in before.items()
        if kind != now[name]
    ]
    with_hierarchy = {
        identifier["name"]
        for identifier in manifest.quasi_identifiers
        if identifier.get("hierarchy")
    }
    problems += [
        f"{_KEY}: {identifier.name} has {'a' if identifier.name in with_hierarchy else 'no'} "
        "hierarchy in the release. Expected the same now. Correct "
        f"attributes.{identifier.name}.hierarchy"
        for identifier in quasi_identifiers
        if (identifier.hierarchy is not None) != (identifier.name in with_hierarchy)
    ]
    if problems:
        raise ConfigurationError(*problems)


def _recoding(engine: Engine, manifest: Manifest, options: MappingOptions, path: str) -> ModelMaker:
    """Return the maker of a model that recodes to the levels of a full-domain release."""
    if options.unfit == "merge":
        raise ConfigurationError(
            "model.unfit: found 'merge', but model.release was made by full-domain recoding, whose "
            "classes are those of levels. Expected 'suppress' or 'refuse'. Choose one"
        )
    rounds = read_metrics(engine.files, path, "rounds")
    if len(rounds) > 1 or str(manifest.configuration["model"]["name"]) == "rho-gain":
        raise ConfigurationError(
            f"{_KEY}: the release was made by rho-gain, each of whose rounds has levels of its "
            "own. Expected one coding. Name a release by full-domain"
        )
    (levels_text,) = (str(row["levels"]) for row in rounds)
    names = [str(identifier["name"]) for identifier in manifest.quasi_identifiers]
    levels = dict(zip(names, require_levels(levels_text, names, _KEY), strict=True))
    limit = 0.0 if options.unfit == "refuse" else 1.0
    fixed = FullDomainOptions(name="full-domain", levels=[levels], suppression_limit=limit)
    return partial(FullDomain, fixed)
