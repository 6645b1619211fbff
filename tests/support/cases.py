"""Rows of tests that differ by data alone: in a YAML file beside the tests, under their names."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

night = pytest.mark.night


@cache
def data_beside(module: str) -> dict[str, Any]:
    """Return what the data file beside a module of tests holds; a copy is for who changes it."""
    text = Path(module).with_suffix(".yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def one_by_day(first: object, *others: object) -> list[Any]:
    """Return values of which the first is tried by every run of the tests, the others at night."""
    return [first, *(pytest.param(one, marks=night) for one in others)]


def by_name(names: Iterable[str]) -> list[Any]:
    """Return names as values, of which those that end with "at night" are tried at night alone."""
    return [pytest.param(name, marks=night if name.endswith("at night") else ()) for name in names]


def changed(document: Any, changes: Mapping[str, Any]) -> Any:
    """Return a copy with other values at dotted paths, whose numbers are places of lists."""
    other = copy.deepcopy(document)
    for path, value in changes.items():
        *sections, last = (int(key) if key.isdigit() else key for key in path.split("."))
        part = other
        for key in sections:
            part = part[key]
        part[last] = value
    return other


def cases(module: str, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Parametrize a test by the rows that the data file beside its module has under its name.

    Rows are a list, whose values name them, or a mapping, whose keys do.
    """

    def parametrized(test: Callable[..., None]) -> Callable[..., None]:
        rows = data_beside(module)[test.__name__]
        ids = list(rows) if isinstance(rows, dict) else str
        values = list(rows.values()) if isinstance(rows, dict) else rows
        return pytest.mark.parametrize(",".join(names), values, ids=ids)(test)

    return parametrized
