"""The page about the rooms of the package shows them as they are."""

from __future__ import annotations

import importlib.util
import re
import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import REPOSITORY

ROOMS: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "draw_rooms.py"))
PAGES = [
    *(REPOSITORY / "docs").glob("*.md"),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")),
]


def test_the_page_shows_the_imports_of_the_code() -> None:
    page = ROOMS["PAGE"].read_text()
    assert page == ROOMS["with_drawing"](page), "imports have changed: run `make rooms`"


def test_every_module_is_in_a_room() -> None:
    names = ROOMS["rooms"]()
    modules = {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
        for path in (REPOSITORY / "anonspark").rglob("*.py")
    }
    outside = {module for module in modules if ROOMS["room_of"](module, names) is None}
    # The first three are what users import, run or ask for; the others hold rooms.
    assert outside == {
        *("anonspark.__init__", "anonspark.__main__", "anonspark._version"),
        *("anonspark.layers.__init__", "anonspark.sharing.__init__"),
    }


def test_arrows_that_follow_from_others_are_left_out() -> None:
    imported = {"cli": {"core", "engine"}, "engine": {"core"}, "core": set()}
    shown = ROOMS["without_detours"](imported)
    assert shown == {"cli": ["engine"], "engine": ["core"], "core": []}


def test_rooms_that_belong_together_share_a_box() -> None:
    imported = {"anonspark.cli": {"anonspark.core", "anonspark.api"}, "anonspark.core": set()}
    assert ROOMS["grouped"](imported) == {"cli, api": {"core, kernels"}, "core, kernels": set()}
    drawn = re.findall(r'^  \w+\["', ROOMS["drawing"](), re.M)
    assert 10 <= len(drawn) <= 16


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_package_are_where_pages_say(page: Path) -> None:
    folders = "anonspark|tests|tools|jobs|benchmarks|distribution|compatibility|conf|docs"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text())
    assert [name for name in named if not (REPOSITORY / name).exists()] == []
    # What is named without the folders above is found by nobody who reads it.
    loose = re.findall(rf"`(?!{folders})((?:\w+/)+\w+\.py)`", page.read_text())
    files = [str(path) for path in (REPOSITORY / "anonspark").rglob("*.py")]
    assert [name for name in loose if any(path.endswith(f"/{name}") for path in files)] == []


@pytest.fixture(scope="module")
def size() -> ModuleType:
    place = REPOSITORY / "tools" / "size.py"
    described = importlib.util.spec_from_file_location("size_of_rooms", place)
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


def test_docstrings_comments_and_blanks_do_not_count(size: ModuleType) -> None:
    source = (
        '"""What it is."""\n\n# Why.\nvalue = 1  # one\n"""Of a value."""\ntext = (\n    "a"\n)\n'
    )
    assert size.count_code_lines(source) == 4


def test_names_that_say_nothing_are_those_that_are_bound(size: ModuleType) -> None:
    source = "def found(one, told_of):\n    _kept = one\n    return _kept, place\n"
    assert size.count_words(source) == {"found": 1, "one": 1, "kept": 1}


def test_a_number_that_grew_is_told(size: ModuleType) -> None:
    assert size.exceeded({"cli": 12, "core": 3, "new": 1}, {"cli": 10, "core": 3}) == [
        "cli: 12, at most 10",
        "new: 1, at most 0",
    ]


def test_numbers_fall_and_never_rise(size: ModuleType) -> None:
    assert size.lowered({"all": 12, "names": 2}, {"all": 10, "names": 3}) == {
        "all": 10,
        "names": 2,
    }
