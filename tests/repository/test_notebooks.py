"""The notebooks of `examples/`: they run, and what they print is not in git."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import nbformat
import pytest
from places import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "examples").glob("*.ipynb"))


def test_there_are_three() -> None:
    names = ["choosing-k-and-model", "first-release", "what-a-release-is-worth"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_they_begin_with_a_title_and_hold_no_output(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@pytest.fixture(scope="module")
def ran() -> dict[str, list[Any]]:
    """Run the cells of all three in one process, where none finds a name of the one before."""
    cells = {path.stem: nbformat.read(path, as_version=4).cells for path in NOTEBOOKS}
    together = nbformat.v4.new_notebook()
    for own in cells.values():
        together.cells += [*own, nbformat.v4.new_code_cell("%reset -f")]
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "tools")
        patch.setenv("PYTHONPATH", str(REPOSITORY))
        importlib.import_module("run_notebooks").execute(together, REPOSITORY / "examples")
    return cells


def printed(cells: list[Any]) -> str:
    outputs = [out for cell in cells if cell.cell_type == "code" for out in cell.outputs]
    return "\n".join(
        str(out.get("text", "")) + "".join(map(str, out.get("data", {}).values()))
        for out in outputs
    )


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS])
def test_they_run(ran: dict[str, list[Any]], name: str) -> None:
    shown = printed(ran[name])
    assert '<div class="anonspark">' in shown
    assert "<svg" in shown
    # No warning, and of progress nothing stays.
    assert not [
        out
        for cell in ran[name]
        for out in cell.get("outputs", [])
        if out.output_type == "stream" and out.name == "stderr"
    ]
    assert " ... 0 s" not in shown
