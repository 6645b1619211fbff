"""Every byte of a Parquet file: sound ones of each kind, and ones that hold more than values."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonspark.engine.parquet_encoding import CODECS, EncodedFile, Encoding, encode_table
from anonspark.verification.proof.release_files import read_footer

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
    file = EncodedFile(Encoding.of(table.schema, codec))
    batches = table.combine_chunks().to_batches(rows) or [table.schema.empty_table()]
    return b"".join(file.parts(iter(batches)))


def strange(content: bytes) -> list[str]:
    footer = read_footer(content, whole=True)
    return ["unreadable"] if footer is None else footer.strange


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
    "before the footer": before_the_footer,
    "before the first page": lambda: b"PAR1" + written(PEOPLE),
    "dictionary": unused,
    "behind a value": with_other_bytes(b"\x08\0\0\0Zebediah", b"\x03\0\0\0Zebediah", "none"),
    "writer": with_other_bytes(b"parquet-cpp-arrow", b"parquet-Zebediah-"),
    "writer's version": with_other_bytes(b" version 2", b" version Z"),
    "schema's name": with_other_bytes(b"\x06schema", b"\x06Zebede"),
    # The same number, of 32 bits where 64 are, which readers pass over.
    "a number of another width": with_other_bytes(b"\x26\x08\x16", b"\x25\x08\x16"),
}


@pytest.mark.parametrize("case", FORGED)
def test_files_that_hold_more(case: str) -> None:
    found = strange(FORGED[case]())
    assert found
    assert "Zebed" not in str(found)


def test_files_of_another_arrow_are_claimed() -> None:
    """They may be encoded otherwise. Notes that no version writes are refused all the same."""
    content = with_other_bytes(b" version 2", b" version 1")()
    footer = read_footer(content, whole=True)
    assert footer is not None
    assert (footer.strange, footer.is_of_another_arrow) == ([], True)
    assert strange(content.replace(b'"metadata":{}', b'"metadata":[]'))


FLIPS = """
import io, sys
import pyarrow as pa
import pyarrow.parquet as pq
from anonspark.verification.proof.release_files import read_footer
content, start = sys.stdin.buffer.read(), int(sys.argv[1])
values = pq.read_table(io.BytesIO(content))
for place in range(start, len(content)):
    changed = content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
    print(place, flush=True)
    footer = read_footer(changed, whole=True)
    if footer is not None and not footer.strange and not footer.is_of_another_arrow:
        try:
            if pq.read_table(io.BytesIO(changed)).equals(values):
                print("hidden", place, flush=True)
        except (pa.ArrowException, OSError):
            pass
"""


def test_changes_of_bits_anywhere() -> None:
    """No bit is one that no value shows. Arrow may end with a signal: then nothing is accepted."""
    content, start, hidden = written(PEOPLE), 0, 0
    while start < len(content):
        tried = subprocess.run(
            [sys.executable, "-c", FLIPS, str(start)], input=content, capture_output=True
        )
        lines = tried.stdout.decode().splitlines()
        assert lines, tried.stderr.decode()
        assert tried.returncode <= 0, tried.stderr.decode()
        hidden += sum(line.startswith("hidden") for line in lines)
        start = 1 + max(int(line) for line in lines if line.isdigit())
    assert hidden == 0
