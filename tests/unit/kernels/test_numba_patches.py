"""What this Numba has of the undocumented names that building and keeping machine code rely on."""

from __future__ import annotations

import ast
import importlib
import tomllib
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
import pytest
from cases import data_beside
from packaging.requirements import Requirement
from places import REPOSITORY

from anonspark.kernels import numba_patches

KERNELS = Path(numba_patches.__file__).parent

NAMES: dict[str, Any] = data_beside(__file__)["NAMES"]


def missing() -> Iterator[str]:
    for module, paths in NAMES.items():
        for path in paths:
            try:
                with warnings.catch_warnings():
                    # pycc is to be replaced one day.
                    warnings.simplefilter("ignore")
                    found = importlib.import_module(module)
                for step in path.split("."):
                    found = getattr(found, step)
            except (ImportError, AttributeError):
                yield f"{module}.{path}"


def test_this_numba_has_every_name() -> None:
    assert list(missing()) == [], (
        f"Numba {numba.__version__} lacks these names, which anonspark/kernels/numba_patches.py "
        "changes or calls. Allow an older Numba in pyproject.toml, or find what has their place"
    )


def test_a_name_that_is_lacking_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("numba.core.caching.CacheImpl._locator_classes")
    assert list(missing()) == ["numba.core.caching.CacheImpl._locator_classes"]


def test_the_docstring_lists_what_is_relied_on() -> None:
    text = numba_patches.__doc__ or ""
    paths = [path for paths in NAMES.values() for path in paths]
    private = {step for path in paths for step in path.split(".") if step.startswith("_")}
    assert {name for name in private if name not in text} == set()
    assert private == {
        "_CacheLocator",
        "_FunctionCompiler",
        "_customize_flags",
        "_define_atomic_inc_dec",
        "_export_entries",
        "_locator_classes",
        "_word_type",
    }


def test_no_other_module_changes_numba() -> None:
    """Modules of kernels import Numba in two places, and assign to its attributes in one."""
    importing, assigning = set(), set()
    for source in KERNELS.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "numba" for name in names):
                importing.add(source.name)
            # Whoever has a private attribute of Numba by its name may change it.
            if isinstance(node, ast.Attribute) and node.attr in (
                "_locator_classes",
                "_customize_flags",
                "_define_atomic_inc_dec",
                "_export_entries",
                "_linking_libraries",
                "get_executable",
                "compile_extra",
            ):
                assigning.add(source.name)
    assert importing == {"numba_patches.py"}
    assert assigning == {"numba_patches.py"}


def test_no_later_minor_version_is_allowed_than_was_tested() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    required = [
        *project["build-system"]["requires"],
        *project["project"]["optional-dependencies"]["numba"],
    ]
    bounds = {str(one.specifier) for one in map(Requirement, required) if one.name == "numba"}
    assert len(bounds) == 1
    (specifier,) = (one.specifier for one in map(Requirement, required[1:2]))
    locked = version("numba")
    major, minor, *_ = map(int, locked.split(".")[:3])
    assert f"numba=={locked} " in (REPOSITORY / "requirements.lock").read_text()
    assert specifier.contains(locked)
    assert not specifier.contains(f"{major}.{minor + 1}.0")
