"""Run the notebooks of a folder, and write them with what they print.

``python tools/run_notebooks.py examples build/notebooks``
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

_SECONDS = 300


def run(path: Path) -> nbformat.NotebookNode:
    """Run a notebook where it lies.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, path.parent)
    return notebook


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run a notebook in a folder; its cells get their outputs.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails.
    """
    quiet = ["--log-level=ERROR"]  # of the kernel's own transport, which stays on this machine
    NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=_SECONDS,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=quiet,
    ).execute()


def main(source: str, target: str) -> None:
    """Run all notebooks of a folder into another one."""
    out = Path(target)
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(source).glob("*.ipynb")):
        nbformat.write(run(path), out / path.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
