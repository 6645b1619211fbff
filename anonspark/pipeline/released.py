"""Describe the result of a run, and find it again in a later run of the same id."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any

from anonspark.config import Configuration
from anonspark.engine.files import require_ours
from anonspark.engine.protocol import Engine
from anonspark.errors import DataError, GuaranteeError
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.redaction import Redacted
from anonspark.release.derived_figures import Row
from anonspark.release.manifest import MANIFEST, read_manifest
from anonspark.release.metric_tables import read_metrics
from anonspark.verification.result import Verification

if TYPE_CHECKING:
    from anonspark.models.choosing import Rival

_LOGGER = logging.getLogger("anonspark")


@dataclass(frozen=True, repr=False)
class Release(Redacted):
    """The published result of a run.

    Parameters
    ----------
    path : str
        The output path.
    summary : dict
        The row of the table ``summary``.
    rounds : list of dict
        The rows of the table ``rounds``.
    attributes : list of dict
        The rows of the table ``attributes``.
    privacy : list of dict
        The rows of the table ``privacy``.
    risk : list of dict
        The rows of the table ``risk``.
    seconds : dict
        Seconds of each stage.
    warnings : list of ReleaseWarning
        What who releases it should know.
    verified : Verification or None
        What the run proved of its files before it published them. None where an earlier run did.
    rival : Rival or None
        A model that would have lost much less, where a look at a sample found one.
    unpublished : tuple of str
        Columns of the input that are not published, where this call read it.
    earlier : bool
        Whether an earlier call published it, so that nothing was left to do.
    """

    path: str
    summary: Row
    rounds: list[Row]
    attributes: list[Row]
    privacy: list[Row]
    risk: list[Row]
    seconds: dict[str, float]
    warnings: list[ReleaseWarning]
    verified: Verification | None = None
    rival: Rival | None = None
    unpublished: tuple[str, ...] = ()
    earlier: bool = False


def released_before(engine: Engine, configuration: Configuration, run_id: str) -> Release | None:
    """Return the release that a run of the same id and configuration has published, if any.

    Notes
    -----
    The driver reads the tables of metrics, without those of classes, where there is one.
    """
    path, files = configuration.output.path.rstrip("/"), engine.files
    if configuration.output.mode != "error" or not files.exists(f"{path}/{MANIFEST}"):
        return None
    require_ours(files, "output.path", path)
    try:
        manifest = read_manifest(files, path)
    except (DataError, GuaranteeError):
        return None
    fingerprint = manifest.document["fingerprints"].get("configuration")
    if (manifest.run_id, fingerprint) != (run_id, configuration.fingerprint()):
        return None
    _LOGGER.info("run %s is published already at %s. Nothing is done", run_id, path)
    tables: dict[str, Any] = {
        name: read_metrics(files, path, name)
        for name in ("summary", "rounds", "attributes", "privacy", "risk")
    }
    (summary,) = tables.pop("summary")
    summary["started"] = summary["started"].astimezone(UTC)
    return Release(
        path=path,
        summary=summary,
        seconds=manifest.document["seconds"],
        warnings=[ReleaseWarning(**one) for one in manifest.document.get("warnings", [])],
        earlier=True,
        **tables,
    )
