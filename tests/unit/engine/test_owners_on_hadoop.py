"""What Hadoop's file systems are asked about owners, with stand-ins for Java's objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from py4j.protocol import Py4JError

from anonspark.engine.spark import filesystem
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.errors import ConfigurationError


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
