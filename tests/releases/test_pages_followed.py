"""Pages of docs that can be followed: files are written, commands and code run as they stand."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from commands import Cli, command
from pages import followed, words_of
from places import REPOSITORY

import anonspark

DOCS = REPOSITORY / "docs"
Words = list[list[str]]

# What learners and sums of another processor may change: of figures, and of shares in percent.
_CLOSE_LEARNED, _CLOSE = {"": 0.02}, {"": 0.0005, "%": 0.3}
_FIGURE = re.compile(r"(?P<sign>\+-|[+-]?)(?P<size>\d+\.\d+)(?P<unit>%?)[;,)]*")


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))


def alike(one: list[str], other: list[str], close: dict[str, float]) -> bool:
    """Return whether two lines have the same words, and figures that are close."""

    def near(left: str, right: str) -> bool:
        found = [_FIGURE.fullmatch(left), _FIGURE.fullmatch(right)]
        units = {match["unit"] for match in found if match}
        if None in found or len(units) > 1 or not units <= close.keys():
            return False
        sizes = [float(match["size"]) * (-1) ** (match["sign"] == "-") for match in found if match]
        return math.isclose(*sizes, rel_tol=0, abs_tol=close[units.pop()])

    return len(one) == len(other) and all(
        left == right or near(left, right) for left, right in zip(one, other, strict=True)
    )


def test_the_first_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A first release, and the officer who looks at it."""
    page = DOCS / "first-release.md"
    shutil.copy(REPOSITORY / "data" / "people.csv", tmp_path)
    assert list(followed(page, tmp_path, capsys)) == []
    assert (tmp_path / "out" / "people" / "report.html").exists()
    assert list(followed(DOCS / "report.md", tmp_path, capsys)) == []
    # What the recipients are shown first can be pasted into a shell: no quotes within quotes.
    asked = (tmp_path / "out" / "people" / "README.md").read_text(encoding="utf-8")
    (question,) = re.findall("^anonspark query . '(.*)'$", asked, re.M)
    assert question == '"birth_date" between 1980-01-01 and 1989-12-31'
    assert command(capsys, "query", "out/people", question, "--no-progress").code == 0
    # The seed is drawn at random: it decides where records go that are equally near.
    text = page.read_text(encoding="utf-8")
    again = command(capsys, "run", "people.yaml", "--no-progress", "--set", "output.mode=overwrite")
    assert again.code == 0
    for line in re.findall(r"^  (?:records|risk|criteria|prove it|see it) .*", text, re.M):
        assert re.sub(r"\d+\.\d% on average", "", line) in re.sub(
            r"\d+\.\d% on average", "", again.out
        )


def test_the_tables_of_other_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Projects of ARX and sdcMicro."""
    shutil.copy(REPOSITORY / "data" / "people.csv", tmp_path)
    compared = 0
    for _, printed, text in followed(DOCS / "coming-from.md", tmp_path, capsys):
        compared += 1
        assert set(text.splitlines()) <= set(printed.splitlines())
    assert compared == 4


def test_the_nights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _, printed, text in followed(DOCS / "operations.md", tmp_path, capsys):
        found, expected = words_of(printed), words_of(text)
        assert found[-len(expected) :] == expected
    assert (tmp_path / "releases" / "2026-11-21" / "manifest.json").exists()
    assert not (tmp_path / "releases" / "2026-11-22").exists()


def test_the_hospitals_that_unite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compared = 0
    for kind, printed, text in followed(DOCS / "holders.md", tmp_path, capsys):
        compared += 1
        # Without the random id of the union.
        found, expected = (
            words_of(re.sub(r"^Union [0-9a-f]{12}", "Union", one, flags=re.M))
            for one in (printed, text)
        )
        close = _CLOSE_LEARNED if kind == "ends with" else {}
        found = found[-len(expected) :] if kind == "ends with" else found
        for one, other in zip(found, expected, strict=True):
            assert alike(one, other, close), printed
    assert compared == 4


def test_the_hospital_with_recipients(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(printed: str) -> Words:
        """Return the words without what depends on a ledger's random key."""
        # The loss of a later month depends on who of an atom is withheld.
        found = [
            words[:3] if len(words) == 5 and re.fullmatch(r"0\.\d{4}", words[-1]) else words
            for words in words_of(printed)
        ]
        return [words for words in found if not {"key", "Key"} & {*words}]

    months = 0
    for _, printed, expected in followed(DOCS / "recipients.md", tmp_path, capsys):
        months += 1
        assert told(printed) == told(expected)
    assert months == 3
    assert len(list((tmp_path / "releases").glob("*/*/manifest.json"))) == 9


def test_the_hospital_that_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(printed: str, kind: str) -> Words:
        """Return the words without days, places and what is drawn."""
        found = words_of(re.sub(r"20\d\d-\d\d-\d\d", "DAY", printed))
        return [
            words[:1] if kind == "drawn" and len(words) == 2 and words[0].isdigit() else words
            for words in found
            if words[0] != "where"
        ]

    compared = 0
    for kind, printed, text in followed(DOCS / "selection.md", tmp_path, capsys):
        compared += 1
        own, expected = told(printed, kind), told(text, kind)
        assert (own[-len(expected) :] if kind == "ends with" else own) == expected
    assert compared == 7
    assert (tmp_path / "out" / "release" / "manifest.json").exists()


def test_the_customers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines_of(printed: str) -> Words:
        # The last figure of a setting is its seconds.
        lines = words_of(printed.replace(" %", "%"))
        return [line[:-1] if "k=" in " ".join(line) else line for line in lines]

    monkeypatch.setenv("COLUMNS", "200")
    blocks = 0
    for _, printed, expected in followed(DOCS / "choosing-k-and-model.md", tmp_path, capsys):
        blocks += 1
        found = iter(lines_of(printed))
        # All lines of the page are printed, in its order; others may lie between them.
        for line in lines_of(expected):
            assert any(alike(line, one, _CLOSE) for one in found), line
    assert blocks == 8
    orders = (tmp_path / "arranged" / "orders.yaml").read_text(encoding="utf-8")
    learned = re.findall(r"- (\w+)", orders)
    declared = re.findall(r"order: \[(.*?)\]", (tmp_path / "arranged.yaml").read_text())
    assert learned == [value for order in declared for value in order.split(", ")]


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
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
    cli.ends(0, "run", "k10.yaml", "--no-progress")
    in_files = json.loads((tmp_path / "out" / "k10" / "manifest.json").read_text())
    fingerprints = {
        manifest["fingerprints"]["output"]
        for manifest in (in_files, *(release.manifest for release in releases))
    }
    assert len(fingerprints) == 1
    assert in_files["summary"]["published_min_class_size"] >= 10
