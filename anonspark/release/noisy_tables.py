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
    """The noisy tables of a selection whose rows are values.

    Parameters
    ----------
    target : str
    counts : mapping of str to (mapping of str to (mapping of str to int))
        By attribute, value and class. Negative ones are 0. What is other or missing is left out.
    others : tuple of str
        Attributes whose tables have groups or bins.
    """

    target: str
    counts: Mapping[str, Mapping[str, Mapping[str, int]]]
    others: tuple[str, ...]


def read_noisy_tables(engine: Engine, selection: str) -> NoisyTables:
    """Read the noisy tables of a selection.

    Parameters
    ----------
    engine : Engine
    selection : str
        The directory that ``selection.output`` named.

    Raises
    ------
    ConfigurationError
        If there are none.

    Notes
    -----
    One job. All cells are collected.
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
            own = counts.setdefault(name, {}).setdefault(row["value"], {})
            own[row["class"]] = max(0, row["records"])
    return NoisyTables(
        document["selection"]["target"], counts, tuple(name for name in last if name not in counts)
    )


def _read_selection(engine: Engine, directory: str) -> dict[str, Any]:
    place = f"{directory}/{SELECTION}"
    document: Any = None
    if engine.files.exists(place):
        try:
            document = json.loads(engine.files.read_text(place))
        except (OSError, ValueError):
            document = None
    if not _is_selection(document):
        raise ConfigurationError(
            f"--from: found no selection at {directory}. Expected a directory that anonspark "
            f"select wrote, with {SELECTION}. Correct the path"
        )
    own: dict[str, Any] = document
    return own


def _is_selection(document: Any) -> bool:
    asked = document.get("selection") if isinstance(document, dict) else None
    return (
        isinstance(asked, dict)
        and isinstance(asked.get("target"), str)
        and isinstance(document.get(OF_VALUES), list)
    )
