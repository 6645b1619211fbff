"""Hierarchy files that a manifest names, by the names of variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonspark.engine.hierarchies import read_hierarchy_files
from anonspark.engine.local.files import LocalFiles
from anonspark.errors import ConfigurationError


def test_the_path_of_a_manifest_has_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "city.csv").write_text("Wien;*\nGraz;*\n")
    paths = {"city": "${OF_CITIES}/city.csv"}
    with pytest.raises(
        ConfigurationError, match=r"city\.hierarchy: found \$\{OF_CITIES\}, but there"
    ):
        read_hierarchy_files(LocalFiles(), paths)
    monkeypatch.setenv("OF_CITIES", str(tmp_path))
    assert list(read_hierarchy_files(LocalFiles(), paths)) == ["city"]
    (tmp_path / "city.csv").unlink()
    with pytest.raises(ConfigurationError, match=r"no hierarchy file is at \$\{OF_CITIES\}/city"):
        read_hierarchy_files(LocalFiles(), paths)
