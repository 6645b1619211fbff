"""Find where a misplaced key belongs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_DEEPEST = 5
_MOST_LISTED = 3

# What is meant by a section alone.
_OF_SECTIONS = {
    "input": "input.path",
    "model": "model.name",
    "output": "output.path",
    "out": "output.path",
}


def places_of(name: str, schema: Mapping[str, Any], section: Sequence[str] = ()) -> list[str]:
    """Return the key paths at which a key could stand.

    Parameters
    ----------
    name : str
        The key, with ``_`` or ``-``.
    schema : mapping
        JSON Schema of the whole configuration.
    section : sequence of str
        Where it was written. What is below it comes before anything else.

    Returns
    -------
    list of str
        The nearest ones, at most three. A key of the entries of a list stands for the list:
        ``l`` for ``privacy.l_diversity``.
    """
    spelled = name.replace("-", "_")
    if not section and spelled in _OF_SECTIONS:
        return [_OF_SECTIONS[spelled]]
    depth = {
        path: steps
        for key, path, steps in _keys(schema, schema, (), None, 0)
        if key == spelled and path != (*section, name)
    }
    below = {path: steps for path, steps in depth.items() if path[: len(section)] == (*section,)}
    best = (below if section and below else depth) or {}
    if not best:
        return []
    nearest = min(best.values())
    paths = [".".join(path) for path, steps in best.items() if steps == nearest]
    return paths if len(paths) <= _MOST_LISTED else []


def _keys(
    node: Mapping[str, Any],
    schema: Mapping[str, Any],
    path: tuple[str, ...],
    of_list: tuple[str, ...] | None,
    depth: int,
) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Yield each key below a node, what is said of it, and how deep it lies."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    if depth > _DEEPEST:
        return
    for branch in node.get("anyOf", []):
        yield from _keys(branch, schema, path, of_list, depth)
    if isinstance(node.get("items"), Mapping):
        yield from _keys(node["items"], schema, path, of_list or path, depth)
    is_entry = "attribute" in node.get("properties", {})
    for key, inner in node.get("properties", {}).items():
        target = of_list or (path if is_entry else (*path, key))
        yield key, target, depth
        yield from _keys(inner, schema, (*path, key), of_list, depth + 1)
