"""Every byte of a Parquet file: sound ones of each kind, and ones that hold more than values."""

from __future__ import annotations

import contextlib
import gzip
import io
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonspark.engine.parquet_encoding import (
    CODECS,
    EncodedFile,
    Encoding,
    encode_table,
    nullable,
    spark_description,
)
from anonspark.verification.footers import read_footer
from anonspark.verification.parquet_bytes import _decompress

NUMBERS = range(30_000)


def every_type() -> pa.Table:
    """Values with and without a dictionary, nulls, and levels of lists in lists."""

    def without(values: list[Any], data_type: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if n % 7 == 0 else one for n, one in enumerate(values)], data_type)

    cents = [Decimal(n - 15_000) for n in NUMBERS]
    return pa.table(
        {
            "whole": pa.array(NUMBERS),
            "small": without([n % 9 for n in NUMBERS], pa.int8()),
            "real": [n / 7 for n in NUMBERS],
            "zeros": [-0.0 if n % 3 else 0.0 for n in NUMBERS],
            "no numbers": [float("nan")] * len(NUMBERS),
            "truth": without([n % 3 == 0 for n in NUMBERS]),
            "text": without([f"town {n % 100}" for n in NUMBERS]),
            "long": ["x" * 100 + str(n) for n in NUMBERS],
            "nothing": pa.nulls(len(NUMBERS), pa.string()),
            "cost": pa.array(cents, pa.decimal128(9, 2)),
            "sum": without(cents, pa.decimal128(38, 6)),
            "bytes": [b"%d" % (n % 50) for n in NUMBERS],
            "day": [date.fromordinal(730_000 + n % 1000) for n in NUMBERS],
            "at": [datetime.fromtimestamp(n, UTC) for n in NUMBERS],
            "set": [None if n % 3 == 0 else [f"{n % 4}", None][: n % 3] for n in NUMBERS],
            "visits": without([[{"n": n, "of": ["a", None]}] if n % 5 else [] for n in NUMBERS]),
            "inner": pa.StructArray.from_arrays([pa.array(NUMBERS)], ["n"]),
        }
    )  # fmt: skip


def written(table: pa.Table, codec: str = "snappy", rows: int = 100_000) -> bytes:
    """Write a table as releases are written."""
    schema = nullable(table.schema)
    file = EncodedFile(Encoding(schema, spark_description(schema), codec))
    batches = table.combine_chunks().to_batches(rows) or [table.schema.empty_table()]
    return b"".join(file.parts(iter(batches)))


def strange(content: bytes) -> list[str]:
    footer = read_footer(content, whole=True)
    assert footer is not None
    return footer.strange


@pytest.mark.parametrize("codec", CODECS)
def test_files_of_releases(codec: str) -> None:
    content = written(every_type(), codec, 20_000)
    assert pq.read_metadata(io.BytesIO(content)).num_row_groups == 2
    assert strange(content) == []


def test_small_files() -> None:
    for rows in (0, 1):
        assert strange(encode_table(every_type().slice(7, rows))) == []


PEOPLE = pa.table({"age": [30, 40, 50], "town": ["Rize", "Ulm", "Zebediah"]})


@pytest.mark.parametrize(
    "options",
    [
        {"write_statistics": True},
        {"data_page_version": "2.0"},
        {"write_page_index": True},
        {"write_page_checksum": True},
        {"store_schema": True},
        {"compression": "brotli"},
        {"use_byte_stream_split": ["age"], "use_dictionary": False},
        {},
    ],
    ids=str,
)
def test_files_of_other_writers(options: dict[str, Any]) -> None:
    """Statistics, indexes and notes are no values; releases have none of them."""
    settings = {"store_schema": False, "write_statistics": False}
    content = io.BytesIO()
    pq.write_table(PEOPLE, content, **settings | options)
    assert strange(content.getvalue())


def with_other_bytes(old: bytes, new: bytes, codec: str = "snappy") -> Callable[[], bytes]:
    """Replace what stands last in a file."""

    def change() -> bytes:
        before, found, after = written(PEOPLE, codec).rpartition(old)
        assert found
        return before + new + after

    return change


def before_the_footer() -> bytes:
    content = written(PEOPLE)
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return content[:at] + b"Zebediah" + content[at:]


def unused() -> bytes:
    """Write a dictionary with an entry that no record has, and the rest as releases have it."""
    names = pa.array(["Rize", "Ulm", "Zebediah"])
    table = pa.table({"town": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), names)})
    notes = pq.read_metadata(io.BytesIO(written(PEOPLE.select(["town"])))).metadata
    content = io.BytesIO()
    settings = {"store_schema": False, "write_statistics": False}
    with pq.ParquetWriter(content, table.schema, **settings) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(dict(sorted(notes.items(), reverse=True)))
    return content.getvalue()


FORGED = {
    "before the footer": (before_the_footer, "between its pages"),
    "before the first page": (
        lambda: b"PAR1" + written(PEOPLE), "pages or a footer that cannot be read"
    ),
    "dictionary": (unused, "dictionary of town"),
    "behind a value": (
        with_other_bytes(b"\x08\0\0\0Zebediah", b"\x03\0\0\0Zebediah", "none"), "pages of town"
    ),
    "writer": (with_other_bytes(b"parquet-cpp-arrow", b"parquet-Zebediah-"), "footer"),
    "writer's version": (with_other_bytes(b" version 2", b" version Z"), "footer"),
    "schema's name": (with_other_bytes(b"\x06schema", b"\x06Zebede"), "footer"),
    "a number of another width": (
        # The same number, of 32 bits where 64 are, which readers pass over.
        with_other_bytes(b"\x26\x08\x16", b"\x25\x08\x16"), "footer"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGED)
def test_files_that_hold_more(case: str) -> None:
    forge, told = FORGED[case]
    found = strange(forge())
    assert told in found
    assert "Zebed" not in str(found)


def test_pages_that_decompressors_read_in_part() -> None:
    """Names in their heads, bytes or frames behind them."""
    page = b"values" * 9
    with_name = io.BytesIO()
    with gzip.GzipFile("Zebediah", "wb", fileobj=with_name, mtime=0) as file:
        file.write(page)
    zipped = pa.compress(page, "gzip", asbytes=True)
    frame = pa.compress(page, "zstd", asbytes=True)
    skipped = b"\x50\x2a\x4d\x18\x08\0\0\0Zebediah"
    assert _decompress(zipped, 2, len(page)) == page
    assert _decompress(frame, 6, len(page)) == page
    for stored, codec in (
        (with_name.getvalue(), 2),
        (zipped + b"Zebediah", 2),
        (frame + skipped, 6),
        (skipped + frame, 6),
    ):
        with pytest.raises((ValueError, zlib.error)):
            _decompress(stored, codec, len(page))


def test_changes_of_bits_anywhere() -> None:
    """Those that change no value are seen, but for digits of the version of Arrow."""
    content = written(PEOPLE)
    hidden = 0
    for place in range(len(content)):
        changed = content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        footer = read_footer(changed, whole=True)
        if footer is not None and not footer.strange:
            with contextlib.suppress(pa.ArrowException, OSError):
                hidden += pq.read_table(io.BytesIO(changed)).equals(PEOPLE)
    assert hidden <= 2
