"""Reading a configuration: YAML file, overrides of the command line, all problems at once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from anonspark.config.configuration import Configuration
from anonspark.config.json_schema import json_schema
from anonspark.config.models import options_classes
from anonspark.config.problems import (
    Finding,
    Location,
    explain,
    found,
    found_at,
    key_path,
    nearest,
)
from anonspark.config.reading import TextReader, is_address, read_local_text
from anonspark.config.seed import fill_in_seed
from anonspark.errors import ConfigurationError
from anonspark.redaction import REDACTED, is_secret_option

__all__ = [
    "TextReader",
    "is_address",
    "load_configuration",
    "parse_configuration",
    "read_document",
    "read_local_text",
]

# No valid configuration is nested deeper; what is deeper is an unknown key or a wrong type, and
# reported without a look inside. (A YAML alias may even refer to what encloses it.)
_DEEPEST = 6

_TOO_LARGE = 10**1000

# Each pass over a wrong document goes one step further; a correct options class needs four.
_MOST_PASSES = 10

_COUNTS = {2: "two", 3: "three", 4: "four"}

# One name of a key path, bare or in quotes, and the sign after it.
_SEGMENT = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'=]+))\s*([.=])""")

# What stands in for a value that is missing or wrong, while the rest is looked at: for required
# values, and for those that may be in the wrong place besides.
_STAND_INS: dict[Location, Any] = {
    ("input",): {"path": "-"},
    ("input", "path"): "-",
    ("attributes",): {"-": {"role": "quasi_identifier"}},
    ("attributes", "*", "type"): "text",
    ("attributes", "*", "order"): ["-"],
    ("attributes", "*", "hierarchy", "intervals"): [1],
    ("attributes", "*", "hierarchy", "prefix"): [1],
    ("attributes", "*", "hierarchy", "calendar"): ["year"],
    ("privacy",): {"k": 1},
    ("privacy", "k"): 1,
    ("output",): {"path": "-"},
    ("output", "path"): "-",
}


class _Loader(yaml.SafeLoader):
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
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Assignment(NamedTuple):
    """An override taken apart.

    Attributes
    ----------
    override : str
        As it was given.
    keys : tuple of str
        Where the value goes.
    value : object
        What the text after the equals sign means in YAML.
    """

    override: str
    keys: tuple[str, ...]
    value: Any


class _UnreadableError(Exception):
    """Text that is not YAML; the message says why and where."""


def load_configuration(
    path: str | Path,
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
    *,
    needs_seed: bool = True,
) -> Configuration:
    """Read a configuration file.

    Parameters
    ----------
    path : str or Path
        A YAML file on the local disk, or where `read` finds it.
    overrides : sequence of str
        What ``--set`` was given, ``key.path=value`` each; the value is YAML. Later ones win.
    read : callable
        Reads the file, and that of the seed where it is at an address.
    needs_seed : bool
        Whether the seed is looked up in its file or variable: what only reads releases does not
        need it.

    Returns
    -------
    Configuration
        Complete and checked.

    Raises
    ------
    ConfigurationError
        With all problems of the file and of the overrides.
    SparkNeededError
        If nothing is wrong, but a file has to be read through Spark.
    """
    problems: list[str] = []
    assignments = _parse_overrides(overrides, problems)
    expected = "a mapping with 'input', 'attributes', 'privacy' and 'output'"
    try:
        document, found_twice = read_document(path, "a configuration", expected, read)
    except ConfigurationError as error:
        raise ConfigurationError(*error.problems, *problems) from None
    return _build(document, assignments, [*found_twice, *problems], read, needs_seed=needs_seed)


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
            document, duplicates = _read_yaml(text)
        except _UnreadableError as error:
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


def parse_configuration(
    mapping: Mapping[str, Any],
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
    *,
    needs_seed: bool = True,
) -> Configuration:
    """Check a configuration that is in memory.

    Parameters
    ----------
    mapping : mapping
        What the YAML file would hold; it is not changed.
    overrides, read, needs_seed
        As for :func:`load_configuration`.

    Returns
    -------
    Configuration
        Complete and checked.

    Raises
    ------
    ConfigurationError
        With all problems.
    SparkNeededError
        As :func:`load_configuration`.
    """
    problems: list[str] = []
    assignments = _parse_overrides(overrides, problems)
    return _build(mapping, assignments, problems, read, needs_seed=needs_seed)


def _build(
    mapping: Mapping[Any, Any],
    assignments: Sequence[_Assignment],
    problems: list[str],
    read: TextReader,
    *,
    needs_seed: bool,
) -> Configuration:
    """Apply the overrides, check everything, and raise or return.

    Parameters
    ----------
    mapping : mapping
        The configuration as read.
    assignments : sequence of _Assignment
        The overrides, in the order in which they are applied.
    problems : list of str
        What is known to be wrong already.
    read : callable
        Reads the file of the seed.
    needs_seed : bool
        Whether it is read.

    Returns
    -------
    Configuration
        If there are no problems at all.
    """
    document = _copy(mapping, (), problems)
    for override, keys, value in assignments:
        problem = _assign(document, keys, _copy(value, keys, problems))
        if problem is not None:
            problems.append(f"--set {_shown_override(override)}: {problem}")
    out_of_reach = fill_in_seed(document, read, problems, needed=needs_seed)
    configuration, findings = _check(document)
    problems += [finding.line() for finding in findings]
    if configuration is None or problems:
        raise ConfigurationError(*dict.fromkeys(problems))
    if out_of_reach is not None:
        raise out_of_reach
    return configuration


def _copy(value: Any, location: Location, problems: list[str]) -> Any:
    """Copy a document so that aliases share nothing, without keys that are no text."""
    if len(location) >= _DEEPEST:
        return value
    if isinstance(value, str):
        _require_characters(value, location, problems)
        return value
    if isinstance(value, list):
        return [_copy(entry, (*location, i), problems) for i, entry in enumerate(value)]
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        # Python writes no such number, so that messages and fingerprints would fail.
        problems.append(
            f"{key_path(location) or 'configuration'}: found {found(value)}; expected at most "
            "1,000 digits; correct it"
        )
        return 1
    if not isinstance(value, Mapping):
        return value
    copied: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(key, str):
            _require_characters(key, (*location, key), problems)
            copied[key] = _copy(inner, (*location, key), problems)
        else:
            problem = f"found {found(key)} as a key; expected a text; put it in quotes"
            problems.append(f"{key_path(location) or 'configuration'}: {problem}")
    return copied


def _require_characters(text: str, location: Location, problems: list[str]) -> None:
    """Refuse halves of characters (lone surrogates), which neither files nor Java take."""
    try:
        text.encode()
    except UnicodeEncodeError:
        problems.append(
            f"{key_path(location) or 'configuration'}: found half of a character (a surrogate, "
            "U+D800 to U+DFFF) in a text; expected whole ones; in YAML write \\U0001F600 for a "
            "character beyond \\uFFFF"
        )


def _check(document: dict[str, Any]) -> tuple[Configuration | None, list[Finding]]:
    """Validate a document, and look on behind the first problems.

    Validation stops early: what two keys mean together is checked only where each of them is
    right. So whatever is wrong is taken out, with a harmless value in its place where one is
    required, and the rest is validated again, until nothing new is found.

    Parameters
    ----------
    document : dict
        With text keys; it is changed.

    Returns
    -------
    tuple
        The configuration, if there is nothing wrong with it, and the findings.
    """
    findings: list[Finding] = []
    taken_out: set[Location] = set()
    for _ in range(_MOST_PASSES):
        try:
            configuration = Configuration.model_validate(document)
        except ValidationError as error:
            new = explain(error, document, json_schema(), taken_out)
            details = error.errors(include_url=False, include_input=False)
        else:
            return (None if findings else configuration), findings
        # An attribute whose role cannot be read may be the quasi-identifier.
        unsure = any(_is_role(place) for place in taken_out)
        findings += [
            f
            for f in new
            if not (unsure and (f.location == ("attributes",) or f.location[-1] == "attribute"))
        ]
        if any(detail["loc"] == () for detail in details):
            # The check of the whole document, which is the last one, has run.
            break
        missing = {detail["loc"] for detail in details if detail["type"] == "missing"}
        # Roles last: they replace the whole attribute.
        places = sorted(missing.union(finding.location for finding in new), key=_is_role)
        taken_out |= {_take_out(document, place, frozenset(taken_out)) for place in places}
    return None, findings


def _is_role(place: Location) -> bool:
    """Tell whether a place is an attribute as a whole or its role."""
    return place[:1] == ("attributes",) and (len(place) == 2 or place[2:] == ("role",))


def _take_out(
    document: dict[str, Any], place: Location, taken_out: AbstractSet[Location]
) -> Location:
    """Take a wrong or missing value out of a document.

    Parameters
    ----------
    document : dict
        It is changed.
    place : tuple of str and int
        Where the value is, or should be.
    taken_out : set of tuple
        What was taken out in earlier passes; its stand-in is taken out now.

    Returns
    -------
    tuple of str
        What was taken out: the place, or the list that it is in.
    """
    # A list goes as a whole: the positions of its entries must not move.
    keys = [str(step) for step in takewhile(lambda step: isinstance(step, str), place)]
    place = tuple(keys)
    if _is_role(place):
        # An identifier takes part in no check but those of its name.
        document["attributes"][keys[1]] = {"role": "identifier"}
        return place
    if place == ("model", "name"):
        # With the model that was probably meant, the other options can be checked.
        name = document["model"]["name"]
        meant = nearest(name, options_classes()) if isinstance(name, str) else None
        if meant is None:
            del document["model"]
        else:
            document["model"]["name"] = meant
        return place
    if place[0] == "model" and place in taken_out:
        # A required option, for which nobody but its model knows a stand-in.
        document.pop("model", None)
        return place
    section: Any = document
    for key in keys[:-1]:
        section = section.get(key) if isinstance(section, dict) else None
    if isinstance(section, dict):
        section.pop(keys[-1], None)
        pattern = (place[0], "*", *place[2:]) if place[0] == "attributes" and place[2:] else place
        if pattern in _STAND_INS and place not in taken_out:
            section[keys[-1]] = deepcopy(_STAND_INS[pattern])
        elif section == {} and pattern[2:-1] == ("hierarchy",):
            # Nobody knows which rule was meant.
            del document["attributes"][keys[1]]["hierarchy"]
    return place


def _parse_overrides(overrides: Sequence[str], problems: list[str]) -> list[_Assignment]:
    """Take the overrides apart; what is wrong with them is added to the problems."""
    assignments: list[_Assignment] = []
    for override in overrides:
        parsed = _parse_key_path(override)
        if parsed is None:
            problems.append(
                f"--set {_shown_override(override)}: found no key path with a value; expected "
                "key.path=value; "
                "put a name with a dot in quotes, as in "
                "'attributes.\"capital.gain\".role=sensitive'"
            )
            continue
        keys, text = parsed
        try:
            value, duplicates = _read_yaml(text, keys)
        except _UnreadableError as error:
            problems.append(f"--set {_shown_override(override)}: {error}")
            continue
        shown = _shown_override(override)
        problems += [f"--set {shown}: {duplicate.line()}" for duplicate in duplicates]
        assignments.append(_Assignment(override, keys, value))
    return assignments


def _shown_override(override: str) -> str:
    """Return an override as messages quote it: not what it says of the seed, nor of passwords."""
    keys, _, value = override.partition("=")
    secret = "seed" in keys and "seed_file" not in keys and value
    if not secret and is_secret_option(override):
        return repr(f"{keys}={REDACTED}")
    return repr(f"{keys}=(withheld)" if secret else override)


def _parse_key_path(override: str) -> tuple[tuple[str, ...], str] | None:
    """Cut an override into its key path and its value, or return None if it has no such form."""
    keys: list[str] = []
    position = 0
    while (match := _SEGMENT.match(override, position)) is not None:
        in_double, in_single, bare, end = match.groups()
        keys.append(bare.strip() if bare is not None else in_double or in_single or "")
        position = match.end()
        if bare is not None and keys[-1] == "":
            return None
        if end == "=":
            return tuple(keys), override[position:]
    return None


def _assign(document: dict[str, Any], keys: tuple[str, ...], value: Any) -> str | None:
    """Set the value at a key path; return what is wrong if that is impossible."""
    section = document
    for depth, key in enumerate(keys[:-1], start=1):
        inner = section.get(key)
        if isinstance(inner, str) and depth == 2 and keys[0] == "attributes":
            inner = {"role": inner}
        elif inner is None:
            inner = {}
        elif not isinstance(inner, dict):
            return (
                f"found {found_at(keys[:depth], inner)} at {key_path(keys[:depth])}; expected a "
                "mapping there; set it as a whole"
            )
        section[key] = inner
        section = inner
    section[keys[-1]] = value
    return None


def _read_yaml(text: str, base: Location = ()) -> tuple[Any, list[Finding]]:
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
    _UnreadableError
        If it is not YAML.
    """
    try:
        # Unprintable characters are reported by the constructor of the loader already.
        loader = _Loader(text)
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
    raise _UnreadableError(f"not valid YAML{where}: {' '.join(reason.split())}; correct it")


def _duplicates(
    loader: _Loader, node: yaml.Node, location: Location, seen: set[int]
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
