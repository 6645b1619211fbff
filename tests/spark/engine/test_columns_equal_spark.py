"""Values over Arrow's columns are hashed and read as Spark hashes and reads them."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonspark.engine.raw_columns import Reading, is_readable
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.values.hashing import content_hash, xxhash64
from anonspark.engine.values.values import hashed_as, read_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema(
    [
        ("flag", pa.bool_()),
        ("byte", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("bytes", pa.binary()),
        ("decimal", pa.decimal128(18, 3)),
        ("large", pa.decimal128(38, 5)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("clock", pa.timestamp("us")),
        ("numbers", pa.list_(pa.int64())),
        ("pair", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("lists", pa.list_(pa.list_(pa.string()))),
    ]
)

_NAN, _INFINITE = float("nan"), float("inf")
_LARGEST = Decimal("12345678901234567890123456789012345678")
_PAIR = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.decimal128(38, 2)))])

EXTREMES: tuple[tuple[pa.DataType, list[Any]], ...] = (
    (pa.int8(), [-128, 127]),
    (pa.int64(), [-(2**63), 2**63 - 1]),
    (pa.float32(), [-0.0, 0.0, _NAN, _INFINITE, 1.5, 1e-45]),
    (pa.float64(), [-0.0, 0.0, -_NAN, -_INFINITE, 0.1, 5e-324]),
    (pa.decimal128(18, 0), [Decimal(10**18 - 1), Decimal(-1)]),
    (pa.decimal128(19, 3), [Decimal("1.280"), Decimal("-0.128"), Decimal("-0.129")]),
    (pa.decimal128(38, 0), [_LARGEST, -_LARGEST, Decimal(0), Decimal(127), Decimal(-128)]),
    (pa.date32(), [date(1, 1, 1), date(1582, 10, 4), date(9999, 12, 31)]),
    (pa.timestamp("us", "UTC"), [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]),
    (pa.string(), ["", "a", "abcd", "ä" * 4, "x" * 31, "y" * 32, "z" * 77, "\U0001f600 b"]),
    (pa.binary(), [b"", b"\x00", b"\xff" * 33]),
    (pa.list_(pa.list_(pa.float64())), [[[1.0, -0.0], None, []], [[_NAN]]]),
    (_PAIR, [{"a": 1, "b": [_LARGEST / 100, None]}, {"a": None, "b": None}]),
    (pa.list_(_PAIR), [[{"a": None, "b": []}, None, {"a": 3, "b": [Decimal("1.00")]}]]),
)

TEXTS = (
    *(
        "",
        " ",
        "?",
        "NA",
        "abc",
        "ä€𝄞",
        "0",
        "1",
        "-1",
        "+1",
        "007",
        "1.5",
        ".5",
        "5.",
        "1e3",
        "1E-7",
    ),
    *(
        "1d",
        "1f",
        "1.5D",
        "0x10",
        "NaN",
        "nan",
        "inf",
        "-Infinity",
        "1_000",
        "1,5",
        "12345678901234567890",
    ),
    *("0.1", "0.30000000000000004", "1e400", "-0", "1 ", " 2", "\t3", "1.999999999999999999999"),
    *("true", "T", "yes", "N", "no", "f", "FALSE", "tr"),
    *(
        "2024-01-05",
        "2024-1-5",
        "2024",
        "2024-2",
        "2024-02-30",
        "0001-01-01",
        "1582-10-10",
        "9999-12-31",
    ),
    *(
        "10000-01-01",
        "2024-01-05T03",
        "2024-01-05 03:04",
        "2024-01-05 03:04:05.123456789",
        "24-01-05",
    ),
    *("2024-01-05T03:04:05Z", "2024-01-05T03:04:05+02:00", "2024-01-05 3:4:5 Europe/Berlin"),
    *("2024-01-05T03:04:05.5-0330", "2024-01-05 25:00:00", "-5-01-01", "2024-01-05x"),
    *(
        "0x1p3",
        "0X1.8P1d",
        "0x1",
        "1.e2f",
        "4.9E-324",
        "1e-400",
        "\x7f12",
        "\u0661",
        "\u0661e\u0662",
        "1e99999999999",
    ),
    *(
        f"0.{'123456789' * 5}",
        "9" * 38,
        "9" * 39,
        "1e38",
        "999999999999999999999999999999999999.995",
    ),
    *(
        "2024-01-05T",
        "2024-01-05 1",
        "2024-01-05 01:02 UTC",
        "2024-01-05 01:02:03.UTC",
        "+2024-1-5",
    ),
    *(f"2024-01-05 01:02:03{zone}" for zone in (" ", "x", "+1:5", "+130", "+01:3015", "+18:01")),
    *(f"2024-01-05 01:02:03 {zone}" for zone in ("+1", "+0130", "-01:30:15", "UTC+1", "GMT-01:30")),
    *(f"2024-07-05 01:02:03 {zone}" for zone in ("PST", "EST", "IST", "GMT0", "UTC0", "Z", "z")),
    *(f"2024-07-05 01:02:03 {zone}" for zone in ("localtime", "europe/paris", "Europe/Nowhere")),
    *(f"2024-03-31 02:30:00 {zone}" for zone in ("Europe/Berlin", "America/New_York")),
    *(f"{year}-10-27 02:30:00 Europe/Berlin" for year in ("2024", "1850", "-0200", "12024")),
    *("9999999-01-01", "5881580-07-11", "5881580-07-12", "-5877641-06-23", "-9999999-01-01"),
    *("999999-01-01 00:00:00", "294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808"),
    *("2024-01-05 01:02:033", "2024-01-05 01:02:03..5", "0000-02-29", "1900-02-29"),
)


def odd_text(draw: random.Random) -> str:
    """Return a text that is nearly a number, a day or a point in time, or is one."""
    match draw.randrange(3):
        case 0:
            pieces = (
                "0",
                "12",
                "-",
                "+",
                ":",
                ".",
                "T",
                " ",
                "e",
                "0x",
                "p",
                "f",
                "\t",
                "\x7f",
                "/",
            )
            return "2" + "".join(draw.choices(pieces, k=draw.randrange(5)))
        case 1:
            digits = str(draw.randrange(10 ** draw.randint(1, 40)))
            fraction = draw.choice(["", ".", f".{draw.randrange(10**30)}"])
            return digits + fraction + draw.choice(["", f"e{draw.randint(-40, 40)}", "E+5", "d"])
        case _:
            day = f"{draw.randrange(12000):04d}-{draw.randint(0, 13)}-{draw.randint(0, 32)}"
            time = f"{draw.randint(0, 24)}:{draw.randint(0, 60)}:{draw.randint(0, 60)}"
            zone = draw.choice(["", ".5", ".1234567Z", " UTC", "-7:5", " Asia/Tokyo", " CST", " x"])
            return draw.choice([day, f"{day} {time}{zone}", f"{day}T{time}{zone}"])


def drawn(rows: int) -> pa.Table:
    """Return rows with every kind of value in each column, and nulls."""
    draw = random.Random(7)  # noqa: S311
    special = [
        0.0,
        -0.0,
        float("nan"),
        float("inf"),
        -float("inf"),
        1e7,
        1e-3,
        123456.789,
        1e22,
        17.0,
    ]

    def micros(span: int) -> timedelta:
        return timedelta(microseconds=draw.randint(0, span))

    makers: dict[str, Any] = {
        "flag": lambda: draw.random() < 0.5,
        "byte": lambda: draw.randint(-128, 127),
        "short": lambda: draw.randint(-(2**15), 2**15 - 1),
        "int": lambda: draw.randint(-(2**31), 2**31 - 1),
        "long": lambda: draw.choice([draw.randint(-(2**63), 2**63 - 1), draw.randint(-9, 9)]),
        "float": lambda: draw.choice([*special, draw.gauss(0, 100)]),
        "double": lambda: draw.choice([*special, draw.gauss(0, 1e6), draw.gauss(0, 1e-6)]),
        "text": lambda: draw.choice([draw.choice(TEXTS), odd_text(draw)]),
        "bytes": lambda: draw.randbytes(draw.randint(0, 90)),
        "decimal": lambda: Decimal(draw.randint(-(10**17), 10**17)).scaleb(-3),
        "large": lambda: Decimal(
            draw.choice([0, -1, 127, 128, -128, -129, draw.randint(-(10**30), 10**30)])
        ).scaleb(-5),
        "day": lambda: date(1, 1, 1) + timedelta(days=draw.randint(0, 3_650_000)),
        "moment": lambda: datetime(1500, 1, 1, tzinfo=UTC) + micros(2**57),
        "clock": lambda: datetime(1500, 1, 1) + micros(2**57),
        "numbers": lambda: [draw.choice([None, 1, 2]) for _ in range(draw.randint(0, 3))],
        "pair": lambda: {"x": draw.choice([None, 1]), "y": draw.choice([None, "a"])},
        "lists": lambda: [draw.choice([None, [], ["a", None]]) for _ in range(draw.randint(0, 2))],
    }
    table = [
        {name: None if draw.random() < 0.1 else make() for name, make in makers.items()}
        for _ in range(rows)
    ]
    texts = [*TEXTS, *(row["text"] for row in table[len(TEXTS) :])]
    for row, text in zip(table, texts, strict=True):
        row["text"] = text
    return pa.Table.from_pylist(table, SCHEMA)


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return drawn(400)


@pytest.fixture(scope="module")
def on_spark(
    spark_session: SparkSession, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    path = tmp_path_factory.mktemp("columns") / "rows.parquet"
    pq.write_table(rows, path, coerce_timestamps="us")
    return SparkEngine(spark_session).wrap(spark_session.read.parquet(str(path)).coalesce(1))


def test_hashes(on_spark: Any, rows: pa.Table) -> None:
    names = SCHEMA.names
    hashes = {f"hash {name}": [name] for name in names} | {"hash of all": names}
    plain = on_spark.with_hashes(hashes, nulls=False).collect()
    for name in names:
        assert (plain[f"hash {name}"].to_numpy() == xxhash64([rows[name]])).all(), name
    assert (plain["hash of all"].to_numpy() == xxhash64(rows.columns)).all()
    for key in (None, -(2**40)):
        found = on_spark.with_hashes({"all": names}, key).collect()["all"].to_numpy()
        assert (found == content_hash(rows.columns, key)).all()


def test_hashes_of_extremes(spark: SparkSession, tmp_path: Path) -> None:
    size = 2 * max(len(values) for _, values in EXTREMES)
    columns = []
    for data_type, values in EXTREMES:
        padded = [one for value in values for one in (value, None)]
        columns.append(pa.array(padded + [None] * (size - len(padded)), data_type))
    table = pa.table(columns, [f"c{place}" for place in range(len(columns))])
    pq.write_table(table, tmp_path / "extremes.parquet")
    frame = spark.read.parquet(str(tmp_path / "extremes.parquet")).coalesce(1)
    hashes = {f"hash {name}": [name] for name in table.column_names}
    found = SparkEngine(spark).wrap(frame).with_hashes(hashes, nulls=False).collect()
    for name in table.column_names:
        own = xxhash64([table[name]])
        assert found[f"hash {name}"].to_pylist() == own.tolist(), table[name].type
    all_of_them = {"all": table.column_names}
    found = SparkEngine(spark).wrap(frame).with_hashes(all_of_them, 2**40).collect()
    assert found["all"].to_pylist() == content_hash(table.columns, 2**40).tolist()


TARGETS = (
    *(pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.int64(), pa.float64()),
    *(pa.decimal128(38, 2), pa.string()),
)


def readings() -> list[Reading]:
    """Return every way to read every column that can be read so."""
    made = []
    for field, wanted in product(SCHEMA, TARGETS):
        if is_readable(field.type, wanted):
            clock = pa.types.is_timestamp(wanted) and field.name == "clock"
            target = pa.timestamp("us") if clock else wanted
            ways: list[dict[str, Any]] = [{"markers": ("?", "NA")}]
            if pa.types.is_string(target):
                ways += [{"whole": True}, {"blanks": " \t"}]
            if pa.types.is_decimal(target) and not pa.types.is_string(field.type):
                ways.append({"by_text": True})
            made += [
                Reading(field.name, f"r{len(made) + n}", target, **way)
                for n, way in enumerate(ways)
            ]
    return made


def test_readings(on_spark: Any, rows: pa.Table) -> None:
    wanted = readings()
    found = on_spark.read(wanted).collect()
    wrong = []
    for one in wanted:
        values, missing = read_values(one, rows[one.column].combine_chunks())
        if found[one.missing].to_pylist() != missing.to_pylist():
            wrong.append((one.column, str(one.type), "missing"))
        pairs = zip(plain(found[one.name]), plain(values), plain(rows[one.column]), strict=True)
        wrong += [(one.column, str(one.type), raw, a, b) for a, b, raw in pairs if not alike(a, b)]
    assert wrong == []


def plain(values: Any) -> list[Any]:
    """Return values that Python can hold: days and points in time as numbers."""
    if pa.types.is_date(values.type):
        return values.cast(pa.int32()).to_pylist()
    return (values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values).to_pylist()


def alike(left: Any, right: Any) -> bool:
    return left == right or (left != left and right != right)


def test_hashes_of_other_types(on_spark: Any, rows: pa.Table) -> None:
    """Which rows agree is the same, whichever engine says it."""
    others = {
        "text": pa.int64(),
        "long": pa.string(),
        "double": pa.int64(),
        "float": pa.float64(),
        "decimal": pa.float64(),
        "int": pa.decimal128(20, 0),
    }
    hashes = {f"hash {name}": [name] for name in others}
    table = on_spark.with_hashes(hashes, like=pa.schema(list(others.items()))).collect()
    for name, like in others.items():
        found = table[f"hash {name}"].to_pylist()
        converted, changed = hashed_as(rows[name].combine_chunks(), like)
        own = content_hash([converted, changed], 0).tolist()
        first = [found.index(one) for one in found]
        assert first == [own.index(one) for one in own], name
