"""Machine code that was built with the package, or by `make kernels`."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from places import skip_or_fail

from anonspark.kernels import building
from anonspark.kernels.building import build
from anonspark.kernels.built import built, file_name, version_of_numba
from anonspark.kernels.compiling import KERNELS, import_all_kernels
from anonspark.kernels.selection import select


@pytest.fixture
def machine_code() -> object:
    """The extension module; without it Numba compiles, and there is nothing to test."""
    found = built()
    if found is None:
        skip_or_fail("make kernels builds it")
    return found


def test_it_has_every_kernel(machine_code: object) -> None:
    import_all_kernels()
    ours = [one for one in KERNELS if one.function.__module__.startswith("anonspark.kernels.")]
    symbols = [one.symbol for one in ours]
    assert len(set(symbols)) == len(symbols) > 100
    assert [symbol for symbol in symbols if not hasattr(machine_code, symbol)] == []


@pytest.mark.usefixtures("machine_code")
def test_a_kernel_takes_what_its_signature_says_and_nothing_else() -> None:
    values = np.array([30, 10, 20])
    assert select(values.copy(), start=0, stop=3, rank=2) == 30
    with pytest.raises(
        TypeError, match=r"selection_0 .* takes no \(int32 of 1 axes, int, int, int"
    ):
        select(values.astype(np.int32), 0, 3, 1)
    with pytest.raises(TypeError, match="missing a required argument: 'rank'"):
        select(values, 0, 3)


def test_a_kernel_that_was_called_is_sent_to_tasks_by_its_name() -> None:
    select(np.array([30, 10, 20]), 0, 3, 1)
    assert pickle.loads(pickle.dumps(select)) is select  # noqa: S301


def test_the_version_of_numba_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    other = SimpleNamespace(version_of_numba=lambda: (0, 61, 2))
    monkeypatch.setattr("anonspark.kernels.built.built", lambda: other)
    assert version_of_numba() == "0.61.2"


def test_what_is_there_is_not_built_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building.subprocess, "run", None)
    (tmp_path / file_name()).write_bytes(b"")
    assert build(tmp_path) == tmp_path / file_name()


def test_what_was_built_from_other_sources_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        Path(command[-1], file_name()).write_bytes(b"new")
        return subprocess.CompletedProcess(command, 0, "")

    old = tmp_path / file_name().replace("kernels-", "kernels-0")
    old.write_bytes(b"old")
    monkeypatch.setattr(building.subprocess, "run", run)
    assert build(tmp_path).read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == [file_name()]


def test_a_build_that_fails_leaves_nothing_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "error: command 'gcc' failed")

    monkeypatch.setattr(building.subprocess, "run", run)
    with pytest.raises(OSError, match="command 'gcc' failed"):
        build(tmp_path)
    assert list(tmp_path.iterdir()) == []
