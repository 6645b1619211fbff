"""Patterns of paths as Hadoop reads them, matched against the local disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_SPECIAL = frozenset("{}[]*?\\")

_ESCAPED = re.compile(r"[\x00-\x20\x7f\"%<>\[\\\]^`{|}#?]")


def has_pattern(path: str) -> bool:
    """Return whether a path may name others than itself."""
    return not _SPECIAL.isdisjoint(path)


def matching_paths(pattern: str) -> list[str]:
    """Return the paths of all files and directories that a pattern names, sorted.

    Parameters
    ----------
    pattern : str
        Absolute. ``*``, ``?``, ``[a-z]``, ``[^a]`` and ``{a,b}`` stand for what they do in
        Hadoop, a backslash takes the meaning from what follows; slashes are in braces only.

    Raises
    ------
    ValueError
        If brackets or braces are no pattern.
    PermissionError
        If a directory cannot be listed.
    """
    found: set[str] = set()
    for plain in _without_slashes_in_braces(pattern):
        parts = [part for part in plain.split("/") if part]
        found.update(_below("", parts) if parts else ["/"])
    return sorted(found, key=_as_in_addresses)


def _as_in_addresses(path: str) -> str:
    """Return a path as Hadoop compares it: with the letters escaped that an address cannot have."""
    return _ESCAPED.sub(lambda letter: f"%{ord(letter[0]):02X}", path)


def _below(directory: str, parts: list[str]) -> Iterator[str]:
    """Yield what is there of the rest of a pattern below a directory."""
    part, rest = parts[0], parts[1:]
    expression, is_pattern = _expression(part)
    if not is_pattern:
        candidates = [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL)]
    elif os.path.isdir(directory or "/"):  # noqa: PTH112 - not there if it cannot be seen
        try:
            matches = re.compile(expression, re.DOTALL).fullmatch
        except re.error as error:
            raise ValueError("a set of letters that is none") from error
        names = (path.name for path in Path(directory or "/").iterdir())
        candidates = [name for name in names if matches(name) and not is_checksum(name)]
    else:
        candidates = []
    for name in candidates:
        path = f"{directory}/{name}"
        if rest:
            yield from _below(path, rest)
        elif os.path.exists(path):  # noqa: PTH110
            yield path


def is_checksum(name: str) -> bool:
    """Return whether Hadoop keeps the checksums of another file there, and shows nobody."""
    return name.startswith(".") and name.endswith(".crc")


def _expression(part: str) -> tuple[str, bool]:
    """Return a regular expression for one part of a pattern, and whether it is a pattern."""
    made: list[str] = []
    is_pattern = in_set = False
    open_braces, place = 0, 0
    while place < len(part):
        letter = part[place]
        place += 1
        if letter == "\\":
            if place == len(part):
                raise ValueError("a backslash with nothing behind it")
            made.append(re.escape(part[place]))
            place += 1
        elif in_set:
            in_set = letter != "]"
            made.append("^" if letter == "!" and made[-1] == "[" else letter)
            made[-1] = "\\[" if letter == "[" else made[-1]
        elif letter in "*?":
            made.append(".*" if letter == "*" else ".")
        elif letter == "[":
            in_set = True
            made.append("[")
        elif letter == "{":
            open_braces += 1
            made.append("(?:")
        elif letter == "}" and open_braces:
            open_braces -= 1
            made.append(")")
        elif letter == "," and open_braces:
            made.append("|")
        else:
            # Behind what looked like the end of a set there may be its true one.
            made.append(letter if letter == "]" else re.escape(letter))
        is_pattern = is_pattern or letter in "*?[{"
    if in_set or open_braces:
        raise ValueError("a bracket or brace that is not closed")
    return "".join(made), is_pattern


def _without_slashes_in_braces(pattern: str) -> list[str]:
    """Return patterns without braces that hold slashes, which together name the same."""
    for start, end, choices in _outer_braces(pattern):
        if any("/" in choice for choice in choices):
            return [
                one
                for choice in choices
                for one in _without_slashes_in_braces(pattern[:start] + choice + pattern[end:])
            ]
    return [pattern]


def _outer_braces(pattern: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield where each outermost pair of braces begins and ends, and its choices."""
    depth, start, escaped = 0, 0, False
    choices: list[str] = []
    for place, letter in enumerate(pattern):
        if escaped or letter == "\\":
            escaped = not escaped
            if depth:
                choices[-1] += letter
        elif letter == "{" and not depth:
            depth, start, choices = 1, place, [""]
        elif letter == "}" and depth == 1:
            depth = 0
            yield start, place + 1, choices
        elif letter == "," and depth == 1:
            choices.append("")
        elif depth:
            depth += {"{": 1, "}": -1}.get(letter, 0)
            choices[-1] += letter
