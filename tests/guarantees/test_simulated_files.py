"""The simulated disk itself: it does what the real ones do at their worst."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from helpers import contents
from simulated_files import REFUSALS, Fault, SimulatedDisk, StoppedError

from anonspark.engine.local.files import LocalFiles


def publish(folder: Path) -> None:
    """Write, sync and rename, and delete what was there."""
    files = LocalFiles()
    files.write_text(f"{folder}/new/data", "whole")
    descriptor = os.open(folder / "new" / "data", os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    files.rename(f"{folder}/new/data", f"{folder}/data")
    files.delete(f"{folder}/old")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old" / "deep").mkdir(parents=True)
    (tmp_path / "old" / "deep" / "file").write_text("old")
    return tmp_path


def test_operations_are_counted(folder: Path) -> None:
    disk = SimulatedDisk(folder)
    with disk.in_place(), disk.process() as process:
        publish(folder)
    changes = [(one.verb, one.path) for one in process.operations if one.changes]
    for one in (
        ("mkdir", "new"),
        ("create", "new/data"),
        ("write", "new/data"),
        ("sync", "new/data"),
        ("link", "new/data"),
        ("unlink", "old/deep/file"),
        ("rmdir", "old/deep"),
        ("rmdir", "old"),
    ):
        assert one in changes
    assert contents(folder) == {"data": b"whole", "new": None}


@pytest.mark.parametrize("kind", ["before", "after", "within"])
def test_stopped_process_changes_nothing_more(folder: Path, kind: str) -> None:
    disk = SimulatedDisk(folder)
    with disk.in_place(), suppress(StoppedError), disk.process() as process:
        process.fault = Fault(3, kind)
        try:
            (folder / "one").write_text("four")
            (folder / "two").write_text("four")
        finally:
            (folder / "one").unlink()
    assert process.met
    assert [one.verb for one in process.operations] == ["create", "write"] * 2
    two = {"before": b"", "within": b"fo", "after": b"four"}[kind]
    assert ((folder / "one").read_text(), (folder / "two").read_bytes()) == ("four", two)


@pytest.mark.parametrize("kind", REFUSALS)
def test_refusals(folder: Path, kind: str) -> None:
    disk = SimulatedDisk(folder)
    with (
        disk.in_place(),
        disk.process(Fault(0, kind)),
        pytest.raises(OSError, match=r"new") as refused,
    ):
        (folder / "new").mkdir()
    assert refused.value.errno == REFUSALS[kind]
    assert not (folder / "new").exists()
    assert kind != "exists" or isinstance(refused.value, FileExistsError)


def test_power_cut_loses_what_was_not_synced(folder: Path) -> None:
    disk = SimulatedDisk(folder, journals=True)
    with disk.in_place(), disk.process():
        publish(folder)
    disk.cut_power()
    assert contents(folder) == {"old": None, "old/deep": None, "old/deep/file": b"old"}


def test_power_cut_keeps_what_was_synced(folder: Path) -> None:
    disk = SimulatedDisk(folder, journals=True)
    with disk.in_place(), disk.process():
        publish(folder)
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        (folder / "later").write_text("later")
    disk.cut_power("contents")
    assert contents(folder) == {"data": b"whole", "new": None, "later": bytes(5)}


def test_power_cut_loses_in_no_order(folder: Path) -> None:
    seen = set()
    before = folder / "before"
    for seed in range(60):
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        for name in ("a", "b"):
            (work / name).mkdir(parents=True)
            (work / name / "one").write_text(name)
        disk = SimulatedDisk(work, journals=True)
        with disk.in_place(), disk.process():
            for name in ("a", "b"):
                (work / name / "one").rename(work / name / "two")
        disk.cut_power("drawn", Random(seed))  # noqa: S311 - no secret
        seen.add(tuple(name for name in contents(work) if "/" in name))
    assert not before.exists()
    assert ("a/one", "b/two") in seen
    assert ("a/two", "b/one") in seen
