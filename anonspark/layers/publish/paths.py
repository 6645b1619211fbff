"""Refuse unusable output paths before any work."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from itertools import combinations

from anonspark.config import Configuration
from anonspark.config.problems import Location, key_path
from anonspark.engine.files import Files, require_ours
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.release.layout import REPORT, foreign_entries, looks_like_report, named
from anonspark.release.manifest import MANIFEST, read_manifest, sound_manifest
from anonspark.release.signatures import SIGNATURE

_GLOB_CHARACTERS = "*?[{"
_LOGGER = logging.getLogger("anonspark")


def require_target(files: Files, key: str, path: str) -> None:
    """Check that what is written or replaced at a path lies there, and is ours.

    ``key`` names the path in messages. Links among the directories above it are fine, unless one
    leads nowhere. Raises ConfigurationError if the path is a symbolic link, or one above it leads
    nowhere, or it belongs to another user.
    """
    require_ours(files, key, path)
    require_reachable(files, key, path)


def require_reachable(files: Files, key: str, path: str) -> None:
    """Raise ConfigurationError if a link above a path leads nowhere."""
    dangling = files.dangling_parent(path)
    if dangling is not None:
        raise ConfigurationError(
            f"{key}: {path} cannot be made, for {dangling} is a symbolic link to a place that is "
            "not there. Make that place, or choose another path"
        )


def require_apart(files: Files, places: Mapping[str, str]) -> None:
    """Raise ConfigurationError if two paths, by the keys that name them, are equal or nested."""
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
    """Raise ConfigurationError if a path and the input or the output lie inside one another."""
    require_apart_from_input(files, configuration, key, path)
    _require_apart_from(files, (key, path), ("output.path", configuration.output.path))


def require_apart_from_input(
    files: Files, configuration: Configuration, key: str, path: str
) -> None:
    """Raise ConfigurationError if a path and the input lie inside one another."""
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
    """Return a path, or the directory of all that it may name as a pattern."""
    fixed = re.split(rf"[{re.escape(_GLOB_CHARACTERS)}]", path)[0]
    if fixed == path or files.exists(path):
        return path
    return fixed.rpartition("/")[0] or "."


def require_usable_output(
    files: Files, configuration: Configuration, *, writes: bool = True
) -> None:
    """Check that the output path can be used, and does not overlap the input's.

    Without ``writes``, an existing output only causes a warning in the log. Raises
    ConfigurationError if the output lies inside the input, holds it, exists and may not be
    replaced, is a symbolic link, or cannot be named, or the staging path lies inside one of them,
    and DataError if the input's path cannot be reached.
    """
    output = configuration.output.path
    staging_path = configuration.execution.staging_path
    written = {"output.path": output, "execution.staging_path": staging_path or ""}
    problems = [
        f"{key}: {path} holds one of the characters * ? [ ] {{ }}, which would make it a "
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
            f"output.mode to overwrite. {_describe_release(files, configuration)}"
        )
        if writes:
            problems.append(text)
        else:
            _LOGGER.warning("%s (only a run needs it)", text)
    if problems:
        raise ConfigurationError(*problems)


def _describe_release(files: Files, configuration: Configuration) -> str:
    """Describe what is at the output path, and the settings that its run had otherwise."""
    manifest = sound_manifest(files, configuration.output.path)
    if manifest is None:
        return (
            f"It has no sound {MANIFEST}. If a run was killed while it published, anonspark clean "
            "puts it right"
        )
    keys = named([*_differing_keys(manifest.configuration, configuration.public_dict())])
    return f"It is the release of run {manifest.run_id}{keys and f', made with another {keys}'}"


def _differing_keys(before: object, now: object, path: Location = ()) -> Iterator[str]:
    """Yield the paths of the keys at which two configurations differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys((*before, *now)):
            yield from _differing_keys(before.get(key), now.get(key), (*path, key))
    elif before != now:
        yield key_path(path)


def require_replaceable_release(files: Files, output: str) -> None:
    """Check that a directory holds nothing but a release, because replacing removes all of it.

    Raises ConfigurationError if it is no release, or holds files that its manifest does not list.
    No job: the release is listed, no table is opened.
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
    """Check that the path for the metrics of all runs is apart from input and output.

    Raises ConfigurationError if it lies inside input or output, or one of these inside it, or it
    cannot be named.
    """
    table = configuration.metrics.append_to
    if table is not None:
        if set(table) & set("*?[]{}"):
            raise ConfigurationError(
                f"metrics.append_to: {table} holds one of the characters * ? [ ] {{ }}, which "
                "would make it a pattern. Choose another path"
            )
        # Directories are made below it: it may be a link itself, but not to nothing.
        require_reachable(files, "metrics.append_to", f"{table.rstrip('/')}/summary")
        require_apart_from_table(files, configuration, "metrics.append_to", table)
