"""Lines of code and names that say nothing are counted, and held."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest
from places import REPOSITORY


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
