"""Rows of tests that differ by data alone: read from the YAML file beside the test's file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

Test = TypeVar("Test", bound=Callable[..., Any])


def case_rows(*arguments: str) -> Callable[[Test], Test]:
    """Give a test the rows that the file has under its name; keys are the names of rows."""

    def decorate(test: Test) -> Test:
        path = Path(inspect.getfile(test)).with_suffix(".yaml")
        found = yaml.safe_load(path.read_text(encoding="utf-8"))[test.__name__]
        named = found.items() if isinstance(found, dict) else ((None, row) for row in found)
        rows = [pytest.param(*row, id=name) for name, row in named]
        return pytest.mark.parametrize(arguments, rows)(test)

    return decorate
