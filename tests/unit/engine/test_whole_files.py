"""Which files tasks get as a whole, and what is read in them alike by Spark and Arrow."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonspark.engine.spark.whole_files import (
    LARGEST_FILE,
    Splits,
    odd_options,
    odd_share,
    odd_sizes,
    type_in_file,
)
from anonspark.engine.values.whole_files import decode_file
from anonspark.errors import DataError

_MIB = 2**20


def splits(tasks: int) -> Splits:
    return Splits(tasks, most_bytes=128 * _MIB, opening_bytes=4 * _MIB)


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
    assert (odd_sizes(sizes, splits(tasks)) is None) == fits


def test_columns_that_are_not_listed() -> None:
    sizes = {"a": 10, "ä": 15, "note": 75}
    assert odd_share(sizes, ["A", "Ä"]) is None
    assert odd_share(sizes, ["a"]) == "the bytes of columns that are not listed"
    assert odd_share({}, ["a"]) is None


def test_options() -> None:
    assert odd_options({"pathGlobFilter": "*.parquet", "recursiveFileLookup": "true"}) is None
    assert (
        odd_options({"pathGlobFilter": "*", "mergeSchema": "true"}) == "input.options.mergeSchema"
    )


@pytest.mark.parametrize(
    ("kind", "annotation", "expected"),
    [
        ("BOOLEAN", "", pa.bool_()),
        ("INT32", "", pa.int32()),
        ("INT32", "INTEGER(8,true)", pa.int8()),
        ("INT32", "INTEGER(8,false)", None),
        ("INT64", "INTEGER(32,true)", None),
        ("INT64", "INTEGER(64,true)", pa.int64()),
        ("INT32", "DATE", pa.date32()),
        ("INT32", "TIME(MILLIS,true)", None),
        ("INT64", "TIMESTAMP(MILLIS,true)", pa.timestamp("us", "UTC")),
        ("INT64", "TIMESTAMP(MICROS,false)", pa.timestamp("us")),
        ("INT64", "TIMESTAMP(NANOS,true)", None),
        ("INT96", "", None),
        ("FLOAT", "", pa.float32()),
        ("DOUBLE", "", pa.float64()),
        ("BINARY", "STRING", pa.string()),
        ("BINARY", "", pa.binary()),
        ("BINARY", "ENUM", None),
        ("BINARY", "JSON", None),
        ("FIXED_LEN_BYTE_ARRAY", "", None),
        ("FIXED_LEN_BYTE_ARRAY", "UUID", None),
        ("FIXED_LEN_BYTE_ARRAY", "FLOAT16", None),
        ("FIXED_LEN_BYTE_ARRAY", "DECIMAL(38,19)", pa.decimal128(38, 19)),
        ("FIXED_LEN_BYTE_ARRAY", "DECIMAL(39,0)", None),
        ("GROUP", "", None),
        ("GROUP", "LIST", None),
    ],
)
def test_types(kind: str, annotation: str, expected: pa.DataType | None) -> None:
    assert type_in_file(kind, annotation) == expected


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
