"""The code of docs/api.md and docs/first-release.md, as it stands, as far as it needs no Spark."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from helpers import command
from places import REPOSITORY

import anonspark


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


def test_pandas_polars_and_the_terminal_publish_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (REPOSITORY / "docs" / "first-release.md").read_text().partition("## k = 10 in")[2]
    (of_pandas, of_polars, _), (configuration, *_) = (
        re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)
        for language in ("python", "yaml")
    )
    (tmp_path / "people.csv").symlink_to(REPOSITORY / "data" / "people.csv")
    (tmp_path / "k10.yaml").write_text(configuration)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    releases: list[anonspark.Release[Any]] = []
    for block in (of_pandas, of_polars):
        exec(compile(block, "docs/first-release.md", "exec"), names)  # noqa: S102 - our own page
        releases.append(names["release"])
    assert [type(release.data).__module__.partition(".")[0] for release in releases] == [
        "pandas",
        "polars",
    ]
    assert command(capsys, "run", "k10.yaml", "--no-progress").code == 0
    in_files = json.loads((tmp_path / "out" / "k10" / "manifest.json").read_text())
    fingerprints = {
        manifest["fingerprints"]["output"]
        for manifest in (in_files, *(release.manifest for release in releases))
    }
    assert len(fingerprints) == 1
    assert in_files["summary"]["published_min_class_size"] >= 10
