"""Map the values of hierarchies to the labels of a full-domain recoding.

All values of a hierarchy's file are mapped, whether they occur in the data or not. Of a rule only
published labels are: others would show which values the data lack.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from anonspark.core.grids import day_text
from anonspark.core.labels import MISSING, hierarchy_label, require_levels
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError, DataError
from anonspark.labels.regions import (
    OrderedRegion,
    PublishedAttribute,
    UnreadableLabelError,
    published_attributes,
    read_label,
)
from anonspark.reading.attributes import OPTION, HierarchyFile, read_hierarchies
from anonspark.release.manifest import Manifest, read_manifest
from anonspark.release.metric_tables import read_metrics


@dataclass(frozen=True)
class MappedValue:
    """A value, or all values of an interval, with the label that is published for it in a round.

    ``level`` is that of the hierarchy, 0 for unchanged values. ``value`` is None if the label
    itself describes its values. ``low`` and ``high`` are the ends of a rule's interval or period,
    or None.
    """

    attribute: str
    round: int
    level: int
    value: str | None
    low: str | None
    high: str | None
    high_included: bool | None
    label: str


COLUMNS = tuple(MappedValue.__dataclass_fields__)
"""Columns of the mapping."""


@dataclass(frozen=True)
class AppliedLevels:
    """The level of each attribute by round, and the labels by round and name of an attribute."""

    attributes: tuple[PublishedAttribute, ...]
    levels: Mapping[int, tuple[int, ...]]
    published: Mapping[tuple[int, str], set[str]]


def read_mapping(engine: Engine, path: str, paths: Mapping[str, str]) -> list[MappedValue]:
    """List the label of each value in a release with levels, by attribute and round.

    ``paths`` are files of hierarchies by attribute. Others are read from where the manifest says.
    The result is ordered by attribute, as configured, then by round, then as the hierarchy is, and
    has no missing values. One job for each quasi-identifier, over the table of classes. Raises
    ConfigurationError if the release has no levels, or a hierarchy cannot be read or does not
    belong to the attribute, and DataError if tables of metrics are missing, or a hierarchy did not
    make the labels.
    """
    directory = path.rstrip("/")
    manifest = read_manifest(engine.files, directory)
    applied = _levels_of(engine, directory, manifest)
    from_files = {
        name: attribute["hierarchy"]
        for name, attribute in manifest.attributes.items()
        if attribute.get("role") == "quasi_identifier"
        and isinstance(attribute.get("hierarchy"), str)
    }
    unknown = sorted(set(paths) - set(from_files))
    if unknown:
        raise ConfigurationError(
            f"--hierarchy: found {', '.join(map(repr, unknown))}. Expected quasi-identifiers of "
            "the release with a hierarchy of a file. Leave them out"
        )
    hierarchies = read_hierarchies(engine.files, from_files | dict(paths), OPTION)
    mapped: list[MappedValue] = []
    for index, attribute in enumerate(applied.attributes):
        for number, levels in sorted(applied.levels.items()):
            labels = applied.published[number, attribute.name]
            hierarchy = hierarchies.get(attribute.name)
            level = levels[index]
            if hierarchy is None:
                mapped += _of_rule(attribute, number, level, labels)
            else:
                mapped += _of_file(attribute.name, number, level, labels, hierarchy)
    return mapped


def as_rows(mapped: Sequence[MappedValue]) -> list[dict[str, object]]:
    """Return the mapping as dictionaries, with None for what is not known."""
    return [asdict(row) for row in mapped]


def _levels_of(engine: Engine, path: str, manifest: Manifest) -> AppliedLevels:
    """Read the levels of each round, and the labels that its classes have."""
    attributes = published_attributes(manifest)
    names = [attribute.name for attribute in attributes]
    for table in ("rounds", "classes"):
        # A union has neither.
        if not manifest.parts and not engine.files.exists(f"{path}/metrics/{table}"):
            raise DataError(
                f"{path}: lacks metrics/{table}, which lists the levels. Take the release as it "
                "was published"
            )
    rounds = [] if manifest.parts else read_metrics(engine.files, path, "rounds")
    if not rounds or any(row.get("levels") is None for row in rounds):
        raise ConfigurationError(
            f"{path}: its classes were made one by one, so that a value has no single label. "
            "Expected a release by full-domain or rho-gain. Name one"
        )
    levels = {int(row["round"]): require_levels(row["levels"], names, path) for row in rounds}
    published: dict[tuple[int, str], set[str]] = {
        (number, name): set() for number in levels for name in names
    }
    classes = engine.published(f"{path}/metrics/classes", "parquet")
    for name in names:
        # Under this name no engine takes the column for an expression.
        labels = classes.select({"round": "round", "label": f"{name}_min"})
        for row in labels.aggregate(["round", "label"]).collect().to_pylist():
            if row["label"] is not None and row["round"] in levels:
                published[row["round"], name].add(str(row["label"]))
    return AppliedLevels(attributes, levels, published)


def _of_file(
    name: str, number: int, level: int, published: set[str], file: HierarchyFile
) -> list[MappedValue]:
    """Map every value in a hierarchy's file to its label at a level."""
    hierarchy = file.hierarchy
    if level > hierarchy.height:
        raise file.refused(f"it has no level {level}")
    codes = np.arange(len(hierarchy.leaves), dtype=np.int64)
    plain = hierarchy.labels(level, codes).tolist()
    labels = [hierarchy_label(label, with_missing=False) for label in plain]
    with_missing = [hierarchy_label(label, with_missing=True) for label in plain]
    if level == hierarchy.height and published.intersection(with_missing):
        labels = with_missing
    file.require_labels(published, labels)
    pairs = zip(hierarchy.leaves, labels, strict=True)
    return [
        MappedValue(name, number, level, value, None, None, None, label) for value, label in pairs
    ]


def _of_rule(
    attribute: PublishedAttribute, number: int, level: int, published: set[str]
) -> list[MappedValue]:
    """Map the values that the published labels of a rule describe, and no others."""
    mapped = []
    for label in published - {MISSING}:
        value: str | None = None
        ends: tuple[Any, Any, bool | None] = (None, None, None)
        order: Any = label
        if level == 0:
            value = json.loads(label) if label.startswith('"') else label
        try:
            region = read_label(label, attribute)
        except UnreadableLabelError:
            raise DataError(
                f"metrics/classes: a label of {attribute.name!r} cannot be read. Restore the "
                "release, or publish it again"
            ) from None
        if isinstance(region, OrderedRegion) and region.intervals:
            (interval,) = region.intervals
            order = interval.low
            if level and not attribute.is_code:
                text: Callable[[Any], str] = day_text if attribute.rule == "calendar" else str
                ends = text(interval.low), None, None
                if interval.high != math.inf:
                    ends = text(interval.low), text(interval.high), interval.high_included
        mapped.append((order, MappedValue(attribute.name, number, level, value, *ends, label)))
    return [row for _, row in sorted(mapped, key=lambda pair: pair[0])]
