"""The nights of docs/tutorial-nights.md: files are written, commands run, outputs compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pages import followed, words_of
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial-nights.md"


def test_the_nights(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    for _, printed, text in followed(PAGE, tmp_path, capsys):
        found, expected = words_of(printed), words_of(text)
        assert found[-len(expected) :] == expected
    assert (tmp_path / "releases" / "2026-11-21" / "manifest.json").exists()
    assert not (tmp_path / "releases" / "2026-11-22").exists()
