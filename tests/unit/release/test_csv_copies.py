"""Copies of the records as CSV: what reads them gets the records, and runs nothing."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonspark.release.copies import csv_copy

TEXTS = ["=1+1", "+x", "-x", "@SUM(A1)", "\tx", "\rx", "\nx", "'x", "＝1+1", "-5", "+1.5e3", "-"]  # noqa: RUF001
HARMLESS = {"-5", "+1.5e3"}


def content_of(table: pa.Table, rows: int | None = None) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=rows)
    return sink.getvalue()


def test_no_text_is_a_formula() -> None:
    copied = csv_copy(content_of(pa.table({"=name": TEXTS, "plain": ["a"] * len(TEXTS)}), 5))
    read = pd.read_csv(io.BytesIO(copied), dtype=str, keep_default_na=False)
    assert list(read) == ["'=name", "plain"]
    expected = [text if text in HARMLESS else f"'{text}" for text in TEXTS]
    assert read["'=name"].to_list() == expected
    # The first apostrophe can be removed from every text.
    assert [text.removeprefix("'") for text in read["'=name"]] == TEXTS


def test_values_are_written_as_they_are() -> None:
    table = pa.table(
        {
            "text": ['quoted "x", and\nmore', "", None, "[17-25]", "ä"],
            "number": [1.5, None, -2.0, 0.1, 1e300],
            "day": [date(2020, 1, 2)] * 5,
            "time": pa.array([datetime(2020, 1, 2, 3, tzinfo=UTC)] * 5, pa.timestamp("us", "UTC")),
            "flag": [True, None, False, True, False],
        }
    )
    copied = csv_copy(content_of(table))
    assert copied.startswith(b'\xef\xbb\xbf"text","number","day","time","flag"\n')
    lines = copied.decode("utf-8-sig").split("\n")
    assert lines[1:4] == [
        '"quoted ""x"", and',
        'more",1.5,2020-01-02,2020-01-02 03:00:00.000000Z,true',
        '"",,2020-01-02,2020-01-02 03:00:00.000000Z,',
    ]
    assert lines[4] == ",-2,2020-01-02,2020-01-02 03:00:00.000000Z,false"
    assert csv_copy(content_of(table, 2)) == copied
    with pytest.raises(pa.ArrowException):
        csv_copy(b"no such file")
