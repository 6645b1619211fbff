"""Reading a configuration: YAML file, overrides of the command line, all problems at once."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from anonspark.config.configuration import CODING, CodingReader, Configuration
from anonspark.config.input import format_of_name
from anonspark.config.json_schema import known_schema
from anonspark.config.problems import Location, in_words, in_words_at, key_path, validated
from anonspark.config.reading import (
    TextReader,
    local_path,
    read_local_text,
    read_named_text,
    read_or_explain,
)
from anonspark.config.short_forms import positions_of_listed, take_out_of_lists, write_out
from anonspark.config.yaml_reading import Document, UnreadableError, read_document, read_yaml
from anonspark.core.extensions import owner_of
from anonspark.errors import ConfigurationError, SparkNeededError
from anonspark.redaction import REDACTED, is_secret_option, redact

# One name of a key path, bare or in quotes, and the sign after it.
_SEGMENT = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'=]+))\s*([.=])""")

# Section and depth of texts that stand for a mapping, and which of its keys they are.
_SHORT_FORMS = {("attributes", 2): "role", ("model", 1): "name"}

# PyYAML ends a document that is a single value with this line.
_END = "...\n"

_LONGEST = 10**30


class Assignment(NamedTuple):
    """An override as written, the key path that it sets, and its value as YAML reads it."""

    override: str
    keys: tuple[str, ...]
    value: Any


def parse_overrides(overrides: Sequence[str], problems: list[str]) -> list[Assignment]:
    """Split overrides into key paths and values, and append their problems.

    >>> problems = []
    >>> [parsed] = parse_overrides(["attributes.'capital.gain'.role=sensitive"], problems)
    >>> parsed.keys, parsed.value
    (('attributes', 'capital.gain', 'role'), 'sensitive')
    """
    assignments: list[Assignment] = []
    for override in overrides:
        parsed, shown = _parse_key_path(override), shown_override(override)
        if parsed is None:
            problems.append(
                f"--set {shown}: found no key path with a value. Expected key.path=value. Put a "
                "name with a dot in quotes, as in 'attributes.\"capital.gain\".role=sensitive'"
            )
            continue
        keys, text = parsed
        try:
            value, duplicates = read_yaml(text, keys)
        except UnreadableError:
            hint = f"Put a text with special signs in quotes: --set '{key_path(keys)}=\"...\"'"
            problems.append(f"--set {shown}: the value is not valid YAML. {hint}")
            continue
        problems += [f"--set {shown}: {duplicate.line()}" for duplicate in duplicates]
        assignments.append(Assignment(override, keys, value))
    return assignments


def shown_override(override: str) -> str:
    """Return an override as messages quote it, without the value of a seed or a password.

    >>> shown_override("execution.seed=7"), shown_override("privacy.k=5")
    ("'execution.seed=(withheld)'", "'privacy.k=5'")
    """
    keys, _, value = override.partition("=")
    secret = "seed" in keys and "seed_file" not in keys and value
    if not secret and is_secret_option(override):
        return repr(f"{keys}={REDACTED}")
    return repr(f"{keys}=(withheld)" if secret else override)


def _parse_key_path(override: str) -> tuple[tuple[str, ...], str] | None:
    """Cut an override into its key path and the text of its value, or return None.

    >>> _parse_key_path("privacy.k=5")
    (('privacy', 'k'), '5')
    """
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


def assign(
    document: dict[str, Any], assignment: Assignment, problems: list[str], prefix: str = "--set "
) -> None:
    """Set the value at a key path of a document, in place.

    Short forms on the path are written out. Problems are appended, with a prefix that names the
    source of the value.

    >>> document = {"model": "canon"}
    >>> assign(document, Assignment("model.rho=3", ("model", "rho"), 3), [])
    >>> document
    {'model': {'name': 'canon', 'rho': 3}}
    """
    keys, section = assignment.keys, document
    for depth, key in enumerate(keys[:-1], start=1):
        inner = section.get(key)
        if isinstance(inner, str) and (short := _SHORT_FORMS.get((keys[0], depth))) is not None:
            inner = {short: inner}
        elif inner is None:
            inner = {}
        elif not isinstance(inner, dict):
            problems.append(
                f"{prefix}{shown_override(assignment.override)}: found "
                f"{in_words_at(keys[:depth], inner)} at {key_path(keys[:depth])}. Expected a "
                "mapping there. Set it as a whole"
            )
            return
        section[key] = inner
        section = inner
    section[keys[-1]] = assignment.value


class _Dumper(yaml.SafeDumper):
    """Writes numbers of thousands of digits, too, which Python refuses in decimal."""


def _represent_int(dumper: yaml.SafeDumper, value: int) -> yaml.ScalarNode:
    text = str(value) if abs(value) < _LONGEST else hex(value)
    return dumper.represent_scalar("tag:yaml.org,2002:int", text)


_Dumper.add_representer(int, _represent_int)


def written_overrides(settings: Mapping[str, Any]) -> list[str]:
    """Write settings as ``--set`` takes them.

    >>> written_overrides({"privacy.k": 5, "model": {"name": "canon"}})
    ['privacy.k=5', 'model={name: canon}']
    """
    written = {
        key: yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=float("inf"))
        for key, value in settings.items()
    }
    return [f"{key}={text.removesuffix(_END).strip()}" for key, text in written.items()]


# It is a secret, so nothing here quotes it: not what was found in the file nor in the variable.

SEED_VARIABLE = "ANONSPARK_SEED"
"""Environment variable that may hold the seed."""

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_EXPECTED = f"Expected one whole number from {_SMALLEST} to {_LARGEST}"
_NUMBER = re.compile(r"[-+]?[0-9]{1,30}")


def fill_in_seed(
    document: dict[str, Any], read: TextReader, problems: list[str], *, needed: bool
) -> SparkNeededError | None:
    """Set ``execution.seed`` of an unchecked configuration from its file or its variable.

    If no seed is needed, neither is read, so readers of a release need no secret. Problems are
    appended. Returns an error to raise if nothing else is wrong: only Spark can read the file.
    """
    execution = document.get("execution", {})
    if not isinstance(execution, dict):
        # Reported with everything else that has the wrong type.
        return None
    path = execution.get("seed_file")
    keys = [f"execution.{key}" for key in ("seed", "seed_file") if execution.get(key) is not None]
    in_variable = needed and SEED_VARIABLE in os.environ
    if in_variable:
        keys.append(f"the environment variable {SEED_VARIABLE}")
    if len(keys) > 1:
        problems.append(
            f"{' and '.join(keys)}: found the seed in {len(keys)} places. Expected it in one of "
            f"execution.seed, execution.seed_file and {SEED_VARIABLE}. Keep one of them"
        )
        execution.pop("seed_file", None)
    elif path is None or not needed:
        # The check of types reports a path that is no text.
        if path is None or isinstance(path, str):
            execution.pop("seed_file", None)
        if in_variable:
            document["execution"] = execution | _seed_of_variable(problems)
    elif isinstance(path, str) and path:
        try:
            execution["seed"] = _read_seed(path, read)
        except SparkNeededError as error:
            # The rest is checked meanwhile.
            execution["seed"] = 0
            return error
        except ConfigurationError as error:
            execution.pop("seed_file")
            problems += error.problems
    return None


def _seed_of_variable(problems: list[str]) -> dict[str, int]:
    """Return the key of the seed with the number in its variable, or append a problem."""
    seed = _number(os.environ[SEED_VARIABLE])
    if seed is not None:
        return {"seed": seed}
    problems.append(
        f"{SEED_VARIABLE}: the environment variable holds something else. {_EXPECTED}. Correct it, "
        "or unset it"
    )
    return {}


def _number(text: str) -> int | None:
    r"""Return a text as a seed, a number of 64 bits, or None if it is anything else.

    >>> _number(" 42\n"), _number("1e3"), _number(str(2**63))
    (42, None, None)
    """
    if not _NUMBER.fullmatch(text.strip()):
        return None
    number = int(text)
    return number if _SMALLEST <= number <= _LARGEST else None


def _read_seed(path: str, read: TextReader) -> int:
    """Read the file of the seed. Raises ConfigurationError, which never quotes its content."""
    shown = redact(path)
    # A message is one line, whatever the path.
    where = f"execution.seed_file: {shown if shown.isprintable() else repr(shown)}"
    expected = "a file that holds the seed"
    text = read_or_explain(path, lambda name: read_named_text(name, read), where, expected)
    seed = _number(text)
    if seed is None:
        raise ConfigurationError(
            f"{where}: the file holds something else. {_EXPECTED} and nothing else. Correct it"
        )
    return seed


def is_readable_by_others(path: str) -> bool:
    """Return whether other users than its owner can read a local file. Others count as safe."""
    try:
        mode = Path(local_path(path) or path).stat().st_mode
    except (OSError, ValueError):
        # Not on this disk, or gone since it was read.
        return False
    return stat.S_ISREG(mode) and bool(mode & (stat.S_IRGRP | stat.S_IROTH))


# No valid configuration is nested deeper; what is deeper is an unknown key or a wrong type, and
# reported without a look inside. (A YAML alias may even refer to what encloses it.)
_DEEPEST = 6

_TOO_LARGE = 10**1000


def copy_document(value: Any, location: Location, problems: list[str]) -> Any:
    """Copy a document so that aliases share nothing, and drop keys that are not texts.

    Problems of texts, keys and numbers are appended, with their location.

    >>> problems = []
    >>> copy_document({"privacy": {"k": 5}, 3: 4}, (), problems)
    {'privacy': {'k': 5}}
    >>> problems
    ['configuration: found the whole number 3 as a key. Expected a text. Put it in quotes']
    """
    if len(location) >= _DEEPEST:
        return value
    if isinstance(value, str):
        _require_characters(value, location, problems)
        return value
    if isinstance(value, list):
        return [copy_document(entry, (*location, i), problems) for i, entry in enumerate(value)]
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        # Python writes no such number, so that messages and fingerprints would fail.
        problems.append(
            f"{key_path(location) or 'configuration'}: found {in_words(value)}. Expected at most "
            "1,000 digits. Correct it"
        )
        return 2
    if not isinstance(value, Mapping):
        return value
    copied: dict[str, object] = {}
    for key, inner in value.items():
        if isinstance(key, str):
            _require_characters(key, (*location, key), problems)
            copied[key] = copy_document(inner, (*location, key), problems)
        else:
            problem = f"found {in_words(key)} as a key. Expected a text. Put it in quotes"
            problems.append(f"{key_path(location) or 'configuration'}: {problem}")
    return copied


def _require_characters(text: str, location: Location, problems: list[str]) -> None:
    """Refuse halves of characters (lone surrogates), which neither files nor Java take."""
    try:
        text.encode()
    except UnicodeEncodeError:
        problems.append(
            f"{key_path(location) or 'configuration'}: found half of a character (a surrogate, "
            "U+D800 to U+DFFF) in a text. Expected whole ones. In YAML write \\U0001F600 for a "
            "character beyond \\uFFFF"
        )


SELECTION = "selection"
"""The section that ``anonspark select`` alone reads."""


def read_configuration(
    path: str | Path, expected: str, read: TextReader = read_local_text
) -> tuple[Document, list[str]]:
    """Read the file of a configuration, unchecked, and return it with its problems so far.

    The document knows the positions of attributes in short forms, too. ``expected`` says in
    messages what the file should hold.
    """
    document, problems = read_document(path, "a configuration", expected, read, variables=True)
    listed = positions_of_listed(document, document.positions)
    document.positions = {**listed, **document.positions}
    return document, problems


def load_configuration(
    path: str | Path,
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
    *,
    needs_seed: bool = True,
) -> Configuration:
    """Read and check a configuration file, which is local or found by ``read``.

    Overrides are values of ``--set``, ``key.path=value`` in YAML, and later ones win. Readers of
    releases do not need the seed, so its file or variable is not read for them. Raises
    ConfigurationError with all problems of file and overrides, or SparkNeededError if there are
    none, but only Spark can read a file.
    """
    problems: list[str] = []
    assignments = parse_overrides(overrides, problems)
    expected = "a mapping with 'input', 'attributes', 'privacy' and 'output'"
    try:
        document, wrong = read_configuration(path, expected, read)
    except ConfigurationError as error:
        if format_of_name(str(path)) is not None and Path(path).is_file():
            raise ConfigurationError(
                f"{path}: the file is a table by its name, and no configuration. Write one for it "
                f"with anonspark init {path}, or name the configuration",
                *problems,
            ) from None
        raise ConfigurationError(*error.problems, *problems) from None
    overridden = [assignment.keys for assignment in assignments]
    with document.locating_problems(overridden):
        wrong = [*document.still_wrong(wrong, overridden), *problems]
        built = _build(document, assignments, wrong, read, needs_seed=needs_seed)
    return built.with_places(document.places(overridden))


def parse_configuration(
    mapping: Mapping[str, Any],
    overrides: Sequence[str] = (),
    read: TextReader = read_local_text,
    *,
    needs_seed: bool = True,
    with_tops: bool = True,
) -> Configuration:
    """Check a configuration that is in memory, which is not changed, as :func:`load_configuration`.

    ``with_tops`` gives texts without a hierarchy one, for models with levels. A comparison turns it
    off, because its models have the same attributes.

    >>> sections = {"input": {"path": "people.csv"}, "output": {"path": "out"}, "privacy": {"k": 5}}
    >>> parse_configuration({**sections, "quasi_identifiers": ["age"]}).quasi_identifiers
    ['age']
    """
    problems: list[str] = []
    assignments = parse_overrides(overrides, problems)
    return _build(mapping, assignments, problems, read, needs_seed=needs_seed, with_tops=with_tops)


def _build(
    mapping: Mapping[Any, Any],
    assignments: Sequence[Assignment],
    problems: list[str],
    read: TextReader,
    *,
    needs_seed: bool,
    with_tops: bool = True,
) -> Configuration:
    """Apply the overrides in order, check everything, and raise all problems at once."""
    document = copy_document(
        {name: value for name, value in mapping.items() if name != SELECTION}, (), problems
    )
    for assignment in assignments:
        if assignment.keys[0] == "attributes" and len(assignment.keys) > 1:
            take_out_of_lists(document, assignment.keys[1])
        copied = copy_document(assignment.value, assignment.keys, problems)
        assign(document, assignment._replace(value=copied), problems)
    write_out(document, problems, with_tops=with_tops)
    coding = None
    if document.get(CODING) is not None:
        reader: CodingReader = owner_of(CODING)
        coding = reader.merge_coding(document, read, problems)
        if coding is None:
            raise ConfigurationError(*dict.fromkeys(problems))
    out_of_reach = fill_in_seed(document, read, problems, needed=needs_seed)
    configuration = validated(Configuration, document, problems, known_schema)
    if configuration is None or problems:
        raise ConfigurationError(*dict.fromkeys(problems))
    if out_of_reach is not None:
        raise out_of_reach
    return configuration if coding is None else configuration.with_coding(coding)
