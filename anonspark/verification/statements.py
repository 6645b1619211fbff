"""Compare the statements of manifest and metrics with each other and with counts.

A manifest is written by the run that made the release. A manifest that was changed or replaced
afterwards should not be believed. Everything that can be counted is counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import chain, product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark._version import __version__
from anonspark.config.evaluate import RiskOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.criterion import Criterion
from anonspark.core.figures import ENDS, OF_EVERY_RUN, TABLES, arrow_schema
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError, raise_if_limit_reached
from anonspark.release.class_bounds import (
    BoundsReader,
    hierarchy_labels,
    is_alike,
    type_of_name,
)
from anonspark.release.derived_figures import privacy_rows, risk_rows
from anonspark.release.derived_manifest import (
    columns_section,
    figures_of_gates,
    sections_of_summary,
)
from anonspark.release.layout import COMPANIONS, LEFT_OUT, OF_UNIONS, REPORT
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.metric_tables import read_parts
from anonspark.release.regions import leaves_by_label, published_attributes
from anonspark.release.risk import Attack, Floats, Sizes, risk_row
from anonspark.release.sections import Statement, owners
from anonspark.verification.class_table import (
    ClassLabels,
    ClassTable,
    class_schema,
    read_class_table,
)
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import MeasuredCriterion
from anonspark.verification.derived_tables import Claimed, Derivation, Within
from anonspark.verification.left_out import count_texts
from anonspark.verification.loss import Loss
from anonspark.verification.nodes import Counted, count_nodes, expected_nodes
from anonspark.verification.people import MeasuredUnits
from anonspark.verification.presence import Presence

Row = Mapping[str, Any]

# Without these no row of the table of nodes can be told from another one.
_NODES_NEED = ("round", "node", "levels", "classes", "min_class_size", "loss")

# Classes whose labels the driver takes.
_MOST_COUNTED = 200_000

# Sums of parts, and figures that were rounded on their way.
_TOLERANCE = 1e-12


# Sections that say how a release was made, not what it promises.
_SETTINGS = ("attributes", "evaluate", "execution", "input", "metrics", "model", "output", "report")

_OF_SIZES = (
    *("metrics/classes: size", "metrics/risk: figures of rounds", "metrics/rounds: classes"),
    *("metrics/rounds: classes_total", "metrics/rounds: dm", "metrics/rounds: dm_total"),
    *("metrics/rounds: mean_class_size", "metrics/rounds: mean_class_size_with_outliers"),
    *(f"manifest: summary.{name}" for name in ("classes", "dm", "aecs", "rule_b", "rule_gain")),
    *(f"manifest: summary.{name}_class_size" for name in ("mean", "median", "min", "max")),
    *("manifest: summary.baseline_classes", "manifest: summary.mean_class_size_with_suppressed"),
)
"""What follows from the sizes of classes, that of records with equal labels no label shows."""

_TYPES = "data: types of the columns that are published as they came"

_NEVER_PROVEN = (
    "data: order of classes, and of records in a class",
    "manifest: attempt",
    *(f"manifest: configuration.{key}" for key in _SETTINGS),
    "manifest: fingerprints.configuration",
    "manifest: fingerprints.input",
    "manifest: input_version",
    "manifest: published.quasi_identifiers",
    "manifest: published.sensitive_values",
    "manifest: run_id",
    "manifest: seconds",
    "manifest: started",
    "manifest: versions",
    "manifest: warnings",
)
"""Statements that no file of a release shows: only the run knows them."""


@dataclass(frozen=True)
class Statements:
    """The statements about a release.

    Parameters
    ----------
    release : str
        Its directory, for messages.
    manifest : mapping
        Sound in form.
    privacy : PrivacyOptions
    risk : RiskOptions
        Those of the manifest.
    tables : mapping of str to list of mapping
        Rows of the metrics that are there, by name of the table.
    unread : tuple of str
        Tables that are there and cannot be read, or have other columns than theirs.
    nodes : mapping
        What was counted of them in the table ``classes``.
    classes : ClassTable or None
        What that table says. None where there is none.
    labels : ClassLabels or None
        How the labels of the records are read. None where the manifest does not say it.
    claimed : set of str
        What was compared with bounds alone, as far as statements were compared by now:
        ``manifest: summary.rows_in``, ``metrics/rounds: loss``.
    """

    release: str
    manifest: Row
    privacy: PrivacyOptions
    risk: RiskOptions
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    nodes: Counted = field(default_factory=dict)
    classes: ClassTable | None = None
    labels: ClassLabels | None = None
    claimed: set[str] = field(default_factory=set)

    @property
    def units(self) -> dict[int, int] | None:
        """Classes of each number of units, as the run counted them. None where it did not."""
        said = self.manifest["published"].get("units")
        return dict(said) if said else None

    @property
    def criteria_of_people(self) -> Mapping[Criterion, float] | None:
        """Figures of the criteria, in which the run counted people. None where it did not."""
        said = self.manifest["published"].get("criteria_of_people")
        if said is None:
            return None
        figures = (math.inf if figure is None else figure for figure in said)
        return dict(zip(self.privacy.criteria, figures, strict=False))

    def contradictions(self) -> list[str]:
        """Report differences between the manifest and the metrics, one sentence each."""
        self.claimed.add(_TYPES)
        if any(file["path"].startswith(f"{LEFT_OUT}/") for file in self.manifest["files"]):
            self.claimed.add(LEFT_OUT)
        unread = dict.fromkeys(self.unread, "cannot be read")
        needed = OF_UNIONS if "parts" in self.manifest else (*OF_EVERY_RUN, "classes")
        there = {*self.tables, *(() if self.classes is None else ("classes",))}
        lacking = {name: "is not there" for name in needed if name not in there} | unread
        owned = (owner.comparisons(self.manifest, self.privacy) for owner in owners(self.manifest))
        statements = chain(
            self._of_published(), *owned, self._of_summary(), self._of_gates(), self._of_tables()
        )
        return [
            *(
                f"{self.release}/metrics/{name}: {what}. Restore the release or publish it again"
                for name, what in lacking.items()
            ),
            *self._differ(statements),
        ]

    def miscounted(
        self,
        published: PublishedClasses,
        columns: Sequence[str],
        criteria: Iterable[MeasuredCriterion],
        presence: Presence | None,
        values: Mapping[str, int | None],
        units: MeasuredUnits | None = None,
        weights: tuple[Sizes, Floats] | None = None,
    ) -> list[str]:
        """Report differences from the counts in the files, one sentence each.

        Parameters
        ----------
        published : PublishedClasses
        columns : sequence of str
            Of the records.
        criteria : iterable of MeasuredCriterion
            Those whose figures do not depend on records that were left out.
        presence : Presence or None
            Measured with the population that the manifest names.
        values : mapping of str to int or None
            Different values of each sensitive attribute. None where they are too many to count.
        units : MeasuredUnits or None
            People, by what was required.
        weights : tuple of int64 and float64 ndarray, or None
            Records and sampling weights of each class, of the column that the manifest names.
        """
        said = self.manifest["published"]
        counted: dict[str, Any] = {
            "published": {"rows": published.rows, "columns": list(columns)},
            "summary": {
                "rows_published": published.rows,
                "published_classes": published.classes,
                "published_min_class_size": published.smallest,
            },
        }
        unit = () if units is None else units.unit
        of_run = self.is_of_this_version and "parts" not in self.manifest
        if of_run and unit == tuple(self.privacy.unit):
            counted["summary"]["alone"] = None if units is None else units.alone
        if said.get("rows_left_out", 0) == 0:
            counted["published"]["sensitive_values"] = {
                name: values[name]
                for name in said["sensitive_values"]
                if values.get(name) is not None
            }
        statements = chain(
            _entries("", self.manifest, counted),
            self._of_labels(published),
            self._of_privacy_table(published, criteria, presence),
            self._of_risk_table(published, presence, weights),
        )
        return list(self._differ(statements))

    def mismeasured(self, published: PublishedClasses, loss: Loss, rows: int) -> list[str]:
        """Report differences from the measures with the original, one sentence each.

        Parameters
        ----------
        published : PublishedClasses
        loss : Loss
        rows : int
            Records of the original. Its columns refute nothing: who keeps some of them, or
            structs as they came, has the same records.
        """
        summary = self.manifest["summary"]
        if self.manifest.get("recipient"):
            # Ranges are those of the plan, and counts leave out what it withholds.
            return []
        measured: dict[str, Any] = {
            "rows_in": rows,
            "rows_dropped_missing": rows - loss.rows,
            "rows_left_out": loss.rows_left_out,
        }
        # Ranges are those of published records alone where values of the others are withheld.
        is_whole = self.manifest["published"]["left_out_values"] == "told"
        if summary.get("rows_left_out") is not None and is_whole:
            if published.classes == summary.get("classes"):
                measured["dm"] = loss.dm
            if loss.gcp is not None:
                measured |= {"gcp_total": loss.gcp_total, "gcp": loss.gcp, "loss": loss.gcp}
        compared = [name for name in measured if summary.get(name) is not None]
        self.claimed.difference_update(f"manifest: summary.{name}" for name in compared)
        return list(
            self._differ(_entries("summary", summary, {name: measured[name] for name in compared}))
        )

    def compare_left_out(
        self, said: pa.Table | None, measured: Mapping[str, Counter[str | None]]
    ) -> list[str]:
        """Report values of records left out that are not those of the original."""
        if said is None or self.manifest.get("recipient"):
            return []
        own = {
            name: count_texts(said.filter(pc.field("attribute") == name))
            for name in said["attribute"].unique().to_pylist()
        }
        if own.keys() == measured.keys():
            self.claimed.discard(LEFT_OUT)
        return [
            f"{self.release}/{LEFT_OUT}: its values of {name} are not those that the original has "
            "beyond the published records. Restore the release or publish it again"
            for name, counts in measured.items()
            if counts != own[name]
        ]

    def compare_types(
        self, published: pa.Schema, original: pa.Schema, as_they_came: Iterable[str]
    ) -> None:
        """Take types as proven that the original has, too: other formats may have others."""
        names = set(as_they_came) & {*published.names}
        if names <= {*original.names} and all(
            is_alike(published.field(name).type, original.field(name).type) for name in names
        ):
            self.claimed.discard(_TYPES)

    @property
    def unproven(self) -> list[str]:
        """Return statements that no compared file or table shows, in order. A closed list."""
        prefix = "manifest: summary."
        figures = {one.removeprefix(prefix) for one in self.claimed if one.startswith(prefix)}
        found = {"manifest: published.rows_left_out"} if "rows_left_out" in figures else set()
        figures |= {"configuration_fingerprint", "input_fingerprint", "started", "version"}
        found |= self.claimed | {f"metrics/summary: {name}" for name in figures}
        if self.classes is not None:
            found |= {f"metrics/classes: {name}" for name in ("class_id", "ncp", "round")}
        found |= {
            f"data: labels of {one.attribute.name}, whose hierarchy is in a file"
            for one in (self.labels.readers if self.labels is not None else ())
            if one.is_of_unknown_hierarchy
        }
        if "nodes" in self.tables:
            # Which recodings are the best, their hierarchies know.
            found.add("metrics/nodes")
        listed = {file["path"] for file in self.manifest["files"]}
        texts = {REPORT} if self.is_of_this_version else {REPORT, *COMPANIONS}
        found |= {f"file: {name}" for name in texts & listed}
        sections = ("chosen_model", "drift", "gates", "parts", "recipient")
        found |= {f"manifest: {key}" for key in sections if self.manifest.get(key)}
        if self.manifest["configuration"]["output"].get("pseudonyms"):
            found.add("data: which pseudonyms are of one person")
        return sorted({*found, *_NEVER_PROVEN})

    @property
    def is_of_this_version(self) -> bool:
        """Return whether this version writes the same texts next to the data."""
        return bool(self.manifest["versions"]["anonspark"] == __version__)

    def warnings(self) -> list[str]:
        """Warn of what is believed because another version wrote it."""
        if self.is_of_this_version:
            return []
        version = self.manifest["versions"]["anonspark"]
        return [
            f"{self.release}: was made by anonspark {version}, so README.md, datapackage.json, "
            f"views.sql and check_release.py are claimed, not proven. Verify it with anonspark "
            f"{version}, or do not rely on these files"
        ]

    def misheld(self, rows: Mapping[str | None, int]) -> list[str]:
        """Report if a union has records of others than its parts, in one sentence at most.

        Parameters
        ----------
        rows : mapping of str or None to int
            Records that were counted for each holder.
        """
        said = {part["holder"]: part["rows"] for part in self.manifest["parts"]}
        same = Statement("parts (rows of each holder)", said == dict(rows), True)
        return list(self._differ([same]))

    def _differ(self, claims: Iterable[Statement]) -> Iterator[str]:
        for one in claims:
            if isinstance(one.expected, Claimed):
                name = re.sub(r" \(row \d+\)$", "", one.key)
                self.claimed.add(
                    f"metrics/{one.table}: {name}" if one.table else f"manifest: {name}"
                )
            if is_same(one.found, one.expected):
                continue
            path = MANIFEST if one.table is None else f"metrics/{one.table}"
            yield (
                f"{self.release}/{path}: {one.key}: found {_shown(one.found)}, expected "
                f"{_shown(one.expected)}. Restore the release or publish it again"
            )

    def _of_published(self) -> Iterator[Statement]:
        """Compare what was published with what was configured."""
        configured, said = self.manifest["configuration"], self.manifest["published"]
        described, criteria = said["quasi_identifiers"], self.privacy.criteria
        distances = {one.attribute for one in criteria if one.is_distance}
        found = {
            **said,
            "quasi_identifiers": [[one["name"], "hierarchy" in one] for one in described],
            "units": self.units is not None,
            "criteria_of_people": len(said.get("criteria_of_people", criteria)),
            "sensitive_values": sorted(distances & said["sensitive_values"].keys()),
        }
        expected = {
            "quasi_identifiers": [
                [name, attribute.get("hierarchy") is not None]
                for name, attribute in configured["attributes"].items()
                if attribute["role"] == "quasi_identifier"
            ],
            **columns_section(configured, described),
            "units": bool(self.privacy.unit),
            "criteria_of_people": len(criteria),
            "sensitive_values": sorted(distances),
        }
        return _entries("published", found, expected)

    def _of_summary(self) -> Iterator[Statement]:
        """Compare the summary with the rest of the manifest, with classes, and with its meaning."""
        summary, said = self.manifest["summary"], self.manifest["published"]
        configured, some = self.manifest["configuration"], Within(or_nothing=True)
        fewest = min(self.units) if self.units else None
        drops = configured.get("missing", "drop") == "drop"
        requested = some if self.manifest.get("recipient") else None
        expected: dict[str, Any] = {
            **dict.fromkeys(("kl_divergence", "entropy", "seconds", "columns_in", "rows_in"), some),
            "rows_left_out": some,
            ENDS: Within(0, 1, or_nothing=True) if ENDS in configured.get("gates", {}) else None,
            "rows_dropped_missing": some if drops else Within(0, 0),
            "association_loss": Within(-math.inf, or_nothing=True),
            "rows_requested": requested,
            "rows_withheld": requested,
            "units": None if fewest is None else Within(fewest, or_nothing=True),
            "rows_published": said["rows"],
            "k": configured["privacy"]["k"],
            "version": self.manifest["versions"]["anonspark"],
        }
        if "parts" not in self.manifest:
            roles = [one["role"] for one in configured["attributes"].values()]
            expected |= {
                "smallest_units": None if fewest is None else Within(fewest, fewest),
                "model": configured["model"]["name"],
                "columns_published": len(roles) - roles.count("identifier"),
            }
            yield from _entries("summary", summary, {"rows_left_out": said["rows_left_out"]})
        parts = [summary.get(name) for name in _COUNTS]
        if summary.get("rows_in") is not None and None not in parts:
            yield Statement("summary.rows_in", summary["rows_in"], sum(parts))
        yield from _entries("summary", summary, expected)
        if self.derivation is not None:
            derived = self.derivation.summary(summary, self.tables.get("attributes", ()))
            # What is not there is of another version, else the form is wrong.
            known = {name: figure for name, figure in derived.items() if name in summary}
            yield from _entries("summary", summary, known)

    @cached_property
    def derivation(self) -> Derivation | None:
        """Return the input of the tables. None where their classes are not there."""
        if self.classes is None or self.labels is None or not self.classes.rounds:
            return None
        return Derivation(self.classes, self.manifest, self.labels.readers)

    def _of_gates(self) -> Iterator[Statement]:
        """Compare gates and drift with what was configured and with the tables."""
        manifest, configured = self.manifest, self.manifest["configuration"]
        if "parts" in manifest:
            return
        tables = (self.tables.get(name, ()) for name in ("attributes", "risk"))
        figures = figures_of_gates(manifest["summary"], *tables)
        gates = [
            {
                **bounds,
                "metric": name,
                "found": figures.get(name),
                "withheld": figures.get(name) is None,
            }
            for name, bounds in configured.get("gates", {}).items()
        ]
        bounds = configured.get("metrics", {}).get("drift", {})
        drift = [
            # Of the figure before only the run knows.
            {**entry, "metric": name, "found": figures.get(name), "max": most}
            for (name, most), entry in zip(
                bounds.items(), [*manifest["drift"], *[{}] * len(bounds)], strict=False
            )
        ]
        yield from _entries("", manifest, {"gates": gates, "drift": drift})

    def _of_tables(self) -> Iterator[Statement]:
        """Compare tables with one another and with the manifest."""
        tables, rounds = self.tables, self.tables.get("rounds")
        for name, rows in tables.items():
            ids = sorted({str(row.get("run_id")) for row in rows})
            yield Statement("run_id", ids, [self.manifest["run_id"]], name)
        if "summary" in tables:
            yield Statement("rows", len(tables["summary"]), 1, "summary")
            for row in tables["summary"][:1]:
                sections: Row = sections_of_summary(row)
                # Null is no fingerprint, so that one that is null there must not be claimed.
                unclaimed = dict.fromkeys(self.manifest["fingerprints"])
                prints = {**unclaimed, **sections["fingerprints"]}
                yield from _entries("", self.manifest, {**sections, "fingerprints": prints})
        if rounds is None:
            return
        if self.derivation is not None:
            yield from self._of_rows("rounds", self.derivation.rounds(rounds))
        if "nodes" in tables:
            nodes, summary = tables["nodes"], self.manifest["summary"]
            heights, known = _heights(self.manifest), summary.get("rows_left_out") is not None
            expected = list(expected_nodes(nodes, rounds, heights, self.nodes, counts_told=known))
            yield from self._of_rows("nodes", expected)
            numbers = list(dict.fromkeys(row["round"] for row in expected))
            yield Statement("round", numbers, [row["round"] for row in rounds], "nodes")
            smallest = min((row["min_class_size"] for row in nodes), default=None)
            yield Statement("min_class_size", smallest, summary.get("min_class_size"), "nodes")

    def _of_rows(self, table: str, expected: Sequence[Row]) -> Iterator[Statement]:
        """Compare all rows and columns of a table with those that are derived."""
        found = self.tables.get(table)
        if found is None:
            return
        yield Statement("rows", len(found), len(expected), table)
        for place, (row, own) in enumerate(zip(found, expected, strict=False), start=1):
            for name in row.keys() - {"run_id"}:
                yield Statement(f"{name} (row {place})", row[name], own.get(name), table)

    def _of_labels(self, published: PublishedClasses) -> Iterator[Statement]:
        """Compare labels with what they can be, and what lies beside the records with labels."""
        read, labels, classes = published.labels, self.labels, self.classes
        if read is None or labels is None or classes is None:
            return
        for reader, unsound in zip(labels.readers, read.unsound, strict=True):
            name = reader.attribute.name
            yield Statement(
                f"published.quasi_identifiers ({name}: records without a label)", unsound, 0
            )
        if self.derivation is None:
            yield Statement("summary.classes", self.manifest["summary"].get("classes"), 0)
            return
        # Records without a class have a label of their own, mostly.
        sizes, without = Counter(published.sizes), published.rows - classes.total.rows
        sizes.subtract([without] if without > 0 else [])
        if +sizes != Counter(classes.total.sizes):
            self.claimed.update(_OF_SIZES)
        alone = classes.total.classes <= published.classes
        alone |= not self.derivation.keeps_equal_labels_together
        yield Statement("class_id (of labels of their own)", alone, True, "classes")
        agree = self._bounds_agree(published.rows, read.bounds, labels, classes)
        yield Statement("rows that no run writes", classes.unsound, 0, "classes")
        yield Statement("class_id (all different)", classes.different, True, "classes")
        yield Statement("bounds and sizes (those of the labels)", agree, True, "classes")
        attributes = self.tables.get("attributes", ())
        yield from self._of_rows("attributes", self.derivation.attribute_rows(read, attributes))
        total = self.manifest["summary"].get("gcp_total")
        if total is not None:
            penalty = self.derivation.penalty(attributes)
            yield Statement("ncp_total (of all, weighted)", penalty, total, "attributes")

    def _bounds_agree(
        self, rows: int, bounds: int, labels: ClassLabels, classes: ClassTable
    ) -> bool:
        """Return whether all records have the bounds of their labels, but those without a class."""
        without = rows - classes.total.rows
        if without <= 0:
            return without == 0 and bounds == classes.bounds
        # All their values are suppressed.
        tops = [("*", "* or missing") if one.tells_missing else ("*",) for one in labels.readers]
        if any(one.has_hierarchy and one.attribute.rule is None for one in labels.readers):
            # The top of a file's hierarchy is called as it likes.
            return True
        missing = (bounds - classes.bounds) % 2**64
        return any(labels.hash_of(one, without) == missing for one in product(*tops))

    def _of_privacy_table(
        self,
        published: PublishedClasses,
        criteria: Iterable[MeasuredCriterion],
        presence: Presence | None,
    ) -> Iterator[Statement]:
        figures = {one.criterion: one.measured for one in criteria}
        share = Within(0.0, 1.0)
        expected = privacy_rows(
            self.privacy,
            published.smallest,
            self.units,
            {
                one: figures.get(one, Within(-math.inf, or_nothing=True))
                for one in self.privacy.criteria
            },
            (share, share) if presence is None else (presence.smallest, presence.largest),
        )
        return self._of_rows("privacy", expected)

    def _of_risk_table(
        self,
        published: PublishedClasses,
        presence: Presence | None,
        weights: tuple[Sizes, Floats] | None,
    ) -> Iterator[Statement]:
        name = self.risk.weights
        # They are not published, or others were asked for.
        is_claimed = name is not None and weights is None
        if self.derivation is None and "parts" not in self.manifest:
            # Of rounds nothing is known, as is told elsewhere.
            return
        population = None
        if self.privacy.delta_presence is not None:
            if presence is None:
                return
            population = presence.counts.released, presence.counts.population
            if bool((population[0] > population[1]).any()):
                # Not the population that the release was made with: that is told elsewhere.
                return
        rounds = {} if self.derivation is None else self.derivation.classes.rounds
        expected = risk_rows(self.risk, rounds, published.sizes, self.units, population, weights)
        if is_claimed:
            expected.append(self._claimed_risk(expected[-3], published.rows))
        yield from self._of_rows("risk", expected)

    def _claimed_risk(self, prosecutor: Row, rows: int) -> dict[str, Any]:
        """Return bounds of the risk from an outsider, whose weights are not read."""
        found = (self.tables.get("risk") or [{}])[-1]
        largest = {name: prosecutor[name] for name in ("highest", "average", "lowest")}
        largest |= dict.fromkeys(("at_risk", "at_highest", "at_lowest", "unique"), 1.0)
        attack = Attack("outsider", **{name: found.get(name) or 0.0 for name in largest})
        row = risk_row(attack, self.risk)
        # They follow from claims alone.
        following = {"expected", *(name for name in row if name.startswith("high_"))}
        self.claimed.update(f"metrics/risk: {name}" for name in following)
        return {
            **row,
            "population": prosecutor["population"],
            "expected": attack.average * rows,
            **{name: Within(0.0, most) for name, most in largest.items()},
            "highest": Within(attack.average, largest["highest"]),
            "lowest": Within(0.0, min(attack.average, largest["lowest"])),
        }


_COUNTS = ("rows_dropped_missing", "rows_published", "rows_left_out")


def is_same(found: Any, expected: Any) -> bool:
    """Return whether something is what is expected: the same, or within its bounds."""
    if isinstance(expected, Claimed):
        return expected.admits(found, _TOLERANCE)
    numbers = (found, expected)
    if any(isinstance(one, bool) for one in numbers):
        return found is expected
    if isinstance(found, int) and isinstance(expected, int):
        return found == expected
    if all(isinstance(one, int | float | Decimal) for one in numbers):
        return math.isclose(found, expected, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    return bool(found == expected)


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _entries(key: str, found: Row, expected: Row) -> Iterator[Statement]:
    """Compare the entries of a mapping, and of those in it."""
    for name, value in expected.items():
        path = f"{key}.{name}" if key else name
        if isinstance(value, dict):
            yield from _entries(path, found[name], value)
        else:
            yield Statement(path, found.get(name), value)


def read_statements(
    engine: Engine,
    release: str,
    manifest: Row,
    privacy: PrivacyOptions,
    risk: RiskOptions,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> Statements:
    """Read the metrics of a release.

    Parameters
    ----------
    engine : Engine
    release : str
    manifest : mapping
        Sound in form.
    privacy : PrivacyOptions
    risk : RiskOptions
        Those of the manifest.
    hierarchies : mapping of str to Hierarchy, or None
        Those of files that could be read: labels of others are not known.

    Notes
    -----
    Small tables are read by the driver. One pass over the table of classes with a small shuffle
    (:func:`~anonspark.verification.class_table.read_class_table`). Where the table ``nodes`` is
    there, one more that collects the labels of up to 200,000 classes.
    """
    tables: dict[str, list[Row]] = {}
    unread, files = [], engine.files
    failures = (pa.ArrowException, KeyError, ValueError, OSError, ConfigurationError)
    unreadable = (*failures, *engine.failures)
    # Another version may have other figures.
    is_ours = manifest["versions"]["anonspark"] == __version__
    for name in TABLES:
        if not files.exists(f"{release}/metrics/{name}"):
            continue
        try:
            tables[name] = _rows(files, release, name, is_ours=is_ours)
        except unreadable as error:
            raise_if_limit_reached(error)
            unread.append(name)
    labels = class_labels(manifest, hierarchies or {})
    classes: ClassTable | None = None
    nodes: Counted = {}
    if labels is not None and files.exists(f"{release}/metrics/classes"):
        try:
            classes = _read_classes(engine, release, manifest, labels)
            if "nodes" in tables:
                nodes = _count_nodes(engine, release, manifest, classes, tables["nodes"])
        except unreadable as error:
            raise_if_limit_reached(error)
            unread.append("classes")
    return Statements(
        release, manifest, privacy, risk, tables, tuple(unread), nodes, classes, labels
    )


def class_labels(manifest: Row, hierarchies: Mapping[str, Hierarchy]) -> ClassLabels | None:
    """Return how the labels of a release are read. None where its types are none."""
    described = manifest["published"]["quasi_identifiers"]
    tells_missing = manifest["configuration"].get("missing", "drop") == "category"
    readers = []
    for attribute, own in zip(
        published_attributes(Manifest(dict(manifest))), described, strict=True
    ):
        known = hierarchies.get(attribute.name)
        try:
            data_type = type_of_name(own["type"])
        except (KeyError, ValueError):
            return None
        readers.append(
            BoundsReader(
                attribute,
                own["kind"],
                data_type,
                has_hierarchy="hierarchy" in own,
                tells_missing=tells_missing,
                labels=None if known is None else hierarchy_labels(leaves_by_label(known)),
            )
        )
    return ClassLabels(tuple(readers))


def _read_classes(engine: Engine, release: str, manifest: Row, labels: ClassLabels) -> ClassTable:
    table = engine.published(f"{release}/metrics/classes", "parquet")
    expected = class_schema(labels)
    if table.schema.names != expected.names or not all(
        is_alike(found.type, wanted.type)
        for found, wanted in zip(table.schema, expected, strict=True)
    ):
        raise ValueError("other columns than those of the table")
    files = sum(one["path"].startswith("metrics/classes/") for one in manifest["files"])
    weight = math.fsum(one.attribute.weight for one in labels.readers)
    return read_class_table(table, labels, manifest["run_id"], weight, files)


def _heights(manifest: Row) -> dict[str, int]:
    """Return the levels of the hierarchies above the values."""
    return {
        one["name"]: int((one.get("hierarchy") or {}).get("height", 0))
        for one in manifest["published"]["quasi_identifiers"]
    }


def _count_nodes(
    engine: Engine, release: str, manifest: Row, table: ClassTable, nodes: Sequence[Row]
) -> Counted:
    """Count classes again where that is cheap, and their labels show enough."""
    if table.total.classes > _MOST_COUNTED:
        return {}
    heights = _heights(manifest)
    names = ["round", "size", *(f"{name}_min" for name in heights)]
    classes = engine.published(f"{release}/metrics/classes", "parquet").select(names).collect()
    return count_nodes(classes, nodes, heights)


def _rows(files: Files, release: str, name: str, *, is_ours: bool) -> list[Row]:
    """Return the rows of a small table.

    Raises
    ------
    ValueError, KeyError
        If its columns are not those of the table.
    """
    rows: list[Row] = []
    schema = arrow_schema(TABLES[name])
    for table in read_parts(files, release, name):
        names = table.schema.names if not is_ours else schema.names
        if table.schema != pa.schema([schema.field(column) for column in names]):
            raise ValueError("other columns or types than those of the table")
        rows += table.to_pylist()
    if name == "nodes" and any(row.get(one) is None for row in rows for one in _NODES_NEED):
        raise ValueError("a row lacks its name")
    return rows
