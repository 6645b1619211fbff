"""Draw the rooms of the package, from its own imports, into docs/architecture.md.

``make rooms`` runs it. What it writes follows from the code alone: the rooms and their order from
the contracts of import-linter in pyproject.toml, the arrows from the imports, the sentences from
the first paragraphs of the docstrings.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import grimp  # comes with import-linter, which asks it the same

REPOSITORY = Path(__file__).parents[1]
PAGE = REPOSITORY / "docs" / "architecture.md"
GROUPS = {
    "cli, api": ("cli", "api"),
    "sharing": ("sharing",),
    "reporting, comparison": ("reporting", "comparison"),
    "profiling, conversion, demo": ("profiling", "conversion", "demo"),
    "release, labels, sidecars": ("release", "labels", "sidecars", "verifier"),
    "layers": ("layers",),
    "engine, staged": ("engine", "staged"),
    "core, kernels": ("core", "kernels"),
    "errors, progress, ...": ("errors", "progress", "redaction", "ownership", "foreign_text"),
}
"""Rooms that the picture has one box for, by their first folder. Others have a box each."""

BEGIN = "<!-- made by `make rooms` -->\n"
END = "<!-- end of what `make rooms` made -->\n"
_PACKAGE = "anonspark"


def rooms() -> list[str]:
    """Return the names of the rooms, from those that nobody imports down to the lowest.

    A room for whose content there is a contract of its own stands for its parts.
    """
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contracts: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    of_package: list[str] = []
    parts: dict[str, list[str]] = {}
    for contract in contracts:
        if contract["type"] != "layers":
            continue
        names = [name for layer in contract["layers"] for name in re.findall(r"[\w.]+", layer)]
        if "containers" not in contract:
            of_package = names
        for container in contract.get("containers", []):
            parts[container] = [f"{container}.{name}" for name in names]
    return [part for name in of_package for part in parts.get(name, [name])]


def room_of(module: str, names: Sequence[str]) -> str | None:
    """Return the room that a module is in."""
    return next((name for name in names if f"{module}.".startswith(f"{name}.")), None)


def arrows(names: Sequence[str]) -> dict[str, set[str]]:
    """Return which other rooms each room imports, for the checks of types included."""
    graph = grimp.build_graph(_PACKAGE, cache_dir=None)
    imported: dict[str, set[str]] = {name: set() for name in names}
    for module in graph.modules:
        room = room_of(module, names)
        if room is not None:
            others = graph.find_modules_directly_imported_by(module)
            imported[room] |= {other for one in others if (other := room_of(one, names))} - {room}
    return imported


def grouped(imported: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """Return what each box of the picture imports of other boxes.

    Examples
    --------
    >>> grouped({"anonspark.core": {"anonspark.kernels"}, "anonspark.cli": {"anonspark.core"}})
    {'core, kernels': set(), 'cli, api': {'core, kernels'}}
    """
    box_of = {room: box for box, rooms_of_box in GROUPS.items() for room in rooms_of_box}

    def box(name: str) -> str:
        room = name.split(".")[1]
        return box_of.get(room, room)

    boxes: dict[str, set[str]] = {box(name): set() for name in imported}
    for name, others in imported.items():
        boxes[box(name)] |= {box(other) for other in others} - {box(name)}
    return boxes


def without_detours(imported: Mapping[str, Set[str]]) -> dict[str, list[str]]:
    """Leave out arrows to what is reached by a longer way, too; the rooms are no circle."""

    def reached(name: str) -> set[str]:
        return {name}.union(*map(reached, imported[name]))

    return {
        name: sorted(one for one in own if not any(one in reached(other) for other in own - {one}))
        for name, own in imported.items()
    }


def sentence(name: str) -> str:
    """Return the first paragraph of a room's docstring as one line of Markdown."""
    path = REPOSITORY.joinpath(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    line = " ".join(text.partition("\n\n")[0].split())
    return re.sub(r":\w+:(?=`)", "", line).replace("``", "`")


def drawing() -> str:
    """Return the picture, which Mermaid draws, and the table of the rooms."""
    names = rooms()
    boxes = grouped(arrows(names))
    node = {box: re.sub(r"\W+", "_", box).strip("_") for box in boxes}
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'  {node[box]}["{box}"]' for box in boxes]
    lines += [
        f"  {node[box]} --> {node[other]}"
        for box, others in without_detours(boxes).items()
        for other in others
    ]
    lines += ["```", "", "| room | what is in it |", "| --- | --- |"]
    for name in names:
        shown = name.removeprefix(f"{_PACKAGE}.").replace(".", "/")
        lines.append(f"| `{shown}` | {sentence(name)} |")
    return "".join(f"{line}\n" for line in lines)


def with_drawing(page: str) -> str:
    """Return a page with the drawing of the code as it is."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE}: the two comments that the drawing stands between are missing")
    return f"{before}{begin}\n{drawing()}\n{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_drawing(PAGE.read_text()))
