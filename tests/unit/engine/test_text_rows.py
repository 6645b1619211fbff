"""What text files are written in, and rows of bytes that Spark hands to tasks."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from anonspark.engine.data_files import DataFile, DataFiles, Folders
from anonspark.engine.encodings import codec_of, encoding_of_mark, likely_encodings
from anonspark.engine.reading_errors import TableAddress, undecodable
from anonspark.engine.spark import text_files
from anonspark.engine.spark.text_files import Reader
from anonspark.engine.values.csv_reader import CsvReader
from anonspark.engine.values.text_forms import Forms
from anonspark.engine.values.text_reader import text_reader
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


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("UTF-8", "utf-8"),
        ("windows-1251", "cp1251"),
        ("Shift_JIS", "cp932"),
        ("EUC-KR", "cp949"),
        ("ISO-8859-1", "iso8859-1"),
        ("macintosh", "mac-roman"),
        ("UTF-16LE", "utf-16-le"),
        ("base64", None),
        ("klingon", None),
        ("", None),
    ],
)
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
