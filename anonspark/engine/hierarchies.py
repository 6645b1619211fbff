"""Hierarchy files on any file system."""

from __future__ import annotations

from collections.abc import Mapping

from anonspark.core.hierarchies.files import hierarchy_digest, parse_hierarchy
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError


def read_hierarchy_files(
    files: Files,
    paths: Mapping[str, str],
    agreed: Mapping[str, str] | None = None,
    keys: Mapping[str, str] | None = None,
) -> dict[str, Hierarchy]:
    """Read the hierarchies of attributes from their files, given by name. No job: the driver reads.

    ``agreed`` has the SHA-256 (:func:`anonspark.core.hierarchies.files.hierarchy_digest`) of files
    that a coding has agreed on, and ``keys`` the names of files in messages, if not the attribute.
    Raises ConfigurationError with all problems. One is a file that differs from the agreed one.
    """
    hierarchies: dict[str, Hierarchy] = {}
    problems: list[str] = []
    for name, path in paths.items():
        key = (keys or {}).get(name, f"attributes.{name}.hierarchy")
        try:
            text = _read_text(files, path, key)
            if (agreed or {}).get(name, digest := hierarchy_digest(text)) != digest:
                problems.append(
                    f"{key}: {path} is not the file that the coding was agreed on with. It was "
                    "changed, or another one lies there: restore it"
                )
            hierarchies[name] = parse_hierarchy(text, f"{key}: {path}")
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(*problems)
    return hierarchies


def _read_text(files: Files, path: str, key: str) -> str:
    """Read a hierarchy's file. Raises ConfigurationError if it cannot be read."""
    try:
        exists = files.exists(path)
    except ConfigurationError as error:
        raise ConfigurationError(f"{key}: {error}") from error
    if not exists:
        raise ConfigurationError(
            f"{key}: no hierarchy file is at {path}. Check the path, and that this machine can "
            "reach it"
        )
    try:
        return files.read_text(path)
    except OSError as error:
        raise ConfigurationError(
            f"{key}: {path} cannot be read. Expected a CSV file, not a directory. Check the path "
            "and its permissions"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{key}: {path} is not UTF-8 text. Expected a CSV file in UTF-8. Save it as such"
        ) from error
