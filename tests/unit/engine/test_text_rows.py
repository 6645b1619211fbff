"""What text files are written in, and which files tasks get as a whole."""

from __future__ import annotations

import gzip
import io
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases
from pyspark.sql import types as st

from anonspark.engine.data_files import DataFile, DataFiles, Folders
from anonspark.engine.encodings import codec_of, encoding_of_mark, likely_encodings
from anonspark.engine.reading_errors import TableAddress, undecodable
from anonspark.engine.spark import text_files
from anonspark.engine.spark.arrow import arrow_schema, arrow_type, spark_type
from anonspark.engine.spark.file_contents import (
    LARGEST_FILE,
    DecodeParquet,
    decoded,
    find_odd_column,
    find_odd_share,
    find_odd_size,
)
from anonspark.engine.spark.text_files import Reader
from anonspark.engine.values.batches import conform
from anonspark.engine.values.csv_reader import CsvReader
from anonspark.engine.values.text_forms import Forms
from anonspark.engine.values.text_reader import text_reader
from anonspark.engine.values.whole_files import Share, decode_file
from anonspark.errors import DataError

LINES = [b"a,b", b"1,x", b"02,\xc3\xa4", b"", b"3,\"y,\"\"z\"", b"a,b"]  # fmt: skip
RECORDS = [("1", "x"), ("02", "ä"), ("3", 'y,"z')]


def reader_of(**options: str) -> Reader:
    options = {"header": "true", "inferSchema": "true"} | options
    reader = text_reader(TableAddress(("there",), "csv", "input.path"), options)
    assert isinstance(reader, CsvReader)
    return reader.with_header("a,b")


def batches_of(*rows: tuple[str, bytes]) -> list[pa.RecordBatch]:
    """Return what Spark hands over, in batches of two rows."""
    columns = [pa.array(own) for own in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, ["origin", "content"])
    return [batch.slice(place, 2) for place in range(0, len(batch) + 1, 2)]


def read(reader: Reader, folders: dict[str, Folders], batches: list[pa.RecordBatch]) -> pa.Table:
    files = {origin: DataFile("file:/a.csv", 1, own) for origin, own in folders.items()}
    rows = text_files._Rows(reader, files)
    (told,) = text_files._InferForms(rows)(iter(batches))
    schema = reader.schema(Forms.of_texts([told["forms"][0].as_py()]))
    known = DataFiles((), pa.schema([(name, pa.int32()) for name in next(iter(folders.values()))]))
    read_columns = text_files._ReadColumns(rows, schema, known, known.schema(schema))
    assert read_columns.select(["b"]).columns.names == ["b"]
    return pa.Table.from_batches(list(read_columns(iter(batches))))


@pytest.mark.parametrize("most", [1, 1 << 20])
def test_lines(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(text_files, "_BLOCK", most)
    rows = [("0", line) for line in LINES] + [("1", line) for line in LINES[:2]]
    table = read(reader_of(), {"0": {"year": "2024"}, "1": {"year": None}}, batches_of(*rows))
    assert table["a"].to_pylist() == [*(a for a, _ in RECORDS), "1"]
    assert table["b"].to_pylist() == [*(b for _, b in RECORDS), "x"]
    assert table["year"].to_pylist() == [2024, 2024, 2024, None]


def test_whole_files() -> None:
    content = b"\n".join(LINES)
    rows = [
        ("file:/a.csv", b"\xef\xbb\xbf" + content),
        ("file:/b.csv.gz", gzip.compress(content)),
        ("file:/c.csv", ("\ufeff" + content.decode()).encode("utf-16")),
        ("file:/other.csv", content),
    ]
    known: dict[str, Any] = {origin: {} for origin, _ in rows[:3]}
    table = read(reader_of(), known, batches_of(*rows))
    assert list(zip(*table.to_pydict().values(), strict=True)) == 3 * RECORDS


def test_one_byte_a_letter() -> None:
    table = read(
        reader_of(encoding="windows-1252"),
        {"0": {}},
        batches_of(("0", b"5,\xe4"), ("0", b"6,\x80")),
    )
    assert table.to_pydict() == {"a": [5, 6], "b": ["ä", "€"]}


@pytest.mark.parametrize("origin", ["0", "file:/a.csv"])
def test_bytes_that_do_not_decode(origin: str) -> None:
    batches = batches_of((origin, b"a,b\n5,\xe4" if "/" in origin else b"5,\xe4"))
    with pytest.raises(DataError, match=r"file:/a\.csv: line 2 is not written in UTF-8"):
        read(reader_of(), {origin: {}}, batches)


def test_records_in_folders_of_missing_values_decide_nothing() -> None:
    reader = replace(reader_of(), required=("year",))
    rows = [("file:/a.csv", b"a,b\n1,x\n"), ("file:/b.csv", b"a,b\ny,x\n")]
    folders: dict[str, Folders] = {"file:/a.csv": {"year": "2024"}, "file:/b.csv": {"year": None}}
    assert read(reader, folders, batches_of(*rows))["a"].to_pylist() == [1, None]


TEXTS = {
    "cp1252": "age,name,town\n31,Jürgen Weiß,Köln\n44,Günther Groß,Gößl\n28,Zoë Müller,Fürth\n",
    "cp1251": "age,town\n31,Москва\n44,Тула\n28,Нижний Новгород\n52,Екатеринбург\n",
    "cp932": "age,town\n31,東京都渋谷区\n44,大阪市北区\n28,さいたま市大宮区\n",
    "cp1250": "age,name\n31,Wałęsa Zbigniew\n44,Błażej Śliwiński\n28,Grażyna Żółć\n",
    "cp949": "age,town\n31,서울특별시\n44,부산광역시\n28,대구광역시\n",
}


@pytest.mark.parametrize("codec", TEXTS)
def test_likely_encodings_read_what_was_written(codec: str) -> None:
    content = TEXTS[codec].encode(codec)
    likely = likely_encodings(content)
    assert 1 <= len(likely) <= 3
    readings = [content.decode(codec_of(one) or "", "replace") for one in likely]
    assert TEXTS[codec] in readings


def test_two_short_words_are_enough() -> None:
    content = "age,town\n31,Ли\n44,Юж\n".encode("cp1251")
    assert likely_encodings(content)[0] == "windows-1251"


@cases(__file__, "name", "codec")
def test_encodings_have_the_names_that_others_use(name: str, codec: str | None) -> None:
    assert codec_of(name) == codec


def test_utf_16_is_known_by_its_mark_or_by_its_zeros() -> None:
    text = "имя,число\nЮлий Бубнив,31\n"
    assert encoding_of_mark(text.encode("utf-16")) == "UTF-16"
    assert encoding_of_mark(text.encode("utf-8-sig")) == "UTF-8"
    assert likely_encodings(text.encode("utf-16-le")) == ["UTF-16LE"]
    assert likely_encodings(text.encode("utf-16-be")) == ["UTF-16BE"]


def test_bytes_that_are_no_text_are_refused_with_a_remedy_and_no_value() -> None:
    content = TEXTS["cp1251"].encode("cp1251")
    message = str(undecodable("input.path: a.csv", "UTF-8", 2, content))
    assert message.startswith(
        "input.path: a.csv: line 2 is not written in UTF-8 (likely windows-1251"
    )
    assert "input.options.encoding: windows-1251" in message
    assert "Москва" not in message
    in_command = str(undecodable("DATA: t: t/a.csv", "US-ASCII", None, content))
    assert "DATA: t: t/a.csv: its lines are not written in US-ASCII" in in_command
    assert "--option encoding=windows-1251" in in_command


_MIB = 2**20


class Session:
    """What is asked of a session about the tasks that files are divided among."""

    def __init__(self, tasks: int) -> None:
        self.sparkContext = SimpleNamespace(defaultParallelism=tasks)
        files = "spark.sql.files"
        sizes = {f"{files}.maxPartitionBytes": "128MB", f"{files}.openCostInBytes": f"{4 * _MIB}b"}
        self.conf = SimpleNamespace(get=sizes.get)


@pytest.mark.parametrize(
    ("sizes", "tasks", "fits"),
    [
        ([100 * _MIB], 1, True),
        ([100 * _MIB], 2, True),
        ([100 * _MIB], 3, False),
        ([100 * _MIB] * 2, 3, True),
        ([8 * _MIB], 200, True),
        ([9 * _MIB], 200, False),
        ([45 * _MIB, *[_MIB] * 9], 4, True),
        ([60 * _MIB, *[_MIB] * 9], 8, False),
        ([LARGEST_FILE] * 1000, 8, True),
        ([*[_MIB] * 1000, LARGEST_FILE + 1], 8, False),
        ([0, 0], 8, False),
        ([], 8, False),
    ],
)
def test_sizes_and_tasks(sizes: list[int], tasks: int, fits: bool) -> None:
    session: Any = Session(tasks)
    addresses = [f"hdfs://host/{number}" for number in range(len(sizes))]
    assert (find_odd_size(session, sizes, addresses, 4) is None) == fits
    # Spark would divide a file of three row groups among three tasks, which take as long.
    may_be_held = any(sizes) and max(sizes) <= LARGEST_FILE
    assert (find_odd_size(session, sizes, addresses, 3) is None) == may_be_held
    # Tasks read parts of files that are on a disk.
    on_disk = [f"file:/{number}" for number in range(len(sizes))]
    assert (find_odd_size(session, sizes, on_disk, 4) is None) == any(sizes)


def test_a_large_file_elsewhere_is_read_as_a_whole() -> None:
    """Tasks reach parts of a file only on a disk."""
    session: Any = Session(200)
    session.range = lambda *_: SimpleNamespace(toDF=lambda _: "shares")
    frame: Any = SimpleNamespace(select=lambda *_: "whole")
    decode = DecodeParquet(pa.schema({"age": pa.int64()}))
    sources = {}
    for scheme in ("hdfs", "file"):
        files = [DataFile(f"{scheme}:/0", 100 * _MIB), DataFile(f"{scheme}:/1", _MIB)]
        sources[scheme] = decoded(session, files, lambda: frame, decode, lambda: frame).source
    assert sources == {"hdfs": "whole", "file": "shares"}


def footer_of(table: pa.Table) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(file_of(table)))


def test_columns_that_are_not_listed() -> None:
    draw = random.Random(1)  # noqa: S311
    footer = footer_of(pa.table({"a": [1] * 100, "note": [draw.randbytes(90) for _ in range(100)]}))
    assert find_odd_share(footer, ["A", "Note"]) is None
    assert find_odd_share(footer, ["a"]) == "the bytes of columns that are not listed"
    assert find_odd_share(footer_of(pa.table({"a": [1]}).slice(1)), ["a"]) is None


@pytest.mark.parametrize(
    ("stored", "read", "reason"),
    [
        (pa.int64(), pa.int64(), None),
        (pa.uint8(), pa.int16(), None),
        (pa.large_string(), pa.string(), None),
        (pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "UTC"), None),
        (pa.timestamp("us"), pa.timestamp("us"), None),
        (pa.list_(pa.int16(), 2), pa.list_(pa.int16()), None),
        (pa.struct([("b", pa.date64())]), pa.struct([("b", pa.date32())]), None),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), "timestamp, stored as timestamp[us]"),
        (pa.int32(), pa.int64(), None),
        (pa.int64(), pa.int32(), "int, stored as int64"),
        (pa.time32("ms"), pa.int32(), "int, stored as time32[ms]"),
    ],
    ids=str,
)
def test_types(stored: pa.DataType, read: pa.DataType, reason: str | None) -> None:
    footer = footer_of(pa.table({"Ä": pa.nulls(2, stored), "b": [1, 2]}))
    expected = None if reason is None else f"the column 'ä' of type {reason}"
    assert find_odd_column([footer], pa.schema([("ä", read)])) == expected
    told = find_odd_column([footer], pa.schema([("c", read)]))
    assert told == "a file without the column 'c'"


def file_of(table: pa.Table) -> pa.Buffer:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return pa.py_buffer(sink.getvalue())


def test_columns_are_found_whatever_the_case_of_their_letters() -> None:
    content = file_of(pa.table({"Ä": [1, 2], "B": ["x", None], "c": [0.5, 1.5]}))
    wanted = pa.schema([("b", pa.string()), ("ä", pa.int64())])
    (batch,) = decode_file(content, wanted)
    assert batch.schema == wanted
    assert batch.to_pydict() == {"b": ["x", None], "ä": [1, 2]}


def test_texts_that_repeat_stay_dictionaries() -> None:
    columns = {"few": ["a", "b", None] * 1000, "many": [str(one) for one in range(3000)]}
    content = file_of(pa.table(columns))
    (batch,) = decode_file(content, pa.schema([("many", pa.string()), ("few", pa.string())]))
    assert batch.schema.types == [pa.string(), pa.dictionary(pa.int32(), pa.string())]
    assert batch.to_pydict() == columns


@pytest.mark.parametrize("parts", [1, 2, 3, 50])
def test_parts_of_a_file_hold_each_row_group_once(tmp_path: Path, parts: int) -> None:
    table = pa.table({"n": range(1000), "t": ["x" * (row % 50) for row in range(1000)]})
    file = tmp_path / "a.parquet"
    pq.write_table(table, file, row_group_size=90)
    size, columns = file.stat().st_size, pa.schema([("t", pa.string()), ("n", pa.int64())])
    shares = [Share(f"file:{file}", size, part, parts) for part in range(parts)]
    batches = [list(decode_file(share, columns)) for share in shares]
    rows = [row for part in batches for batch in part for row in batch.column("n").to_pylist()]
    assert rows == list(range(1000))
    assert parts == 1 or max(sum(map(len, part)) for part in batches) <= 1000 // parts + 180
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match="CANNOT_READ"):
        list(decode_file(shares[0], columns))


@pytest.mark.parametrize("damage", ["no file", "truncated", "other column"])
def test_files_that_cannot_be_decoded(damage: str) -> None:
    content = file_of(pa.table({"a": [1, 2]}))
    if damage != "other column":
        content = content.slice(0, 0 if damage == "no file" else len(content) // 2)
    name = "b" if damage == "other column" else "a"
    with pytest.raises(DataError, match="CANNOT_READ") as caught:
        list(decode_file(content, pa.schema([(name, pa.int64())])))
    # The first error's text may hold a value.
    assert caught.value.__context__ is None


PAIRS = [
    (st.BooleanType(), pa.bool_()),
    (st.ByteType(), pa.int8()),
    (st.ShortType(), pa.int16()),
    (st.IntegerType(), pa.int32()),
    (st.LongType(), pa.int64()),
    (st.FloatType(), pa.float32()),
    (st.DoubleType(), pa.float64()),
    (st.DecimalType(38, 0), pa.decimal128(38, 0)),
    (st.StringType(), pa.string()),
    (st.BinaryType(), pa.binary()),
    (st.DateType(), pa.date32()),
    (st.TimestampType(), pa.timestamp("us", "UTC")),
    (st.TimestampNTZType(), pa.timestamp("us")),
    (st.ArrayType(st.TimestampType()), pa.list_(pa.timestamp("us", "UTC"))),
]


@pytest.mark.parametrize(("spark", "arrow"), PAIRS, ids=str)
def test_types_there_and_back(spark: st.DataType, arrow: pa.DataType) -> None:
    assert arrow_type(spark) == arrow
    assert spark_type(arrow) == spark


def test_schema() -> None:
    schema = st.StructType().add("seen", "timestamp", False).add("name", "string")
    assert arrow_schema(schema) == pa.schema(
        [pa.field("seen", pa.timestamp("us", "UTC"), False), pa.field("name", pa.string())]
    )


SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])


@pytest.mark.parametrize("dictionaries", [False, True])
def test_values_are_the_same(dictionaries: bool) -> None:
    batch = pa.record_batch(
        {
            "text": pa.array(["a", None, "a"]).dictionary_encode(),
            "other": pa.array([1, 2, 3]),
            "number": pa.array([4, 5, 6], pa.int32()),
        }
    )
    found = conform(batch, SCHEMA, dictionaries=dictionaries)
    assert found.schema.names == ["number", "text"]
    assert found.column(0).equals(pa.array([4, 5, 6]))
    assert pa.types.is_dictionary(found.column(1).type) == dictionaries
    assert found.column(1).to_pylist() == ["a", None, "a"]
