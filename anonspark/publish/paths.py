"""Output paths that must be refused before any work."""

from __future__ import annotations

from anonspark.configuration import Configuration
from anonspark.errors import ConfigurationError, DataError
from anonspark.filesystem import FileSystem
from anonspark.publish.manifest import MANIFEST

__all__ = ["require_replaceable_output", "require_usable_output"]

_GLOB_CHARACTERS = "*?[{"


def require_usable_output(files: FileSystem, configuration: Configuration) -> None:
    """Check the output path against the input's and against what is there.

    Raises
    ------
    ConfigurationError
        If the output lies inside the input, holds it, exists and may not be replaced, or cannot be
        named; or the staging path lies inside one of them.
    DataError
        If the input's path cannot be reached.
    """
    output = configuration.output.path
    staging_path = configuration.execution.staging_path
    written = {"output.path": output, "execution.staging_path": staging_path or ""}
    problems = [
        f"{key}: {path} holds one of the characters * ? [ ] {{ }}, which Spark would take for a "
        "pattern; choose another path"
        for key, path in written.items()
        if set(path) & set(f"{_GLOB_CHARACTERS}]}}")
    ]
    if problems:
        raise ConfigurationError(*problems)
    target = files.resolved(output).rstrip("/")
    staging = None if staging_path is None else files.resolved(staging_path).rstrip("/")
    for path in configuration.input.paths:
        fixed = path
        for character in _GLOB_CHARACTERS:
            fixed = fixed.split(character)[0]
        if fixed != path:
            fixed = fixed.rpartition("/")[0] or "."
        try:
            source = files.resolved(fixed).rstrip("/")
        except ConfigurationError as error:
            raise DataError(f"input.path: {error}") from error
        if target == source or target.startswith(f"{source}/") or source.startswith(f"{target}/"):
            problems.append(
                f"output.path: {output} and the input {path} lie inside one another; "
                "choose an output directory apart from the input"
            )
        if staging is not None and f"{staging}/".startswith(f"{source}/"):
            problems.append(
                f"execution.staging_path: {staging_path} lies inside the input {path}; choose a "
                "private directory apart from the input"
            )
    if staging is not None and f"{staging}/".startswith(f"{target}/"):
        problems.append(
            f"execution.staging_path: {staging_path} lies inside output.path; choose a private "
            "directory apart from the output"
        )
    if not problems and configuration.output.mode == "error" and files.exists(output):
        problems.append(
            f"output.path: {output} exists already; choose another path, remove it, or set "
            "output.mode to overwrite"
        )
    if problems:
        raise ConfigurationError(*problems)


def require_replaceable_output(files: FileSystem, configuration: Configuration) -> None:
    """Check that what an overwriting run would replace is a release, not somebody's other data.

    Raises
    ------
    ConfigurationError
        If a file or a directory without a manifest is at the output path.
    """
    output = configuration.output.path
    if files.exists(output) and not files.exists(f"{output.rstrip('/')}/{MANIFEST}"):
        raise ConfigurationError(
            f"output.path: what is at {output} is not a release (it has no {MANIFEST}), so it is "
            "not overwritten; if a run was killed while it published, anonspark clean puts it "
            "right; else choose another path or remove it yourself"
        )
