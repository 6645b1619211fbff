"""Warnings about releases that were made of the same input before."""

from __future__ import annotations

from collections.abc import Iterator

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.errors import AnonsparkError
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.release.manifest import MANIFEST, read_manifest

# Directories beside the output that are looked at, the last ones by name: nights have dates.
_MOST_BESIDE = 30


def earlier_release_warnings(files: Files, configuration: Configuration) -> list[ReleaseWarning]:
    """Warn where a release of the same input lies at the output path, or beside it.

    Parameters
    ----------
    files : Files
    configuration : Configuration

    Notes
    -----
    Reads the manifests of at most 31 directories; no job.
    """
    wanted = list(configuration.public_dict()["input"]["path"])
    found = sum(
        _input_of(files, path) == wanted for path in _places(files, configuration.output.path)
    )
    if not found:
        return []
    return [
        ReleaseWarning(
            "released_before",
            "input.path: a release of this input was made before, and lies at output.path or "
            "beside it. Whoever has several releases about the same people can intersect their "
            "classes, and is left with fewer than k. Make them by a plan with a ledger "
            "(anonspark distribute), which lets no release tell with the others what it does not "
            "tell alone",
            figures={"releases": found},
        )
    ]


def _places(files: Files, output: str) -> Iterator[str]:
    own = files.qualified(output).rstrip("/")
    yield own
    beside = [
        path
        for path in files.children(files.parent(own))
        if path.rstrip("/") != own and not path.rpartition("/")[2].startswith((".", "_"))
    ]
    yield from sorted(beside)[-_MOST_BESIDE:]


def _input_of(files: Files, path: str) -> list[str] | None:
    """Return the paths of the input of a release, None where no release can be read."""
    if not files.exists(f"{path}/{MANIFEST}"):
        return None
    try:
        told = read_manifest(files, path).input.get("path")
    except (AnonsparkError, OSError):
        return None
    return [told] if isinstance(told, str) else told
