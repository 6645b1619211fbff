"""A table whose every value is found again wherever it stands, and how to look for them.

Texts have words of their own, numbers have many digits. The columns have names that would do harm
if anything took them for more than names.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

ROWS = 240
SEED = 8675309017443211

# Texts of the tables, by what they begin with.
TEXTS = {
    "identifier": "Ixtlilname",
    "quasi_identifier": "Quetzalborough",
    "group": "Popocatregion",
    "sensitive": "Xanthodiagnosis",
    "insensitive": "Zyzzyvanote",
    "unlisted": "Wyvernsecret",
    "invalid": "Kumquatnumber",
    "metadata": "Jabberwockmeta",
}

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def planted_table() -> pa.Table:
    """Return a table in which every value can be recognized."""
    generator = np.random.default_rng(3)
    rows = np.arange(ROWS)

    def texts(kind: str, different: int, *, weights: Any = None) -> list[str]:
        drawn = generator.integers(0, different, ROWS) if weights is None else weights
        return [f"{TEXTS[kind]}-{number:03d}" for number in drawn]

    def shuffled(values: list[Any]) -> list[Any]:
        return [values[place] for place in generator.permutation(ROWS)]

    start = datetime(1961, 3, 4, 5, 6, 7, 891011, tzinfo=UTC)
    columns = {
        "name": [f"{TEXTS['identifier']}-{row:03d}" for row in rows],
        "acc`ount": shuffled([730_019_003 + int(row) * 100_003 for row in rows]),
        "in.come": shuffled([48_613.257 + int(row) * 131.0173 for row in rows]),
        "birth_date": shuffled([date(1931, 1, 7) + timedelta(days=61 * int(row)) for row in rows]),
        "last_seen": shuffled(
            [start + timedelta(hours=5 * int(row), microseconds=7 * int(row)) for row in rows]
        ),
        "${town}": texts("quasi_identifier", 24),
        "1); DROP TABLE t; --": texts("sensitive", 9),
        "*": texts("insensitive", 2),
        "<b>amount</b>": shuffled([917_301.0319 + int(row) * 17.0321 for row in rows]),
        "secret": texts("unlisted", ROWS),
        "salary": [
            f"{TEXTS['invalid']}-{row:03d}" if row % 40 == 7 else str(52_907.4331 + int(row) * 29)
            for row in rows
        ],
    }
    return pa.table(columns)


class Planted:
    """Finds planted values in texts, whatever they are written as."""

    def __init__(self, table: pa.Table) -> None:
        self.words = re.compile("|".join(TEXTS.values()), re.IGNORECASE)
        self.numbers: set[float] = {float(SEED)}
        self.dates: set[str] = set()
        for column in table.columns:
            for value in column.to_pylist():
                if isinstance(value, datetime):
                    self.dates.add(value.strftime("%Y-%m-%d %H:%M"))
                    self.dates.add(value.strftime("%Y-%m-%dT%H:%M"))
                    self.numbers.add((value - EPOCH) // timedelta(microseconds=1))
                elif isinstance(value, date):
                    self.dates.add(value.isoformat())
                elif isinstance(value, float | int) or value[:1].isdigit():
                    self._add_number(float(value))

    def _add_number(self, value: float) -> None:
        self.numbers.add(value)
        # As the number that has the same bits, as kernels and Spark's rows hold it.
        self.numbers.add(float(struct.unpack("<q", struct.pack("<d", value))[0]))

    def found_in(self, text: str) -> list[str]:
        """Return the lines that hold a planted value, shortened to what stands around it."""
        return [
            f"{match[0]}: ...{text[max(0, match.start() - 300) : match.end() + 80]}..."
            for match in self._matches(text)
        ]

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        yield from self.words.finditer(text)
        for match in re.finditer(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", text):
            if len(match[0]) >= 7 and float(match[0]) in self.numbers:
                yield match
        for match in re.finditer(r"(?<![0-9a-zA-Z])[0-9a-f]{8,16}(?![0-9a-zA-Z])", text):
            if float(int(match[0], 16)) in self.numbers:
                yield match
        for match in re.finditer(r"19\d\d-\d\d-\d\d(?:[ T]\d\d:\d\d)?", text):
            if match[0] in self.dates:
                yield match


ATTRIBUTES: dict[str, Any] = {
    "name": "identifier",
    "acc`ount": "quasi_identifier",
    "in.come": "quasi_identifier",
    "birth_date": "quasi_identifier",
    "last_seen": "quasi_identifier",
    "${town}": "quasi_identifier",
    "1); DROP TABLE t; --": "sensitive",
    "*": "insensitive",
    "<b>amount</b>": "insensitive",
}


def document(folder: Path, name: str, **sections: Any) -> str:
    """Write a configuration and return its path."""
    plain: dict[str, Any] = {
        "input": {"path": str(folder / "planted.parquet")},
        "attributes": ATTRIBUTES,
        "privacy": {"k": 5},
        "output": {"path": str(folder / name)},
        "execution": {"task_rows": 100, "seed": SEED},
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(plain | sections, sort_keys=False))
    return str(path)


def with_metadata(table: pa.Table) -> pa.Table:
    """Return a table whose columns have what Spark ML notes of a column: its values."""
    kinds = {pa.string(): "string", pa.int64(): "long", pa.float64(): "double", pa.date32(): "date"}
    values = {"ml_attr": {"vals": [f"{TEXTS['metadata']}-1"], "type": "nominal"}}
    fields = [
        {
            "name": field.name,
            "type": kinds.get(field.type, "timestamp"),
            "nullable": True,
            "metadata": values | {"comment": TEXTS["metadata"]},
        }
        for field in table.schema
    ]
    described = json.dumps({"type": "struct", "fields": fields})
    return table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": described})


def write_inputs(folder: Path, table: pa.Table) -> None:
    """Write the table as Parquet and as a CSV with one broken record, and hierarchies."""
    pq.write_table(with_metadata(table), folder / "planted.parquet")
    lines = [",".join(map(str, row.values())) for row in table.to_pylist()]
    lines[77] += f",{TEXTS['unlisted']}-surplus"
    (folder / "planted.csv").write_text("\n".join([",".join(table.column_names), *lines]))
    towns = sorted({str(town) for town in table["${town}"].to_pylist()})
    rows = [f"{town};{TEXTS['group']}-{place % 3};*" for place, town in enumerate(towns)]
    (folder / "towns.csv").write_text("\n".join(rows))
    (folder / "some-towns.csv").write_text("\n".join(rows[:-2]))
