"""Every figure of a release, once: the tables of metrics, and the words for their columns.

The schemas of the tables, the terminal, the comparison of cells, gates, drift and the form of a
manifest read these rows. A new figure of the summary is a row here, and a line where it is computed
(:meth:`anonspark.release.derived_figures.Totals.figures` for figures of classes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa

Need = Literal[
    "information",
    "association",
    "weights",
    "baseline",
    "rounds",
    "one record",
    "units",
    "people",
    "request",
    "bounds",
    "ends",
]
"""Conditions for figures that not every run has: ``evaluate.information``,
``evaluate.association``, ``evaluate.risk.weights``, a model without outlier handling, several
rounds, an attacker who aims at one record, ``privacy.unit``, a published column that
identifies people, the request of a recipient, a style that publishes the bounds of classes, or a
gate on ends of ranges."""

# Sums of squares outgrow 64 bits where one class holds billions of records: decimals.
_SQUARES = "decimal(38,0)"
_NUMBERS = ("int", "long", "double", _SQUARES)


@dataclass(frozen=True)
class Figure:
    """One column of a table of metrics.

    Parameters
    ----------
    name : str
        Name of the column, in the configuration and the manifest, too.
    type : str
        Type of the column, as DDL.
    words : str
        What it is, for people. Braces name another figure of the same row.
    unit : str
        What it is measured in, or its range.
    is_symbol : bool
        Whether people know it by its name, too, which then stands beside the words.
    better : str or None
        ``smaller`` or ``larger``, or None if cells of a comparison are not ranked by it.
    needs : str or None
        Condition of runs that measure it, or None if every run does.
    is_loss : bool
        Whether it shows how wide classes are: it is null if means are published, whose bounds are
        hidden.
    is_result : bool
        Whether gates and drift may bound it: it is neither configured nor known after the end.
    line : int or None
        Its position on the terminal among the figures of its table, or None if it is not shown.

    Examples
    --------
    >>> Figure("gcp", "double", "certainty penalty per value", "0 to 1", is_symbol=True).title
    'certainty penalty per value (gcp, 0 to 1)'
    """

    name: str
    type: str
    words: str = ""
    unit: str = ""
    is_symbol: bool = False
    better: Literal["smaller", "larger"] | None = None
    needs: Need | None = None
    is_loss: bool = False
    is_result: bool = True
    line: int | None = None

    @property
    def title(self) -> str:
        """Words for a line of a table."""
        if not self.is_symbol:
            return self.words
        return f"{self.words} ({', '.join(filter(None, (self.name, self.unit)))})"

    @property
    def axis(self) -> str:
        """Words for the axis of a chart, with the unit."""
        words = ", ".join(filter(None, (self.words or self.name.replace("_", " "), self.unit)))
        return f"{words} ({self.name})" if self.is_symbol else words


_ARROW_TYPES: Mapping[str, pa.DataType] = MappingProxyType(
    {
        "string": pa.string(),
        "int": pa.int32(),
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
        _SQUARES: pa.decimal128(38, 0),
    }
)


def arrow_schema(table: Sequence[Figure]) -> pa.Schema:
    """Return the schema of a table."""
    return pa.schema([(figure.name, _ARROW_TYPES[figure.type]) for figure in table])


def without_losses(table: Sequence[Figure], row: Mapping[str, Any]) -> dict[str, object]:
    """Return a row of a table whose figures of loss are null.

    >>> without_losses(SUMMARY, {"classes": 40, "gcp": 0.2})
    {'classes': 40, 'gcp': None}
    """
    losses = [figure.name for figure in table if figure.is_loss and figure.name in row]
    return {**row, **dict.fromkeys(losses)}


def results(table: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the columns of a table that are numbers and outcomes of a run, in its order."""
    return tuple(figure for figure in table if figure.is_result and figure.type in _NUMBERS)


def shown(table: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the columns of a table that the terminal shows, in the order there.

    >>> [figure.name for figure in shown(PRIVACY)]
    ['attribute', 'criterion', 'required', 'measured']
    """
    figures = [figure for figure in table if figure.line]
    return tuple(sorted(figures, key=lambda figure: figure.line or 0))


def _configured(name: str, data_type: str) -> Figure:
    return Figure(name, data_type, is_result=False)


ENDS = "isolating_ends"
"""Figure that is measured where a gate bounds it."""

_RUN = Figure("run_id", "string")

SUMMARY = (
    _RUN,
    Figure("model", "string"),
    _configured("k", "int"),
    _configured("rho", "int"),
    Figure("rounds", "int", "rounds"),
    Figure("columns_in", "int", "columns of the input", is_result=False),
    Figure("columns_published", "int", "columns published", is_result=False),
    Figure("rows_in", "long", "records of the input"),
    Figure(
        "rows_dropped_missing",
        "long",
        "records dropped, a quasi-identifier missing",
        line=2,
    ),
    Figure("rows_published", "long", "records published", line=1),
    Figure(
        "rows_suppressed",
        "long",
        "records without a class, suppressed",
        better="smaller",
        line=3,
    ),
    Figure(
        "rows_left_out",
        "long",
        "of them not published",
        line=4,
    ),
    Figure(
        "classes",
        "long",
        "classes",
        better="larger",
        line=8,
    ),
    Figure(
        "published_classes",
        "long",
        "classes by published tuple",
        better="larger",
        line=9,
    ),
    Figure(
        "dm",
        _SQUARES,
        "discernibility metric",
        is_symbol=True,
        better="smaller",
        line=11,
    ),
    Figure(
        "gcp_total",
        "double",
        "certainty penalty",
        is_symbol=True,
        better="smaller",
        line=12,
        is_loss=True,
    ),
    Figure(
        "gcp",
        "double",
        "certainty penalty per value",
        "0 to 1",
        is_symbol=True,
        better="smaller",
        line=13,
        is_loss=True,
    ),
    Figure("iloss", "double", "ILoss", "0 to 1", is_symbol=True, better="smaller", is_loss=True),
    Figure(
        "minimal_distortion",
        "long",
        "minimal distortion",
        "values",
        better="smaller",
        is_loss=True,
    ),
    Figure(
        "aecs",
        "double",
        "mean class size by k",
        is_symbol=True,
        better="smaller",
    ),
    Figure(
        "mean_class_size",
        "double",
        "mean class size",
        "records",
        better="smaller",
        line=10,
    ),
    Figure(
        "mean_class_size_with_suppressed",
        "double",
        "mean class size with suppressed",
        "records",
        better="smaller",
    ),
    Figure(
        "median_class_size",
        "double",
        "median class size",
        "records",
        better="smaller",
    ),
    Figure("precision", "double", "precision", "0 to 1", better="larger", is_loss=True),
    Figure(
        "loss",
        "double",
        "loss",
        "0 to 1",
        better="smaller",
        is_loss=True,
    ),
    Figure("min_class_size", "long", "smallest group", "records"),
    Figure("max_class_size", "long", "largest group", "records"),
    Figure(
        "published_min_class_size",
        "long",
        "smallest class (k = {k})",
        line=5,
    ),
    Figure(
        "units",
        "long",
        "people whom the records are about",
        needs="units",
    ),
    Figure(
        "smallest_units",
        "long",
        "fewest people of a class (k = {k})",
        needs="units",
        line=6,
    ),
    Figure(
        "alone",
        "long",
        "people who agree with no one in the classes of all records",
        needs="people",
        line=7,
    ),
    Figure(
        "rows_requested",
        "long",
        "records that the recipient may have",
        needs="request",
    ),
    Figure(
        "rows_withheld",
        "long",
        "of them withheld for other recipients' sake",
        needs="request",
    ),
    Figure("baseline_classes", "long", "classes without outlier handling", needs="baseline"),
    Figure("baseline_dm", _SQUARES, "dm without outlier handling", needs="baseline"),
    Figure(
        "baseline_gcp_total",
        "double",
        "gcp_total without outlier handling",
        needs="baseline",
        line=14,
        is_loss=True,
    ),
    Figure(
        "baseline_mean_class_size",
        "double",
        "mean class size without outlier handling",
        "records",
        needs="baseline",
    ),
    Figure("rule_a", "int", "rule A: dm", needs="baseline"),
    Figure("rule_b", "int", "rule B: mean class size", needs="baseline"),
    Figure("rule_c", "int", "rule C: gcp_total", needs="baseline", is_loss=True),
    Figure("rule_gain_utility", "int", "rho-Gain: utility", needs="rounds"),
    Figure("rule_gain_risk", "int", "rho-Gain: risk", needs="rounds"),
    Figure("rule_gain", "int", "rho-Gain", needs="rounds"),
    Figure(
        "entropy", "double", "non-uniform entropy", "bits", better="smaller", needs="information"
    ),
    Figure(
        "kl_divergence",
        "double",
        "Kullback-Leibler divergence",
        "bits",
        better="smaller",
        needs="information",
    ),
    Figure(
        "association_loss",
        "double",
        "association with the target that is lost",
        "0: nothing, about 1: all",
        better="smaller",
        needs="association",
        line=15,
    ),
    Figure(
        ENDS,
        "double",
        "share of the ends of ranges whose strip of the grid holds one record",
        needs="ends",
        is_loss=True,
    ),
    Figure("utility_score", "double", "utility score", "0 to 100", is_loss=True),
    Figure("configuration_fingerprint", "string"),
    Figure("input_fingerprint", "string"),
    Figure("output_fingerprint", "string"),
    Figure("version", "string"),
    Figure("started", "timestamp"),
    Figure("seconds", "double", "time of a run", "seconds", better="smaller", is_result=False),
)
"""The row of a release."""

HISTORY = (*SUMMARY, Figure("job", "string"), Figure("settings_fingerprint", "string"))
"""The table summary of all runs: each row has the columns that show which of them can be
compared."""

ROUNDS = (
    _RUN,
    replace(_configured("round", "int"), line=1),
    Figure("rows", "long", line=2),
    Figure("normal_rows", "long", line=3),
    Figure("outlier_rows", "long", line=4),
    Figure("classes", "long", line=5),
    Figure("classes_total", "long"),
    Figure("dm", _SQUARES),
    Figure("dm_total", _SQUARES),
    Figure("gcp_total", "double", line=6, is_loss=True),
    Figure("gcp_total_cumulative", "double", is_loss=True),
    Figure("gcp_total_if_last", "double", is_loss=True),
    Figure("mean_class_size", "double"),
    Figure("mean_class_size_with_outliers", "double"),
    Figure("precision", "double", is_loss=True),
    Figure("loss", "double", is_loss=True),
    Figure("height", "int"),
    Figure("levels", "string", line=7),
)
"""A row a round."""

ATTRIBUTES = (
    _RUN,
    _configured("position", "int"),
    Figure("attribute", "string", line=1),
    Figure("kind", "string", line=2),
    _configured("weight", "double"),
    Figure("missing_rows", "long", line=3),
    Figure("generalized_rows", "long", is_loss=True),
    Figure("generalized_share", "double", line=4, is_loss=True),
    Figure("ncp_total", "double", is_loss=True),
    Figure("ncp", "double", line=5, is_loss=True),
    Figure("iloss", "double", line=6, is_loss=True),
    Figure("loss", "double", is_loss=True),
    _configured("height", "int"),
    Figure("precision", "double", is_loss=True),
    Figure("entropy", "double", needs="information"),
    Figure("association_before", "double", needs="association"),
    Figure("association_after", "double", needs="association"),
)
"""A row a quasi-identifier."""

RISK = (
    _RUN,
    _configured("round", "int"),
    Figure("attacker", "string", line=1),
    Figure("population", "boolean"),
    Figure("highest", "double", needs="one record", line=2),
    Figure("average", "double", line=3),
    Figure("at_risk", "double", needs="one record", line=4),
    Figure("lowest", "double", needs="one record"),
    Figure("at_highest", "double", needs="one record"),
    Figure("at_lowest", "double", needs="one record"),
    Figure("unique", "double", needs="one record", line=5),
    Figure("expected", "double", needs="weights", line=6),
    _configured("threshold", "double"),
    Figure("high_highest", "boolean"),
    Figure("high_average", "boolean"),
    Figure("high_at_risk", "boolean"),
    Figure("high_unique", "boolean"),
)
"""A row a round and attacker, and one an attacker for the whole release."""

PRIVACY = (
    _RUN,
    Figure("attribute", "string", line=1),
    Figure("criterion", "string", line=2),
    Figure("required", "double", line=3),
    Figure("c", "double"),
    Figure("measured", "double", line=4),
)
"""A row a criterion."""

NODES = (
    _RUN,
    _configured("round", "int"),
    _configured("node", "int"),
    Figure("levels", "string"),
    Figure("height", "int"),
    Figure("classes", "long"),
    Figure("min_class_size", "long"),
    Figure("suppressed", "long"),
    Figure("loss", "double"),
)
"""A row a round and recoding. Only of releases whose rounds have one recoding each."""

TABLES: Mapping[str, tuple[Figure, ...]] = {
    "summary": SUMMARY,
    "rounds": ROUNDS,
    "attributes": ATTRIBUTES,
    "privacy": PRIVACY,
    "risk": RISK,
    "nodes": NODES,
}
"""The tables of metrics that are small, by the name of their folder."""

OF_EVERY_RUN = tuple(name for name in TABLES if name != "nodes")
"""Those of them that the release of every run has."""
