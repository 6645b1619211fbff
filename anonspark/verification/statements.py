"""What manifest and metrics say of a release, held against one another and against counts.

A manifest is written by the run that made the release; whoever changes it afterwards, or puts
another one there, should not be believed. Everything that can be counted is counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from anonspark._version import __version__
from anonspark.config.evaluate import RiskOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.figures import OF_EVERY_RUN, TABLES, arrow_schema
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError
from anonspark.release.class_bounds import (
    BoundsReader,
    hierarchy_labels,
    is_alike,
    type_of_name,
)
from anonspark.release.derived_figures import privacy_rows, risk_rows
from anonspark.release.layout import COMPANIONS, OF_UNIONS, REPORT
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.regions import leaves_by_label, published_attributes
from anonspark.release.sections import Statement, owners
from anonspark.verification.class_table import (
    ClassLabels,
    ClassTable,
    class_schema,
    read_class_table,
)
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import MeasuredCriterion
from anonspark.verification.derived_tables import Claim, Derivation, Within
from anonspark.verification.loss import Loss
from anonspark.verification.nodes import Counted, claims_of_nodes, count_nodes
from anonspark.verification.presence import Presence

Row = Mapping[str, Any]

# Without these no row of the table of nodes can be told from another one.
_NODES_NEED = ("round", "node", "levels", "classes", "min_class_size", "loss")

# These tables have some rows for each round or attribute.
_LARGEST_TABLE = 64 * 2**20

# Classes whose labels the driver takes.
_MOST_COUNTED = 200_000

# Sums of parts, and figures that were rounded on their way.
_TOLERANCE = 1e-6


def published_columns(manifest: Row) -> tuple[list[str], list[str]]:
    """Return the columns that a release of this configuration has, by style and kinds.

    Parameters
    ----------
    manifest : mapping
        Sound in form.

    Returns
    -------
    all : list of str
        In order.
    quasi_identifiers : list of str
        Of them, those that tell of quasi-identifiers.
    """
    configured = manifest["configuration"]
    style, missing = configured["output"]["style"], configured.get("missing", "drop")
    kinds = {one["name"]: one["kind"] for one in manifest["published"]["quasi_identifiers"]}
    columns, own = [], []
    for name, attribute in configured["attributes"].items():
        match attribute["role"]:
            case "quasi_identifier":
                found = _columns_of(name, kinds.get(name, "category"), style, missing)
                columns += found
                own += found
            case "sensitive" | "insensitive":
                columns.append(name)
            case "identifier":
                pseudonyms = configured["output"].get("pseudonyms") or {}
                columns += [pseudonyms[name]] if name in pseudonyms else []
    return columns, own


def _columns_of(name: str, kind: str, style: str, missing: str) -> list[str]:
    if style == "interval" or kind in ("category", "boolean"):
        return [name]
    columns = [f"{name}_min", f"{name}_max"] if style == "bounds" else [name]
    return [*columns, f"{name}_missing"] if missing == "category" else columns


# Sections that say how a release was made, not what it promises.
_SETTINGS = ("attributes", "evaluate", "execution", "input", "metrics", "model", "output", "report")

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
"""What no file of a release tells: the run alone knows it."""


@dataclass(frozen=True)
class Statements:
    """What is said of a release.

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
        What that table says; None where there is none.
    labels : ClassLabels or None
        How the labels of the records are read; None where the manifest does not say it.
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
        """Classes of each number of units, as the run counted them; None where it did not."""
        said = self.manifest["published"].get("units")
        return dict(said) if said else None

    @property
    def columns(self) -> tuple[int | None, int | None]:
        """Columns that are published, and those of the input, as the run counted them."""
        summary = self.manifest["summary"]
        return summary.get("columns_published"), summary.get("columns_in")

    @property
    def criteria_of_people(self) -> list[float] | None:
        """Figures of the criteria, in which the run counted people; None where it did not."""
        said = self.manifest["published"].get("criteria_of_people")
        return [math.inf if one is None else one for one in said] if said else None

    def contradictions(self) -> list[str]:
        """Tell what the manifest and the metrics say differently, one sentence each."""
        found = [
            f"{self.release}/metrics/{name}: cannot be read; restore the release or publish it "
            "again"
            for name in self.unread
        ]
        found += [
            f"{self.release}/metrics/{name}: is not there; restore the release or publish it again"
            for name in (OF_UNIONS if "parts" in self.manifest else (*OF_EVERY_RUN, "classes"))
            if name not in self.tables
            and name not in self.unread
            and (name != "classes" or self.classes is None)
        ]
        return found + list(
            self._told(
                (
                    *self._of_configuration(),
                    *self._of_sections(),
                    *self._of_figures(),
                    *self._of_gates(),
                    *self._of_summary_table(),
                    *self._of_small_tables(),
                    *self._of_nodes(),
                    *self._of_rounds(),
                )
            )
        )

    def miscounted(
        self,
        published: PublishedClasses,
        columns: Sequence[str],
        criteria: Iterable[MeasuredCriterion],
        presence: Presence | None,
        values: Mapping[str, int | None],
    ) -> list[str]:
        """Tell what differs from what was counted in the files, one sentence each.

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
            Different values of each sensitive attribute; None where they are too many to count.
        """
        summary, said = self.manifest["summary"], self.manifest["published"]
        where = "the records in data"
        claims = [
            Statement("published.rows", said["rows"], published.rows, where),
            Statement("published.columns", said["columns"], list(columns), where),
        ]
        for key, counted in (
            ("rows_published", published.rows),
            ("published_classes", published.classes),
            ("published_min_class_size", published.smallest),
        ):
            claims.append(Statement(f"summary.{key}", summary.get(key, counted), counted, where))
        if said.get("rows_left_out", 0) == 0:
            for name, number in said.get("sensitive_values", {}).items():
                different = values.get(name)
                if different is not None:
                    key = f"published.sensitive_values.{name}"
                    claims.append(Statement(key, number, different, where))
        return list(
            self._told(
                (
                    *claims,
                    *self._of_labels(published),
                    *self._of_privacy_table(published, criteria, presence),
                    *self._of_risk_table(published, presence),
                )
            )
        )

    def mismeasured(self, published: PublishedClasses, loss: Loss, rows: int) -> list[str]:
        """Tell what differs from what was measured with the original, one sentence each.

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
            # Made of some records of the original.
            return []
        measured: dict[str, Any] = {
            "rows_in": rows,
            "rows_dropped_missing": rows - loss.rows,
            "rows_left_out": loss.rows_left_out,
        }
        if summary.get("rows_left_out") == 0:
            if published.classes == summary.get("classes"):
                measured["dm"] = loss.dm
            if loss.gcp is not None:
                measured |= {"gcp_total": loss.gcp_total, "gcp": loss.gcp, "loss": loss.gcp}
        compared = [name for name in measured if summary.get(name) is not None]
        self.claimed.difference_update(f"manifest: summary.{name}" for name in compared)
        return list(
            self._told(
                Statement(f"summary.{name}", summary[name], measured[name], "the original")
                for name in compared
            )
        )

    @property
    def unproven(self) -> list[str]:
        """What no file and no table that was compared tells, in order; a closed list."""
        prefix = "manifest: summary."
        figures = {one.removeprefix(prefix) for one in self.claimed if one.startswith(prefix)}
        figures |= {"configuration_fingerprint", "input_fingerprint", "started", "version"}
        found = self.claimed | {f"metrics/summary: {name}" for name in figures}
        if self.classes is not None:
            found.add("metrics/classes: ncp")
        if "nodes" in self.tables:
            columns = ("classes", "loss", "min_class_size", "suppressed")
            found |= {"metrics/nodes", *(f"metrics/nodes: {name}" for name in columns)}
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
        """Whether this version writes the texts beside the data as the one did that wrote them."""
        return bool(self.manifest["versions"]["anonspark"] == __version__)

    def warnings(self) -> list[str]:
        """Warn of what is believed because another version wrote it."""
        if self.is_of_this_version:
            return []
        version = self.manifest["versions"]["anonspark"]
        return [
            f"{self.release}: was made by anonspark {version}, so README.md, datapackage.json, "
            f"views.sql and check_release.py are claimed, not proven; verify it with anonspark "
            f"{version}, or do not rely on these files"
        ]

    def misheld(self, rows: Mapping[str | None, int]) -> list[str]:
        """Tell whether a union has records of others than its parts, in one sentence at most.

        Parameters
        ----------
        rows : mapping of str or None to int
            Records that were counted for each holder.
        """
        said = {part["holder"]: part["rows"] for part in self.manifest["parts"]}
        same = Statement("parts (rows of each holder)", said == dict(rows), True, "a count in data")
        return list(self._told([same]))

    def _told(self, claims: Iterable[Statement]) -> Iterator[str]:
        for one in claims:
            if isinstance(one.expected, Claim):
                name = re.sub(r" \(row \d+\)$", "", one.key)
                self.claimed.add(
                    f"metrics/{one.table}: {name}" if one.table else f"manifest: {name}"
                )
            if _same(one.found, one.expected):
                continue
            path = MANIFEST if one.table is None else f"metrics/{one.table}"
            yield (
                f"{self.release}/{path}: {one.key}: found {_shown(one.found)}, but {one.source} "
                f"says {_shown(one.expected)}; restore the release or publish it again"
            )

    def _of_configuration(self) -> Iterator[Statement]:
        """Compare what was published with what was configured."""
        configured, said = self.manifest["configuration"], self.manifest["published"]
        attributes = configured["attributes"]
        names = [name for name, one in attributes.items() if one["role"] == "quasi_identifier"]
        described = said["quasi_identifiers"]
        source = "configuration.attributes"
        yield Statement(
            "published.quasi_identifiers", [one["name"] for one in described], names, source
        )
        for place, one in enumerate(described):
            by_hierarchy = (attributes.get(one["name"]) or {}).get("hierarchy") is not None
            key = f"published.quasi_identifiers[{place}].hierarchy"
            yield Statement(key, "hierarchy" in one, by_hierarchy, source)
        columns, own = published_columns(self.manifest)
        source = "configuration (attributes, output.style, missing)"
        yield Statement("published.columns", said["columns"], columns, source)
        key = "published.quasi_identifier_columns"
        yield Statement(key, said["quasi_identifier_columns"], own, source)
        counted = self.units is not None
        yield Statement("published.units", counted, bool(self.privacy.unit), "privacy.unit")
        of_people = self.criteria_of_people
        if of_people is not None:
            key, asked = "published.criteria_of_people", len(self.privacy.criteria)
            yield Statement(key, len(of_people), asked, "configuration.privacy")
        distances = [one for one in self.privacy.criteria if one.is_distance]
        needed = {one.attribute for one in distances}
        if "sensitive_values" in said and needed:
            there = sorted(needed & set(said["sensitive_values"]))
            keys = sorted({f"configuration.privacy.{one.type.key}" for one in distances})
            source = " and ".join(keys)
            yield Statement("published.sensitive_values", there, sorted(needed), source)

    def _of_sections(self) -> Iterator[Statement]:
        """Compare sections that others own with the rest of the manifest."""
        for owner in owners(self.manifest):
            yield from owner.comparisons(self.manifest, self.privacy)

    def _of_figures(self) -> Iterator[Statement]:
        """Compare the summary with the other sections of the manifest."""
        summary, said = self.manifest["summary"], self.manifest["published"]
        configured = self.manifest["configuration"]
        rows = summary.get("rows_published")
        yield Statement("summary.rows_published", rows, said["rows"], "published.rows")
        left_out = said.get("rows_left_out", summary.get("rows_left_out"))
        source = "published.rows_left_out"
        yield Statement("summary.rows_left_out", summary.get("rows_left_out"), left_out, source)
        k, model = configured["privacy"]["k"], configured.get("model") or {}
        yield Statement("summary.k", summary.get("k"), k, "configuration.privacy.k")
        name = model.get("name", summary.get("model"))
        yield Statement("summary.model", summary.get("model"), name, "configuration.model.name")
        version = self.manifest["versions"]["anonspark"]
        yield Statement("summary.version", summary.get("version"), version, "versions.anonspark")
        published = sum(one["role"] != "identifier" for one in configured["attributes"].values())
        if "parts" not in self.manifest:
            columns = summary.get("columns_published", published)
            yield Statement(
                "summary.columns_published", columns, published, "configuration.attributes"
            )
        rows_in, *parts = (summary.get(name) for name in _COUNTS)
        counts = [part for part in parts if part is not None]
        if rows_in is not None and len(counts) == len(parts):
            total = sum(counts)
            source = "the sum of records that are published, dropped and left out"
            yield Statement("summary.rows_in", rows_in, total, source)
        for name, claim in self._claims():
            yield Statement(f"summary.{name}", summary.get(name), claim, "its meaning")
        if self.derivation is not None:
            for name, figure in self.derivation.summary(
                summary, self.tables.get("attributes", ())
            ).items():
                if name not in summary:
                    # Of another version, else the form is wrong.
                    continue
                yield Statement(f"summary.{name}", summary.get(name), figure, "metrics/classes")

    def _claims(self) -> Iterator[tuple[str, Claim | None]]:
        """Yield the figures of the summary that follow from nothing, and what they have to be."""
        configured = self.manifest["configuration"]
        some = Within(or_nothing=True)
        drops = configured.get("missing", "drop") == "drop"
        yield "rows_dropped_missing", some if drops else Within(0, 0)
        yield "rows_in", some
        yield "rows_left_out", some
        for name in ("kl_divergence", "entropy", "seconds", "columns_in"):
            yield name, some
        yield "association_loss", Within(-math.inf, or_nothing=True)
        asked = bool(self.manifest.get("recipient"))
        for name in ("rows_requested", "rows_withheld"):
            yield name, some if asked else None
        units = self.units
        fewest = min(units) if units else None
        if "parts" not in self.manifest:
            yield "smallest_units", None if fewest is None else Within(fewest, fewest)
        yield "units", None if fewest is None else Within(fewest, or_nothing=True)

    @cached_property
    def derivation(self) -> Derivation | None:
        """What the tables follow from; None where their classes are not there."""
        summary = self.manifest["summary"]
        published = summary.get("rows_published") or self.manifest["published"].get("rows")
        if self.classes is None or self.labels is None or not published or not self.classes.sizes:
            return None
        return Derivation(
            self.classes,
            published,
            summary.get("rows_left_out") or 0,
            self.manifest["published"]["quasi_identifiers"],
            self.labels.readers,
            self.manifest["configuration"],
        )

    def _of_gates(self) -> Iterator[Statement]:
        """Compare gates and drift with what was configured and what was found."""
        configured, summary = self.manifest["configuration"], self.manifest["summary"]
        for key, bounds, names in (
            ("gates", configured.get("gates"), ("min", "max")),
            ("drift", (configured.get("metrics") or {}).get("drift"), ("max",)),
        ):
            found = self.manifest.get(key)
            if found is None or not isinstance(bounds, dict):
                continue
            source = "configuration." + ("gates" if key == "gates" else "metrics.drift")
            yield Statement(key, [one["metric"] for one in found], list(bounds), source)
            for place, one in enumerate(found):
                bound = bounds.get(one["metric"])
                for name in names:
                    expected = bound.get(name) if isinstance(bound, dict) else bound
                    yield Statement(f"{key}[{place}].{name}", one[name], expected, source)
                if one["metric"] in summary:
                    figure, path = summary[one["metric"]], f"summary.{one['metric']}"
                    yield Statement(f"{key}[{place}].found", one["found"], figure, path)

    def _of_summary_table(self) -> Iterator[Statement]:
        rows = self.tables.get("summary")
        if rows is None:
            return
        yield Statement("rows", len(rows), 1, "its meaning", "summary")
        prints = self.manifest["fingerprints"]
        said = {
            **self.manifest["summary"],
            **{f"{name}_fingerprint": value for name, value in prints.items()},
            "run_id": self.manifest["run_id"],
            "started": _instant(self.manifest["started"]),
        }
        for row in rows[:1]:
            for name, value in row.items():
                found = _instant(value) if name == "started" else value
                key = {"run_id": name, "started": name}.get(name, f"summary.{name}")
                if name.endswith("_fingerprint"):
                    key = f"fingerprints.{name.removesuffix('_fingerprint')}"
                yield Statement(key, said.get(name), found, "metrics/summary")

    def _of_small_tables(self) -> Iterator[Statement]:
        """Compare whose rows the tables have."""
        run_id = self.manifest["run_id"]
        for name, rows in self.tables.items():
            ids = sorted({str(row.get("run_id")) for row in rows})
            yield Statement("run_id", ids, [run_id], f"run_id of {MANIFEST}", name)

    def _of_rounds(self) -> Iterator[Statement]:
        rows, derived = self.tables.get("rounds"), self.derivation
        if rows is not None and derived is not None:
            yield from self._of_rows("rounds", rows, derived.rounds(rows), "metrics/classes")

    def _of_rows(
        self, table: str, found: Sequence[Row], expected: Sequence[Row], source: str
    ) -> Iterator[Statement]:
        """Compare all rows and columns of a table with those that are derived."""
        yield Statement("rows", len(found), len(expected), source, table)
        for place, (row, own) in enumerate(zip(found, expected, strict=False), start=1):
            for name in row:
                if name != "run_id":
                    key = f"{name} (row {place})"
                    yield Statement(key, row[name], own.get(name), source, table)

    def _of_nodes(self) -> Iterator[Statement]:
        """Compare the recodings above the chosen one with it, and it with the other tables."""
        nodes, rounds = self.tables.get("nodes"), self.tables.get("rounds")
        if nodes is None or rounds is None:
            return
        heights = _heights(self.manifest)
        for key, found, expected, source in claims_of_nodes(nodes, rounds, heights, self.nodes):
            yield Statement(key, found, expected, source, "nodes")
        smallest = self.manifest["summary"].get("min_class_size")
        if smallest is not None and nodes:
            found = min(row["min_class_size"] for row in nodes)
            yield Statement("min_class_size", found, smallest, "summary.min_class_size", "nodes")

    def _of_labels(self, published: PublishedClasses) -> Iterator[Statement]:
        """Compare labels with what they can be, and what lies beside the records with labels."""
        read, labels, derived = published.labels, self.labels, self.derivation
        if read is None or labels is None:
            return
        for one, unsound in zip(labels.readers, read.unsound, strict=True):
            key = f"published.quasi_identifiers ({one.attribute.name}: records without a label)"
            yield Statement(key, unsound, 0, "what a run writes")
        if self.classes is not None and not self.classes.sizes:
            said = self.manifest["summary"].get("classes")
            yield Statement("summary.classes", said, 0, "metrics/classes")
        if derived is None or self.classes is None:
            return
        table = "classes"
        yield Statement("rows that no run writes", self.classes.unsound, 0, "its meaning", table)
        yield Statement(
            "class_id (all different)", self.classes.different, True, "its meaning", table
        )
        agree = self._bounds_agree(published.rows, read.bounds, labels, self.classes)
        key = "bounds and sizes (those of the labels)"
        yield Statement(key, agree, True, "a count of the records", table)
        rows = self.tables.get("attributes")
        if rows is not None:
            expected = derived.attribute_rows(read, rows)
            yield from self._of_rows("attributes", rows, expected, "the records in data")

    def _bounds_agree(
        self, rows: int, bounds: int, labels: ClassLabels, classes: ClassTable
    ) -> bool:
        """Return whether all records have the bounds of their labels, but those without a class."""
        without = rows - sum(size * number for size, number in classes.sizes.items())
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
        rows = self.tables.get("privacy")
        if rows is None:
            return
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
        source = "configuration.privacy and a count of the records"
        yield from self._of_rows("privacy", rows, expected, source)

    def _of_risk_table(
        self, published: PublishedClasses, presence: Presence | None
    ) -> Iterator[Statement]:
        rows, asked = self.tables.get("risk"), self.privacy.delta_presence is not None
        if rows is None or not published.rows or (asked and presence is None):
            return
        population = None
        if asked and presence is not None:
            population = presence.counts.released, presence.counts.population
            if bool((population[0] > population[1]).any()):
                # Not the population that the release was made with: that is told elsewhere.
                return
        by_round = {} if self.derivation is None else self.derivation.by_round
        expected = risk_rows(self.risk, by_round, published.sizes, self.units, population)
        if "parts" not in self.manifest and self.derivation is None:
            # Of rounds nothing is known.
            rows = [row for row in rows if row.get("round") is None]
        yield from self._of_rows("risk", rows, expected, "a count of the records")


_COUNTS = ("rows_in", "rows_dropped_missing", "rows_published", "rows_left_out")


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, Claim):
        return expected.admits(found, _TOLERANCE)
    numbers = (found, expected)
    if any(isinstance(one, bool) for one in numbers):
        return found is expected
    if isinstance(found, int) and isinstance(expected, int):
        return found == expected
    if all(isinstance(one, int | float | Decimal) for one in numbers):
        return math.isclose(found, expected, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_same, found, expected))
    return bool(found == expected)


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _instant(value: Any) -> object:
    """Return a time as whole seconds, whether it was text or not."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return value
    if not isinstance(value, datetime):
        return value
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return int(moment.timestamp())


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
    Small tables are read by the driver; one pass over the table of classes with a small shuffle
    (:func:`~anonspark.verification.class_table.read_class_table`). Where the table ``nodes`` is
    there, one more that collects the labels of up to 200,000 classes.
    """
    tables: dict[str, list[Row]] = {}
    unread, files = [], engine.files
    unreadable = (pa.ArrowException, ValueError, OSError, ConfigurationError, *engine.failures)
    # Another version may have other figures.
    is_ours = manifest["versions"]["anonspark"] == __version__
    for name in TABLES:
        directory = f"{release}/metrics/{name}"
        if not files.exists(directory):
            continue
        try:
            tables[name] = _rows(files, directory, name, is_ours=is_ours)
        except unreadable:
            unread.append(name)
    labels = class_labels(manifest, hierarchies or {})
    classes: ClassTable | None = None
    nodes: Counted = {}
    if labels is not None and files.exists(f"{release}/metrics/classes"):
        try:
            classes = _read_classes(engine, release, manifest, labels)
            if "nodes" in tables:
                nodes = _count_nodes(engine, release, manifest, classes, tables["nodes"])
        except (KeyError, *unreadable):
            unread.append("classes")
    return Statements(
        release, manifest, privacy, risk, tables, tuple(unread), nodes, classes, labels
    )


def class_labels(manifest: Row, hierarchies: Mapping[str, Hierarchy]) -> ClassLabels | None:
    """Return how the labels of a release are read; None where its types are none."""
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
    """Count classes again where that is cheap, and their labels tell enough."""
    if sum(table.sizes.values()) > _MOST_COUNTED:
        return {}
    heights = _heights(manifest)
    names = ["round", "size", *(f"{name}_min" for name in heights)]
    classes = engine.published(f"{release}/metrics/classes", "parquet").select(names).collect()
    return count_nodes(classes, nodes, heights)


def _rows(files: Files, directory: str, name: str, *, is_ours: bool) -> list[Row]:
    """Return the rows of a small table.

    Raises
    ------
    ValueError
        If its columns are not those of the table.
    """
    rows: list[Row] = []
    schema = arrow_schema(TABLES[name])
    for path, size in files.files_below(directory):
        if path.startswith(("_", ".")):
            continue
        if size > _LARGEST_TABLE:
            raise ValueError("larger than any table of metrics")
        content = files.read_part(f"{directory}/{path}", 0, size)
        table = parquet.read_table(pa.BufferReader(content))
        found = {one.name: one.type for one in table.schema}
        if is_ours and table.schema.names != schema.names:
            raise ValueError("other columns than those of the table")
        if any(not _is_of_type(found[one.name], one.type) for one in schema if one.name in found):
            raise ValueError("a column is of another type")
        rows += table.select([one for one in schema.names if one in found]).to_pylist()
    if name == "nodes" and any(row.get(one) is None for row in rows for one in _NODES_NEED):
        raise ValueError("a row lacks its name")
    return rows


def _is_of_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a column is of a type, with whatever unit or time zone of times."""
    return bool(found == wanted or (pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted)))
