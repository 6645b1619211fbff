"""The page about the rooms of the package shows them as they are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_of_the_package_are_where_pages_say(page: Path) -> None:
    folders = "anonspark|tests|tools|jobs|benchmarks|distribution|compatibility|conf|docs"
    named = re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text())
    assert [name for name in named if not (REPOSITORY / name).exists()] == []
    # What is named without the folders above is found by nobody who reads it.
    loose = re.findall(rf"`(?!{folders})((?:\w+/)+\w+\.py)`", page.read_text())
    files = [str(path) for path in (REPOSITORY / "anonspark").rglob("*.py")]
    assert [name for name in loose if any(path.endswith(f"/{name}") for path in files)] == []
