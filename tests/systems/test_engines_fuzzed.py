"""Drawn tables and configurations, on both engines: the same release, warnings or refusal.

The seed is printed with a difference; ``ENGINES_SEED`` and ``ENGINES_CASES`` repeat and extend it.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import outcome, outcome_of_table
from places import REPOSITORY
from pyarrow import orc

from anonspark.engine.local.engine import LocalEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from anonspark.engine.spark.engine import SparkEngine

pytestmark = pytest.mark.system

SEED, CASES = int(os.environ.get("ENGINES_SEED", "57")), int(os.environ.get("ENGINES_CASES", "200"))

# What docs/install.md#differences lists, and the words of a message by which it is known.
MAY_DIFFER = {
    "If several files contain faulty records, Spark may name any of them": "line ",
    "Spark refuses a Parquet file with a column of an unknown type": "which cannot be",
    "The local engine refuses days before 1582-10-15 and times before 1900": "by an old calendar",
}

Draw = Callable[[random.Random], Any]
DAY = date(2020, 2, 28)
KINDS: dict[str, tuple[pa.DataType, Draw]] = {
    "tiny": (pa.int8(), lambda draw: draw.randint(-3, 3)),
    "int": (pa.int32(), lambda draw: draw.choice([0, 1, 7, -5, 2**31 - 1])),
    "long": (pa.int64(), lambda draw: draw.choice([0, 3, 2**53 + 1, -(2**63)])),
    "unsigned": (pa.uint32(), lambda draw: draw.choice([0, 9, 2**32 - 1])),
    "single": (pa.float32(), lambda draw: draw.choice([0.0, -0.0, 0.1, 1e30, math.nan])),
    "double": (pa.float64(), lambda draw: draw.choice([0.0, -0.0, 0.1, 5e-324, math.inf, -2.5])),
    "decimal": (pa.decimal128(9, 2), lambda draw: Decimal(draw.randint(-9, 9)) / 4),
    "long decimal": (pa.decimal128(38, 3), lambda draw: Decimal(draw.randint(-9, 9)) / 8),
    "text": (pa.string(), lambda draw: draw.choice(["a", "b ", "", "NA", "Ö", "-0", "1.0", "1e3"])),
    "number text": (pa.string(), lambda draw: draw.choice(["0", "1", "2.5", "-0.0", "7,5", "007"])),
    "truth": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "day": (pa.date32(), lambda draw: DAY + timedelta(draw.randint(0, 400))),
    "old day": (pa.date32(), lambda draw: date(1500 + draw.randint(0, 200), 3, 1)),
    "time": (pa.timestamp("us"), lambda draw: datetime(2020, 1, 1) + timedelta(0, draw.random())),
    "zone": (pa.timestamp("us", "UTC"), lambda draw: datetime(2020, 1, draw.randint(1, 9), 12)),
    "fine time": (pa.timestamp("ns"), lambda draw: draw.choice([0, 1000, 1001])),
    "nothing": (pa.null(), lambda _: None),
    "list": (pa.list_(pa.float64()), lambda draw: draw.choice([[], [0.0], [-0.0, None], None])),
    "no list": (pa.list_(pa.null()), lambda draw: draw.choice([[], [None]])),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.null())]),
        lambda draw: draw.choice([{"a": 1, "b": None}, {"a": None, "b": None}, None]),
    ),
    "bytes": (pa.binary(), lambda draw: draw.choice([b"", b"\x00", b"x"])),
}
# Spark's own reader makes numbers of these, so that its DataFrame is another table.
NUMBERS_TO_SPARK = {"nothing", "no list", "struct", "fine time"}
# A type that another file of the table may have.
WIDER = {"tiny": "int", "int": "long", "single": "double", "decimal": "int", "no list": "list"}


def table_of(draw: random.Random, kinds: dict[str, str], rows: int) -> pa.Table:
    columns = {}
    for name, kind in kinds.items():
        own, value = KINDS[kind]
        few = [value(draw) for _ in range(4)]
        missing = draw.random() < 0.3
        values = [
            None if missing and draw.random() < 0.1 else draw.choice(few) for _ in range(rows)
        ]
        columns[name] = pa.array(values, own)
    return pa.table(columns)


def configuration_of(draw: random.Random, names: Sequence[str]) -> dict[str, Any]:
    quasi, others = list(names[:2]), list(names[2:])
    document: dict[str, Any] = {"quasi_identifiers": quasi, "privacy": {"k": draw.randint(2, 4)}}
    document["missing"] = draw.choice(["drop", "category"])
    document["model"] = draw.choice(["mondrian", "su-mondrian", "u-canon"])
    if others and draw.random() < 0.4:
        document["sensitive"] = [others.pop()]
        document["privacy"]["l_diversity"] = 2
    document["insensitive"] = others[: draw.randint(0, len(others))]
    document["output"] = {"style": draw.choice(["interval", "bounds", "mean"])}
    if draw.random() < 0.2:
        document["output"]["copies"] = ["csv"]
    return document


def text_of(table: pa.Table, data_format: str, draw: random.Random) -> str:
    rows = table.to_pylist()
    if data_format == "json":
        return "".join(f"{json.dumps(row, default=str)}\n" for row in rows)
    separator = draw.choice([",", ";"])
    cells = [["" if one is None else str(one) for one in row.values()] for row in rows]
    return "".join(f"{separator.join(line)}\n" for line in [table.column_names, *cells])


def write_case(draw: random.Random, folder: Path, kinds: dict[str, str], data_format: str) -> None:
    """Write one to four files, in folders that name a column at times, one damaged at times."""
    is_hive = draw.random() < 0.2
    for place in range(draw.choice([1, 1, 2, 4])):
        own = {
            name: WIDER[kind] if kind in WIDER and draw.random() < 0.2 else kind
            for name, kind in kinds.items()
        }
        table = table_of(draw, own, draw.randint(4, 20))
        path = folder / (f"p={place % 2}" if is_hive else "") / f"{place}.{data_format}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if data_format in ("csv", "json"):
            path.write_text(text_of(table, data_format, draw), "utf-8")
        else:
            {"parquet": pq.write_table, "orc": orc.write_table}[data_format](table, str(path))
        if draw.random() < 0.03:
            path.write_bytes(path.read_bytes()[:-9])


def run_case(
    number: int, folder: Path, engine: SparkEngine, spark: SparkSession
) -> tuple[dict[str, Any], dict[str, Any], object] | None:
    """Return what each engine makes of a drawn case, and the case. None where it cannot be made."""
    draw = random.Random(f"{SEED} {number}")  # noqa: S311 - repeated by its seed
    data_format = draw.choice(["csv", "json", "parquet", "parquet", "orc", "DataFrame"])
    names = draw.sample(["age", "x", "Ä b", "s", "code"], draw.randint(2, 5))
    known = [k for k in KINDS if data_format != "DataFrame" or k not in NUMBERS_TO_SPARK]
    kinds = {name: draw.choice(known) for name in names}
    document = configuration_of(draw, names)
    case = {"case": number, "format": data_format, "kinds": kinds, **document}
    if data_format == "DataFrame":
        table = table_of(draw, kinds, draw.randint(8, 40))
        place = folder / "given.parquet"
        pq.write_table(table, place)
        frame = spark.read.parquet(str(place))
        return (
            outcome_of_table(pq.read_table(place), document),
            outcome_of_table(frame, document),
            case,
        )
    try:
        write_case(draw, folder / "in", kinds, data_format)
    except pa.ArrowException:
        # What ORC cannot express.
        return None
    document["input"] = {"path": str(folder / "in")}
    own = outcome(LocalEngine(), document, folder / "local")
    return own, outcome(engine, document, folder / "spark"), case


def may_differ(own: dict[str, Any], sparks: dict[str, Any]) -> bool:
    messages = [one.get("message", "") for one in (own, sparks)]
    return any(words in message for words in MAY_DIFFER.values() for message in messages)


def test_both_engines_make_the_same_of_drawn_cases(
    engine: SparkEngine, spark: SparkSession, tmp_path: Path
) -> None:
    different, released = [], 0
    for number in range(CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = run_case(number, folder, engine, spark)
        if found is None:
            continue
        own, sparks, case = found
        released += "fingerprints" in own
        if own != sparks and not may_differ(own, sparks):
            different.append((case, own, sparks))
    assert not different, f"ENGINES_SEED={SEED}: {different}"
    # Else nothing was compared but refusals.
    assert released * 4 > CASES


def test_what_may_differ_is_documented() -> None:
    page = " ".join((REPOSITORY / "docs" / "install.md").read_text().split())
    assert [words for words in MAY_DIFFER if words not in page] == []
