"""What a column is never depends on a record that does not show, whatever its values are.

Two tables differ in one record that a release leaves out, that a recipient does not get, or that
``select`` counts: an ordinary one, and one that is anything at all. ``ANONSPARK_FUZZ`` says how
many of the latter are drawn of each kind.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import chdir
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Cli, Outcome
from everything_written import everything
from helpers import configuration_file, write_table
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import anonspark
from anonspark.api.local import LocalAdapter
from anonspark.api.tables import with_texts
from anonspark.core.columns import SUBJECT
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError
from anonspark.sharing.ledger.chain import Key, make_key
from anonspark.sharing.ledger.ledger import init_ledger
from anonspark.sharing.recipients.distribute import distribute
from anonspark.sharing.recipients.plan import parse_plan
from anonspark.sharing.recipients.source import read_source
from anonspark.sharing.recipients.source_snapshot import PATTERN
from anonspark.sharing.selection.counting import count_tables
from anonspark.sharing.selection.request import open_query
from anonspark.sharing.selection.settings import parse_selection

Row = dict[str, Any]
EXAMPLES = int(os.environ.get("ANONSPARK_FUZZ", "3"))
FORMATS = ("csv", "json", "parquet")
SCHEMA = pa.schema(
    [
        ("pid", pa.string()),
        ("age", pa.int64()),
        ("zip", pa.int32()),
        ("since", pa.date32()),
        ("diag", pa.string()),
        ("nights", pa.int16()),
        ("dose", pa.decimal128(9, 2)),
        ("seen", pa.timestamp("ns")),
        ("ward", pa.string()),
    ]
)
ATTRIBUTES = {
    "pid": "identifier",
    **dict.fromkeys(("age", "zip", "since"), "quasi_identifier"),
    "diag": "sensitive",
    **dict.fromkeys(("nights", "dose", "seen", "ward"), "insensitive"),
}
SEED = 6834927109572938475
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def people() -> list[Row]:
    draw = random.Random(8)  # noqa: S311 - the same people each time
    return [
        {
            "pid": f"P{number:03}",
            "age": draw.randint(18, 90),
            "zip": draw.randint(10_000, 10_030),
            "since": date(2020, 1, draw.randint(1, 28)),
            "diag": draw.choice(["flu", "cold", "cough"]),
            "nights": draw.randint(0, 30),
            "dose": Decimal(draw.randint(100, 999)) / 100,
            "seen": datetime(2024, 5, 1, draw.randint(0, 23)),
            "ward": draw.choice(["surg", "psy"]),
        }
        for number in range(80)
    ]


PEOPLE = people()
ORDINARY = {**PEOPLE[7], "pid": "X"}

TEXTS = st.one_of(
    st.sampled_from(
        [
            *("3.5", "1e5", "-0", "007", "2.500", "10", "?", "NaN", "inf", "true", "TRUE", "-9.0"),
            *("2020-01-31", "31.12.1999", "2020-01-31 08:00:00.123456789", "9999-12-31T23:59:59Z"),
            *('"', '"a', 'a"b', "'", ",", ";", "\\", " x ", "\0"),
            *("\ufeff", "e\u0301", "\U0001f600"),
            *("9" * 40, "P001", "x" * 5_000, "=1+1", "null", "{}", "[1]"),
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=6),
)
OBJECTS = st.recursive(
    st.one_of(
        TEXTS,
        st.integers(),
        st.integers(min_value=2**53, max_value=2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
        st.just("\ud800"),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)


def wild_column(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return what a column of a type may hold."""
    if pa.types.is_string(kind):
        return TEXTS
    if pa.types.is_date(kind):
        return st.dates()
    if pa.types.is_timestamp(kind):
        return st.integers(-(2**62), 2**62)
    if pa.types.is_decimal(kind):
        return st.decimals(places=2, min_value=-9_999_999, max_value=9_999_999)
    return st.integers(-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)


def wild(data_format: str) -> st.SearchStrategy[Row]:
    """Return what a record may hold, but for who it is."""
    columns = [field for field in SCHEMA if field.name != "pid"]
    if data_format == "json":
        names = st.fixed_dictionaries({}, optional={field.name: OBJECTS for field in columns})
        return st.builds(dict, names, other=OBJECTS) | names
    return st.fixed_dictionaries(
        {
            field.name: TEXTS if data_format == "csv" else st.none() | wild_column(field.type)
            for field in columns
        }
    )


def write(path: Path, rows: list[Row]) -> Path:
    """Write records in the format that the name of a file says."""
    data_format = path.suffix[1:]
    if data_format == "json":
        path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in rows))
    elif data_format == "csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(SCHEMA.names)
            out.writerows([row[name] for name in SCHEMA.names] for row in rows)
    else:
        write_table(path, pa.Table.from_pylist(rows, SCHEMA), data_format)
    return path


def plain(row: Row, data_format: str) -> Row:
    """Return a record whose values a format has."""
    if data_format != "json":
        return row
    return {key: float(own) if isinstance(own, Decimal) else own for key, own in row.items()}


def assert_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, own in expected.items():
        assert found[name] == own, name


HIDDEN: Mapping[str, Row] = {
    "without an age": {"age": None},
    "without a day, by a marker": {"age": -9},
    "without a zip": {"zip": None},
}


@pytest.mark.parametrize("data_format", FORMATS)
def test_a_run(tmp_path: Path, cli: Cli, data_format: str) -> None:
    path, has_no_types = tmp_path / f"input.{data_format}", data_format != "parquet"
    config = configuration_file(
        tmp_path,
        input={"path": str(path), "missing_markers": ["", "NA", "-9"]},
        attributes=ATTRIBUTES,
        missing="drop",
        privacy={"k": 5, "l_diversity": {"attribute": "diag", "l": 2}},
        output={"mode": "overwrite"},
        execution={"seed": SEED},
    )

    def released(hidden: Row) -> dict[str, Any]:
        write(path, [plain(row, data_format) for row in [*PEOPLE[:40], hidden, *PEOPLE[40:]]])
        outcome = cli.ends(0, "run", config, "--no-progress", "--run-id", "same")
        return everything(tmp_path / "release", outcome)

    expected = released(ORDINARY | {"age": None})

    @fuzzed
    @given(wild(data_format), st.sampled_from(sorted(HIDDEN)))
    @example(ORDINARY | ({"nights": "x", "dose": "1"} if has_no_types else {}), "without an age")
    def nothing_differs(row: Row, how: str) -> None:
        # Without any value it were no record.
        row = {"pid": "X", "zip": 1, "age": 1} | row | HIDDEN[how] | {"ward": "psy"}
        assert_same(released(row), expected)

    nothing_differs()


def test_a_run_of_a_table_in_memory() -> None:
    columns = ["age", "zip", "diag", "nights"]
    document = {
        "attributes": {name: ATTRIBUTES[name] for name in columns},
        "privacy": {"k": 5},
        "missing": "drop",
        "execution": {"seed": SEED},
    }

    def released(*hidden: Row) -> tuple[pa.Table, list[Any]]:
        rows = pd.DataFrame([*PEOPLE, *hidden], columns=columns, dtype=object)
        with anonspark.anonymize(rows, document) as release:
            return release.to_arrow(), release.manifest["warnings"]

    # A row without any value is passed over, as if it was not there.
    expected = released(ORDINARY | {"age": None}), released()

    @fuzzed
    @given(st.fixed_dictionaries(dict.fromkeys(columns[1:], OBJECTS)))
    @example(ORDINARY | {"nights": "x"})
    @example(ORDINARY | {"zip": 3.5, "nights": 2**70, "diag": date(2020, 1, 1)})
    @example({"zip": [], "diag": [], "nights": []})
    def nothing_differs(row: Row) -> None:
        assert released(row | {"age": None}) in expected

    nothing_differs()


def plan_of(path: Path, output: str, *, ledger: bool) -> dict[str, Any]:
    base = {"attributes": ATTRIBUTES, "privacy": {"k": 5}, "execution": {"seed": SEED}}
    columns = ["age", "zip", "since", "diag", "nights", "dose", "seen"]
    return {
        "base": base | {"input": {"path": path.name}, "missing": "category"},
        "subject": "pid",
        "collusion": {"k": 5},
        "output": output,
        "recipients": {
            "a": {"approved": "x", "columns": columns, "where": {"ward": ["surg"]}},
            "b": {"approved": "y", "columns": columns[:5], "where": {"ward": {"not_in": ["no"]}}},
        },
    } | ({"ledger": {"path": "ledger", "key_file": "key"}} if ledger else {})


def distributed(path: Path, rows: list[Row], night: int, *, ledger: bool) -> dict[str, Any]:
    write(path, [plain(row, path.suffix[1:]) for row in rows])
    # The same paths in every folder: they are in the fingerprint of the configuration.
    with chdir(path.parent):
        plan = parse_plan(plan_of(path, f"n{night}", ledger=ledger))
        distribute(LocalEngine(), plan, run_id=f"n{night}")
    return {name: everything(path.parent / f"n{night}" / name, Outcome(0, "", "")) for name in "ab"}


def two_tables(
    folder: Path, data_format: str, released: Callable[[Path, Row], Any], hidden: Row
) -> Callable[[Row], Any]:
    """Return what compares the releases with a record with those with an ordinary one."""
    places = iter(range(10**9))

    def of(row: Row) -> Any:
        place = folder / str(next(places))
        found = released(place / f"t.{data_format}", {**row, "pid": "X", **hidden})
        shutil.rmtree(place)
        return found

    expected = of(ORDINARY)

    def compare(row: Row) -> None:
        found = of(row)
        assert found.keys() == expected.keys()
        for name in found:
            assert_same(found[name], expected[name])

    return compare


@pytest.mark.parametrize("data_format", FORMATS)
def test_a_plan_whose_conditions_exclude_it(tmp_path: Path, data_format: str) -> None:
    def released(path: Path, row: Row) -> Any:
        path.parent.mkdir()
        return distributed(path, [row, *PEOPLE], 1, ledger=False)

    compare = two_tables(tmp_path, data_format, released, {"ward": "no"})

    @fuzzed
    @given(wild(data_format))
    @example(ORDINARY | ({"nights": "x", "age": 44.5} if data_format != "parquet" else {}))
    def nothing_differs(row: Row) -> None:
        compare(row)

    nothing_differs()


@pytest.mark.parametrize("data_format", FORMATS)
def test_a_plan_that_withholds_it(tmp_path: Path, data_format: str) -> None:
    first = tmp_path / "first"
    first.mkdir()
    key = make_key(str(first / "key"))
    init_ledger(LocalEngine().files, str(first / "ledger"), key, ["pid"], ())
    distributed(first / f"t.{data_format}", PEOPLE, 1, ledger=True)

    def released(path: Path, row: Row) -> Any:
        shutil.copytree(first, path.parent)
        return distributed(path, [*PEOPLE, row], 2, ledger=True)

    compare = two_tables(tmp_path, data_format, released, {"ward": "surg"})

    @fuzzed
    @given(wild(data_format))
    @example(ORDINARY | ({"nights": 3.5, "zip": "x"} if data_format != "parquet" else {}))
    def nothing_differs(row: Row) -> None:
        compare(row)

    nothing_differs()


@pytest.mark.parametrize("data_format", ["csv", "json"])
def test_a_plan_that_gives_it_to_another_recipient(tmp_path: Path, data_format: str) -> None:
    """Quasi-identifiers have the ranges, and types, of all that is given. Others have not."""
    others = [PEOPLE[place] | {"pid": f"X{place}", "ward": "other"} for place in range(5)]
    types = []

    def released(path: Path, row: Row) -> Any:
        path.parent.mkdir()
        found = distributed(path, [row, *others, *PEOPLE], 1, ledger=False)
        data = pq.read_table(path.parent / "n1" / "b" / "data")
        types.append(str(data.schema.field("nights").type))
        return {"a": found["a"]}

    compare = two_tables(tmp_path, data_format, released, {"ward": "other"})
    compare(ORDINARY | {"nights": 3.5})
    assert types == [{"csv": "int32", "json": "int64"}[data_format], "double"]


CONDITIONS: list[dict[str, Any]] = [
    {"age": {"min": 30, "max": 64}},
    {"zip": [10_003, 10_007, 10_011, 10_020], "nights": {"not_in": [0, 2**60]}},
    {"since": {"min": "2020-01-10"}, "ward": "surg"},
    {"seen": {"max": "2024-05-01 12:00:00"}, "dose": {"min": 2.5}},
    {"ward": {"not_in": ["psy"]}, "nights": {"missing": False}},
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_hold_for_the_same_records_in_all_formats(
    tmp_path: Path, where: dict[str, Any]
) -> None:
    found = []
    for data_format in FORMATS:
        path = tmp_path / f"t.{data_format}"
        plan = plan_of(path, "out", ledger=False)
        plan["recipients"] = {"a": plan["recipients"]["a"] | {"where": where}}
        with chdir(tmp_path):
            write(path, [plain(row, data_format) for row in [*PEOPLE, ORDINARY | {"nights": None}]])
            engine, parsed = LocalEngine(), parse_plan(plan)
            frozen = read_source(engine, parsed, Key(b"k" * 32), str(tmp_path / data_format))
        subjects = frozen.records.rows(SUBJECT, PATTERN).collect().to_pylist()
        found.append({row[SUBJECT] for row in subjects if row[PATTERN]})
    assert 0 < len(found[0]) < len(PEOPLE)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("data_format", ["csv", "parquet", "orc"])
def test_select(tmp_path: Path, data_format: str) -> None:
    path = tmp_path / f"t.{data_format}"
    days = [f"2024-05-01 {hour:02}:00:00" for hour in range(24)]
    document = {
        "input": {"path": str(path), "options": {"header": True} if data_format == "csv" else {}},
        "attributes": ATTRIBUTES,
        "selection": {
            "target": "diag",
            "count": 1,
            "epsilon": 1,
            "output": str(tmp_path / "out"),
            "domains": {
                "diag": {"values": ["flu", "cold", "cough"]},
                "ward": {"values": ["surg", "psy"]},
                "age": {"bins": [30, 50]},
                "zip": {"bins": [10_010]},
                "since": {"values": [f"2020-01-{day:02}" for day in range(1, 29)]},
                "nights": {"bins": [10, 20]},
                "dose": {"bins": [5]},
                "seen": {"values": days},
            },
        },
        "ledger": {"path": str(tmp_path / "ledger"), "dataset": "d", "limit": 1},
        "execution": {"seed": SEED},
    }

    def counts(rows: list[Row]) -> list[Any]:
        write(path, rows)
        table, wanted = open_query(LocalEngine(), parse_selection(document))
        domains = wanted.candidates, wanted.target
        return count_tables(table, *domains, ["", "?"], drop_missing=False)

    before = counts(PEOPLE)

    @settings(fuzzed, max_examples=5 * EXAMPLES)
    @given(wild(data_format), st.sampled_from(["flu", None]))
    def one_record_is_one_cell(row: Row, diag: str | None) -> None:
        row = row | {"pid": "X"} | ({} if diag is None else {"diag": diag})
        for less, more in zip(before, counts([*PEOPLE[:3], row, *PEOPLE[3:]]), strict=True):
            assert (more >= less).all()
            assert (more - less).sum() <= 1
            assert diag is None or (more - less).sum() == 1

    one_record_is_one_cell()


@pytest.mark.parametrize("value", [datetime(2020, 1, 5, 12), "old", 3.5, b"x", {"a": 1}])
def test_no_value_in_memory_decides_a_type_of_a_plan_or_of_select(value: Any) -> None:
    """Pandas has no days but midnights, and objects of any kind."""
    moments = pd.DataFrame({"x": pd.Series([row["since"] for row in PEOPLE], dtype=object)})
    if isinstance(value, datetime):
        moments["x"] = pd.to_datetime(moments["x"])
    more = pd.concat([moments, pd.DataFrame({"x": [value]}, dtype=moments["x"].dtype)])
    schemas = []
    for frame in (moments, more):
        with LocalAdapter(frame).source(with_texts(frame), None, ["x"]) as table:
            schemas.append(table.schema)
    assert schemas[0] == schemas[1]
    assert not pa.types.is_date(schemas[0].field("x").type)


def test_formats_without_types_are_refused_whatever_they_hold(tmp_path: Path) -> None:
    document = {
        "input": {"path": str(tmp_path / "t.json")},
        "attributes": ATTRIBUTES,
        "selection": {"target": "diag", "count": 1, "epsilon": 1, "output": str(tmp_path / "out")},
        "ledger": {"path": str(tmp_path / "ledger"), "dataset": "d", "limit": 1},
    }
    document["selection"]["domains"] = {
        name: {"values": ["a", "b"]} for name in ATTRIBUTES if name != "pid"
    }
    for rows in ([], PEOPLE, [ORDINARY | {"age": "x"}]):
        write(tmp_path / "t.json", rows)
        with pytest.raises(ConfigurationError, match=r"input\.format: found 'json'"):
            open_query(LocalEngine(), parse_selection(document))
