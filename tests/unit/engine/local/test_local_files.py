"""The local disk as an engine sees it; that Hadoop sees it so, too, a test with Spark shows."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from anonspark.engine.data_files import find_files
from anonspark.engine.files import FilesError
from anonspark.engine.local.files import LocalFiles
from anonspark.engine.raw_columns import WantedColumns
from anonspark.errors import ConfigurationError, DataError

FILES = LocalFiles()


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/a/b", "/a/b"),
        ("/a//b/", "/a/b"),
        ("file:/a/../b/./c", "/b/c"),
        ("file:///a b", "/a b"),
        ("/a%20b/c:d?e#f", "/a%20b/c:d?e#f"),
        ("///a", "/a"),
        ("/", "/"),
    ],
)
def test_addresses(path: str, place: str) -> None:
    assert FILES.local_path(path) == place
    assert FILES.qualified(path) == f"file:{place}"
    assert FILES.qualified(FILES.qualified(path)) == f"file:{place}"


def test_relative_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert FILES.qualified("a/../b") == f"file:{tmp_path}/b"
    assert FILES.parent("b") == f"file:{tmp_path}"
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    assert FILES.qualified("link/x") == f"file:{tmp_path}/link/x"
    assert FILES.resolved("link/x") == f"file:{tmp_path}/there/x"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("s3://bucket/x", "found 's3'. Correct it, or set execution.engine to spark"),
        ("a:b", "a relative one has no colon"),
        ("file:a", "no place on the local disk"),
        ("file://host/a", "without a host"),
        ("//host/a", "without a host"),
        ("", "no place on the local disk"),
        ("a\0b", "the character NUL"),
    ],
)
def test_what_is_no_address(path: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        FILES.exists(path)


def test_of_several_writers_one_succeeds(tmp_path: Path) -> None:
    made: list[str] = []
    begin = threading.Barrier(8)

    def create(number: int) -> None:
        begin.wait()
        try:
            FILES.create_text(f"{tmp_path}/state/one", str(number))
        except FileExistsError:
            return
        made.append(str(number))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [FILES.read_text(f"{tmp_path}/state/one")] == made


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_target_that_comes_into_being_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    if kind == "file":
        source.write_text("new")
        target.write_text("old")
    else:
        (source / "x").mkdir(parents=True)
        (target / "y").mkdir(parents=True)
    monkeypatch.setattr("anonspark.engine.local.files._exists", lambda _: False)
    with pytest.raises(FilesError, match="it is there already"):
        FILES.rename(str(source), str(target))
    assert source.exists()
    assert (target.read_text() == "old") if kind == "file" else (target / "y").is_dir()


def test_file_systems_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    FILES.write_text(f"{tmp_path}/old", "content")
    FILES.rename(f"{tmp_path}/old", f"{tmp_path}/new")
    assert FILES.read_text(f"{tmp_path}/new") == "content"
    assert FILES.children(str(tmp_path)) == [f"file:{tmp_path}/new"]


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    FILES.write_text(f"{tmp_path}/one", "old")
    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(FilesError, match="No space left on device") as told:
        FILES.replace(f"{tmp_path}/one", b"new", ".aside")
    assert told.value.errno == errno.ENOSPC
    assert FILES.files_below(str(tmp_path)) == [("one", 3)]
    assert FILES.read_text(f"{tmp_path}/one") == "old"


def test_a_private_directory(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir(mode=0o755)
    for name in ("new/private", "there"):
        FILES.make_private_directory(f"{tmp_path}/{name}")
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new").stat().st_mode & 0o077


def test_checksums_of_hadoop_go_with_their_files(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        FILES.write_text(f"{tmp_path}/{name}", name)
        (tmp_path / f".{name}.crc").write_text("of Hadoop")
    assert FILES.files_below(str(tmp_path)) == [("a", 1), ("b", 1), ("c", 1)]
    FILES.rename(f"{tmp_path}/a", f"{tmp_path}/d")
    FILES.delete(f"{tmp_path}/b")
    FILES.replace(f"{tmp_path}/c", b"new", ".aside")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".d.crc", "c", "d"]
    FILES.write_bytes(f"{tmp_path}/d", b"new")
    assert not (tmp_path / ".d.crc").exists()


def test_patterns(tmp_path: Path) -> None:
    for name in ("year=2025/a.csv", "year=2026/a.csv", "year=2026/b.csv", "x,y", "z*"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = {
        "year=*/a.csv": ["year=2025/a.csv", "year=2026/a.csv"],
        "year=202[6-9]/?.csv": ["year=2026/a.csv", "year=2026/b.csv"],
        "{year=2025/a,year=2026/b}.csv": ["year=2025/a.csv", "year=2026/b.csv"],
        "year={2025,2024}": ["year=2025"],
        "x,y": ["x,y"],
        r"z\*": ["z*"],
        "none*": [],
        "x,y/*": [],
        "{x,z}*": ["x,y", "z*"],
        "year=202[!5]": ["year=2026"],
        "year=202[^5]": ["year=2026"],
        "[a": [],
        "{a": [],
    }
    for pattern, names in found.items():
        expected = [f"file:{tmp_path}/{name}" for name in names]
        assert FILES.matches(f"{tmp_path}/{pattern}") == expected
    assert FILES.matches("/") == ["file:/"]


def file_in(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.csv").write_text("a\n1\n")


def test_folders_that_name_markers(tmp_path: Path) -> None:
    for name in ("age=1.5", "age=999.0", "age=NA"):
        file_in(tmp_path / name)
    wanted = WantedColumns({}, markers=("NA", "999"))
    found = find_files(LocalFiles(), [str(tmp_path)], "input.path", wanted)
    assert [file.folders["age"] for file in found.files] == ["1.5", None, None]
    assert found.folders.field("age").type == pa.float64()
    file_in(tmp_path / "age=007")
    found = find_files(LocalFiles(), [str(tmp_path)], "input.path", wanted)
    assert [file.folders["age"] for file in found.files] == ["007", "1.5", "999.0", "NA"]


class CountingFiles(LocalFiles):
    """Counts how often patterns are looked for."""

    asked: ClassVar[list[str]] = []

    def matches(self, pattern: str) -> list[str]:
        """Return what a pattern names."""
        self.asked.append(pattern)
        return super().matches(pattern)


def test_each_path_is_looked_for_once(tmp_path: Path) -> None:
    file_in(tmp_path / "age=1")
    paths = [f"{tmp_path}/*", str(tmp_path / "age=1")]
    files = CountingFiles()
    assert len(find_files(files, paths, "input.path").files) == 2
    assert files.asked == paths
    with pytest.raises(DataError, match=r"there is not there. (.|\n)*here is not there"):
        find_files(files, ["there", str(tmp_path), "here"], "input.path")


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("town=%FF", "has a name that is not written in UTF-8"),
        ("town=", "the folder town= names no value"),
    ],
)
def test_folders_that_are_refused(tmp_path: Path, folder: str, message: str) -> None:
    file_in(tmp_path / folder)
    with pytest.raises(DataError, match=message):
        find_files(LocalFiles(), [str(tmp_path)], "input.path")
