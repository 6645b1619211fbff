"""Types of texts, by a rule that knows no order."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonspark.engine.local.day_patterns import DayPattern
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.local.opening import open_files
from anonspark.engine.local.text_types import (
    INSTANT,
    Found,
    UnknownTypeError,
    convert,
    look_at,
)
from anonspark.errors import ConfigurationError

TEXTS = [
    *("1", "-7", "007", "+5", "123456", "2020", "2147483648", "9" * 18, "9" * 19, "9" * 30, "5."),
    *("1.5", ".5", "1e5", "NaN", "-Inf", " 5", "9" * 40, "2020-01-02", "2020-01", "2020-1-2"),
    *("2020-01-02 03:04:05", "2020-01-02T03:04:05.123456Z", "2020-01-02 03:04", "true", "FALSE"),
    *("x", "", "1,5", "12:30", "2020-01-02 03:04 Europe/Istanbul", "2020-02-30", "1-2", "ü"),
]


def type_of(texts: list[str | None]) -> Any:
    try:
        return look_at(pa.array(texts, pa.string()), Found()).type()
    except UnknownTypeError:
        return UnknownTypeError


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], pa.string()),
        ([None, ""], pa.string()),
        (["1", None, ""], pa.int32()),
        (["1", "2147483648"], pa.int64()),
        (["9" * 18, "1"], pa.int64()),
        (["9" * 20, "1"], pa.decimal128(20, 0)),
        (["9" * 25, "9" * 12], pa.decimal128(25, 0)),
        (["9" * 25, "1.5"], pa.float64()),
        (["1", "x"], pa.string()),
        (["true", "False"], pa.bool_()),
        (["true", "1"], pa.string()),
        (["2020-01-02", None], pa.date32()),
        (["2020-01-02", "2020-01-02 03:04"], INSTANT),
        (["2020-01-02", "12"], pa.string()),
        (["2020-01-02", "2020"], UnknownTypeError),
        (["9" * 19, "9" * 12], UnknownTypeError),
        (["12:30"], UnknownTypeError),
        (["12:30", "x"], pa.string()),
        (["12:30", "5"], pa.string()),
    ],
    ids=str,
)
def test_types(texts: list[str | None], expected: Any) -> None:
    assert type_of(texts) == expected


# As Spark 4.1 infers them; where it knows a year that is not ours, the type is not told.
@pytest.mark.parametrize(
    ("pattern", "texts", "expected"),
    [
        ("dd.MM.yyyy", ["01.02.2026", None, "29.02.2024", "01.02.1500"], pa.date32()),
        ("dd.MM.yyyy", ["1.2.2026"], pa.string()),
        ("dd.MM.yyyy", ["31.02.2026"], pa.string()),
        ("dd.MM.yyyy", ["01.02.2026", "01.02.26"], pa.string()),
        ("dd.MM.yyyy", ["01.02.2026", "2026-02-01"], pa.string()),
        ("dd.MM.yyyy", ["2026-02-01"], INSTANT),
        ("dd.MM.yyyy", ["01.02.2026", "2026"], pa.string()),
        ("dd.MM.yyyy", ["01.02.2026", "12:30"], pa.string()),
        ("dd.MM.yyyy", ["01.02.2026", "01.02.-2026"], UnknownTypeError),
        ("dd.MM.yyyy", ["01.02.0000"], UnknownTypeError),
        ("d.M.yyyy", ["1.2.2026", "001.002.2026"], pa.date32()),
        ("d.M.yyyy", ["+1.2.2026"], pa.string()),
        ("M/d/yyyy", ["13/1/2026"], pa.string()),
        ("MM/dd/yyyy", ["12/31/2026"], pa.date32()),
        ("yyyy/MM/dd", ["2026/02/01"], pa.date32()),
        ("yyyy.MM.dd", ["2026.02", "1"], pa.float64()),
        ("dd-MM-yyyy", ["01-02-2026"], pa.date32()),
    ],
    ids=str,
)
def test_days_in_another_form(pattern: str, texts: list[str | None], expected: Any) -> None:
    days = DayPattern.read(pattern)
    assert days is not None
    found = look_at(pa.array(texts, pa.string()), Found(), days)
    if expected is UnknownTypeError:
        with pytest.raises(UnknownTypeError, match="days of years with a sign"):
            found.type()
        return
    assert found.type() == expected
    if pa.types.is_date(expected):
        read = convert(pa.array(texts, pa.string()), expected, days).to_pylist()
        assert [one is None for one in read] == [one is None for one in texts]
        assert read[0] is not None
        assert (read[0].year, read[0].month) in {(2026, 2), (2026, 12)}


@pytest.mark.parametrize(
    "pattern",
    ["yyyy-MM-dd", "yyyy-M-d", "yyyyMMdd", "dd.MM.yy", "dd.MMM.yyyy", "dd:MM:yyyy", "MM.yyyy", "x"],
)
def test_other_patterns_are_read_by_spark_alone(pattern: str) -> None:
    assert DayPattern.read(pattern) is None


def test_another_pattern_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1.Feb.2026\n")
    options = {"header": "true", "inferSchema": "true", "dateFormat": "d.MMM.yyyy"}
    with pytest.raises(
        ConfigurationError, match=r"^input\.options\.dateFormat: found 'd\.MMM\.yyyy'; expected dd"
    ):
        open_files(LocalFiles(), [str(path)], "csv", options, key="input.path", section="input")
    # Without types that are inferred it says nothing.
    del options["inferSchema"]
    opened = open_files(LocalFiles(), [str(path)], "csv", options, key="DATA")
    assert opened.schema.field("a").type == pa.string()


@given(st.lists(st.sampled_from(TEXTS), max_size=6), st.randoms(use_true_random=False))
def test_neither_order_nor_parts_matter(texts: list[str], draw: random.Random) -> None:
    """Parts are looked at by different tasks, which know nothing of each other or one after one."""
    expected = type_of(texts)
    shuffled = draw.sample(texts, len(texts))
    assert type_of(shuffled) == expected
    place = draw.randint(0, len(texts))
    parts = [pa.array(part, pa.string()) for part in (shuffled[:place], shuffled[place:])]
    alone = look_at(parts[0], Found()) | look_at(parts[1], Found())
    after = look_at(parts[1], look_at(parts[0], Found()))
    for known in (alone, after):
        try:
            found: Any = known.type()
        except UnknownTypeError:
            found = UnknownTypeError
        assert found == expected


@given(st.lists(st.sampled_from(TEXTS), max_size=6))
def test_every_value_can_be_read_in_the_type_of_its_column(texts: list[str]) -> None:
    kind = type_of(texts)
    if kind is UnknownTypeError:
        return
    values = pa.array([text or None for text in texts], pa.string())
    read = convert(values, kind)
    assert read.type == kind
    assert read.null_count == values.null_count
    one_by_one = [convert(pa.array([text], pa.string()), kind)[0].as_py() for text in values]
    assert repr(read.to_pylist()) == repr(one_by_one)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("007", pa.int32(), 7),
        ("+2147483648", pa.int64(), 2147483648),
        ("٣", pa.int32(), 3),
        ("5.", pa.decimal128(1, 0), Decimal(5)),
        (" 5 ", pa.float64(), 5.0),
        ("1d", pa.float64(), 1.0),
        ("0x1p3", pa.float64(), 8.0),
        ("1e400", pa.float64(), math.inf),
        ("-Infinity", pa.float64(), -math.inf),
        ("2020-01-02 03:04:05+03:00", INSTANT, datetime(2020, 1, 2, 0, 4, 5, tzinfo=UTC)),
        ("2020-1-2 3", INSTANT, datetime(2020, 1, 2, 3, tzinfo=UTC)),
        ("2020-01-02 03:04:05.1234567", INSTANT, datetime(2020, 1, 2, 3, 4, 5, 123456, UTC)),
    ],
)
def test_values(text: str, kind: pa.DataType, value: Any) -> None:
    assert type_of([text]) == kind
    assert convert(pa.array([text]), kind).to_pylist() == [value]


@pytest.mark.parametrize("kind", [pa.int32(), pa.float64(), pa.bool_(), pa.date32(), INSTANT])
def test_what_is_no_value_is_not_told(kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match=r"no (truth )?value") as told:
        convert(pa.array(["Kryptonitis"]), kind)
    assert "Kryptonitis" not in str(told.value)
