"""The losses of Adult that docs/models.md prints: measured again, some of them.

``benchmarks/defaults.py --compare docs/models.md`` measures all.
"""

from __future__ import annotations

from pathlib import Path

from defaults import differences, document_of, measured, printed_rows
from places import REPOSITORY

from anonspark.engine.local.engine import LocalEngine


def test_losses_as_printed(data_directory: Path, tmp_path: Path) -> None:
    document = document_of("Adult", data_directory, "")
    models = ("smondrian", "su-mondrian", "u-canon")
    rows = [
        row
        for model in models
        for row in measured(LocalEngine(), document, 50, model, str(tmp_path / "release"))
    ]
    printed = printed_rows((REPOSITORY / "docs" / "models.md").read_text())
    assert not list(differences({"Adult": rows}, printed))
