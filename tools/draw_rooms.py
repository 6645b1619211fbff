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
    imported = arrows(names)
    shown = {name: name.removeprefix(f"{_PACKAGE}.").replace(".", "/") for name in names}
    node = {name: label.replace("/", "_") for name, label in shown.items()}
    lines = ["```mermaid", "flowchart TD"]
    lines += [f'  {node[name]}["{shown[name]}"]' for name in names]
    lines += [
        f"  {node[name]} --> {node[one]}"
        for name, own in without_detours(imported).items()
        for one in own
    ]
    lines += ["```", "", "| room | what is in it | imports |", "| --- | --- | --- |"]
    for name in names:
        own = ", ".join(f"`{shown[one]}`" for one in names if one in imported[name])
        lines.append(f"| `{shown[name]}` | {sentence(name)} | {own or '-'} |")
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
