"""Where a report is written, and how it becomes a part of its release."""

from __future__ import annotations

from dataclasses import asdict

from anonspark.engine.files import Files, PublishedFile, require_ours
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish.paths import require_target
from anonspark.release.layout import REPORT, looks_like_report
from anonspark.release.manifest import MANIFEST, manifest_text, read_manifest


def report_place(files: Files, release: str, out: str | None) -> str:
    """Return where a report goes, before the work for it.

    Parameters
    ----------
    files : Files
    release : str
        Directory of the release.
    out : str or None
        ``--out``. None is ``report.html`` in the release.

    Raises
    ------
    ConfigurationError
        If something other than a report is there, it is a symbolic link, or it lies inside the
        release under another name.
    """
    own = f"{release.rstrip('/')}/{REPORT}"
    path = out or own
    key = "report" if out is None else "--out"
    require_target(files, key, path)
    if out is None:
        require_ours(files, key, release.rstrip("/"))
    target, release_root = files.resolved(path), files.resolved(release).rstrip("/")
    if target.startswith(f"{release_root}/") and target != f"{release_root}/{REPORT}":
        raise ConfigurationError(
            f"{key}: {path} lies inside the release, which holds what its manifest lists and "
            f"nothing else. Leave it out for {own}, or choose a place apart from the release"
        )
    if files.exists(path) and not looks_like_report(files, path):
        raise ConfigurationError(
            f"{key}: what is at {path} is not a report, so it is not replaced. Choose another "
            "file, or remove it yourself"
        )
    return path


def place_report(files: Files, release: str, path: str, report: str) -> None:
    """Write a report. That of a release becomes one of the files that its manifest lists.

    Parameters
    ----------
    files : Files
    release : str
    path : str
        Of :func:`report_place`.
    report : str

    Raises
    ------
    PublishingError
        If it cannot be written.

    Notes
    -----
    No Spark job. First the report is replaced, then the manifest, each in one step where the file
    system can: should the process be killed in between, ``verify`` refuses the report until
    ``anonspark report`` is run again.
    """
    try:
        aside = f".{path.rpartition('/')[2]}.writing"
        files.replace(path, report.encode(), aside)
        inside = files.resolved(release).rstrip("/")
        if files.resolved(path) == f"{inside}/{REPORT}":
            _list_report(files, release.rstrip("/"))
    except OSError as error:
        raise PublishingError(
            f"report: {path} cannot be written. Check that its folder can be written to, and the "
            "space on the disk. The release itself is complete"
        ) from error


def _list_report(files: Files, release: str) -> None:
    manifest = read_manifest(files, release)
    path = f"{release}/{REPORT}"
    listed = PublishedFile(REPORT, files.size(path), None, files.sha256(path))
    others = [file for file in manifest.files if file["path"] != REPORT]
    listing = sorted([*others, asdict(listed)], key=lambda file: str(file["path"]))
    content = manifest_text(manifest.document | {"files": listing}).encode()
    files.replace(f"{release}/{MANIFEST}", content, f".{MANIFEST}.writing")
