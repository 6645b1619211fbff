"""A first release, and the officer who looks at it: commands of pages run, figures compared."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from helpers import command
from pages import followed
from places import REPOSITORY

PAGE = REPOSITORY / "docs" / "first-release.md"
OFFICER = REPOSITORY / "docs" / "tutorial-officer.md"


def test_the_first_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(REPOSITORY / "data" / "people.csv", tmp_path)
    assert list(followed(PAGE, tmp_path, capsys)) == []
    assert (tmp_path / "out" / "people" / "report.html").exists()
    assert list(followed(OFFICER, tmp_path, capsys)) == []
    assert (tmp_path / "inside.html").exists()
    # The seed is drawn at random: it decides where records go that are equally near.
    text = PAGE.read_text(encoding="utf-8")
    again = command(capsys, "run", "people.yaml", "--quiet", "--set", "output.mode=overwrite")
    assert again.code == 0
    for line in re.findall(r"^  (?:records|risk|criteria|prove it|see it) .*", text, re.M):
        assert re.sub(r" of \d+\.\d% on average", "", line) in re.sub(
            r" of \d+\.\d% on average", "", again.out
        )
