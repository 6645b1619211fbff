"""A view in SQL with typed columns next to the labels: those of ``anonspark.read``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from anonspark.core.labels import divider_of, open_marks
from anonspark.labels.grammar import DATE, NUMBER, SECOND, SIGN
from anonspark.labels.regions import PublishedAttribute, published_attributes
from anonspark.labels.typed_names import Typed, has_unknown_labels, raw_type_of, typed_names
from anonspark.release.manifest import Manifest
from anonspark.sidecars import duckdb

VIEW = "records"

# Repetitions with a bound are slow in DuckDB.
_NUMBER = SIGN + re.sub(r"\{1,[0-9]+\}", "+", NUMBER)
_DATE = SIGN + DATE
_TIME = f"{_DATE}(?: {SECOND}(?:[.][0-9]{{1,6}})?)?"
_MEMBER = r'"(?:[^"\\]|\\.)*"|[^", ][^,]*'


def view_text(manifest: Manifest, schema: pa.Schema) -> str | None:
    """Write the statement that makes a view of a release, or return None if DuckDB cannot read it.

    The view has the published columns, whose schema is given, and typed ones next to their labels.
    """
    if manifest.data_format != "parquet":
        return None
    source = "read_parquet('data/*.parquet')"
    attributes = published_attributes(manifest)
    typed = {item.columns[-1]: _typed(item, manifest, schema) for item in attributes}
    shown = []
    for name in schema.names:
        shown.append(duckdb.quoted(name))
        shown += [_named(*expression) for expression in typed.get(name, _Columns()).shown]
    statement = [
        "-- The records of this release with typed columns next to the labels, in DuckDB.",
        "-- Run it in the directory of the release, or write its path before data.",
        f"CREATE OR REPLACE VIEW {VIEW} AS",
    ]
    steps = {
        "labels": [expression for item in typed.values() for expression in item.labels],
        "ends": [expression for item in typed.values() for expression in item.ends],
    }
    for number, (step, expressions) in enumerate(steps.items()):
        if expressions:
            added = ",\n".join(f"    {_named(*expression)}" for expression in expressions)
            begin = "," if number else "WITH"
            # Names are quoted, and nothing is executed here.
            statement.append(f"{begin} {step} AS (\n  SELECT *,\n{added}\n  FROM {source}\n)")  # noqa: S608
            source = step
    columns = ",\n".join(f"  {expression}" for expression in shown)
    return "\n".join(statement) + f"\nSELECT\n{columns}\nFROM {source};\n"


def _named(name: str, expression: str) -> str:
    """Name an expression.

    >>> _named("age", "1 + 1")
    '1 + 1 AS "age"'
    """
    quoted = duckdb.quoted(name)
    return quoted if quoted == expression else f"{expression} AS {quoted}"


@dataclass(frozen=True)
class _Columns:
    """Columns of a quasi-identifier, each a name and an expression of the step before."""

    labels: Sequence[tuple[str, str]] = ()
    ends: Sequence[tuple[str, str]] = ()
    shown: Sequence[tuple[str, str]] = ()


def _typed(attribute: PublishedAttribute, manifest: Manifest, schema: pa.Schema) -> _Columns:
    """Write the expressions of the typed columns of a quasi-identifier.

    A label of values becomes a set. A mean is its own middle, and two columns of bounds have one
    between them. Any other label gets three steps: without the mark of missing values, then its two
    ends, then what is shown of these. Text labels of unknown meaning get no column.
    """
    names = typed_names(
        attribute,
        schema.names,
        is_opaque=has_unknown_labels(attribute, manifest),
        may_miss=not manifest.drops_missing,
    )
    columns = [duckdb.quoted(name) for name in attribute.columns]
    if "set" in names:
        return _Columns(shown=[(names["set"], _set(columns[0]))])
    if "mid" in names and "min" not in names:
        if attribute.style == "mean":
            return _Columns(shown=[(names["mid"], columns[0])])
        raw_type = schema.field(attribute.columns[0]).type
        return _Columns(shown=[(names["mid"], _middle(columns[0], columns[1], raw_type))])
    if not names:
        return _Columns()
    arrow_type = raw_type_of(attribute, schema)
    label = columns[0]
    stripped = f"{attribute.name}_label"
    in_use = {name.lower() for name in schema.names}
    while stripped.lower() in in_use:
        stripped += "_"
    text, low, high = (duckdb.quoted(name) for name in (stripped, names["min"], names["max"]))
    if attribute.rule == "calendar":
        below, above = _marks(attribute)
        ends = _period(text, above, last=False), _period(text, below, last=True)
    else:
        ends = _ends(text, attribute, arrow_type)
    shown: dict[Typed, str] = {
        "min": low,
        "max": high,
        "mid": _middle(low, high, arrow_type),
        "missing": f"({label} = 'missing' OR {label} LIKE '% or missing')",
        "max_included": f"CASE WHEN {high} IS NOT NULL THEN {text} NOT LIKE '%[' END",
    }
    return _Columns(
        [(stripped, f"regexp_replace({label}, ' or missing$', '')")],
        [(names["min"], ends[0]), (names["max"], ends[1])],
        [(name, shown[content]) for content, name in names.items()],
    )


def _ends(label: str, attribute: PublishedAttribute, arrow_type: pa.DataType) -> tuple[str, str]:
    """Write the expressions of both ends of an interval, equal for a single value."""
    pattern = {"date": _DATE, "timestamp": _TIME}.get(attribute.kind, _NUMBER)
    divider = divider_of(attribute.kind)
    # `90+` has no upper end, `17 or less` no lower one.
    below, above = _marks(attribute)
    low = f"^[^0-9.+-]({pattern}){divider}({pattern}){above and f'(?:{above})?'}.$"
    high = f"^[^0-9.+-]({pattern}){below and f'(?:{below})?'}{divider}({pattern}).$"
    single = (f"^{pattern}$", 0)
    first = [(low, 1), single, (f"^({pattern}){above or '[+]'}$", 1)]
    last = [(high, 2), single, *([(f"^({pattern}){below}$", 1)] if below else [])]
    lowest, highest = (
        duckdb.typed(
            f"coalesce({', '.join(duckdb.matched(label, *match) for match in matches)})", arrow_type
        )
        for matches in (first, last)
    )
    return lowest, highest


def _marks(attribute: PublishedAttribute) -> tuple[str, str]:
    """Return patterns of the marks of ends that stand for all values beyond, or empty texts."""
    below, above = open_marks(attribute.kind)
    has_bottom, has_top = attribute.bottom is not None, attribute.top is not None
    return below if has_bottom else "", above.replace("+", "[+]") if has_top else ""


def _period(label: str, mark: str, *, last: bool) -> str:
    """Write the first or last day of a decade, year, quarter or month, or the day itself.

    A day may be followed by the mark of values beyond it.
    """
    year = f"try_cast(substr({label}, 1, 4) AS INT)"
    quarter = f"try_cast(right({label}, 1) AS INT)"
    month = f"try_cast(concat({label}, '-01') AS DATE)"
    if last:
        of_year = f"try_cast(concat({label}, '-12-31') AS DATE)"
        of_decade = f"make_date({year} + 9, 12, 31)"
        of_quarter = f"last_day(make_date({year}, 3 * {quarter}, 1))"
        of_month = f"last_day({month})"
    else:
        of_year = f"try_cast(concat({label}, '-01-01') AS DATE)"
        of_decade = f"make_date({year}, 1, 1)"
        of_quarter = f"make_date({year}, 3 * {quarter} - 2, 1)"
        of_month = month
    cases = (
        ("^[0-9]{4}$", of_year),
        ("^[0-9]{3}0s$", of_decade),
        ("^[0-9]{4}-Q[1-4]$", of_quarter),
        ("^[0-9]{4}-[0-9]{2}$", of_month),
        (f"^{_DATE}$", f"try_cast({label} AS DATE)"),
        *([(f"^{_DATE}{mark}$", f"try_cast(substr({label}, 1, 10) AS DATE)")] if mark else []),
    )
    whens = " ".join(
        f"WHEN {duckdb.matched(label, pattern, 0)} IS NOT NULL THEN {day}" for pattern, day in cases
    )
    return f"CASE {whens} END"


def _middle(low: str, high: str, arrow_type: pa.DataType) -> str:
    """Return the middle of two values of a type.

    >>> _middle("low", "high", pa.int32())
    'CAST(low AS DOUBLE) / 2 + CAST(high AS DOUBLE) / 2'
    """
    if pa.types.is_date(arrow_type):
        return duckdb.middle_day(low, high)
    if pa.types.is_timestamp(arrow_type):
        return duckdb.middle_time(low, high, zoned=arrow_type.tz is not None)
    return f"CAST({low} AS DOUBLE) / 2 + CAST({high} AS DOUBLE) / 2"


def _set(label: str) -> str:
    """Return the members of a label, which is a value or a set."""
    inner = f"substr({label}, 2, length({label}) - 2)"
    members = (
        f"CASE WHEN {label} LIKE '{{%' THEN {duckdb.members(inner, _MEMBER)} ELSE [{label}] END"
    )
    # Members are split by a pattern, so that commas in quotes stay.
    return duckdb.each(f"({members})")
