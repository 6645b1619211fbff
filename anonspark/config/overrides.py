"""Read the key paths and values of ``--set``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from anonspark.config.problems import found_at, key_path
from anonspark.config.yaml_reading import UnreadableError, read_yaml
from anonspark.redaction import REDACTED, is_secret_option

# One name of a key path, bare or in quotes, and the sign after it.
_SEGMENT = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^."'=]+))\s*([.=])""")

# Section and depth of texts that stand for a mapping, and which of its keys they are.
_SHORT_FORMS = {("attributes", 2): "role", ("model", 1): "name"}

# What ends a YAML document that is a single value.
_END = "...\n"

_LONGEST = 10**30


class Assignment(NamedTuple):
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


def parse_overrides(overrides: Sequence[str], problems: list[str]) -> list[Assignment]:
    """Take the overrides apart. What is wrong with them is added to the problems."""
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


def assign(
    document: dict[str, Any], assignment: Assignment, problems: list[str], said: str = "--set "
) -> None:
    """Set the value at a key path. What is wrong, and where it was said, is added to the problems.

    Parameters
    ----------
    document : dict
    assignment : Assignment
    problems : list of str
    said : str
        What stands before the key path in messages.
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
                f"{said}{shown_override(assignment.override)}: found "
                f"{found_at(keys[:depth], inner)} at {key_path(keys[:depth])}. Expected a mapping "
                "there. Set it as a whole"
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
    """Write settings as ``--set`` takes them."""
    written = {
        key: yaml.dump(value, Dumper=_Dumper, default_flow_style=True, width=float("inf"))
        for key, value in settings.items()
    }
    return [f"{key}={text.removesuffix(_END).strip()}" for key, text in written.items()]
