"""Output paths that must be refused before any work."""

from __future__ import annotations

from anonspark.configuration import Configuration
from anonspark.errors import ConfigurationError
from anonspark.filesystem import FileSystem

__all__ = ["require_usable_output"]

_GLOB_CHARACTERS = "*?[{"


def require_usable_output(files: FileSystem, configuration: Configuration) -> None:
    """Check the output path against the input's and against what is there.

    Raises
    ------
    ConfigurationError
        If the output lies inside the input, holds it, or exists and may not be replaced.
    """
    output = configuration.output.path
    problems = []
    target = files.resolved(output).rstrip("/")
    for path in configuration.input.paths:
        fixed = path
        for character in _GLOB_CHARACTERS:
            fixed = fixed.split(character)[0]
        if fixed != path:
            fixed = fixed.rpartition("/")[0] or "."
        source = files.resolved(fixed).rstrip("/")
        if target == source or target.startswith(f"{source}/") or source.startswith(f"{target}/"):
            problems.append(
                f"output.path: {output} and the input {path} lie inside one another; "
                "choose an output directory apart from the input"
            )
    if not problems and configuration.output.mode == "error" and files.exists(output):
        problems.append(
            f"output.path: {output} exists already; choose another path, remove it, or set "
            "output.mode to overwrite"
        )
    if problems:
        raise ConfigurationError(*problems)
