"""Settling: releases that a process planned, and died before it had published them."""

from __future__ import annotations

from anonspark.engine.files import Files
from anonspark.errors import DataError, GuaranteeError, PublishingError
from anonspark.layers.publish.staging import find_stagings
from anonspark.release.manifest import MANIFEST, read_manifest
from anonspark.sharing.ledger.events import FAILED, PUBLISHED
from anonspark.sharing.ledger.ledger import Ledger
from anonspark.sharing.ledger.releases import LedgerRelease
from anonspark.sharing.recipients.plan import Plan


def settle(
    files: Files, ledger: Ledger, staging_path: str | None, *, resumed: str | None = None
) -> None:
    """Write the end of every release that was planned and has none.

    Parameters
    ----------
    files : Files
    ledger : Ledger
        Its lock is held.
    staging_path : str or None
        ``execution.staging_path`` of the plan.
    resumed : str or None
        Id of the run that goes on: its releases stay planned.

    Raises
    ------
    PublishingError
        If another run could be resumed, which a person must decide.
    """
    for release in ledger.releases.values():
        if release.state != "planned":
            continue
        run_id = str(release.content["run_id"])
        content = {"run_id": run_id, "recipient": release.recipient, "release": release.name}
        if is_published(files, release):
            ledger.events.append(PUBLISHED, content)
        elif resumed == run_id:
            continue
        elif _can_go_on(files, release, staging_path):
            raise PublishingError(
                f"ledger.path: release {release.name!r} is planned and neither published nor "
                f"failed. Go on with distribute --resume --run-id {run_id}, or say anonspark clean"
            )
        else:
            ledger.events.append(FAILED, content | {"reason": "its process ended before"})


def require_known_releases(files: Files, plan: Plan, ledger: Ledger) -> None:
    """Check that the ledger knows the releases at the paths of a plan: an older one may not.

    Raises
    ------
    DataError
    """
    known = {(release.recipient, release.content["run_id"]) for release in ledger.releases.values()}
    for recipient in plan.recipients:
        path = recipient.configuration.output.path.rstrip("/")
        if not files.exists(f"{path}/{MANIFEST}"):
            continue
        manifest = read_manifest(files, path)
        name = (manifest.document.get("recipient") or {}).get("name")
        if name == recipient.name and (name, manifest.run_id) not in known:
            raise DataError(
                f"ledger: {ledger.layout.path} does not know the release of {recipient.name} at "
                f"{path}: it is an older ledger, and you bring the newest one back. Or the release "
                "was made without this ledger, which does not count it, and you move it elsewhere"
            )


def is_published(files: Files, release: LedgerRelease) -> bool:
    """Return whether a release is at its path, complete."""
    path = str(release.content["path"])
    if not files.exists(f"{path}/{MANIFEST}"):
        return False
    try:
        manifest = read_manifest(files, path)
    except (DataError, GuaranteeError):
        return False
    expected = (release.content["run_id"], release.content["output_fingerprint"])
    return (manifest.run_id, manifest.fingerprint) == expected


def _can_go_on(files: Files, release: LedgerRelease, staging_path: str | None) -> bool:
    stagings = find_stagings(files, str(release.content["path"]), staging_path)
    return any(staging.run_id == release.content["run_id"] for staging in stagings)
