"""The package of `examples/extension`, installed into a folder of its own for some tests."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from places import REPOSITORY

from anonspark.core import extensions

EXAMPLE = REPOSITORY / "examples" / "extension"
PACKAGE = "anonspark-example 1.0"


def install(folder: Path) -> Path:
    """Build the package, and put what its wheel has into a folder, as pip does with --target."""
    wheels = folder / "wheels"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (wheel,) = wheels.iterdir()
    installed = folder / "installed"
    with zipfile.ZipFile(wheel) as content:
        content.extractall(installed)
    return installed


@contextmanager
def on_the_path(*folders: Path) -> Iterator[pytest.MonkeyPatch]:
    """Let this process find packages in folders, and forget afterwards what it has loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extensions, "_LOADED", {})
        for folder in folders:
            patch.syspath_prepend(str(folder))
        extensions._points.cache_clear()
        for name in ("", ".model", ".criterion"):
            patch.delitem(sys.modules, f"anonspark_example{name}", raising=False)
        yield patch
    extensions._points.cache_clear()
