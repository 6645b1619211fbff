"""Declaring a kernel loads nothing; calling it loads its machine code, or Numba, once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest

from anonspark.kernels import compiling, numba_patches
from anonspark.kernels.compiling import Kernel, kernel
from anonspark.kernels.signatures import boolean, float64, int64, types, uint64, void


@pytest.mark.parametrize("without", ["", "compiling.built = lambda: None"])
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
        assert ("numba" in sys.modules) == (compiling.built() is None)
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
    assert declared.made == expected  # type: ignore[attr-defined]


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
