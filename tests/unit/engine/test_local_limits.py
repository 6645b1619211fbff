"""Paths, owners and limits of systems: the local one's, and Hadoop's by stand-ins."""

from __future__ import annotations

import bz2
import errno
import gzip
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import cases
from py4j.protocol import Py4JError
from pyarrow import csv, parquet

from anonspark.engine import choice, memory
from anonspark.engine.files import literal
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.local.opening import open_files
from anonspark.engine.spark import filesystem
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.engine.values import text_lines
from anonspark.errors import (
    ConfigurationError,
    DataError,
    EnvironmentProblem,
    PublishingError,
    limit_reached,
)
from anonspark.ownership import fault_at, fault_of, make_private, write_aside


@pytest.mark.parametrize("name", ["br[1]", "c{a,b}", "back\\slash", "st*r", "q?", "[", "{a"])
def test_what_has_that_very_name_wins(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "t.csv").write_text("a\n1\n")
    (tmp_path / "br1").mkdir()
    engine = LocalEngine()
    path = f"{tmp_path}/{name}"
    assert engine.files.matches(path) == [f"file:{path}"]
    assert engine.files.matches(f"{literal(path)}/*") == [f"file:{path}/t.csv"]
    table = engine.open_table([path], "csv", {"header": "true"}, key="input.path")
    assert table.collect().to_pydict() == {"a": ["1"]}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_small_files_are_read_together(tmp_path: Path, kind: str) -> None:
    """A task and a batch for each of 800 files took 7 to 18 ms of processor time a file."""
    for number in range(300):
        rows = pa.table({"a": [number, number + 1], "b": ["x", None]})
        path = tmp_path / f"{number:03}.{kind}"
        parquet.write_table(rows, path) if kind == "parquet" else csv.write_csv(rows, path)
    options = {"header": "true", "inferSchema": "true"} if kind == "csv" else {}
    opened = open_files(LocalEngine().files, [str(tmp_path)], kind, options, key="input.path")
    batches = [batch for task in opened.tasks for batch in task()]
    assert len(batches) == len(opened.tasks) < 10
    numbers = [number for batch in batches for number in batch.column("a").to_pylist()]
    assert numbers == [number + more for number in range(300) for more in (0, 1)]


def test_a_faulty_one_of_small_files_is_named(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.csv").write_text("a,b\n1,2\n" + "1\n" * (number in (17, 23)))
    options = {"header": "true", "inferSchema": "true"}
    with pytest.raises(DataError, match=r"17\.csv: line 3: a record has too few"):
        LocalEngine().open_table([str(tmp_path)], "csv", options, key="input.path")


def test_an_address_of_the_web_is_downloaded_first() -> None:
    with pytest.raises(ConfigurationError, match="Download it first"):
        choice.choose_engine("auto", choice.Work(("https://example.org/a.csv",)), None)


def test_else_brackets_are_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "br1").mkdir()
    assert LocalEngine().files.matches(f"{tmp_path}/br[1]") == [f"file:{tmp_path}/br1"]


def read(path: Path) -> pa.Table:
    kind = path.suffixes[0].removeprefix(".")
    options = {"header": "true"} if kind == "csv" else {}
    return LocalEngine().open_table([str(path)], kind, options, key="input.path").collect()


def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "_LONGEST_LINE", 1 << 20)
    monkeypatch.setattr(text_lines, "_BLOCK", 1 << 18)
    long = b"x" * (2 << 20)
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(b"a\n" + long)
    with gzip.open(tmp_path / "header.csv.gz", "wb") as file:
        file.write(long)
    (tmp_path / "t.csv").write_bytes(b"a\n" + long)
    for name in ("t.csv.gz", "header.csv.gz", "t.csv"):
        with pytest.raises(DataError, match=r"has a line of more than 1 MiB") as caught:
            read(tmp_path / name)
        assert "x" * 10 not in str(caught.value)


def test_a_million_columns_are_refused(tmp_path: Path) -> None:
    for name in ("t.csv", "t.csv.gz"):
        with (gzip.open if name.endswith("gz") else open)(tmp_path / name, "wb") as file:
            file.write(b"," * 999_999 + b"\n")
        with pytest.raises(DataError, match=r"found 1,000,000 columns .* Expected at most 20,000"):
            read(tmp_path / name)


@pytest.mark.parametrize(("ending", "opened"), [("gz", gzip.open), ("bz2", bz2.open)])
def test_a_file_that_grows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, opened: Any
) -> None:
    monkeypatch.setattr(text_lines, "_MAY_GROW_TO", 1 << 20)
    monkeypatch.setattr(text_lines, "_BLOCK", 1 << 18)
    for name, line in (("t.csv", b"1\n"), ("t.json", b'{"a": 1}\n')):
        with opened(tmp_path / f"{name}.{ending}", "wb") as file:
            file.write(b"a\n" * (name == "t.csv") + line * (1 << 20))
        with pytest.raises(DataError, match="more than 250 times its bytes when it is unpacked"):
            read(tmp_path / f"{name}.{ending}")
    with opened(tmp_path / f"few.csv.{ending}", "wb") as file:
        file.write(b"a\n" + b"1\n" * (1 << 10))
    assert read(tmp_path / f"few.csv.{ending}").num_rows == 1 << 10


def test_limits_of_the_system_are_no_bug() -> None:
    for error in (
        RuntimeError("can't start new thread"),
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 64 failed"),
        pa.ArrowException("Unknown error: Failed to launch worker thread: Resource"),
        OSError(12, "Cannot allocate memory"),
    ):
        outer = ValueError("x")
        outer.__cause__ = error
        problem = limit_reached(outer)
        assert problem is not None
        assert problem.exit_code == 6
        assert "ulimit" in str(problem)
    assert limit_reached(ValueError("can't start new thread")) is None
    assert limit_reached(RuntimeError("x")) is None


def test_a_disk_that_refuses_to_be_read_says_nothing_of_an_output() -> None:
    """Commands that write nothing ended with: output.path: nothing was published."""
    said = r"^the system refused to read or write /table \(Input/output error\)"
    with pytest.raises(EnvironmentProblem, match=said), LocalEngine().reading(("/table",)):
        raise OSError(errno.EIO, "Input/output error", "/table")
    with pytest.raises(PublishingError, match="no space"), LocalEngine().reading(("/table",)):
        raise OSError(errno.ENOSPC, "No space left on device", "/table")


def test_a_limit_of_addresses_is_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    without = memory.available_memory()
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    assert memory.available_memory() == 1 << 20 < without


@cases(__file__, "membership", "files", "available")
def test_limits_of_control_groups_are_limits_of_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    membership: str,
    files: dict[str, str],
    available: int,
) -> None:
    texts = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    texts |= {"proc/self/cgroup": membership, "proc/meminfo": "MemAvailable: 5 kB"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(memory, "_SYSTEM", tmp_path)
    assert memory.available_memory() == available


@pytest.mark.parametrize("pattern", ["a.csv", "{a,b}.csv", "*", ""])
def test_what_patterns_name_is_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_bytes(b"x" * 1000)
    size = 1000 if pattern == "a.csv" else 2000
    for available, engine in ((8 * size, "local"), (8 * size - 8, "spark")):
        monkeypatch.setattr(choice, "available_memory", lambda available=available: available)
        assert choice.choose_engine("auto", choice.Work((f"{tmp_path}/{pattern}",)), None).name == (
            engine
        )


@dataclass
class Java:
    """A path, its status, its owner's rights and who is asking, all in one."""

    scheme: str = "hdfs"
    owner: str = "me"
    group: str = "us"
    mode: int = 0o700
    link: bool = False
    there: bool = True
    made: list[str] = field(default_factory=list)

    def answer(self, _: object = None) -> Java:
        return self

    getCurrentUser = resolvePath = toUri = getPermission = answer  # noqa: N815 - Java's names

    def getFileLinkStatus(self, _: object) -> Java:  # noqa: N802
        if not self.there:
            raise Py4JError("FileNotFoundException")
        return self

    def exists(self, _: object) -> bool:
        return self.there

    def getScheme(self) -> str:  # noqa: N802
        return self.scheme

    def isSymlink(self) -> bool:  # noqa: N802
        return self.link

    def getOwner(self) -> str:  # noqa: N802
        return self.owner

    def getGroup(self) -> str:  # noqa: N802
        return self.group

    def getShortUserName(self) -> str:  # noqa: N802
        return "me"

    def getGroupNames(self) -> list[str]:  # noqa: N802
        return ["us"]

    def toShort(self) -> int:  # noqa: N802
        return self.mode

    def mkdirs(self, _: object, __: object = None) -> bool:
        self.made.append("directory")
        self.there = True
        return True

    def setPermission(self, _: object, __: object) -> None:  # noqa: N802
        self.made.append("permission")
        if self.owner == "me":
            self.mode = 0o700


def files_of(java: Java, patch: pytest.MonkeyPatch) -> FileSystem:
    patch.setattr(FileSystem, "local_path", lambda *_: None)
    patch.setattr(FileSystem, "parent", lambda *_: "above")
    patch.setattr(FileSystem, "make_directory", lambda *_: None)
    patch.setattr(FileSystem, "_open", lambda *_: (java, java))
    patch.setattr(filesystem, "java_class", lambda *_: _Class(java))
    return FileSystem(None)  # type: ignore[arg-type]


class _Class:
    def __init__(self, java: Java) -> None:
        self.getCurrentUser = java.answer

    def __call__(self, _: str) -> str:
        return "700"


CASES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "ours": ({}, "private", None),
    "nothing": ({"there": False}, "private", None),
    "open": ({"mode": 0o755}, "private", "has permissions 755"),
    "for readers": ({"mode": 0o755}, "shared", None),
    "of others": ({"owner": "you"}, "private", "belongs to the user you"),
    "of others, webhdfs": ({"owner": "you", "scheme": "swebhdfs"}, "private", "belongs to"),
    "of our group": ({"owner": "you", "mode": 0o775}, "shared", None),
    "a link": ({"link": True}, "shared", "is a symbolic link"),
    "a bucket has no owners": ({"owner": "", "mode": 0o777, "scheme": "s3a"}, "private", None),
}


@pytest.mark.parametrize("case", CASES)
def test_what_hadoop_says(monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    told, access, expected = CASES[case]
    found = files_of(Java(**told), monkeypatch).fault("hdfs://a/b", access)  # type: ignore[arg-type]
    assert found is None if expected is None else expected in str(found)


def test_what_cannot_be_asked_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    files = files_of(Java(), monkeypatch)

    def refuse(*_: object) -> Any:
        raise Py4JError("AccessControlException")

    monkeypatch.setattr(Java, "getFileLinkStatus", refuse)
    with pytest.raises(OSError, match="AccessControlException"):
        files.fault("hdfs://a/b")


def test_nothing_is_below_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """HDFS refuses the question, unless its superuser asks it."""
    files = files_of(Java(), monkeypatch)
    said = "/conf/people.yaml (is not a directory)"

    def refuse(*_: object) -> Any:
        raise Py4JError(said)

    monkeypatch.setattr(Java, "exists", refuse)
    assert not files.exists("hdfs://a/conf/people.yaml/manifest.json")
    said = "AccessControlException: Permission denied: user=me, access=EXECUTE"
    with pytest.raises(ConfigurationError, match="Hadoop cannot reach it"):
        files.exists("hdfs://a/conf/people.yaml")


def test_private_directories_on_hdfs(monkeypatch: pytest.MonkeyPatch) -> None:
    new = Java(there=False, mode=0o755)
    files_of(new, monkeypatch).make_private_directory("hdfs://a/b")
    assert new.made == ["directory", "permission"]
    assert new.mode == 0o700
    theirs = Java(owner="you")
    with pytest.raises(OSError, match="belongs to the user you"):
        files_of(theirs, monkeypatch).make_private_directory("hdfs://a/b")
    assert not theirs.made
    # Somebody was quicker, which mkdirs does not say.
    quicker = Java(there=False, owner="you")
    with pytest.raises(OSError, match="belongs to the user you"):
        files_of(quicker, monkeypatch).make_private_directory("hdfs://a/b")


SOMEBODY = 54321
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
LOCAL_CASES = {
    "ours": (("me", "us", 0o40755), "shared", None),
    "ours, for code": (("me", "us", 0o40755), "code", None),
    "ours, for secrets": (("me", "us", 0o40700), "private", None),
    "others may read secrets": (("me", "us", 0o40750), "private", "has permissions 750"),
    "others may write code": (("me", "us", 0o40775), "code", "has permissions 775"),
    "others may write what is shared": (("me", "us", 0o40777), "shared", None),
    "somebody else's": (("you", "you", 0o40755), "shared", "belongs to the user you"),
    "of a group of ours": (("you", "us", 0o40775), "shared", None),
    "of a group that may not write": (("you", "us", 0o40755), "shared", "belongs to"),
    "of another group": (("you", "them", 0o40775), "shared", "belongs to"),
    "secrets of a group of ours": (("you", "us", 0o40770), "private", "belongs to"),
    "code of a group of ours": (("you", "us", 0o40775), "code", "belongs to"),
    "of the administrator": (("root", "root", 0o40755), "shared", None),
    "secrets of the administrator": (("root", "root", 0o40700), "private", "belongs to"),
}


@pytest.mark.parametrize("case", LOCAL_CASES)
def test_whose_it_is(case: str) -> None:
    status, access, expected = LOCAL_CASES[case]
    found = fault_of(status, "me", {"us"}, access)  # type: ignore[arg-type]
    assert found is None if expected is None else expected in str(found)


def test_nothing_is_wrong_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert fault_at(tmp_path / "none", "private") is None
    assert fault_at(tmp_path / "file" / "below", "private") is None


@pytest.mark.parametrize("target", ["directory", "nowhere"])
def test_links_are_refused_and_those_above_are_not(tmp_path: Path, target: str) -> None:
    (tmp_path / "directory").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / target)
    assert "is a symbolic link" in str(fault_at(tmp_path / "link"))
    assert fault_at(tmp_path / "link" / "inside") is None


@AS_ROOT
@pytest.mark.parametrize("access", ["shared", "code", "private"])
def test_what_belongs_to_somebody_else(tmp_path: Path, access: str) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", SOMEBODY, SOMEBODY)
    found = fault_at(tmp_path / "theirs", access)  # type: ignore[arg-type]
    assert f"belongs to the user {SOMEBODY}, and this process runs as root (0)" in str(found)


def test_a_private_directory_is_made(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "new")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (tmp_path / "new").chmod(0o755)
    make_private(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_what_others_may_have_changed_is_not_made_private(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    for name in ("open", "link"):
        with pytest.raises(PermissionError, match=name):
            make_private(tmp_path / name)
    assert (tmp_path / "open").stat().st_mode & 0o777 == 0o777


def test_a_link_with_the_name_of_a_temporary_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "aside").symlink_to(tmp_path / "precious")
    write_aside(tmp_path / "aside", b"new")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "aside").read_text() == "new"
    assert not (tmp_path / "aside").is_symlink()
