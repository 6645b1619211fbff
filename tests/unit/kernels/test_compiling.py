"""Kernels load machine code or Numba once, and the undocumented names that this relies on."""

from __future__ import annotations

import ast
import importlib
import pickle
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pytest
from cases import data_beside
from packaging.requirements import Requirement
from places import REPOSITORY, skip_or_fail

from anonspark.kernels import building, compiling, numba_patches
from anonspark.kernels.building import build
from anonspark.kernels.built import built, file_names, machine_code, version_of_numba
from anonspark.kernels.compiling import (
    KERNELS,
    Kernel,
    check_of,
    describe,
    import_all_kernels,
    kernel,
)
from anonspark.kernels.selection import select
from anonspark.kernels.signatures import boolean, float64, int32, int64, types, uint8, uint64, void


@pytest.mark.parametrize("without", ["", "compiling.machine_code = lambda symbol: None"])
def test_numba_is_loaded_by_the_first_call_alone(without: str) -> None:
    code = f"""if True:
        import sys
        import anonspark.api, anonspark.cli.application, anonspark.pipeline.run
        from anonspark.kernels import compiling
        compiling.import_all_kernels()
        assert not {{"numba", "llvmlite", "pyspark"}} & set(sys.modules)
        import numpy
        {without}
        from anonspark.kernels.selection import select
        assert select(numpy.array([30, 10, 20]), 0, 3, 1) == 20
        assert ("numba" in sys.modules) == (compiling.machine_code("selection_1") is None)
    """
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (int64, numba.int64),
        (float64[:, ::1], numba.float64[:, ::1]),
        (types.Tuple((int64, boolean)), numba.types.Tuple((numba.int64, numba.boolean))),
        (
            types.Array(int64, 1, "C", readonly=True),
            numba.types.Array(numba.int64, 1, "C", readonly=True),
        ),
        (void(int64[::1], uint64), numba.void(numba.int64[::1], numba.uint64)),
    ],
)
def test_a_deferred_type_is_that_of_numba(declared: object, expected: object) -> None:
    assert declared.resolved == expected  # type: ignore[attr-defined]


def _twice(number: int) -> int:
    return uint64(number) * uint64(2)  # type: ignore[return-value,operator]


def _four_times(number: int) -> int:
    return _TWICE(_TWICE(number))


_TWICE = Kernel(_twice, uint64(int64))


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(numba_patches.config, "CACHE_DIR", str(tmp_path))
    numba_patches.folder_to_compile_into.cache_clear()
    yield tmp_path
    numba_patches.folder_to_compile_into.cache_clear()


@pytest.mark.usefixtures("own_folder")
def test_that_it_compiles_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    compiling._say_that_it_takes_time.cache_clear()
    with caplog.at_level("INFO", "anonspark"):
        for _ in range(2):
            assert kernel(uint64(int64))(_twice)(4) == 8
            assert kernel(uint64(uint64))(_four_times)(np.uint64(1)) == 4
    assert [record.message[:26] for record in caplog.records] == ["compiling for this machine"]


@pytest.mark.usefixtures("own_folder")
def test_threads_that_call_first_compile_once() -> None:
    four_times = kernel(uint64(uint64))(_four_times)
    with ThreadPoolExecutor(8) as pool:
        compiled = list(pool.map(lambda _: four_times.compiled(), range(16)))
    assert len({id(one) for one in compiled}) == 1
    # A kernel calls another one, and a type in its body converts.
    assert four_times(np.uint64(3)) == 12
    assert four_times.__name__ == "_four_times"


NUMBERS = np.arange(6)


class Pair(NamedTuple):
    count: int
    values: npt.NDArray[np.float64]


PAIR = types.NamedTuple((int64, float64[::1]), Pair)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def not_aligned() -> npt.NDArray[np.int64]:
    return np.frombuffer(bytearray(25), np.int8)[1:].view(np.int64)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (int64, 1),
        (int64, np.int32(1)),
        (int64, True),
        (uint64, np.uint64(2**64 - 1)),
        (boolean, np.bool_(True)),
        (float64, 1.5),
        (float64, np.float64(1.5)),
        (float64, 1),
        (int64[::1], NUMBERS),
        (int64[::1], NUMBERS[2:]),
        (int64[:, ::1], NUMBERS.reshape(2, 3)),
        (float64[:, :, ::1], np.zeros((0, 2, 2))),
        (types.Array(boolean, 1, "C", readonly=True), read_only(NUMBERS > 1)),
        (types.Array(int64, 1, "C", readonly=True), NUMBERS),
        (PAIR, Pair(1, np.zeros(2))),
        (types.Tuple((int64, float64)), (1, 1.5)),
        (types.UniTuple(int64, 2), (1, 2)),
    ],
)
def test_what_fits_its_type(declared: Any, value: Any) -> None:
    assert check_of(declared)(value)


@pytest.mark.parametrize(
    ("declared", "value", "told"),
    [
        (int64, 1.5, "float"),
        (int64, "1", "str"),
        (int64, NUMBERS, "int64 of 1 axes"),
        (float64, None, "NoneType"),
        (int64[::1], [1, 2], "list"),
        (int64[::1], NUMBERS[::2], "int64 of 1 axes, not contiguous"),
        (int64[::1], NUMBERS[::-1], "int64 of 1 axes, not contiguous"),
        (int64[::1], not_aligned(), "int64 of 1 axes, not aligned"),
        (int64[::1], NUMBERS.astype(">i8"), ">i8 of 1 axes"),
        (int64[::1], NUMBERS.astype(np.int32), "int32 of 1 axes"),
        (int32[::1], NUMBERS, "int64 of 1 axes"),
        (uint8[::1], NUMBERS > 1, "bool of 1 axes"),
        (int64[::1], NUMBERS.reshape(2, 3), "int64 of 2 axes"),
        (int64[:, ::1], NUMBERS.reshape(2, 3).T, "int64 of 2 axes, not contiguous"),
        (int64[::1], read_only(NUMBERS), "int64 of 1 axes, read-only"),
        (PAIR, (1, np.zeros(2)), "tuple"),
        (PAIR, Pair(1, np.zeros(2, np.float32)), "Pair"),
        (types.Tuple((int64, float64)), (1, 1.5, 2), "tuple"),
        (types.UniTuple(int64, 2), (1, 2.5), "tuple"),
    ],
)
def test_what_does_not(declared: Any, value: Any, told: str) -> None:
    assert not check_of(declared)(value)
    assert describe(value) == told


@pytest.fixture
def built_kernels() -> None:
    """Skip where Numba compiles: there is nothing to test."""
    if not built():
        skip_or_fail("make kernels builds them")


@pytest.mark.usefixtures("built_kernels")
def test_it_has_every_kernel() -> None:
    import_all_kernels()
    ours = [one for one in KERNELS if one.function.__module__.startswith("anonspark.kernels.")]
    symbols = [one.symbol for one in ours]
    assert len(set(symbols)) == len(symbols) > 100
    assert [symbol for symbol in symbols if machine_code(symbol) is None] == []


@pytest.mark.usefixtures("built_kernels")
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
    monkeypatch.setattr("anonspark.kernels.built.built", lambda: (other,))
    assert version_of_numba() == "0.61.2"


def test_what_is_there_is_not_built_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building.subprocess, "Popen", None)
    files = [tmp_path / name for name in file_names()]
    for file in files:
        file.touch()
    assert build(tmp_path) == files


def test_what_was_built_from_other_sources_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def start(command: list[str], **_: object) -> SimpleNamespace:
        folder, part = command[-2:]
        Path(folder, file_names()[int(part)]).write_text(part)
        return SimpleNamespace(communicate=lambda: ("", None), returncode=0)

    old = tmp_path / file_names()[0].replace("kernels-", "kernels-0")
    old.write_bytes(b"old")
    monkeypatch.setattr(building.subprocess, "Popen", start)
    assert [file.read_text() for file in build(tmp_path, 2)] == ["0", "1"]
    Path(tmp_path, file_names()[0]).write_text("kept")
    assert [file.read_text() for file in build(tmp_path)] == ["kept", "1", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == file_names()


def test_a_build_that_fails_leaves_nothing_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def start(*_: object, **__: object) -> SimpleNamespace:
        output = "error: command 'gcc' failed"
        return SimpleNamespace(communicate=lambda: (output, None), returncode=1)

    monkeypatch.setattr(building.subprocess, "Popen", start)
    with pytest.raises(OSError, match="command 'gcc' failed"):
        build(tmp_path)
    assert list(tmp_path.iterdir()) == []


KERNEL_FOLDER = Path(numba_patches.__file__).parent
NAMES: dict[str, Any] = data_beside(__file__)["NAMES"]


def missing() -> Iterator[str]:
    for module, paths in NAMES.items():
        for path in paths:
            try:
                with warnings.catch_warnings():
                    # pycc is to be replaced one day.
                    warnings.simplefilter("ignore")
                    found = importlib.import_module(module)
                for step in path.split("."):
                    found = getattr(found, step)
            except (ImportError, AttributeError):
                yield f"{module}.{path}"


def test_this_numba_has_every_name() -> None:
    assert list(missing()) == [], (
        f"Numba {numba.__version__} lacks these names, which anonspark/kernels/numba_patches.py "
        "changes or calls. Allow an older Numba in pyproject.toml, or find what has their place"
    )


def test_a_name_that_is_lacking_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("numba.core.caching.CacheImpl._locator_classes")
    assert list(missing()) == ["numba.core.caching.CacheImpl._locator_classes"]


def test_the_docstring_lists_what_is_relied_on() -> None:
    text = numba_patches.__doc__ or ""
    paths = [path for paths in NAMES.values() for path in paths]
    private = {step for path in paths for step in path.split(".") if step.startswith("_")}
    assert {name for name in private if name not in text} == set()
    assert private == {
        "_CacheLocator",
        "_FunctionCompiler",
        "_customize_flags",
        "_define_atomic_inc_dec",
        "_export_entries",
        "_locator_classes",
        "_word_type",
    }


def test_no_other_module_changes_numba() -> None:
    """Modules of kernels import Numba in two places, and assign to its attributes in one."""
    importing, assigning = set(), set()
    for source in KERNEL_FOLDER.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "numba" for name in names):
                importing.add(source.name)
            # Whoever has a private attribute of Numba by its name may change it.
            if isinstance(node, ast.Attribute) and node.attr in (
                "_locator_classes",
                "_customize_flags",
                "_define_atomic_inc_dec",
                "_export_entries",
                "_linking_libraries",
                "get_executable",
                "compile_extra",
            ):
                assigning.add(source.name)
    assert importing == {"numba_patches.py"}
    assert assigning == {"numba_patches.py"}


def test_no_later_minor_version_is_allowed_than_was_tested() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    required = [
        *project["build-system"]["requires"],
        *project["project"]["optional-dependencies"]["numba"],
    ]
    bounds = {str(one.specifier) for one in map(Requirement, required) if one.name == "numba"}
    assert len(bounds) == 1
    (specifier,) = (one.specifier for one in map(Requirement, required[1:2]))
    locked = version("numba")
    major, minor, *_ = map(int, locked.split(".")[:3])
    assert f"numba=={locked} " in (REPOSITORY / "requirements.lock").read_text()
    assert specifier.contains(locked)
    assert not specifier.contains(f"{major}.{minor + 1}.0")
