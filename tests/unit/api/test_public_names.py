"""What `anonspark` offers: cheap to import, shadowed by nothing, with examples that run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import anonspark
from anonspark import api

WITH_EXAMPLES = ("functions", "release", "results")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_that_is_slow() -> None:
    code = "import sys, anonspark; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    slow = {"numba", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "narwhals", "rich"}
    assert slow.isdisjoint(python(code).split())


def test_no_part_of_the_package_shadows_a_public_name() -> None:
    """Whoever imports a module of the package sets an attribute of its name."""
    names = set(anonspark.__all__) - {"__version__"}
    assert names.isdisjoint(part.name for part in pkgutil.iter_modules(anonspark.__path__))
    assert all(getattr(anonspark, name) is getattr(api, name) for name in names)
    assert all(callable(getattr(api, name)) for name in names)


def test_public_names_are_those_of_the_room() -> None:
    assert set(anonspark.__all__) == {*api.__all__, "__version__"}
    assert set(anonspark.__all__) <= set(dir(anonspark))
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        _ = anonspark.anonymise


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = doctest.testmod(importlib.import_module(f"anonspark.api.{name}"))
    assert result.failed == 0
    assert result.attempted >= 3
    assert list(tmp_path.iterdir()) == []


def test_every_public_function_has_an_example() -> None:
    functions = [getattr(api, name) for name in api.__all__ if name[0].islower()]
    assert len(functions) >= 8
    without = {one.__name__ for one in functions if ">>>" not in (one.__doc__ or "")}
    # A selection needs a ledger, a union two releases of one coding: docs/ has examples that run.
    assert without == {"select", "union"}
