"""What manifest and metrics say of a release, held against one another and against counts.

A manifest is written by the run that made the release; whoever changes it afterwards, or puts
another one there, should not be believed. Everything that can be counted is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from anonspark.config.evaluate import RiskOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.criterion import K_UNITS
from anonspark.core.figures import OF_EVERY_RUN, TABLES
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError
from anonspark.release.manifest import MANIFEST
from anonspark.release.sections import owners
from anonspark.verification.classes import PublishedClasses
from anonspark.verification.criteria import MeasuredCriterion
from anonspark.verification.nodes import Counted, claims_of_nodes, count_nodes
from anonspark.verification.presence import Presence
from anonspark.verification.risk import attacks, attacks_with_population, risk_row

Row = Mapping[str, Any]

_OF_UNIONS = ("summary", "privacy", "risk")
"""The tables of metrics that a union has; the others tell of a run."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "timestamp": (datetime,),
    "double": (int, float),
    "decimal(38,0)": (int, Decimal),
}

# Without these no row can be told from another one.
_NEEDED = {
    "rounds": ("round",),
    "attributes": ("position", "attribute", "kind", "weight"),
    "privacy": ("criterion", "required", "measured"),
    "risk": ("attacker",),
    "nodes": ("round", "node", "levels", "classes", "min_class_size", "loss"),
}

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
        Rows of the metrics that are there, by name of the table; of ``classes`` one row a size of
        classes: ``size``, ``classes`` and ``ncp``, the sum of the losses of a record in each.
    unread : tuple of str
        Tables that are there and cannot be read.
    nodes : mapping
        What was counted of them in the table ``classes``.
    """

    release: str
    manifest: Row
    privacy: PrivacyOptions
    risk: RiskOptions
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    nodes: Counted = field(default_factory=dict)

    @property
    def units(self) -> dict[int, int] | None:
        """Classes of each number of units, as the run counted them; None where it did not."""
        said = self.manifest["published"].get("units")
        return dict(said) if said else None

    @property
    def columns(self) -> tuple[int | None, int | None]:
        """Columns that are published, and those of the input, as the run counted them."""
        summary = self.manifest.get("summary") or {}
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
        if "files" in self.manifest:
            found += [
                f"{self.release}/metrics/{name}: is not there; restore the release or publish it "
                "again"
                for name in (_OF_UNIONS if "parts" in self.manifest else (*OF_EVERY_RUN, "classes"))
                if name not in self.tables and name not in self.unread
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
                    *self._of_classes(),
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
        summary, said = self.manifest.get("summary", {}), self.manifest["published"]
        where = "the records in data"
        claims = [
            _Said("published.rows", said.get("rows", published.rows), published.rows, where),
            _Said("published.columns", said.get("columns", list(columns)), list(columns), where),
        ]
        for key, counted in (
            ("rows_published", published.rows),
            ("published_classes", published.classes),
            ("published_min_class_size", published.smallest),
        ):
            claims.append(_Said(f"summary.{key}", summary.get(key, counted), counted, where))
        if said.get("rows_left_out", 0) == 0:
            for name, number in said.get("sensitive_values", {}).items():
                different = values.get(name)
                if different is not None:
                    key = f"published.sensitive_values.{name}"
                    claims.append(_Said(key, number, different, where))
        return list(
            self._told(
                (
                    *claims,
                    *self._of_privacy_table(published, criteria, presence),
                    *self._of_risk_table(published, presence),
                )
            )
        )

    def misheld(self, rows: Mapping[str | None, int]) -> list[str]:
        """Tell whether a union has records of others than its parts, in one sentence at most.

        Parameters
        ----------
        rows : mapping of str or None to int
            Records that were counted for each holder.
        """
        said = {part["holder"]: part["rows"] for part in self.manifest["parts"]}
        same = _Said("parts (rows of each holder)", said == dict(rows), True, "a count in data")
        return list(self._told([same]))

    def _told(self, claims: Iterable[_Said]) -> Iterator[str]:
        for one in claims:
            if _same(one.found, one.expected):
                continue
            path = MANIFEST if one.table is None else f"metrics/{one.table}"
            yield (
                f"{self.release}/{path}: {one.key}: found {_shown(one.found)}, but {one.source} "
                f"says {_shown(one.expected)}; restore the release or publish it again"
            )

    def _of_configuration(self) -> Iterator[_Said]:
        """Compare what was published with what was configured."""
        configured, said = self.manifest["configuration"], self.manifest["published"]
        attributes = configured["attributes"]
        names = [name for name, one in attributes.items() if one["role"] == "quasi_identifier"]
        described = said["quasi_identifiers"]
        source = "configuration.attributes"
        yield _Said(
            "published.quasi_identifiers", [one["name"] for one in described], names, source
        )
        for place, one in enumerate(described):
            by_hierarchy = (attributes.get(one["name"]) or {}).get("hierarchy") is not None
            key = f"published.quasi_identifiers[{place}].hierarchy"
            yield _Said(key, "hierarchy" in one, by_hierarchy, source)
        columns, own = published_columns(self.manifest)
        source = "configuration (attributes, output.style, missing)"
        yield _Said("published.columns", said.get("columns", columns), columns, source)
        key = "published.quasi_identifier_columns"
        yield _Said(key, said["quasi_identifier_columns"], own, source)
        counted = self.units is not None
        yield _Said("published.units", counted, bool(self.privacy.unit), "privacy.unit")
        of_people = self.criteria_of_people
        if of_people is not None:
            key, asked = "published.criteria_of_people", len(self.privacy.criteria)
            yield _Said(key, len(of_people), asked, "configuration.privacy")
        distances = [one for one in self.privacy.criteria if one.is_distance]
        needed = {one.attribute for one in distances}
        if "sensitive_values" in said and needed:
            there = sorted(needed & set(said["sensitive_values"]))
            keys = sorted({f"configuration.privacy.{one.type.key}" for one in distances})
            source = " and ".join(keys)
            yield _Said("published.sensitive_values", there, sorted(needed), source)

    def _of_sections(self) -> Iterator[_Said]:
        """Compare sections that others own with the rest of the manifest."""
        for owner in owners(self.manifest):
            for one in owner.comparisons(self.manifest, self.privacy):
                yield _Said(*one)

    def _of_figures(self) -> Iterator[_Said]:
        """Compare the summary with the other sections of the manifest."""
        summary, said = self.manifest.get("summary") or {}, self.manifest["published"]
        configured = self.manifest["configuration"]
        if not summary:
            return
        rows = said.get("rows", summary.get("rows_published"))
        yield _Said("summary.rows_published", summary.get("rows_published"), rows, "published.rows")
        left_out = said.get("rows_left_out", summary.get("rows_left_out"))
        source = "published.rows_left_out"
        yield _Said("summary.rows_left_out", summary.get("rows_left_out"), left_out, source)
        k, model = configured["privacy"]["k"], configured.get("model") or {}
        yield _Said("summary.k", summary.get("k"), k, "configuration.privacy.k")
        name = model.get("name", summary.get("model"))
        yield _Said("summary.model", summary.get("model"), name, "configuration.model.name")
        version = (self.manifest.get("versions") or {}).get("anonspark", summary.get("version"))
        yield _Said("summary.version", summary.get("version"), version, "versions.anonspark")
        size = summary.get("mean_class_size")
        if size is not None and summary.get("aecs") is not None:
            yield _Said("summary.aecs", summary["aecs"], size / k, "summary.mean_class_size by k")
        loss = summary.get("loss")
        if loss is not None and summary.get("utility_score") is not None:
            score = 100 * (1 - loss)
            yield _Said("summary.utility_score", summary["utility_score"], score, "summary.loss")
        for name in ("gcp", "iloss", "precision", "loss"):
            figure = summary.get(name)
            if figure is not None:
                within = -_TOLERANCE <= figure <= 1 + _TOLERANCE
                yield _Said(
                    f"summary.{name}", figure, figure if within else "0 to 1", "its meaning"
                )
        published = sum(one["role"] != "identifier" for one in configured["attributes"].values())
        if "parts" not in self.manifest:
            columns = summary.get("columns_published", published)
            yield _Said("summary.columns_published", columns, published, "configuration.attributes")
        rows_in, *parts = (summary.get(name) for name in _COUNTS)
        counts = [part for part in parts if part is not None]
        if rows_in is not None and len(counts) == len(parts):
            total = sum(counts)
            source = "the sum of records that are published, dropped and left out"
            yield _Said("summary.rows_in", rows_in, total, source)

    def _of_gates(self) -> Iterator[_Said]:
        """Compare gates and drift with what was configured and what was found."""
        configured, summary = self.manifest["configuration"], self.manifest.get("summary") or {}
        for key, bounds, names in (
            ("gates", configured.get("gates"), ("min", "max")),
            ("drift", (configured.get("metrics") or {}).get("drift"), ("max",)),
        ):
            found = self.manifest.get(key)
            if found is None or not isinstance(bounds, dict):
                continue
            source = "configuration." + ("gates" if key == "gates" else "metrics.drift")
            yield _Said(key, [one["metric"] for one in found], list(bounds), source)
            for place, one in enumerate(found):
                bound = bounds.get(one["metric"])
                for name in names:
                    expected = bound.get(name) if isinstance(bound, dict) else bound
                    yield _Said(f"{key}[{place}].{name}", one[name], expected, source)
                if one["metric"] in summary:
                    figure, path = summary[one["metric"]], f"summary.{one['metric']}"
                    yield _Said(f"{key}[{place}].found", one["found"], figure, path)

    def _of_summary_table(self) -> Iterator[_Said]:
        rows = self.tables.get("summary")
        if rows is None:
            return
        yield _Said("rows", len(rows), 1, "its meaning", "summary")
        prints = self.manifest.get("fingerprints") or {}
        said = {
            **(self.manifest.get("summary") or {}),
            **{f"{name}_fingerprint": value for name, value in prints.items()},
            "run_id": self.manifest.get("run_id"),
            "started": _instant(self.manifest.get("started")),
        }
        for row in rows[:1]:
            for name, value in row.items():
                found = _instant(value) if name == "started" else value
                key = {"run_id": name, "started": name}.get(name, f"summary.{name}")
                if name.endswith("_fingerprint"):
                    key = f"fingerprints.{name.removesuffix('_fingerprint')}"
                yield _Said(key, said.get(name), found, "metrics/summary")

    def _of_small_tables(self) -> Iterator[_Said]:
        """Compare names and numbers of rows of the tables."""
        summary, configured = self.manifest.get("summary") or {}, self.manifest["configuration"]
        for name, rows in self.tables.items():
            if "run_id" in self.manifest and name != "classes":
                ids = sorted({str(row.get("run_id")) for row in rows})
                run_id = self.manifest["run_id"]
                yield _Said("run_id", ids, [run_id], f"run_id of {MANIFEST}", name)
        rounds = self.tables.get("rounds")
        if rounds is not None and summary.get("rounds") is not None:
            numbers = sorted(row["round"] for row in rounds)
            expected = list(range(1, summary["rounds"] + 1))
            yield _Said("round", numbers, expected, "summary.rounds", "rounds")
        attributes = self.tables.get("attributes")
        if attributes is not None:
            ordered = sorted(attributes, key=lambda row: row["position"])
            for column, key in (("attribute", "name"), ("kind", "kind")):
                there = [one[key] for one in self.manifest["published"]["quasi_identifiers"]]
                found = [row[column] for row in ordered]
                yield _Said(column, found, there, "published.quasi_identifiers", "attributes")
            weights = [
                float((configured["attributes"].get(row["attribute"]) or {}).get("weight", 1.0))
                for row in ordered
            ]
            found = [row["weight"] for row in ordered]
            yield _Said("weight", found, weights, "configuration.attributes", "attributes")

    def _of_nodes(self) -> Iterator[_Said]:
        """Compare the recodings above the chosen one with it, and it with the other tables."""
        nodes, rounds = self.tables.get("nodes"), self.tables.get("rounds")
        if nodes is None or rounds is None:
            return
        heights = _heights(self.manifest)
        for key, found, expected, source in claims_of_nodes(nodes, rounds, heights, self.nodes):
            yield _Said(key, found, expected, source, "nodes")
        smallest = (self.manifest.get("summary") or {}).get("min_class_size")
        if smallest is not None and nodes:
            found = min(row["min_class_size"] for row in nodes)
            yield _Said("min_class_size", found, smallest, "summary.min_class_size", "nodes")

    def _of_classes(self) -> Iterator[_Said]:
        """Compare the summary with the sizes of the classes, where all records are in one."""
        rows, summary = self.tables.get("classes"), self.manifest.get("summary") or {}
        if not rows or summary.get("rows_suppressed") != 0:
            return
        sizes = {row["size"]: row["classes"] for row in rows}
        classes, records = sum(sizes.values()), sum(size * one for size, one in sizes.items())
        for name, counted in (
            ("classes", classes),
            ("rows_published", records),
            ("min_class_size", min(sizes)),
            ("max_class_size", max(sizes)),
            ("mean_class_size", records / classes),
            ("dm", sum(size * size * one for size, one in sizes.items())),
            ("gcp_total", math.fsum(row["size"] * (row["ncp"] or 0.0) for row in rows)),
        ):
            if summary.get(name) is not None:
                yield _Said(f"summary.{name}", summary[name], counted, "metrics/classes")

    def _of_privacy_table(
        self,
        published: PublishedClasses,
        criteria: Iterable[MeasuredCriterion],
        presence: Presence | None,
    ) -> Iterator[_Said]:
        rows = self.tables.get("privacy")
        if rows is None:
            return
        privacy = self.privacy
        expected: list[tuple[str | None, str, float]] = [(None, "k", float(privacy.k))]
        units = self.units
        if units:
            expected.append((None, K_UNITS, float(privacy.k)))
        expected += [(one.attribute, one.kind, one.bound) for one in privacy.criteria]
        if privacy.delta_presence is not None:
            expected.append((None, "smallest presence", privacy.delta_presence.min))
            expected.append((None, "largest presence", privacy.delta_presence.max))
        names = [(row.get("attribute"), row["criterion"], row["required"]) for row in rows]
        yield _Said(
            "criterion",
            sorted(map(str, names)),
            sorted(map(str, expected)),
            "configuration.privacy",
            "privacy",
        )
        measured: dict[tuple[str | None, str, float], float] = {
            (one.criterion.attribute, one.criterion.kind, one.criterion.bound): one.measured
            for one in criteria
        }
        measured[(None, "k", float(privacy.k))] = published.smallest
        if units:
            measured[(None, K_UNITS, float(privacy.k))] = min(units)
        if presence is not None and privacy.delta_presence is not None:
            bounds = privacy.delta_presence
            measured[(None, "smallest presence", bounds.min)] = presence.smallest
            measured[(None, "largest presence", bounds.max)] = presence.largest
        for row in rows:
            counted = measured.get((row.get("attribute"), row["criterion"], row["required"]))
            if counted is not None:
                key = f"measured ({row['criterion']})"
                yield _Said(key, row["measured"], counted, "a count of the records", "privacy")

    def _of_risk_table(
        self, published: PublishedClasses, presence: Presence | None
    ) -> Iterator[_Said]:
        rows = self.tables.get("risk")
        if rows is None or not published.rows:
            return
        options = self.risk
        if self.privacy.delta_presence is None:
            found = attacks(self.units or published.sizes, options.threshold)
        elif presence is not None:
            counts = presence.counts
            if bool((counts.population < counts.released).any()):
                # Not the population that the release was made with: that is told elsewhere.
                return
            found = attacks_with_population(counts.released, counts.population, options.threshold)
        else:
            return
        of_release = {row["attacker"]: row for row in rows if row.get("round") is None}
        for attack in found:
            own = of_release.pop(attack.attacker, {})
            for name, figure in risk_row(attack, options).items():
                key = f"{attack.attacker}.{name}"
                yield _Said(key, own.get(name), figure, "a count of the records", "risk")
        yield _Said("attacker", sorted(of_release), [], "its meaning", "risk")


_COUNTS = ("rows_in", "rows_dropped_missing", "rows_published", "rows_left_out")


@dataclass(frozen=True)
class _Said:
    """A statement, beside what something else says of the same."""

    key: str
    found: Any
    expected: Any
    source: str
    table: str | None = None


def _same(found: Any, expected: Any) -> bool:
    numbers = (found, expected)
    if any(isinstance(one, bool) for one in numbers):
        return found is expected
    if isinstance(found, int) and isinstance(expected, int):
        return found == expected
    if all(isinstance(one, int | float) for one in numbers):
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
    engine: Engine, release: str, manifest: Row, privacy: PrivacyOptions, risk: RiskOptions
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

    Notes
    -----
    Small tables are read by the driver; one job with a small shuffle for the sizes of the classes.
    Where the table ``nodes`` is there, one more that collects the labels of up to 200,000 classes.
    """
    tables: dict[str, list[Row]] = {}
    unread, files = [], engine.files
    for name in (*TABLES, "classes"):
        directory = f"{release}/metrics/{name}"
        if not files.exists(directory):
            continue
        try:
            if name == "classes":
                tables[name] = _sizes(engine, directory)
            else:
                tables[name] = _typed(_rows(files, directory), name)
        except (pa.ArrowException, ValueError, OSError, ConfigurationError, *engine.failures):
            unread.append(name)
    nodes: Counted = {}
    if {"classes", "nodes"} <= set(tables):
        try:
            nodes = _count_nodes(engine, release, manifest, tables)
        except (pa.ArrowException, KeyError, ValueError, *engine.failures):
            unread.append("classes")
    return Statements(release, manifest, privacy, risk, tables, tuple(unread), nodes)


def _heights(manifest: Row) -> dict[str, int]:
    """Return the levels of the hierarchies above the values."""
    return {
        one["name"]: int((one.get("hierarchy") or {}).get("height", 0))
        for one in manifest["published"]["quasi_identifiers"]
    }


def _count_nodes(
    engine: Engine, release: str, manifest: Row, tables: Mapping[str, Sequence[Row]]
) -> Counted:
    """Count classes again where that is cheap, and their labels tell enough."""
    if sum(row["classes"] for row in tables["classes"]) > _MOST_COUNTED:
        return {}
    heights = _heights(manifest)
    names = ["round", "size", *(f"{name}_min" for name in heights)]
    classes = engine.published(f"{release}/metrics/classes", "parquet").select(names).collect()
    return count_nodes(classes, tables["nodes"], heights)


def _rows(files: Files, directory: str) -> list[Row]:
    rows: list[Row] = []
    for path, size in files.files_below(directory):
        if path.startswith(("_", ".")):
            continue
        if size > _LARGEST_TABLE:
            raise ValueError("larger than any table of metrics")
        content = files.read_part(f"{directory}/{path}", 0, size)
        rows += parquet.read_table(pa.BufferReader(content)).to_pylist()
    return rows


def _typed(rows: list[Row], table: str) -> list[Row]:
    """Return rows that have the columns and types of a table; columns of other versions are null.

    Raises
    ------
    ValueError
    """
    columns = [(figure.name, figure.type) for figure in TABLES[table]]
    for row in rows:
        if any(row.get(name) is None for name in _NEEDED.get(table, ())):
            raise ValueError("a row lacks its name")
        for name, kind in columns:
            value = row.get(name)
            if value is not None and not isinstance(value, _TYPES.get(kind, (int,))):
                raise ValueError(f"{name} is no {kind}")
    return [{name: row[name] for name, _ in columns if name in row} for row in rows]


def _sizes(engine: Engine, directory: str) -> list[Row]:
    table = engine.published(directory, "parquet")
    rows: list[Row] = table.aggregate(["size"], count="classes", sums=["ncp"]).collect().to_pylist()
    # Beside means there is no loss.
    losses = float | (None if all(row["ncp"] is None for row in rows) else float)
    if not all(type(row["size"]) is int and isinstance(row["ncp"], losses) for row in rows):
        raise ValueError("classes have no size or no loss")
    return rows
