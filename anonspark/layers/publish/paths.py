"""Output paths that must be refused before any work."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from itertools import combinations

from anonspark.config import Configuration
from anonspark.engine.files import Files, require_ours
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.release.layout import REPORT, foreign_entries, looks_like_report, named
from anonspark.release.manifest import MANIFEST, read_manifest
from anonspark.release.signatures import SIGNATURE

_GLOB_CHARACTERS = "*?[{"
_LOGGER = logging.getLogger("anonspark")


def require_target(files: Files, key: str, path: str) -> None:
    """Check that what is written or replaced at a path would lie there, and that it is ours.

    Parameters
    ----------
    files : Files
    key : str
        What named the path, for the message.
    path : str
        Links among the directories above it are fine, unless one leads nowhere.

    Raises
    ------
    ConfigurationError
        If it is a symbolic link itself, or one above it leads nowhere, or it belongs to another
        user.
    """
    require_ours(files, key, path)
    require_reachable(files, key, path)


def require_reachable(files: Files, key: str, path: str) -> None:
    """Check that no link above a path leads nowhere. Parameters as :func:`require_target`.

    Raises
    ------
    ConfigurationError
    """
    dangling = files.dangling_parent(path)
    if dangling is not None:
        raise ConfigurationError(
            f"{key}: {path} cannot be made, for {dangling} is a symbolic link to a place that is "
            "not there. Make that place, or choose another path"
        )


def require_apart(files: Files, places: Mapping[str, str]) -> None:
    """Check that no place is another one, or lies inside it.

    Parameters
    ----------
    files : Files
    places : mapping of str to str
        What named each place, for the message, to its path.

    Raises
    ------
    ConfigurationError
        Naming both.
    """
    resolved = {key: f"{files.resolved(path).rstrip('/')}/" for key, path in places.items()}
    problems = []
    for first, second in combinations(places, 2):
        inner, outer = resolved[first], resolved[second]
        if inner == outer:
            problems.append(f"{first} and {second}: found the same place. Expected two. Move one")
        elif inner.startswith(outer) or outer.startswith(inner):
            problems.append(
                f"{first} and {second}: found one inside the other. Expected them apart. Move one"
            )
    if problems:
        raise ConfigurationError(*problems)


def require_apart_from_table(
    files: Files, configuration: Configuration, key: str, path: str
) -> None:
    """Check that a place is apart from the input and the output.

    Parameters
    ----------
    files : Files
    configuration : Configuration
    key : str
        What named the place, for the message.
    path : str

    Raises
    ------
    ConfigurationError
    """
    require_apart_from_input(files, configuration, key, path)
    _require_apart_from(files, (key, path), ("output.path", configuration.output.path))


def require_apart_from_input(
    files: Files, configuration: Configuration, key: str, path: str
) -> None:
    """Check that a place is apart from the input. Parameters as those of the table.

    Raises
    ------
    ConfigurationError
    """
    for input_path in configuration.input.paths_of_files:
        _require_apart_from(files, (key, path), ("input.path", input_path))


def _require_apart_from(files: Files, mine: tuple[str, str], other: tuple[str, str]) -> None:
    target = files.resolved(mine[1]).rstrip("/")
    fixed = files.resolved(_fixed_part(files, other[1])).rstrip("/")
    if f"{target}/".startswith(f"{fixed}/") or fixed.startswith(f"{target}/"):
        raise ConfigurationError(
            f"{mine[0]}: {mine[1]} and {other[0]} {other[1]} lie inside one another. Choose a "
            "place apart from both"
        )


def _fixed_part(files: Files, path: str) -> str:
    """Return what is at a path, or the directory that holds all that it may name as a pattern."""
    fixed = re.split(rf"[{re.escape(_GLOB_CHARACTERS)}]", path)[0]
    if fixed == path or files.exists(path):
        return path
    return fixed.rpartition("/")[0] or "."


def require_usable_output(
    files: Files, configuration: Configuration, *, writes: bool = True
) -> None:
    """Check the output path against the input's and against what is there.

    Parameters
    ----------
    files : Files
    configuration : Configuration
    writes : bool
        Whether something will be written. If not, what is there already is only said in the log.

    Raises
    ------
    ConfigurationError
        If the output lies inside the input, holds it, exists and may not be replaced, is a
        symbolic link, or cannot be named, or the staging path lies inside
        one of them.
    DataError
        If the input's path cannot be reached.
    """
    output = configuration.output.path
    staging_path = configuration.execution.staging_path
    written = {"output.path": output, "execution.staging_path": staging_path or ""}
    problems = [
        f"{key}: {path} holds one of the characters * ? [ ] {{ }}, which Spark would take for a "
        "pattern. Choose another path"
        for key, path in written.items()
        if set(path) & set(f"{_GLOB_CHARACTERS}]}}")
    ]
    if problems:
        raise ConfigurationError(*problems)
    require_target(files, "output.path", output)
    if staging_path is not None:
        # Directories are made below it: it may be a link itself, but not to nothing.
        require_reachable(files, "execution.staging_path", f"{staging_path.rstrip('/')}/staged")
    target = files.resolved(output).rstrip("/")
    problems = []
    staging = None if staging_path is None else files.resolved(staging_path).rstrip("/")
    for path in configuration.input.paths_of_files:
        try:
            source = files.resolved(_fixed_part(files, path)).rstrip("/")
        except ConfigurationError as error:
            raise DataError(f"input.path: {error}") from error
        if target == source or target.startswith(f"{source}/") or source.startswith(f"{target}/"):
            problems.append(
                f"output.path: {output} and the input {path} lie inside one another. "
                "Choose an output directory apart from the input"
            )
        if staging is not None and f"{staging}/".startswith(f"{source}/"):
            problems.append(
                f"execution.staging_path: {staging_path} lies inside the input {path}. Choose a "
                "private directory apart from the input"
            )
    if staging is not None and f"{staging}/".startswith(f"{target}/"):
        problems.append(
            f"execution.staging_path: {staging_path} lies inside output.path. Choose a private "
            "directory apart from the output"
        )
    if not problems and configuration.output.mode == "error" and files.exists(output):
        text = (
            f"output.path: {output} exists already. Choose another path, remove it, or set "
            "output.mode to overwrite"
        )
        if not files.exists(f"{output.rstrip('/')}/{MANIFEST}"):
            text += (
                f". It has no {MANIFEST}. If a run was killed while it published, anonspark clean "
                "puts it right"
            )
        if writes:
            problems.append(text)
        else:
            _LOGGER.warning("%s (only a run needs it)", text)
    if problems:
        raise ConfigurationError(*problems)


def require_replaceable_release(files: Files, output: str) -> None:
    """Check that a directory may be replaced, which removes all that is in it.

    Parameters
    ----------
    files : Files
    output : str
        ``output.path``.

    Raises
    ------
    ConfigurationError
        If something is there that is not a release, or holds what its manifest does not list.

    Notes
    -----
    No Spark job: the release is listed, no table is opened.
    """
    require_target(files, "output.path", output)
    if not files.exists(output):
        return
    release = output.rstrip("/")
    if not files.exists(f"{release}/{MANIFEST}"):
        raise ConfigurationError(
            f"output.path: what is at {output} is not a release (it has no {MANIFEST}), so it is "
            "not overwritten. If a run was killed while it published, anonspark clean puts it "
            "right. Else choose another path or remove it yourself"
        )
    try:
        manifest = read_manifest(files, release)
    except (DataError, GuaranteeError) as error:
        raise ConfigurationError(
            f"output.path: what is at {output} is not a release, so it is not overwritten ({error})"
        ) from error
    listed = manifest.listed_paths | {f".{name}.writing" for name in (REPORT, MANIFEST, SIGNATURE)}
    if looks_like_report(files, f"{release}/{REPORT}"):
        # One that was killed before the manifest lists its file.
        listed |= {REPORT}
    foreign = foreign_entries(files, release, files.tree(release), listed, marks=(manifest.mark,))
    if foreign:
        raise ConfigurationError(
            f"output.path: what is at {output} is not overwritten, for with its release lies what "
            f"does not belong to it: {named(foreign)}. Move that elsewhere or remove it yourself, "
            "or choose another path"
        )


def require_usable_metrics(files: Files, configuration: Configuration) -> None:
    """Check that the metrics of all runs endanger neither input nor output.

    Parameters
    ----------
    files : Files
    configuration : Configuration

    Raises
    ------
    ConfigurationError
        If a place lies inside input or output, or one of them inside it, or cannot be named.
    """
    table = configuration.metrics.append_to
    if table is not None:
        if set(table) & set("*?[]{}"):
            raise ConfigurationError(
                f"metrics.append_to: {table} holds one of the characters * ? [ ] {{ }}, which "
                "Spark would take for a pattern. Choose another path"
            )
        # Directories are made below it: it may be a link itself, but not to nothing.
        require_reachable(files, "metrics.append_to", f"{table.rstrip('/')}/summary")
        require_apart_from_table(files, configuration, "metrics.append_to", table)
