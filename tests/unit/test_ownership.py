"""Whose is what lies at a path: links, owners, modes, and directories that are made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anonspark.ownership import fault_at, fault_of, make_private, write_aside

SOMEBODY = 54321

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")

CASES = {
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


@pytest.mark.parametrize("case", CASES)
def test_whose_it_is(case: str) -> None:
    status, access, expected = CASES[case]
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
