"""Where a report is written, and how it becomes a part of its release."""

from __future__ import annotations

from dataclasses import asdict

from anonspark.engine.files import Files, PublishedFile, require_ours
from anonspark.errors import ConfigurationError, GuaranteeError, PublishingError
from anonspark.layers.publish.paths import require_target
from anonspark.release.layout import REPORT, looks_like_report
from anonspark.release.manifest import MANIFEST, Manifest, manifest_text, read_manifest
from anonspark.release.signatures import SIGNATURE, key_name, sign


def report_place(files: Files, release: str, out: str | None, key: str | None = None) -> str:
    """Return where a report goes, before the work for it.

    Parameters
    ----------
    files : Files
    release : str
        Directory of the release.
    out : str or None
        ``--out``. None is ``report.html`` in the release.
    key : str or None
        Path of the key that signs the release, if that is signed.

    Raises
    ------
    ConfigurationError
        If something other than a report is there, it is a symbolic link, or it lies inside the
        release under another name, or the release is signed by another key.
    GuaranteeError
        If the manifest of a signed release was changed.
    """
    own = f"{release.rstrip('/')}/{REPORT}"
    path = out or own
    option = "report" if out is None else "--out"
    require_target(files, option, path)
    if out is None:
        require_ours(files, option, release.rstrip("/"))
    target, release_root = files.resolved(path), files.resolved(release).rstrip("/")
    if target.startswith(f"{release_root}/") and target != f"{release_root}/{REPORT}":
        raise ConfigurationError(
            f"{option}: {path} lies inside the release, which holds what its manifest lists and "
            f"nothing else. Leave it out for {own}, or choose a place apart from the release"
        )
    if files.exists(path) and not looks_like_report(files, path):
        raise ConfigurationError(
            f"{option}: what is at {path} is not a report, so it is not replaced. Choose another "
            "file, or remove it yourself"
        )
    if target == f"{release_root}/{REPORT}":
        _require_signed_by(files, release.rstrip("/"), key)
    return path


def _require_signed_by(files: Files, release: str, key: str | None) -> None:
    """Check that a key signed the manifest as it is, before it signs what is made of it."""
    manifest = read_manifest(files, release)
    if manifest.signer is None:
        return
    if key is None or manifest.signer != key_name(key):
        raise ConfigurationError(
            f"report: {release} is signed by the key {manifest.signer}, and the report changes its "
            "manifest. Name that key with --sign (of a run output.signing_key), or write the "
            "report elsewhere with --out"
        )
    texts = [manifest_text(manifest.document)]
    if files.exists(f"{release}/{REPORT}"):
        # That of a call which was killed between signature and manifest.
        texts.append(_with_report(files, release, manifest))
    path = f"{release}/{SIGNATURE}"
    signature = files.read_part(path, 0, files.size(path)) if files.exists(path) else b""
    if signature not in [sign(text.encode(), key) for text in texts]:
        raise GuaranteeError(
            f"report: {release}/{MANIFEST} is not what was signed, so it is not signed again. "
            "Restore the release, or publish it again"
        )


def place_report(
    files: Files, release: str, path: str, report: str, key: str | None = None
) -> None:
    """Write a report. That of a release becomes one of the files that its manifest lists.

    Parameters
    ----------
    files : Files
    release : str
    path : str
        Of :func:`report_place`.
    report : str
    key : str or None
        As of :func:`report_place`.

    Raises
    ------
    ConfigurationError, GuaranteeError
        As of :func:`report_place`.
    PublishingError
        If it cannot be written.

    Notes
    -----
    No Spark job. First the report is replaced, then the signature, then the manifest, each in one
    step where the file system can: should the process be killed in between, ``verify`` refuses the
    report until ``anonspark report`` is run again.
    """
    try:
        aside = f".{path.rpartition('/')[2]}.writing"
        inside = files.resolved(release).rstrip("/")
        is_inside = files.resolved(path) == f"{inside}/{REPORT}"
        if is_inside:
            _require_signed_by(files, release.rstrip("/"), key)
        files.replace(path, report.encode(), aside)
        if is_inside:
            _list_report(files, release.rstrip("/"), key)
    except OSError as error:
        raise PublishingError(
            f"report: {path} cannot be written. Check that its folder can be written to, and the "
            "space on the disk. The release itself is complete"
        ) from error


def _list_report(files: Files, release: str, key: str | None) -> None:
    manifest = read_manifest(files, release)
    content = _with_report(files, release, manifest).encode()
    if key is not None and manifest.signer is not None:
        files.replace(f"{release}/{SIGNATURE}", sign(content, key), f".{SIGNATURE}.writing")
    files.replace(f"{release}/{MANIFEST}", content, f".{MANIFEST}.writing")


def _with_report(files: Files, release: str, manifest: Manifest) -> str:
    """Return the text of a manifest that lists the report as it is."""
    path = f"{release}/{REPORT}"
    listed = PublishedFile(REPORT, files.size(path), None, files.sha256(path))
    others = [file for file in manifest.files if file["path"] != REPORT]
    listing = sorted([*others, asdict(listed)], key=lambda file: str(file["path"]))
    return manifest_text(manifest.document | {"files": listing})
