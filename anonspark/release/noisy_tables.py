"""The noisy tables of a selection, read back: how often each value goes with each class, about.

They were published under differential privacy: whatever is made of them alone costs nothing more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from anonspark.engine.protocol import Engine
from anonspark.errors import ConfigurationError

SELECTION = "selection.json"
"""The description of a selection, in its directory."""

TABLES = "tables"
"""Directory of the noisy tables, in that of a selection."""

TABLE_SCHEMA = pa.schema(
    [
        ("attribute", pa.string()),
        ("position", pa.int64()),
        ("value", pa.string()),
        ("class", pa.string()),
        ("records", pa.int64()),
    ]
)

OF_VALUES = "tables_of_values"
"""Key of :data:`SELECTION`: the tables whose rows are values, and no groups or bins."""

OTHER_ROWS = 2
"""Last rows of a table: those of other values, and of missing ones."""


@dataclass(frozen=True)
class NoisyTables:
    """The noisy tables of a selection whose rows are values, for one target column.

    ``counts`` goes by attribute, value and class, with 0 for negative counts and without rows of
    other and of missing values. ``others`` are the attributes whose tables have groups or bins.
    """

    target: str
    counts: Mapping[str, Mapping[str, Mapping[str, int]]]
    others: tuple[str, ...]


def read_noisy_tables(engine: Engine, selection: str) -> NoisyTables:
    """Read the noisy tables in the directory that ``selection.output`` named.

    One job, which collects all cells. Raises ConfigurationError if there are no tables.
    """
    directory = engine.files.qualified(selection).rstrip("/")
    document = _read_selection(engine, directory)
    if not engine.files.exists(f"{directory}/{TABLES}"):
        raise ConfigurationError(
            f"--from: the selection at {selection} published no tables. Expected some. Select with "
            "mechanism: tables, or with a tables_epsilon"
        )
    with engine.reading((directory,), "--from: "):
        cells = engine.staged([f"{directory}/{TABLES}"], TABLE_SCHEMA).collect()
    counts: dict[str, dict[str, dict[str, int]]] = {}
    last: dict[str, int] = {}
    rows = cells.to_pylist()
    for row in rows:
        name = row["attribute"]
        last[name] = max(last.get(name, 0), row["position"])
    for row in rows:
        name = row["attribute"]
        if name in document[OF_VALUES] and row["position"] <= last[name] - OTHER_ROWS:
            by_class = counts.setdefault(name, {}).setdefault(row["value"], {})
            by_class[row["class"]] = max(0, row["records"])
    return NoisyTables(
        document["selection"]["target"], counts, tuple(name for name in last if name not in counts)
    )


def _read_selection(engine: Engine, directory: str) -> dict[str, Any]:
    """Read the description of a selection. Raises ConfigurationError if there is none."""
    path = f"{directory}/{SELECTION}"
    document: Any = None
    if engine.files.exists(path):
        try:
            document = json.loads(engine.files.read_text(path))
        except (OSError, ValueError):
            document = None
    if not _is_selection(document):
        raise ConfigurationError(
            f"--from: found no selection at {directory}. Expected a directory that anonspark "
            f"select wrote, with {SELECTION}. Correct the path"
        )
    description: dict[str, Any] = document
    return description


def _is_selection(document: Any) -> bool:
    """Return whether a document has the keys that :func:`read_noisy_tables` reads.

    >>> _is_selection({"selection": {"target": "disease"}, "tables_of_values": ["age"]})
    True
    """
    options = document.get("selection") if isinstance(document, dict) else None
    return (
        isinstance(options, dict)
        and isinstance(options.get("target"), str)
        and isinstance(document.get(OF_VALUES), list)
    )
