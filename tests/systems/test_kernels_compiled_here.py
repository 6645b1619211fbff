"""Kernels that Numba compiles here compute what those compute that were built with the package.

All other tests call the latter where there are any. Both have to agree with the same references,
and models with the same figures of public tables.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from places import REPOSITORY

pytestmark = [pytest.mark.system, pytest.mark.night]


@pytest.mark.timeout(1200)
def test_tests_of_kernels_and_models() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        # What one of them has compiled the other finds on the disk.
        *("--numprocesses", "2", "--dist", "loadfile"),
        "-p",
        "compiled_here",
        "-p",
        "no:cacheprovider",
    ]
    tests = [
        "tests/unit/kernels",
        "tests/unit/models",
        "--ignore",
        "tests/unit/kernels/test_compiling.py",
    ]
    done = subprocess.run([*command, *tests], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
