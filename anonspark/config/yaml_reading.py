"""Read YAML with the positions of keys, find repeated keys, and leave dates as text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from anonspark.config.problems import Finding, Location, in_words, is_secret_place, key_path
from anonspark.config.reading import TextReader, read_local_text, read_or_explain
from anonspark.config.variables import fill_in
from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.redaction import hide, is_secret_option

_KEY_PATH = re.compile(r"[a-z][^ /]*\Z|[a-z].*\"")
_LAST_STEP = re.compile(r"""(?:\.?"[^"]*"|\.?'[^']*'|\[\d+\]|\.?[^."'\[\]]+)\Z""")

Positions = Mapping[str, tuple[int, int]]
"""Key path to line and column, both from 1 on."""


@dataclass(frozen=True)
class Places:
    """The positions of a file's keys. They do not count when configurations are compared.

    ``path`` is the file as messages name it. ``replaced`` are the key paths of ``--set``, which the
    file has nothing to do with.
    """

    path: str = field(default="", compare=False)
    positions: Positions = field(default_factory=dict, compare=False)
    replaced: tuple[str, ...] = field(default=(), compare=False)

    def key_path_of(self, problem: str) -> str:
        """Return the key path at the beginning of a problem: the longest that the file has."""
        paths = (path for path in self.positions if problem.startswith(f"{path}: "))
        longest = max(paths, key=len, default=None)
        return problem.partition(": ")[0] if longest is None else longest

    def is_of_file(self, head: str) -> bool:
        """Return whether a key path is the file's, and not one of ``--set``."""
        if any(is_within(head, path) for path in self.replaced):
            return False
        return head in self.positions or not any(is_within(path, head) for path in self.replaced)

    def before(self, head: str, *, is_whole: bool) -> str:
        """Return "file:line:column: " of a key, or of the section that should hold it, or "".

        ``is_whole`` means that all key paths are of this file, also those that are missing in it.

        >>> Places("people.yaml", {"privacy": (3, 1)}).before("privacy.k", is_whole=False)
        'people.yaml:3:1: '
        """
        position = self._position_of(head, is_whole=is_whole) if self.is_of_file(head) else None
        return "" if position is None else f"{self.path}:{position[0]}:{position[1]}: "

    def placed(self, problem: str) -> str:
        """Put the position before a problem if it begins with a key that the file has.

        A section alone has no position: what it lacks may be a default, or stand in a coding.
        """
        head = self.key_path_of(problem)
        keys = (path for path in self.positions if path == head or "." in path)
        if not any(is_within(head, path) for path in keys):
            return problem
        return f"{self.before(head, is_whole=False)}{problem}"

    def _position_of(self, head: str, *, is_whole: bool) -> tuple[int, int] | None:
        if head not in self.positions and not _KEY_PATH.match(head):
            return None
        while head:
            if head in self.positions:
                return self.positions[head]
            shorter = _LAST_STEP.sub("", head)
            if shorter == head:
                return None
            head = shorter
        return self.positions.get("") if is_whole else None


def is_within(head: str, path: str) -> bool:
    """Return whether a key path is another one, or lies below it.

    >>> is_within("privacy.k", "privacy"), is_within("privacy_k", "privacy")
    (True, False)
    """
    return head == path or head.startswith((f"{path}.", f"{path}["))


class Document(dict[str, Any]):
    """The mapping of a YAML file, with the path as messages name it and the positions of its keys.

    ``unset`` has the problems of missing variables by the key path at which they stand.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        path: str = "",
        positions: Positions | None = None,
        unset: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(content)
        self.path, self.positions, self.unset = path, positions or {}, unset or {}

    def places(self, overridden: Sequence[Location] = ()) -> Places:
        """Return the positions of its keys, except those that were replaced."""
        replaced = tuple(key_path(location) for location in overridden)
        return Places(self.path, self.positions, replaced)

    @contextmanager
    def locating_problems(
        self, overridden: Sequence[Location] = (), *, is_whole: bool = True
    ) -> Iterator[None]:
        """Put file, line and column before the problems of a ``with`` block.

        The file says nothing of what was overridden. ``is_whole`` as of :meth:`Places.before`.
        """
        try:
            yield
        except ConfigurationError as error:
            if type(error) is not ConfigurationError:
                raise  # it can be read through Spark alone
            problems = self._placed(error.problems, overridden, is_whole=is_whole)
            raise ConfigurationError(*problems) from None

    def _placed(
        self, problems: Sequence[str], overridden: Sequence[Location], *, is_whole: bool
    ) -> list[str]:
        """Return problems with file, line and column."""
        places = self.places(overridden)
        placed = []
        for problem in problems:
            head = places.key_path_of(problem)
            if places.is_of_file(head) and problem not in self.unset.get(head, [problem]):
                continue  # what it would hold is not known
            placed.append(f"{places.before(head, is_whole=is_whole)}{problem}")
        return list(dict.fromkeys(placed))

    def still_wrong(self, problems: Sequence[str], overridden: Sequence[Location]) -> list[str]:
        """Drop problems of unset variables that an override replaces: it mends the file."""
        replaced = [key_path(location) for location in overridden]
        unneeded = {
            problem
            for key, messages in self.unset.items()
            for problem in messages
            if any(is_within(key, path) for path in replaced)
        }
        return [problem for problem in problems if problem not in unneeded]


_QUOTES = " (inside of { } and [ ] a text with ${...} has to be in quotes)"
_USUAL_CAUSES = (
    ". Usual causes: a line that is indented differently from its neighbours, a missing blank "
    "after a colon, a tab, a text that needs quotes"
)
_COUNTS = {2: "two", 3: "three", 4: "four"}


class Loader(yaml.SafeLoader):
    """A safe YAML loader that leaves dates as text and knows where unreadable values stand."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value. PyYAML lets several errors of malformed scalars through."""
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
    """Text that is not YAML, for a reason, at a line and column from 1 on if they are known."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.reason, self.line, self.column = reason, line, column
        position = "" if line is None else f" on line {line}"
        position += "" if column is None else f", column {column}"
        super().__init__(f"not valid YAML{position}: {reason}. Correct it")

    def at(self, path: str) -> str:
        """Return the message about a file.

        >>> UnreadableError("nested too deeply", 3).at("people.yaml")
        'people.yaml:3: not valid YAML: nested too deeply. Correct it'
        """
        start = ":".join(str(part) for part in (path, self.line, self.column) if part is not None)
        return f"{start}: not valid YAML: {self.reason}. Correct it"


def read_document(
    path: str | Path,
    what: str,
    expected: str,
    read: TextReader = read_local_text,
    *,
    variables: bool = False,
) -> tuple[Document, list[str]]:
    """Read a YAML file that holds a mapping, unchecked. Also return repeated keys and the like.

    Messages name the file by ``what`` and its content by ``expected``. With ``variables`` texts may
    name variables of the environment. Raises ConfigurationError if the file is missing, or is no
    mapping in YAML.
    """
    shown = str(path) if str(path).isprintable() else repr(str(path))
    text = read_or_explain(str(path), read, shown, f"{what} in YAML")
    reading = Reading(variables=variables)
    try:
        document, findings = read_yaml(text, reading=reading)
    except UnreadableError as error:
        raise ConfigurationError(error.at(shown)) from None
    if not isinstance(document, Mapping):
        reason = "the file is empty" if document is None else f"found {_kind_of(document)}"
        raise ConfigurationError(f"{shown}: {reason}. Expected {expected}")
    read_in = Document(document, shown, reading.positions, reading.unset)
    return read_in, [finding.line() for finding in findings]


def read_base(path: str, expected: str, read: TextReader, problems: list[str]) -> Document | None:
    """Read the configuration that another file names as its base, or return None if that fails.

    Problems are appended. Raises SparkNeededError if it lies where only Spark's Hadoop reaches it.
    """
    try:
        document, twice = read_document(path, "a configuration", expected, read, variables=True)
    except SparkNeededError:
        raise
    except ConfigurationError as error:
        problems += [f"base: {problem}" for problem in error.problems]
        return None
    problems += twice
    return document


def _kind_of(document: object) -> str:
    """Describe a document without its content: the file may be a table of people."""
    if isinstance(document, str | list):
        return "a text" if isinstance(document, str) else "a list"
    return in_words(document)


@dataclass
class Reading:
    """Collects positions and missing variables while a document is read. See :class:`Document`."""

    variables: bool = False
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    unset: dict[str, list[str]] = field(default_factory=dict)


def read_yaml(
    text: str, base: Location = (), reading: Reading | None = None
) -> tuple[Any, list[Finding]]:
    """Read one YAML document, and find repeated keys and missing variables.

    ``base`` is the location of the document in the configuration. Without a ``reading`` nothing is
    collected and no variable is filled in. Raises UnreadableError if the text is not YAML.

    >>> read_yaml("{k: 5, order: [2020-01-31]}")
    ({'k': 5, 'order': ['2020-01-31']}, [])
    """
    try:
        # Unprintable characters are reported by the constructor of the loader already.
        loader = Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None, []
            findings = list(_duplicates(loader, node, base, set()))
            if reading is not None:
                findings += _note(loader, node, base, reading, set())
            return loader.construct_document(node), findings
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where: tuple[int, ...] = () if mark is None else (mark.line + 1, mark.column + 1)
        reason = " ".join(filter(None, (error.context, error.problem)))
        if mark is not None and "${" in "".join(text.split("\n")[mark.line : mark.line + 1]):
            reason += _QUOTES
        elif not isinstance(error, yaml.constructor.ConstructorError):
            reason += _USUAL_CAUSES
    except yaml.reader.ReaderError as error:
        where = (text.count(chr(10), 0, error.position) + 1,)
        reason = "a character that YAML does not allow"
    except RecursionError:
        where, reason = (), "nested too deeply"
    except (ValueError, OverflowError):
        where, reason = (), "an escape that is no character"
    raise UnreadableError(" ".join(reason.split()), *where)


def _note(
    loader: Loader, node: yaml.Node, location: Location, reading: Reading, seen: set[int]
) -> Iterator[Finding]:
    """Collect the positions of keys and entries, and fill in variables."""
    mark = node.start_mark
    reading.positions.setdefault(key_path(location), (mark.line + 1, mark.column + 1))
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, entry in enumerate(node.value):
            yield from _note(loader, entry, (*location, index), reading, seen)
    elif isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                inner = (*location, str(key_node.value))
                start = key_node.start_mark
                # Of a repeated key the later position counts.
                reading.positions[key_path(inner)] = (start.line + 1, start.column + 1)
                yield from _note(loader, value_node, inner, reading, seen)
    elif isinstance(node, yaml.ScalarNode) and reading.variables and "${" in node.value:
        filled = fill_in(node.value)
        is_plain = node.style is None
        node.value = filled.text
        if is_plain and node.tag.endswith(":str"):
            # A number is one whether it stands in the file or in a variable.
            node.tag = loader.resolve(  # type: ignore[no-untyped-call]
                yaml.ScalarNode, filled.text, (True, False)
            )
        for secret, shown in filled.values.items():
            if is_secret_option(shown) or is_secret_place(location):
                hide(secret, shown)
        findings = [Finding(location, problem) for problem in filled.problems]
        if findings:
            reading.unset[key_path(location)] = [finding.line() for finding in findings]
        yield from findings


def _duplicates(
    loader: Loader, node: yaml.Node, location: Location, seen: set[int]
) -> Iterator[Finding]:
    """Find all repeated keys, which YAML forbids and PyYAML accepts."""
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
        inner = (*location, str(key))
        count = _COUNTS.get(len(on_lines), str(len(on_lines)))
        where = _on_lines(on_lines)
        if inner[:1] == ("attributes",) and len(inner) == 2:
            text = (
                f"found {count} roles for one attribute, {where}. Expected one role for each "
                "attribute. Keep one of them"
            )
        else:
            times = "twice" if len(on_lines) == 2 else f"{count} times"
            text = f"found the key {times}, {where}. Expected each key once. Keep one of them"
        yield Finding(inner, text)


def _on_lines(lines: Sequence[int]) -> str:
    different = [str(line) for line in dict.fromkeys(lines)]
    if len(different) == 1:
        return f"on line {different[0]}"
    return f"on lines {', '.join(different[:-1])} and {different[-1]}"
