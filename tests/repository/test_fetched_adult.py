"""Adult comes as UCI's originals, or not at all."""

from __future__ import annotations

import hashlib
import runpy
from pathlib import Path
from typing import Any

import pytest
from places import REPOSITORY

ADULT: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "fetch_adult.py"))


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write small files which pass for the originals."""
    folder = tmp_path / "archive"
    folder.mkdir()
    complete = ", ".join(["39", *"x" * 13, "<=50K"])
    incomplete = complete.replace("x", "?", 1)
    (folder / "adult.data").write_text(f"{complete}\n{incomplete}\n\n")
    (folder / "adult.test").write_text(f"|1x3 Cross validator\n{incomplete}.\n\n")
    for path in folder.iterdir():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setitem(ADULT["CHECKSUMS"], path.name, digest)
    return folder


def test_tables_of_the_originals(archive: Path, tmp_path: Path) -> None:
    ADULT["fetch_adult"](tmp_path / "new" / "data", archive.as_uri())
    header, row = ADULT["COLUMNS"], f"39,{','.join('x' * 13)},<=50K"
    lacking = row.replace("x", "?", 1)
    found = {path.name: path.read_text() for path in (tmp_path / "new" / "data").iterdir()}
    for name in ("adult.data", "adult.test"):
        assert found.pop(name) == (archive / name).read_text()
    assert found == {
        "adult.csv": f"{header}\n{row}\n",
        "adult_raw.csv": f"{header}\n{row}\n{lacking}\n",
        "adult_test.csv": f"{header}\n{lacking}\n",
    }


def test_originals_are_not_downloaded_again(archive: Path) -> None:
    ADULT["fetch_adult"](archive, "https://example.invalid")
    assert len(list(archive.iterdir())) == 5


def test_what_is_no_original_writes_nothing(archive: Path, tmp_path: Path) -> None:
    data = archive / "adult.data"
    data.write_text("a copy that differs")
    with pytest.raises(SystemExit, match="is not UCI's original"):
        ADULT["fetch_adult"](tmp_path / "data", archive.as_uri())
    data.unlink()
    with pytest.raises(SystemExit, match="cannot be downloaded"):
        ADULT["fetch_adult"](tmp_path / "data", archive.as_uri())
    assert not (tmp_path / "data").exists()


def test_a_table_of_yours_is_not_replaced(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text("mine")
    with pytest.raises(SystemExit, match="is another table"):
        ADULT["fetch_adult"](tmp_path, archive.as_uri())
    assert [path.name for path in tmp_path.glob("adult*")] == ["adult.csv"]


FETCH_JARS: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "fetch_jars.py"))


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    folder = tmp_path / "registry" / "org" / "example" / "thing" / "1.0"
    folder.mkdir(parents=True)
    (folder / "thing-1.0-all.jar").write_bytes(b"right")
    return tmp_path / "registry"


@pytest.mark.parametrize(
    ("content", "version", "told"),
    [
        (b"right", "1.0", ""),
        (b"wrong", "1.0", "SHA-256 is"),
        (b"right", "2.0", "cannot be fetched"),
    ],
)
def test_a_file_of_the_lock(
    registry: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    version: str,
    told: str,
) -> None:
    lock = tmp_path / "jars.lock"
    sha256 = hashlib.sha256(content).hexdigest()
    lock.write_text(f"# A comment.\n{sha256} org.example:thing:{version}:all\n")
    monkeypatch.setenv("MAVEN", registry.as_uri())
    folder = tmp_path / "jars"
    for _ in ("fetched", "there already"):
        assert FETCH_JARS["main"](str(lock), str(folder)) == (1 if told else 0)
        assert told in capsys.readouterr().err
        assert [one.name for one in folder.iterdir()] == ([] if told else ["thing-1.0-all.jar"])


def test_the_lock_can_be_read() -> None:
    locked = FETCH_JARS["read_lock"]((REPOSITORY / "tests/systems/jars.lock").read_text())
    assert "hadoop-client-minicluster-3.4.2.jar" in {one.file for one in locked}
    assert all(len(one.sha256) == 64 for one in locked)
    assert len({one.file for one in locked}) == len(locked)
