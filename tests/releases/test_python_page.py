"""The code of docs/api.md, as it stands, as far as it needs no Spark."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from places import REPOSITORY


def test_the_examples_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (REPOSITORY / "docs" / "api.md").read_text().partition("## In Spark")[0]
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 6
    (tmp_path / "data").symlink_to(REPOSITORY / "data")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(tmp_path)
    exec(compile("".join(blocks), "docs/api.md", "exec"), {})  # noqa: S102 - our own page
    told = capsys.readouterr().out
    assert told.startswith("Release: ! every record matches at least 9 others")
    assert "Distribution: ! 2 recipients have a release each. " in told
    assert "people are alone with their values" in told
    assert "<html" in (tmp_path / "report.html").read_text()
    assert list(temporary.iterdir()) == []
