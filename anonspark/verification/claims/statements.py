"""Compare the statements of manifest and metrics with what the records show.

A statement that no record shows is a claim of the run: it is listed, and compared with no other
claim. Whoever has this package writes a release of another table that agrees with itself in every
figure, so agreement would prove nothing. A signature says who claims it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain, product
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from anonspark._version import __version__
from anonspark.config.gates import RiskOptions
from anonspark.config.privacy import PrivacyOptions
from anonspark.core.figures import (
    ATTRIBUTES,
    OF_EVERY_RUN,
    RISK,
    SUMMARY,
    TABLES,
    Figure,
    arrow_schema,
    without_losses,
)
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.core.labels import read_levels
from anonspark.core.pseudonyms import PSEUDONYM, PSEUDONYM_FORM
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine, Table
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, raise_if_limit_reached
from anonspark.labels.class_bounds import (
    BoundsReader,
    hierarchy_labels,
    is_alike,
    type_of_name,
)
from anonspark.labels.regions import leaves_by_label, published_attributes
from anonspark.release.derived_figures import Totals, privacy_rows, risk_rows
from anonspark.release.derived_manifest import columns_section, sections_of_summary
from anonspark.release.layout import COMPANIONS, LEFT_OUT, OF_UNIONS, REPORT
from anonspark.release.manifest import MANIFEST, Manifest
from anonspark.release.metric_tables import read_parts
from anonspark.release.risk import Floats, Sizes
from anonspark.verification.attacks.presence import Presence
from anonspark.verification.claims.left_out import count_texts
from anonspark.verification.proof.class_table import (
    ClassLabels,
    ClassTable,
    class_schema,
    read_class_table,
)
from anonspark.verification.proof.classes import PublishedClasses
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.proof.unit_criteria import MeasuredUnits

if TYPE_CHECKING:
    from anonspark.verification.attacks.attack import ByOriginal
    from anonspark.verification.claims.claim import Claim
    from anonspark.verification.result import Verification

Row = Mapping[str, Any]

# Sums of parts, and figures that were rounded on their way.
_TOLERANCE = 1e-12


class _Claimed:
    """What is expected of a figure that no record shows."""

    def __str__(self) -> str:
        return "a finite figure, or nothing"


CLAIMED: Any = _Claimed()

_TYPES = "data: types of the columns that are published as they came"
_SIZES = "metrics/classes: size"

_NEVER_SHOWN = (
    "data: order of classes, and of records in a class",
    *(f"metrics/classes: {name}" for name in ("class_id", "ncp", "order of rows", "round")),
    *(
        f"manifest: {key}"
        for key in (
            *("attempt", "chosen_model", "coding", "drift", "fingerprints.configuration"),
            *("fingerprints.input", "gates", "holder_column", "input_version", "parts"),
            *(
                "published.left_out_values",
                "published.quasi_identifiers",
                "published.rows_left_out",
            ),
            *("published.sensitive_values", "recipient", "run_id", "seconds", "started"),
            *("versions", "warnings"),
        )
    ),
    *(
        f"metrics/summary: {name}"
        for name in ("configuration_fingerprint", "input_fingerprint", "started", "version")
    ),
)
"""Statements that no file of a release shows."""


class Statement(NamedTuple):
    """A statement of a manifest or a table of metrics, and what the records show instead.

    ``key`` is its path, or what the message calls it, ``table`` that of the metrics, or None for
    the manifest.
    """

    key: str
    found: Any
    expected: Any
    table: str | None = None


@dataclass(frozen=True)
class Statements:
    """The statements about a release, by its manifest and its metrics.

    ``privacy`` and ``risk`` are those of the manifest, ``tables`` the rows of the metrics by the
    name of the table. ``unread`` are tables that cannot be read, or have other columns than theirs.
    ``classes`` is the table of that name, ``labels`` the reading of the records' labels, or None if
    the manifest does not describe it. ``claimed`` grows while statements are compared: what no
    record shows, as ``manifest: summary.rows_in`` or ``metrics/rounds``.
    """

    release: str
    manifest: Row
    privacy: PrivacyOptions
    risk: RiskOptions
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    classes: ClassTable | None = None
    labels: ClassLabels | None = None
    claimed: set[str] = field(default_factory=set)

    @property
    def units(self) -> dict[int, int] | None:
        """The classes of each number of units that the run counted, or None."""
        entries = self.manifest["published"].get("units")
        return dict(entries) if entries else None

    def misformed(self) -> list[str]:
        """Report columns, tables and texts that no run writes, one sentence each."""
        needed = OF_UNIONS if "parts" in self.manifest else (*OF_EVERY_RUN, "classes")
        present = {*self.tables, *(() if self.classes is None else ("classes",))}
        lacking = {name: "is not there" for name in needed if name not in present}
        lacking |= dict.fromkeys(self.unread, "cannot be read")
        return [
            *(
                f"{self.release}/metrics/{name}: {problem}. Restore the release or publish it again"
                for name, problem in lacking.items()
            ),
            *self._differ(chain(self._of_published(), self._of_tables())),
        ]

    def miscounted(self, proof: Verification, claim: Claim, columns: Sequence[str]) -> list[str]:
        """List differences between the manifest and the counts in the files, one sentence each.

        ``claim`` is what was required: figures of requirements that the manifest does not promise
        are not compared. ``columns`` are those of the records.
        """
        published = proof.published
        values = {measured.attribute: measured.values for measured in proof.sensitive}
        # Only the run knows the values of records that were left out.
        criteria = [
            measured
            for measured in proof.criteria
            if not measured.criterion.is_distance
            or measured.criterion.attribute not in claim.left_out.uncertainty
        ]
        is_same_presence = claim.privacy.delta_presence == self.privacy.delta_presence
        presence = proof.presence if is_same_presence else None
        weights = proof.weights if claim.risk.weights == self.risk.weights else None
        units = proof.units
        described = self.manifest["published"]
        counted: dict[str, object] = {"rows": published.rows, "columns": list(columns)}
        if described.get("rows_left_out", 0) == 0:
            counted["sensitive_values"] = {
                name: values[name]
                for name in described["sensitive_values"]
                if values.get(name) is not None
            }
        people = self.units
        if units is not None and units.unit != tuple(self.privacy.unit):
            units = None
        # Classes of equal labels, which the run counted one by one, are one here.
        is_same_number = people is not None and sum(people.values()) == published.classes
        if is_same_number and units is not None and not units.not_published:
            counted["units"] = [list(pair) for pair in sorted(units.classes.items())]
        else:
            keys = {"units", "criteria_of_people"} & described.keys()
            self.claimed.update(f"manifest: published.{key}" for key in keys)
        return list(
            self._differ(
                chain(
                    _entries("published", described, counted),
                    self._of_labels(published),
                    self._of_figures(published, units),
                    self._of_privacy(published, criteria, presence),
                    self._of_risk(published, presence, weights),
                )
            )
        )

    def mismeasured(self, proof: Verification, rows: int) -> list[str]:
        """List differences between the manifest and measures with the original, one sentence each.

        ``rows`` are the records of the original. Its columns are not compared, because a table with
        fewer columns, or with unchanged structs, has the same records.
        """
        published, loss = proof.published, proof.loss
        summary = self.manifest["summary"]
        if loss is None or self.manifest.get("recipient"):
            # Its ranges are those of the plan, and its counts lack withheld records.
            return []
        measured: dict[str, object] = {
            "rows_in": rows,
            "rows_dropped_missing": rows - loss.rows,
            "rows_left_out": loss.rows_left_out,
        }
        # If values of left-out records are withheld, ranges are those of published records.
        is_whole = self.manifest["published"]["left_out_values"] == "told"
        if summary.get("rows_left_out") is not None and is_whole:
            if published.classes == summary.get("classes"):
                measured["dm"] = loss.dm
            if loss.gcp is not None:
                measured |= {"gcp_total": loss.gcp_total, "gcp": loss.gcp, "loss": loss.gcp}
        compared = [name for name in measured if summary.get(name) is not None]
        self.claimed.difference_update(
            f"{source}{name}"
            for name in compared
            for source in ("manifest: summary.", "metrics/summary: ")
        )
        return list(
            self._differ(_entries("summary", summary, {name: measured[name] for name in compared}))
        )

    def compare_left_out(
        self, left_out: pa.Table | None, measured: Mapping[str, Counter[str | None]]
    ) -> list[str]:
        """List attributes whose left-out values are not those that the original has in addition."""
        if left_out is None or self.manifest.get("recipient"):
            return []
        stated = {
            name: count_texts(left_out.filter(pc.field("attribute") == name))
            for name in left_out["attribute"].unique().to_pylist()
        }
        if stated.keys() == measured.keys():
            self.claimed.discard(LEFT_OUT)
        return [
            f"{self.release}/{LEFT_OUT}: its values of {name} are not those that the original has "
            "beyond the published records. Restore the release or publish it again"
            for name, counts in measured.items()
            if counts != stated[name]
        ]

    def compare_types(
        self, published: pa.Schema, original: pa.Schema, as_they_came: Iterable[str]
    ) -> None:
        """Take types as proven if the original has them, too: other formats may have others."""
        names = set(as_they_came) & {*published.names}
        if names <= {*original.names} and all(
            is_alike(published.field(name).type, original.field(name).type) for name in names
        ):
            self.claimed.discard(_TYPES)

    def misheld(self, rows: Mapping[str | None, int]) -> list[str]:
        """Report if a union's counts of records for each holder are not those of its parts."""
        stated = {part["holder"]: part["rows"] for part in self.manifest["parts"]}
        return list(
            self._differ([Statement("parts (rows of each holder)", stated == dict(rows), True)])
        )

    @property
    def unproven(self) -> list[str]:
        """List the claims that no record proves, sorted."""
        is_union = "parts" in self.manifest
        sections = ("chosen_model", "coding", "drift", "gates", "input_version", "recipient")
        absent = {key for key in (*sections, "parts") if not self.manifest.get(key)}
        absent |= set() if is_union else {"holder_column"}
        listed = {file["path"] for file in self.manifest["files"]}
        texts = {REPORT} if self.is_of_this_version else {REPORT, *COMPANIONS}
        names = {*_NEVER_SHOWN} - {f"manifest: {key}" for key in absent} | self.claimed
        names |= {f"file: {name}" for name in texts & listed}
        names |= {f"{LEFT_OUT}: order of rows" for name in listed if name.startswith(LEFT_OUT)}
        configured = self.manifest["configuration"]
        names |= {f"manifest: configuration.{key}" for key in configured if key != "privacy"}
        names |= {
            f"data: labels of {reader.attribute.name}, whose hierarchy is in a file"
            for reader in (self.labels.readers if self.labels is not None else ())
            if reader.is_of_unknown_hierarchy
        }
        if configured["output"].get("pseudonyms"):
            names.add("data: which pseudonyms are of one person")
        if is_union:
            names = {name for name in names if not name.startswith("metrics/classes")}
        return sorted(names)

    @property
    def is_of_this_version(self) -> bool:
        """Whether this version writes the same texts next to the data."""
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

    def _differ(self, statements: Iterable[Statement]) -> Iterator[str]:
        """Yield a sentence for each statement that is wrong, and note the claims."""
        for key, stated, expected, table in statements:
            if expected is CLAIMED:
                name = re.sub(r" \(row \d+\)$", "", key)
                self.claimed.add(f"metrics/{table}: {name}" if table else f"manifest: {name}")
            # Risk is a quotient of counts, so it is exact: no room to hide data in its last bits.
            if is_same(stated, expected, 0.0 if table == "risk" else _TOLERANCE):
                continue
            path = MANIFEST if table is None else f"metrics/{table}"
            yield (
                f"{self.release}/{path}: {key}: found {_shown(stated)}, expected "
                f"{_shown(expected)}. Restore the release or publish it again"
            )

    def _of_published(self) -> Iterator[Statement]:
        """Compare columns and roles with the configuration, because they decide the classes."""
        configured, stated = self.manifest["configuration"], self.manifest["published"]
        described, criteria = stated["quasi_identifiers"], self.privacy.criteria
        distances = {criterion.attribute for criterion in criteria if criterion.is_distance}
        compared = {
            **stated,
            "quasi_identifiers": [[entry["name"], "hierarchy" in entry] for entry in described],
            "units": self.units is not None,
            "criteria_of_people": len(stated.get("criteria_of_people", criteria)),
            "sensitive_values": sorted(distances & stated["sensitive_values"].keys()),
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
        return _entries("published", compared, expected)

    def _of_tables(self) -> Iterator[Statement]:
        """Check texts in tables, and that hidden figures are null. Numbers alone are claims."""
        self.claimed.add(_TYPES)
        if any(file["path"].startswith(f"{LEFT_OUT}/") for file in self.manifest["files"]):
            self.claimed.add(LEFT_OUT)
        for name, rows in self.tables.items():
            ids = sorted({str(row.get("run_id")) for row in rows})
            yield Statement("run_id", ids, [self.manifest["run_id"]], name)
        names = [entry["name"] for entry in self.manifest["published"]["quasi_identifiers"]]
        is_counted = self.manifest["summary"].get("rows_left_out") is not None
        for name in {"rounds", "nodes"} & self.tables.keys():
            self.claimed.add(f"metrics/{name}")
            expected = []
            for row in self.tables[name]:
                expected_row = self._without_hidden(TABLES[name], row)
                if row["levels"] is not None and read_levels(row["levels"], names) is None:
                    expected_row |= {"levels": "a level of each quasi-identifier"}
                if name == "nodes" and not (
                    is_counted and (row["node"] == 1 or not row["suppressed"])
                ):
                    # The difference of two nodes would show how few records are suppressed.
                    expected_row |= {"suppressed": None}
                expected.append(expected_row)
            yield from self._of_rows(name, expected)

    def _of_rows(self, table: str, expected: Sequence[Row]) -> Iterator[Statement]:
        """Compare all rows and columns of a table."""
        rows = self.tables.get(table)
        if rows is None:
            return
        yield Statement("rows", len(rows), len(expected), table)
        for number, (row, expected_row) in enumerate(zip(rows, expected, strict=False), start=1):
            for name, value in row.items():
                if name != "run_id":
                    yield Statement(f"{name} (row {number})", value, expected_row.get(name), table)

    def _of_labels(self, published: PublishedClasses) -> Iterator[Statement]:
        """Check the form of all labels, and compare the table of classes with them."""
        content, labels, classes = published.labels, self.labels, self.classes
        if content is None or labels is None:
            return
        for reader, unsound in zip(labels.readers, content.unsound, strict=True):
            name = reader.attribute.name
            yield Statement(
                f"published.quasi_identifiers ({name}: records without a label)", unsound, 0
            )
        if classes is not None:
            agree = self._bounds_agree(published.rows, content.bounds, labels, classes)
            yield Statement("rows that no run writes", classes.unsound, 0, "classes")
            yield Statement("bounds and sizes (those of the labels)", agree, True, "classes")

    def _bounds_agree(
        self, rows: int, bounds: int, labels: ClassLabels, classes: ClassTable
    ) -> bool:
        """Return whether all records have the bounds of their labels, but those without a class."""
        without = rows - classes.rows
        if without <= 0:
            return without == 0 and bounds == classes.bounds
        # All their values are suppressed.
        readers = labels.readers
        if any(reader.has_hierarchy and reader.attribute.rule is None for reader in readers):
            # The top of a file's hierarchy has any name.
            return True
        tops = [("*", "* or missing")[: 1 + reader.has_missing_label] for reader in readers]
        missing = (bounds - classes.bounds) % 2**64
        return any(labels.hash_of(top, without) == missing for top in product(*tops))

    def _of_figures(
        self, published: PublishedClasses, units: MeasuredUnits | None
    ) -> Iterator[Statement]:
        """Compare the figures of the release, and of each attribute."""
        summary, is_union = self.manifest["summary"], "parts" in self.manifest
        counted: dict[str, object] = {
            "k": self.privacy.k,
            "rows_published": published.rows,
            "published_classes": published.classes,
            "published_min_class_size": published.smallest,
        }
        rows, shares = self._of_classes(published)
        if not is_union:
            attributes = self.manifest["configuration"]["attributes"].values()
            published_roles = [x["role"] for x in attributes if x["role"] != "identifier"]
            counted["columns_published"] = len(published_roles)
            counted |= {**rows, "smallest_units": min(self.units) if self.units else None}
            if units is not None or not self.privacy.unit:
                counted["alone"] = None if units is None else units.alone
        stated = [figure.name for figure in SUMMARY if figure.name in summary]
        expected = self._without_hidden(SUMMARY, dict.fromkeys(stated, CLAIMED) | counted)
        yield from _entries("summary", summary, {name: expected[name] for name in stated})
        if "summary" in self.tables:
            # The table has the figures of the manifest, as a row.
            self.claimed.update(
                f"metrics/summary: {name}" for name in stated if expected[name] is CLAIMED
            )
            yield Statement("rows", len(self.tables["summary"]), 1, "summary")
            for row in self.tables["summary"][:1]:
                sections: Row = sections_of_summary(row)
                # A null fingerprint in the table must differ from that of the manifest.
                prints = dict.fromkeys(self.manifest["fingerprints"]) | sections["fingerprints"]
                yield from _entries("", self.manifest, {**sections, "fingerprints": prints})
        if is_union or self.labels is None:
            return
        attributes = [
            {
                **dict.fromkeys((figure.name for figure in ATTRIBUTES), CLAIMED),
                **{"position": position, "attribute": reader.attribute.name},
                **{"kind": described["kind"], "weight": reader.attribute.weight},
                **share,
            }
            for position, (described, reader, share) in enumerate(
                zip(
                    self.manifest["published"]["quasi_identifiers"],
                    self.labels.readers,
                    shares or [{}] * len(self.labels.readers),
                    strict=False,
                ),
                start=1,
            )
        ]
        rows_of = [self._without_hidden(ATTRIBUTES, row) for row in attributes]
        yield from self._of_rows("attributes", rows_of)

    def _of_classes(self, published: PublishedClasses) -> tuple[dict[str, object], Sequence[Row]]:
        """Return the figures of the release, and of each attribute, that its classes show.

        Records that were left out show nothing, and classes with equal labels do not show which of
        them the run divided.
        """
        if self.classes is None or published.labels is None or self.labels is None:
            return {}, []
        without = published.rows - self.classes.rows
        sizes = Counter(published.sizes)
        # Records without a class mostly have a label that no class has.
        sizes.subtract([without] if without > 0 else [])
        if +sizes != Counter(self.classes.sizes):
            self.claimed.add(_SIZES)
            return {}, []
        is_whole = self.manifest["published"].get("rows_left_out") == 0
        figures = Totals(+sizes).size_figures(without, self.privacy.k)
        if not is_whole:
            hidden = ("dm", "mean_class_size_with_suppressed")
            return {name: figure for name, figure in figures.items() if name not in hidden}, []
        figures = {**figures, "rows_suppressed": without}
        content = published.labels
        if any(figure.has_hierarchy for figure in self.labels.readers) or any(content.fine):
            return figures, []
        wider = [records + without for records in content.wider]
        shares = [
            {"generalized_rows": records, "generalized_share": records / published.rows}
            for records in wider
        ]
        return {**figures, "minimal_distortion": sum(wider)}, shares

    def _of_privacy(
        self,
        published: PublishedClasses,
        criteria: Iterable[MeasuredCriterion],
        presence: Presence | None,
    ) -> Iterator[Statement]:
        """Compare the rows of the table ``privacy``."""
        figures = {measured.criterion: measured.measured for measured in criteria}
        rows = privacy_rows(
            self.privacy,
            published.smallest,
            self.units,
            {measured: figures.get(measured, CLAIMED) for measured in self.privacy.criteria},
            (CLAIMED, CLAIMED) if presence is None else (presence.smallest, presence.largest),
        )
        return self._of_rows("privacy", rows)

    def _of_risk(
        self,
        published: PublishedClasses,
        presence: Presence | None,
        weights: tuple[Sizes, Floats] | None,
    ) -> Iterator[Statement]:
        """Compare the risk of the release. The risk of rounds is only claimed."""
        claims: Row = dict.fromkeys((figure.name for figure in RISK), CLAIMED)
        population = (
            None if presence is None else (presence.counts.released, presence.counts.population)
        )
        is_covering = self.privacy.delta_presence is None
        if population is not None:
            # A population that lacks people of the release is another one: `broken_presence`
            # reports it.
            is_covering = not bool((population[0] > population[1]).any())
        rows = risk_rows(
            self.risk, {}, published.sizes, self.units, population if is_covering else None, weights
        )
        if not is_covering:
            rows = [{**claims, "round": None, "attacker": row["attacker"]} for row in rows]
        if self.risk.weights is not None and weights is None:
            # Weights are not published, or other ones were asked for.
            shown = {name: rows[0][name] for name in ("population", "threshold")}
            rows.append({**claims, **shown, "round": None, "attacker": "outsider"})
        attackers = {row["attacker"] for row in rows}
        of_rounds = [
            {**row, "attacker": row["attacker"] if row["attacker"] in attackers else "an attacker"}
            for row in self.tables.get("risk", ())
            if row["round"] is not None
        ]
        if of_rounds:
            self.claimed.add("metrics/risk: figures of rounds")
        return self._of_rows("risk", [*of_rounds, *rows])

    def _without_hidden(self, table: Sequence[Figure], row: Row) -> dict[str, object]:
        """Remove from a row what would give back bounds that are hidden behind a mean."""
        readers = self.labels.readers if self.labels is not None else ()
        hides = any(reader.content == "mean" for reader in readers)
        return without_losses(table, row) if hides else dict(row)


def is_same(stated: Any, expected: Any, tolerance: float = _TOLERANCE) -> bool:
    """Return whether a statement is what is expected, up to what was rounded on its way.

    >>> is_same(0.1 + 0.2, 0.3), is_same(True, 1), is_same(5.0, CLAIMED)
    (True, False, True)
    """
    if expected is CLAIMED:
        return not isinstance(stated, float) or math.isfinite(stated)
    numbers = (stated, expected)
    if any(isinstance(number, bool) for number in numbers):
        return stated is expected
    if isinstance(stated, int) and isinstance(expected, int):
        return stated == expected
    if all(isinstance(number, int | float | Decimal) for number in numbers):
        return math.isclose(stated, expected, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(stated, list) and isinstance(expected, list):
        return len(stated) == len(expected) and all(map(is_same, stated, expected))
    return bool(stated == expected)


def _shown(value: Any) -> str:
    """Write a value for a message, at most 200 characters of it.

    >>> _shown(None)
    'nothing'
    """
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _entries(key: str, stated: Row, expected: Row) -> Iterator[Statement]:
    """Compare the entries of a mapping, and of those in it.

    >>> next(_entries("published", {"rows": 3}, {"rows": 4}))
    Statement(key='published.rows', found=3, expected=4, table=None)
    """
    for name, value in expected.items():
        path = f"{key}.{name}" if key else name
        if isinstance(value, dict):
            yield from _entries(path, stated[name], value)
        else:
            yield Statement(path, stated.get(name), value)


def read_statements(
    engine: Engine,
    release: str,
    manifest: Row,
    privacy: PrivacyOptions,
    risk: RiskOptions,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> Statements:
    """Read the metrics of a release.

    ``privacy`` and ``risk`` are those of the manifest, and ``hierarchies`` those whose files could
    be read: labels of others are unknown. The driver reads small tables. One pass over the table of
    classes with a small shuffle
    (:func:`~anonspark.verification.proof.class_table.read_class_table`).
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
    if labels is not None and files.exists(f"{release}/metrics/classes"):
        try:
            classes = _read_classes(engine, release, manifest, labels)
        except unreadable as error:
            raise_if_limit_reached(error)
            unread.append("classes")
    return Statements(release, manifest, privacy, risk, tables, tuple(unread), classes, labels)


def class_labels(manifest: Row, hierarchies: Mapping[str, Hierarchy]) -> ClassLabels | None:
    """Return how to read the labels of a release, or None if the manifest has an unknown type."""
    described = manifest["published"]["quasi_identifiers"]
    has_missing_label = manifest["configuration"].get("missing", "drop") == "category"
    readers = []
    for attribute, entry in zip(
        published_attributes(Manifest(dict(manifest))), described, strict=True
    ):
        hierarchy = hierarchies.get(attribute.name)
        try:
            data_type = type_of_name(entry["type"])
        except (KeyError, ValueError):
            return None
        readers.append(
            BoundsReader(
                attribute,
                entry["kind"],
                data_type,
                has_hierarchy="hierarchy" in entry,
                has_missing_label=has_missing_label,
                labels=None if hierarchy is None else hierarchy_labels(leaves_by_label(hierarchy)),
            )
        )
    return ClassLabels(tuple(readers))


def _read_classes(engine: Engine, release: str, manifest: Row, labels: ClassLabels) -> ClassTable:
    """Read the table of classes. Raises ValueError if it has other columns than a run writes."""
    table = engine.published(f"{release}/metrics/classes", "parquet")
    expected = class_schema(labels)
    if table.schema.names != expected.names or not all(
        is_alike(field.type, expected_field.type)
        for field, expected_field in zip(table.schema, expected, strict=True)
    ):
        raise ValueError("other columns than those of the table")
    return read_class_table(table, labels, manifest["run_id"])


def _rows(files: Files, release: str, name: str, *, is_ours: bool) -> list[Row]:
    """Return the rows of a small table. Raises ValueError or KeyError if it has other columns."""
    rows: list[Row] = []
    schema = arrow_schema(TABLES[name])
    for table in read_parts(files, release, name):
        names = table.schema.names if not is_ours else schema.names
        if table.schema != pa.schema([schema.field(column) for column in names]):
            raise ValueError("other columns or types than those of the table")
        rows += table.to_pylist()
    return rows


_HOLDER, _RECORDS = "holder", "records"


def compare(
    proof: Verification,
    statements: Statements,
    data: Table,
    claim: Claim,
    where: str,
    matched: tuple[ByOriginal, pa.Schema] | None,
) -> Verification:
    """Add wrong statements to a proof as failures, and list those that no record proves."""
    failures = [*proof.failures, *_odd_pseudonyms(data, claim, where)]
    if proof.published.fingerprint != statements.manifest["fingerprints"]["output"]:
        failures.append(
            f"{where}: its records are not those that were published (the fingerprint "
            "differs from the manifest's). Restore the release or publish it again"
        )
    if claim.holder is not None:
        counted = data.select({_HOLDER: claim.holder}).aggregate([_HOLDER], count=_RECORDS)
        rows = counted.collect(len(statements.manifest["parts"]) + 1).to_pylist()
        failures += statements.misheld({row[_HOLDER]: row[_RECORDS] for row in rows})
    failures += statements.miscounted(proof, claim, data.schema.names)
    # An original that the release was not made of refutes nothing.
    if matched is not None and proof.truthfulness and proof.truthfulness.holds:
        by_original, schema = matched
        failures += statements.mismeasured(proof, by_original.rows)
        failures += statements.compare_left_out(claim.left_out.values, by_original.left_out)
        statements.compare_types(data.schema, schema, claim.as_they_came)
    return replace(
        proof,
        failures=failures,
        warnings=[*statements.warnings(), *proof.warnings],
        columns_published=statements.manifest["summary"].get("columns_published"),
        columns_in=statements.manifest["summary"].get("columns_in"),
        claimed=statements.unproven,
    )


def _odd_pseudonyms(data: Table, claim: Claim, where: str) -> list[str]:
    """Return the columns of pseudonyms that hold something else. One pass over each."""
    odd = []
    for name in claim.pseudonyms:
        counted = data.select([name]).map_batches(_count_odd_pseudonyms, _ODD)
        is_text = is_alike(data.schema.field(name).type, PSEUDONYM)
        if not is_text or counted.aggregate([], sums=_ODD.names).collect()[_RECORDS][0].as_py():
            odd.append(name)
    if not odd:
        return []
    return [
        f"{where}: holds other values than pseudonyms in {', '.join(map(repr, odd))}. The release "
        "must not be used"
    ]


_ODD = pa.schema([(_RECORDS, pa.int64())])


def _count_odd_pseudonyms(batches: Batches) -> Batches:
    """Yield how many values of each batch are no pseudonyms."""
    for batch in batches:
        matched = pc.match_substring_regex(batch.column(0).cast(PSEUDONYM), PSEUDONYM_FORM)
        odd = batch.num_rows - (pc.sum(matched).as_py() or 0)
        yield pa.RecordBatch.from_pydict({_RECORDS: [odd]}, _ODD)
