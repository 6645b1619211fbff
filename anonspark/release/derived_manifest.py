"""Sections of a manifest that follow from others and from the tables of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any

_CATEGORIES = ("category", "boolean")


def columns_of_attribute(name: str, kind: str, style: str, missing: str) -> list[str]:
    """Return the published columns of a quasi-identifier for ``output.style`` and ``missing``.

    >>> columns_of_attribute("age", "integer", "bounds", "category")
    ['age_min', 'age_max', 'age_missing']
    """
    if style == "interval" or kind in _CATEGORIES:
        return [name]
    columns = [f"{name}_min", f"{name}_max"] if style == "bounds" else [name]
    return [*columns, f"{name}_missing"] if missing == "category" else columns


def columns_section(
    configured: Mapping[str, Any], described: Sequence[Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Return ``published.columns`` and ``published.quasi_identifier_columns``.

    They follow from the sections ``configuration`` and ``published.quasi_identifiers``.

    >>> attributes = {"age": {"role": "quasi_identifier"}, "pay": {"role": "sensitive"}}
    >>> configured = {"output": {"style": "interval"}, "attributes": attributes}
    >>> columns_section(configured, [{"name": "age", "kind": "integer"}])
    {'columns': ['age', 'pay'], 'quasi_identifier_columns': ['age']}
    """
    style, missing = configured["output"]["style"], configured.get("missing", "drop")
    by_name = {
        entry["name"]: columns_of_attribute(entry["name"], entry["kind"], style, missing)
        for entry in described
    }
    pseudonyms = configured["output"].get("pseudonyms") or {}
    columns: list[str] = []
    for name, attribute in configured["attributes"].items():
        match attribute["role"]:
            case "quasi_identifier":
                columns += by_name.get(name, [])
            case "sensitive" | "insensitive":
                columns.append(name)
            case "identifier" if name in pseudonyms:
                columns.append(pseudonyms[name])
    return {"columns": columns, "quasi_identifier_columns": [*chain(*by_name.values())]}


def sections_of_summary(row: Mapping[str, Any]) -> dict[str, object]:
    """Return the sections of a manifest that repeat the row of the table ``summary``.

    >>> row = {"run_id": "a", "started": None, "output_fingerprint": "0f", "k": 5}
    >>> sections = sections_of_summary(row)
    >>> sections["fingerprints"], sections["summary"]
    ({'output': '0f'}, {'k': 5})
    """
    prints = {
        name.removesuffix("_fingerprint"): value
        for name, value in row.items()
        if name.endswith("_fingerprint") and value is not None
    }
    return {
        "run_id": row["run_id"],
        "started": row["started"] and row["started"].isoformat(timespec="seconds"),
        "fingerprints": prints,
        "summary": {
            name: value
            for name, value in row.items()
            if not name.endswith("_fingerprint") and name not in ("run_id", "started")
        },
    }


def figures_of_gates(
    summary: Mapping[str, Any],
    attributes: Sequence[Mapping[str, Any]],
    risk: Sequence[Mapping[str, Any]],
) -> dict[str, float]:
    """Return the figures that gates may bound, by their names in the configuration.

    Rows of the table ``risk`` count if they are about the whole release, not about a round.

    >>> figures_of_gates({"gcp": 0.5}, [{"attribute": "age", "loss": 0.25}], [])
    {'gcp': 0.5, 'attributes.age.loss': 0.25}
    """
    rows = {
        "": summary,
        **{f"attributes.{row['attribute']}.": row for row in attributes},
        **{f"risk.{row['attacker']}.": row for row in risk if row.get("round") is None},
    }
    return {
        f"{section}{name}": float(figure)
        for section, row in rows.items()
        for name, figure in row.items()
        if isinstance(figure, int | float | Decimal)
    }
