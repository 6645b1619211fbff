"""Whether files are decoded in Python or rows handed over by Spark changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases, data_beside
from helpers import configuration_file
from pyspark.sql import SparkSession

from anonspark.config import Configuration, load_configuration
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.protocol import Staged
from anonspark.engine.spark import file_contents
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.python_stage import PythonStage
from anonspark.errors import DataError
from anonspark.staged.records import PACKED, PackRecords, Records

_NAN, _INFINITE = float("nan"), float("inf")
_TEXTS = data_beside(__file__)["_TEXTS"]
_DAYS = [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 4), date(1582, 10, 15), date(1899, 1, 2)]
_CLOCKS = [datetime(1582, 1, 1, 0, 0, 0, 7), datetime(1969, 12, 31, 23, 59, 59, 999999)]

QUASI_IDENTIFIERS: dict[str, tuple[pa.DataType, list[Any], dict[str, Any]]] = {
    "byte": (pa.int8(), [-128, 127, 0], {}),
    "short": (pa.int16(), [-(2**15), 2**15 - 1, 3], {}),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, 1], {}),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 5], {}),
    "long as text": (pa.int64(), [-5, 17], {"type": "text"}),
    "float": (pa.float32(), [0.5, _NAN, -1.5, 1e-3, -0.0, 0.0], {}),
    "double": (pa.float64(), [_INFINITE, _NAN, 0.25, -0.0, 0.0, 5e-324], {}),
    "decimal": (pa.decimal128(38, 19), [Decimal("1234567890123456789.0123456789012345678")], {}),
    "few places": (pa.decimal128(9, 4), [Decimal("0.0100"), Decimal(0), Decimal(-100)], {}),
    "flag": (pa.bool_(), [True, False], {}),
    "day": (pa.date32(), _DAYS, {}),
    "moment": (pa.timestamp("us", "UTC"), [one.replace(tzinfo=UTC) for one in _CLOCKS], {}),
    "clock": (pa.timestamp("us"), _CLOCKS, {}),
    "thousandths": (pa.timestamp("ms"), [datetime(1850, 1, 1), datetime(2024, 5, 6)], {}),
    "text": (pa.string(), _TEXTS, {}),
    "declared text": (pa.string(), ["a", "12"], {"type": "text"}),
    "number": (pa.string(), ["1", " 2.50", "1e3", "0x1p3", "nan", "?", "one"], {"type": "number"}),
    "date": (pa.string(), ["2024-1-5", "2024", "?", "12", "0001-01-01"], {"type": "date"}),
    "boolean": (pa.string(), ["t", "No", "1", "?", "maybe"], {"type": "boolean"}),
    "prefix": (pa.int64(), [12345, -7], {"hierarchy": {"prefix": [1, 3]}}),
    "prefix of text": (pa.string(), _TEXTS, {"hierarchy": {"prefix": [1]}}),
}  # fmt: skip

CARRIED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bytes": (pa.binary(), [b"", b"\x00\xff", b"a"]),
    "large": (pa.large_string(), _TEXTS),
    "coded": (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "a"]),
    "small": (pa.uint8(), [0, 255]),
    "large number": (pa.uint64(), [2**64 - 1, 0]),
    "lists": (pa.list_(pa.string()), [["a", None], []]),
    "carried float": (pa.float64(), [-0.0, 0.0, _NAN, -_INFINITE]),
    "berlin": (pa.timestamp("us", "Europe/Berlin"), [one.replace(tzinfo=UTC) for one in _CLOCKS]),
}


def table_of_all_types(rows: int, start: int) -> pa.Table:
    """Return each value of each type, in rows of which few have a null."""
    columns = {}
    described = {name: (own, values) for name, (own, values, _) in QUASI_IDENTIFIERS.items()}
    for place, (name, (own, choice)) in enumerate((described | CARRIED).items()):
        values = [choice[(start + row) % len(choice)] for row in range(rows)]
        values[(7 * place) % rows] = None
        columns[name] = pa.array(values, own)
    return pa.table(columns)


def prepared(
    spark: SparkSession,
    configuration: Configuration,
    folder: Path,
    hierarchies: dict[str, Hierarchy] | None = None,
    *,
    ways: Sequence[str] = ("files", "rows"),
) -> list[tuple[Staged, list[str]]]:
    """Stage an input both ways; return what was staged, and its records in no order."""
    engine = SparkEngine(spark)
    staged = []
    for way in ways:
        with pytest.MonkeyPatch.context() as patch:
            if way == "rows":
                patch.setattr(file_contents, "find_reason_for_rows", lambda *_: "a test")
            opened = engine.open_input(configuration, hierarchies or {})
            one = opened.stage(str(folder / way), PackRecords(), PACKED, -(2**40))
        assert one.path.startswith(str(folder / way))
        rows: list[Any] = []
        # Without a record nothing is there, and nobody looks.
        if one.counts["kept"]:
            packed = engine.staged([one.path], PACKED)
            rows = Records(packed, one.schema).rows().collect().to_pylist()
        assert len(rows) == one.counts["kept"]
        staged.append((one, sorted(map(str, rows))))
    return staged


def require_alike(staged: list[tuple[Staged, list[str]]]) -> None:
    """Check that what was staged both ways is the same."""
    (files, records), (rows, others) = staged
    assert files.schema.equals(rows.schema)
    if records:
        assert files.fingerprint == rows.fingerprint
    assert records == others
    of_rows = {name: value for name, value in rows.counts.items() if not name.startswith("hash_")}
    assert dict(files.counts) == of_rows


def configured(folder: Path, names: Sequence[str], **sections: Any) -> Configuration:
    attributes = {
        name: {"role": "quasi_identifier", **QUASI_IDENTIFIERS[name][2]}
        for name in names
        if name in QUASI_IDENTIFIERS
    } | {name: "insensitive" for name in names if name in CARRIED}
    sections = {"attributes": attributes} | sections
    return load_configuration(configuration_file(folder, **sections))


def test_all_types_and_declarations(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "input.parquet"
    (folder / ".hidden").mkdir(parents=True)
    for number in range(4):
        table = table_of_all_types(120 + number, number)
        # Pages and row groups of few rows; one file with the types that are Parquet's own alone;
        # of the files of one task some have dictionaries.
        pq.write_table(
            table,
            folder / f"{number}.parquet",
            row_group_size=45,
            store_schema=number > 0,
            use_dictionary=number % 2 == 0,
        )
    pq.write_table(table.slice(0, 0), folder / "nothing.parquet")
    for name in ("_SUCCESS", ".other.parquet", "_0.parquet", ".hidden/0.parquet"):
        (folder / name).write_bytes(b"no Parquet")
    configuration = configured(tmp_path, [*QUASI_IDENTIFIERS, *CARRIED], missing="category")
    staged = prepared(spark, configuration, tmp_path)
    require_alike(staged)
    assert 0 < staged[0][0].counts["kept"] <= staged[0][0].counts["rows"] == 486


@pytest.mark.parametrize("unit", ["files", "row groups"])
def test_folders_and_row_groups(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    if unit == "row groups":
        monkeypatch.setattr(file_contents, "sizes_of_tasks", lambda _: (1, 2000, 4))
    # A file of one row group, larger than all others together, and many small ones.
    for number, folder in enumerate(
        ["day=2026-01-31/text=a%20b", "day=2026-02-01/text=%C3%A7", "day=?/text=12"]
    ):
        (tmp_path / "input.parquet" / folder).mkdir(parents=True)
        for part, rows in enumerate((40, 3, 1000 * (number == 1))):
            table = pa.table({"long": range(rows), "flag": [True] * rows})
            file = tmp_path / "input.parquet" / folder / f"{part}.parquet"
            pq.write_table(table, file, row_group_size=30 if part else 1000)
    names = ["day", "long", "text", "flag"]
    configuration = configured(tmp_path, names, missing="category")
    opened = SparkEngine(spark).open_input(configuration, {})
    rows = opened.table.select(opened.reader(seed=3).columns)
    assert isinstance(rows.content, PythonStage)
    assert rows.content.source.columns == (
        ["task"] if unit == "row groups" else ["content", "path"]
    )
    staged = prepared(spark, configuration, tmp_path)
    require_alike(staged)
    assert staged[0][0].counts["kept"] == 1129


def test_columns_without_values_and_nanoseconds(spark: SparkSession, tmp_path: Path) -> None:
    seen = pa.array(range(0, 60_000, 1000), pa.int64())
    people = {"text": ["a", "b"] * 30, "clock": seen.cast(pa.timestamp("ns"))}
    folder = tmp_path / "input.parquet"
    folder.mkdir()
    pq.write_table(pa.table(people), folder / "a.parquet")
    pq.write_table(pa.table(people | {"text": pa.nulls(60)}), folder / "b.parquet")
    staged = prepared(spark, configured(tmp_path, list(people), missing="category"), tmp_path)
    require_alike(staged)
    assert staged[0][0].counts["kept"] == 120


class TestWhatKeepsRows:
    """Inputs that are handed over row by row, and why."""

    def reason(
        self, spark: SparkSession, configuration: Configuration, caplog: pytest.LogCaptureFixture
    ) -> str:
        """Open what is staged of an input; return why it goes row by row, or nothing."""
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="anonspark"):
            opened = SparkEngine(spark).open_input(configuration, {})
            rows = opened.table.select(opened.reader(seed=3).columns)
        told = [one.getMessage() for one in caplog.records if "handed over" in one.getMessage()]
        assert isinstance(rows.content, PythonStage) == (not told)
        assert len(told) <= 1
        return told[0].partition("because of ")[2] if told else ""

    def test_times_of_96_bits(
        self, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        table = pa.table({"a": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))})
        pq.write_table(table, tmp_path / "input.parquet", use_deprecated_int96_timestamps=True)
        file = configuration_file(tmp_path, attributes={"a": "quasi_identifier"})
        counts = self.reason(spark, load_configuration(file), caplog)
        assert counts == "the column 'a' of type timestamp, stored as timestamp[ns]"
        # The rows are staged, too.
        ((_, rows),) = prepared(spark, load_configuration(file), tmp_path, ways=["as they are"])
        assert len(rows) == 1

    @cases(__file__, "metadata", "expected")
    def test_old_calendars(
        self,
        spark: SparkSession,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        metadata: dict[str, str],
        expected: str,
    ) -> None:
        table = pa.table({"a": pa.array([date(1500, 1, 1)]), "b": [1]})
        pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "input.parquet")
        for name, told in (("a", expected), ("b", "")):
            file = configuration_file(tmp_path, attributes={name: "quasi_identifier"})
            counts = self.reason(spark, load_configuration(file), caplog)
            assert counts.startswith(told)
            assert bool(counts) == bool(told)

    def test_other_tables(
        self, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "input.parquet").mkdir()
        (tmp_path / "folders/b=1").mkdir(parents=True)
        notes = ["a long note " * 50, "another " * 50]
        table = pa.table({"a": [1, 2], "c": [0.5, 1.5], "d": ["12:30", "2024"]})
        fine = pa.array([1000, 2000], pa.timestamp("ns"))
        pq.write_table(pa.table({"f": pa.nulls(2), "g": fine}), tmp_path / "fine.parquet")
        pq.write_table(table.append_column("e", [notes]), tmp_path / "notes.parquet")
        pq.write_table(table, tmp_path / "input.parquet/0.parquet")
        pq.write_table(table, tmp_path / "folders/b=1/0.parquet")
        pq.write_table(table.drop_columns("c"), tmp_path / "input.parquet/1.parquet")
        quasi = {"role": "quasi_identifier"}
        folder = str(tmp_path / "folders")
        notes_file = str(tmp_path / "notes.parquet")
        cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
            ({"a": quasi}, {}, ""),
            (
                {"a": quasi, "c": quasi},
                {"missing_columns": "null"},
                "a file without the column 'c'",
            ),
            ({"a": quasi}, {"path": notes_file}, "the bytes of columns that are not listed"),
            ({"a": quasi, "b": quasi}, {"path": folder}, ""),
            ({"a": quasi}, {"path": folder}, ""),
            ({"a": quasi}, {"options": {"mergeSchema": "true"}}, "input.options.mergeSchema"),
            ({"a": quasi}, {"options": {"pathGlobFilter": "0*"}}, ""),
            ({"d": quasi | {"type": "timestamp"}}, {}, ""),
            ({"f": quasi, "g": quasi}, {"path": str(tmp_path / "fine.parquet")}, ""),
        ]
        for number, (attributes, section, expected) in enumerate(cases):
            file = configuration_file(
                tmp_path, attributes=attributes, input=section, missing="category"
            )
            counts = self.reason(spark, load_configuration(file), caplog)
            assert counts.startswith(expected), (number, counts)
            assert bool(counts) == bool(expected), (number, counts)


def stage_after(spark: SparkSession, folder: Path, change: Any) -> str:
    """Open a table of three files, change it, stage it; return the error."""
    for number in range(3):
        table = pa.table({"a": range(1000), "b": [str(one) for one in range(1000)]})
        pq.write_table(table, folder / f"input.parquet/{number}.parquet")
    file = configuration_file(folder, attributes={"a": "quasi_identifier", "b": "insensitive"})
    engine = SparkEngine(spark)
    opened = engine.open_input(load_configuration(file), {})
    change(folder / "input.parquet/1.parquet")
    with pytest.raises(DataError) as caught, engine.reading(("there",)):
        opened.stage(str(folder / "staged"), PackRecords(), PACKED, 3)
    return str(caught.value)


class TestFilesThatChange:
    """Files that are others than when the input was opened."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        (tmp_path / "input.parquet").mkdir()

    def test_vanished(self, spark: SparkSession, tmp_path: Path) -> None:
        assert "there: files vanished" in stage_after(spark, tmp_path, Path.unlink)

    @pytest.mark.parametrize("kept", [0, 0.5])
    def test_truncated(self, spark: SparkSession, tmp_path: Path, kept: float) -> None:
        def truncate(file: Path) -> None:
            content = file.read_bytes()
            file.write_bytes(content[: int(kept * len(content))])

        assert "1.parquet cannot be read in this format" in stage_after(spark, tmp_path, truncate)

    def test_other_columns(self, spark: SparkSession, tmp_path: Path) -> None:
        def replace(file: Path) -> None:
            pq.write_table(pa.table({"a": ["x"], "c": [1]}), file)

        assert "cannot be read in this format" in stage_after(spark, tmp_path, replace)

    def test_damaged_pages(self, spark: SparkSession, tmp_path: Path) -> None:
        def damage(file: Path) -> None:
            content = bytearray(file.read_bytes())
            content[4:600] = bytes(596)
            file.write_bytes(content)

        assert "cannot be read in this format" in stage_after(spark, tmp_path, damage)
