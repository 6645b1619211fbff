"""The hospital of docs/tutorial-attributes.md: files are written, commands run, texts compared."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from pages import followed, words_of
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial-attributes.md"

_DAY = re.compile(r"20\d\d-\d\d-\d\d")
_NUMBER_AND_NAME = 2


def told(printed: str, *, drawn: bool) -> list[list[str]]:
    """Return the words of what was printed, without days, places and what is drawn."""
    found = [words for words in words_of(_DAY.sub("DAY", printed)) if words[0] != "Written:"]
    if not drawn:
        return found
    return [
        words[:1] if len(words) == _NUMBER_AND_NAME and words[0].isdigit() else words
        for words in found
    ]


def test_the_hospital_asks_and_publishes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    compared = 0
    for kind, printed, text in followed(PAGE, tmp_path, capsys):
        compared += 1
        own, expected = (told(one, drawn=kind == "drawn") for one in (printed, text))
        assert (own[-len(expected) :] if kind == "ends with" else own) == expected
    assert compared == 6
    assert (tmp_path / "out" / "release" / "manifest.json").exists()
