"""YAML as it is written: positions of keys, keys that are there twice, and dates as text."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from anonspark.config.problems import Finding, Location, found, is_secret_place, key_path
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
    """The places of a file's keys. Two configurations that say the same are equal without them.

    Parameters
    ----------
    path : str
        How messages name the file.
    positions : mapping
        Of its keys and entries.
    replaced : tuple of str
        Key paths of what ``--set`` gave, of which the file says nothing.
    """

    path: str = field(default="", compare=False)
    positions: Positions = field(default_factory=dict, compare=False)
    replaced: tuple[str, ...] = field(default=(), compare=False)

    def key_path_of(self, problem: str) -> str:
        """Return the key path that a problem begins with, as long as there is one."""
        paths = (path for path in self.positions if problem.startswith(f"{path}: "))
        longest = max(paths, key=len, default=None)
        return problem.partition(": ")[0] if longest is None else longest

    def is_of_file(self, head: str) -> bool:
        """Return whether a key path is the file's, and not one of ``--set``."""
        if any(is_within(head, path) for path in self.replaced):
            return False
        return head in self.positions or not any(is_within(path, head) for path in self.replaced)

    def before(self, head: str, *, is_whole: bool) -> str:
        """Return file, line and column of a key, or of what should hold it, to begin a line with.

        Parameters
        ----------
        head : str
            Key path.
        is_whole : bool
            Whether all key paths are of this file, also those that are missing in it.

        Returns
        -------
        str
            Empty where the file says nothing of it.
        """
        position = self._position_of(head, is_whole=is_whole) if self.is_of_file(head) else None
        return "" if position is None else f"{self.path}:{position[0]}:{position[1]}: "

    def placed(self, problem: str) -> str:
        """Return a problem, with its place if it begins with a key that the file has.

        A section alone is no such place: what it lacks may be a default, or stand in a coding.
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
    """Return whether a key path is another one, or is below it."""
    return head == path or head.startswith((f"{path}.", f"{path}["))


class Document(dict[str, Any]):
    """The mapping of a YAML file.

    Parameters
    ----------
    content : mapping
    path : str
        How messages name the file.
    positions : mapping
        Of its keys and entries.
    unset : mapping of str to sequence of str
        Key paths at which a variable is missing, and what is said of it.
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
        """Return where its keys stand, but of what was replaced."""
        replaced = tuple(key_path(location) for location in overridden)
        return Places(self.path, self.positions, replaced)

    @contextmanager
    def telling(
        self, overridden: Sequence[Location] = (), *, is_whole: bool = True
    ) -> Iterator[None]:
        """Add the places in the file to the problems of a ``with`` block.

        Parameters
        ----------
        overridden : sequence of tuple
            What was replaced, so that the file says nothing of it.
        is_whole : bool
            Whether all key paths are of this file, also those that are missing in it.
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
        """Return problems without those of variables that only stand in what was replaced."""
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
    """Text that is not YAML. The message says why and where.

    Parameters
    ----------
    reason : str
    line, column : int or None
        From 1 on, where they are known.
    """

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.reason, self.line, self.column = reason, line, column
        position = "" if line is None else f" on line {line}"
        position += "" if column is None else f", column {column}"
        super().__init__(f"not valid YAML{position}: {reason}. Correct it")

    def at(self, path: str) -> str:
        """Return the message of a file."""
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
    variables : bool
        Whether texts may name variables of the environment.

    Returns
    -------
    document : Document
    problems : list of str
        Keys that are there twice, and variables that are missing.

    Raises
    ------
    ConfigurationError
        If there is no such file, or it is no mapping in YAML.
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
    """Read the configuration that another file names as its base.

    Parameters
    ----------
    path : str
    expected : str
        As of :func:`read_document`.
    read : callable
    problems : list of str
        What is wrong is added.

    Returns
    -------
    Document or None
        None where it cannot be read.

    Raises
    ------
    SparkNeededError
        If it lies where only Spark's Hadoop reaches it.
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
    """Return what a document is without its content: the file may be a table of people."""
    if isinstance(document, str | list):
        return "a text" if isinstance(document, str) else "a list"
    return found(document)


@dataclass
class Reading:
    """The notes about a document while it is read. See :class:`Document`.

    Parameters
    ----------
    variables : bool
        Whether they are filled in.
    """

    variables: bool = False
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    unset: dict[str, list[str]] = field(default_factory=dict)


def read_yaml(
    text: str, base: Location = (), reading: Reading | None = None
) -> tuple[Any, list[Finding]]:
    """Read one YAML document.

    Parameters
    ----------
    text : str
        The document.
    base : tuple of str and int
        Where the document belongs in the configuration.
    reading : Reading or None
        What is noted. None notes nothing, and fills in no variables.

    Returns
    -------
    tuple
        The document, and what is wrong with it: duplicate keys, and variables that are missing.

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
    """Note where keys and entries stand, and fill in variables."""
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
                # Of a key that is there twice the later one counts.
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
