"""YAML as it is written: with the keys that are there twice, and dates as text."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from anonspark.config.problems import Finding, Location, found
from anonspark.config.reading import TextReader, read_local_text
from anonspark.errors import ConfigurationError

_COUNTS = {2: "two", 3: "three", 4: "four"}


class Loader(yaml.SafeLoader):
    """A safe YAML loader that leaves dates as text and knows where unreadable values stand."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value; PyYAML lets several errors of malformed scalars through."""
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError, LookupError, AttributeError, TypeError) as error:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"the value does not fit its tag {node.tag.rpartition(':')[2]!r}",
                node.start_mark,
            ) from error


# No key takes a date, but the order of an attribute may list texts that look like dates.
Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class UnreadableError(Exception):
    """Text that is not YAML; the message says why and where."""


def read_document(
    path: str | Path, what: str, expected: str, read: TextReader = read_local_text
) -> tuple[Mapping[str, Any], list[str]]:
    """Read a YAML file that holds a mapping, without a look at what is in it.

    Parameters
    ----------
    path : str or Path
        A file on the local disk, or where `read` finds it.
    what : str
        What the file should be, for messages.
    expected : str
        What should be in it, for messages.
    read : callable
        Reads the file.

    Returns
    -------
    document : mapping
    problems : list of str
        Keys that are there twice.

    Raises
    ------
    ConfigurationError
        If there is no such file, or it is no mapping in YAML.
    """
    try:
        text = read(str(path))
    except FileNotFoundError:
        reason = f"no such file; expected {what} in YAML; check the path"
    except IsADirectoryError:
        reason = f"found a directory; expected {what} file in YAML; check the path"
    except UnicodeDecodeError:
        reason = f"the file is not UTF-8 text; expected {what} in YAML; check the path"
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        reason = f"the file cannot be read ({cause}); check the path and its permissions"
    else:
        try:
            document, duplicates = read_yaml(text)
        except UnreadableError as error:
            raise ConfigurationError(f"{_shown(path)}: {error}") from None
        if isinstance(document, Mapping):
            return document, [duplicate.line() for duplicate in duplicates]
        reason = (
            "the file is empty" if document is None else f"found {found(document)}"
        ) + f"; expected {expected}"
    raise ConfigurationError(f"{_shown(path)}: {reason}")


def _shown(path: str | Path) -> str:
    """Write a path so that the message stays one line."""
    return str(path) if str(path).isprintable() else repr(str(path))


def read_yaml(text: str, base: Location = ()) -> tuple[Any, list[Finding]]:
    """Read one YAML document.

    Parameters
    ----------
    text : str
        The document.
    base : tuple of str and int
        Where the document belongs in the configuration.

    Returns
    -------
    tuple
        The document, and its duplicate keys.

    Raises
    ------
    UnreadableError
        If it is not YAML.
    """
    try:
        # Unprintable characters are reported by the constructor of the loader already.
        loader = Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None, []
            duplicates = list(_duplicates(loader, node, base, set()))
            return loader.construct_document(node), duplicates
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" on line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        reason = " ".join(filter(None, (error.context, error.problem)))
    except yaml.reader.ReaderError as error:
        where = f" on line {text.count(chr(10), 0, error.position) + 1}"
        reason = "a character that YAML does not allow"
    except RecursionError:
        where, reason = "", "nested too deeply"
    except (ValueError, OverflowError):
        where, reason = "", "an escape that is no character"
    raise UnreadableError(f"not valid YAML{where}: {' '.join(reason.split())}; correct it")


def _duplicates(
    loader: Loader, node: yaml.Node, location: Location, seen: set[int]
) -> Iterator[Finding]:
    """Find all keys that are given more than once, which YAML forbids and PyYAML lets pass."""
    if id(node) in seen:
        # An alias: looked at already, and it may even refer to what encloses it.
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for position, entry in enumerate(node.value):
            yield from _duplicates(loader, entry, (*location, position), seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[Any, list[int]] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            continue
        special = key_node.tag.endswith((":merge", ":value"))
        key = key_node.value if special else loader.construct_object(key_node)
        if not isinstance(key, Hashable):
            # A tag such as !!seq makes a list of what is written as a single word.
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"a key with the tag {key_node.tag.rpartition(':')[2]!r}, where keys are texts",
                key_node.start_mark,
            )
        lines.setdefault(key, []).append(key_node.start_mark.line + 1)
        yield from _duplicates(loader, value_node, (*location, str(key_node.value)), seen)
    for key, on_lines in lines.items():
        if len(on_lines) == 1:
            continue
        place = (*location, str(key))
        count = _COUNTS.get(len(on_lines), str(len(on_lines)))
        where = _on_lines(on_lines)
        if place[:1] == ("attributes",) and len(place) == 2:
            text = (
                f"found {count} roles for one attribute, {where}; expected one role for each "
                "attribute; keep one of them"
            )
        else:
            times = "twice" if len(on_lines) == 2 else f"{count} times"
            text = f"found the key {times}, {where}; expected each key once; keep one of them"
        yield Finding(place, text)


def _on_lines(lines: Sequence[int]) -> str:
    different = [str(line) for line in dict.fromkeys(lines)]
    if len(different) == 1:
        return f"on line {different[0]}"
    return f"on lines {', '.join(different[:-1])} and {different[-1]}"
