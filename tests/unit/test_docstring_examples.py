"""The examples of docstrings run. Those that make releases need a folder: `api/test_showing.py`."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import anonspark

PACKAGE = Path(anonspark.__file__).parent
RELEASING = {("api", "functions"), ("api", "release"), ("api", "results")}
MODULES = sorted(
    ".".join(("anonspark", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if (path.parent.name, path.stem) not in RELEASING and ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_show_what_it_returns(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)

    assert result.attempted
    assert not result.failed
