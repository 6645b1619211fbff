"""Releases of every style, of people whose columns are of every kind, for who reads them."""

from __future__ import annotations

import datetime
import random
from collections.abc import Collection
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run

ROWS = 240
QUASI_IDENTIFIERS = ("age", "born", "pay", "height", "sex", "seen", "member", "postal code")
DAY = datetime.date(1950, 1, 1)
MOMENT = datetime.datetime(2020, 1, 1)


def people() -> pa.Table:
    """Return people whose columns are of every kind, some values missing."""
    draw = random.Random(3)  # noqa: S311

    def some(value: Any) -> Any:
        return None if draw.random() < 0.08 else value

    def column(make: Any) -> list[Any]:
        return [some(make()) for _ in range(ROWS)]

    return pa.table(
        {
            "age": column(lambda: draw.randint(17, 90)),
            "born": column(lambda: DAY + datetime.timedelta(days=draw.randint(0, 20_000))),
            "pay": pa.array(
                column(lambda: Decimal(draw.randint(-500, 5000)) / 100), pa.decimal128(9, 2)
            ),
            "height": column(lambda: round(draw.gauss(170, 10), 1)),
            "sex": column(lambda: draw.choice(["f", "m"])),
            "seen": column(lambda: MOMENT + datetime.timedelta(minutes=draw.randint(0, 10**5))),
            "member": column(lambda: draw.random() < 0.4),
            "postal code": column(lambda: str(draw.randint(10_000, 13_000))),
            "diagnosis": column(lambda: draw.choice(["flu", "cold", "a 'b'"])),
            "visits": column(lambda: draw.randint(0, 5)),
        }
    )


RULES = {
    "age": {"intervals": [5, 20]},
    "born": {"calendar": ["month", "quarter", "year"]},
    "postal code": {"prefix": [1, 2, 3]},
}

OPEN_RULES = {
    "age": {"intervals": [5, 20], "top": 70},
    "born": {"calendar": ["month", "year", "decade"]},
    "postal code": {"keep": [4, 2, 1]},
}

GRIDS: dict[str, dict[str, Any]] = {
    "age": {"grid": 5, "bottom": 24, "top": 78},
    "born": {"grid": "quarter", "bottom": "1955-06-30", "top": "1995-01-01"},
    "pay": {"grid": 0.5, "top": 40},
    "height": {"grid": 2.5, "bottom": 160},
    "seen": {"grid": "hour", "top": "2020-03-01"},
}

RELEASES: dict[str, dict[str, Any]] = {
    "interval": {},
    "bounds": {},
    "mean": {},
    "rules": {"rules": RULES, "columns": ("age", "born", "postal code", "sex")},
    "open rules": {"rules": OPEN_RULES, "columns": ("age", "born", "postal code", "sex")},
    "sets of rules": {"rules": RULES, "columns": ("age", "born"), "style": "bounds"},
    "full-domain": {"rules": RULES, "columns": ("age", "sex"), "hierarchy": True},
    "grids": {"with": GRIDS},
    "bounds on grids": {"with": GRIDS, "style": "bounds"},
    "rules with ends": {
        "rules": RULES,
        "columns": ("age", "born"),
        "with": {"age": {"bottom": 24, "top": 78}, "born": {"bottom": "1955-06-30"}},
    },
    "dropped": {"missing": "drop", "columns": ("age", "height", "sex")},
}


def write_releases(folder: Path, names: Collection[str] = tuple(RELEASES)) -> None:
    """Write the people, a hierarchy and some releases into a directory."""
    parquet.write_table(people(), folder / "people.parquet")
    (folder / "sex.csv").write_text("f,person\nm,person\n")
    for name in names:
        wanted = RELEASES[name]
        columns = wanted.get("columns", QUASI_IDENTIFIERS)
        attributes: dict[str, Any] = {one: {"role": "quasi_identifier"} for one in columns}
        for one, rule in wanted.get("rules", {}).items():
            if one in columns:
                attributes[one]["hierarchy"] = rule
        for one, keys in wanted.get("with", {}).items():
            attributes[one] |= keys
        document: dict[str, Any] = {
            "input": {"path": str(folder / "people.parquet"), "format": "parquet"},
            "attributes": attributes | {"diagnosis": "sensitive", "visits": "insensitive"},
            "missing": wanted.get("missing", "category"),
            "privacy": {"k": 4},
            "output": {
                "path": str(folder / name),
                "style": wanted.get("style", name if name in ("bounds", "mean") else "interval"),
            },
            "execution": {"seed": 5},
        }
        if wanted.get("hierarchy"):
            attributes["sex"]["hierarchy"] = str(folder / "sex.csv")
            document["model"] = {"name": "full-domain", "suppression_limit": 0.3}
        run(LocalEngine(), parse_configuration(document))
