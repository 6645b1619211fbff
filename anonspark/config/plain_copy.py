"""Copying what YAML or a program gave: nothing shared, and nothing that no file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonspark.config.problems import Location, found, key_path

# No valid configuration is nested deeper; what is deeper is an unknown key or a wrong type, and
# reported without a look inside. (A YAML alias may even refer to what encloses it.)
_DEEPEST = 6

_TOO_LARGE = 10**1000


def copy_document(value: Any, location: Location, problems: list[str]) -> Any:
    """Copy a document so that aliases share nothing, without keys that are no text.

    Parameters
    ----------
    value : object
        As read from YAML, or given by a program.
    location : tuple of str and int
        Where it stands in the configuration.
    problems : list of str
        What is wrong with its texts, keys and numbers is added.
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
            f"{key_path(location) or 'configuration'}: found {found(value)}. Expected at most "
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
            problem = f"found {found(key)} as a key. Expected a text. Put it in quotes"
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
