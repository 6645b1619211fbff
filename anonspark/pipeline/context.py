"""Define the facts that hold throughout a run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol

from anonspark.config import Configuration
from anonspark.core.extensions import owner_of
from anonspark.engine.files import Files, require_ours
from anonspark.engine.protocol import Engine
from anonspark.layers.evaluate.small_counts import is_few
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.progress import Progress
from anonspark.redaction import Redacted
from anonspark.release.derived_figures import Row
from anonspark.release.manifest import sound_manifest
from anonspark.release.metric_tables import read_metrics
from anonspark.release.signatures import key_name
from anonspark.verification.result import Verification

if TYPE_CHECKING:
    from anonspark.models.choosing import Alternative


@dataclass(frozen=True)
class Request:
    """The request of a recipient, and its fulfilment.

    ``content`` is its entry in the manifest, which says nothing about other recipients. The
    recipient may have ``rows_requested`` records, of which ``rows_withheld`` are left out so that
    no coalition can distinguish too few people. With ``has_ledger``, other releases of the same
    people follow: the difference of a count of two of them would show one record that neither
    publishes, so no count of such records is in any.
    """

    content: Mapping[str, Any]
    rows_requested: int
    rows_withheld: int
    has_ledger: bool = False

    def figures(self, k: int) -> dict[str, int | None]:
        """Return both counts, without those that would show fewer than k withheld records."""
        hides_counts = self.has_ledger or is_few(self.rows_withheld, k)
        return {
            "rows_requested": None if hides_counts else self.rows_requested,
            "rows_withheld": None if hides_counts else self.rows_withheld,
        }

    def entry(self, k: int) -> dict[str, object]:
        """Return the entry of the manifest."""
        return {**self.content, **self.figures(k)}


Purpose = Literal["release", "demonstration", "comparison"]
"""The purpose of a run: a release for use, one of invented people, or its figures."""


@dataclass(frozen=True)
class RunContext:
    """The facts that hold throughout a run.

    ``started`` is in UTC. ``request`` is that of the recipient if the release is one of a plan.
    With ``compares``, other models are tried, to compare them with that of the run.
    """

    engine: Engine
    configuration: Configuration
    run_id: str
    started: datetime
    progress: Progress
    purpose: Purpose
    request: Request | None = None
    compares: bool = False

    @property
    def files(self) -> Files:
        """Files and directories, as the tasks see them."""
        return self.engine.files

    @property
    def warns(self) -> bool:
        """Return whether to look for what the publisher of the table should know."""
        return self.purpose != "comparison"


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
        What the publisher should know.
    verified : Verification or None
        What the run proved of its files before it published them, or None if an earlier run did.
    rival : Alternative or None
        A model that would have lost much less, if a look at a sample found one.
    unpublished : tuple of str
        Columns of the input that are not published, if this call read it.
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
    rival: Alternative | None = None
    unpublished: tuple[str, ...] = ()
    earlier: bool = False


def released_before(engine: Engine, configuration: Configuration, run_id: str) -> Release | None:
    """Return the release that a run of the same id and configuration has published, or None.

    The driver reads its tables of metrics, without those of classes.
    """
    path, files = configuration.output.path.rstrip("/"), engine.files
    if configuration.output.mode != "error":
        return None
    require_ours(files, "output.path", path)
    manifest = sound_manifest(files, path)
    if manifest is None:
        return None
    fingerprint = manifest.document["fingerprints"].get("configuration")
    if (manifest.run_id, fingerprint) != (run_id, configuration.fingerprint()):
        return None
    key = configuration.output.signing_key
    if key is not None and manifest.signer != key_name(key):
        return None
    _LOGGER.info("run %s is published already at %s. No input is read", run_id, path)
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
        warnings=[ReleaseWarning(**warning) for warning in manifest.document.get("warnings", [])],
        earlier=True,
        **tables,
    )


LEDGER = "ledger"
"""The section, whose owner is a :class:`Register`."""


class Register(Protocol):
    """Writes releases into a ledger."""

    def require_listable(self, context: RunContext) -> None:
        """Check, before any work, that a release can be written down.

        Raises
        ------
        ConfigurationError, GuaranteeError
        """

    def list_staged(self, context: RunContext, release: Release) -> None:
        """Write down a release that is proven and is published next.

        Raises
        ------
        ConfigurationError, GuaranteeError
            See :meth:`require_listable`.
        PublishingError
            If the entry cannot be written. Nothing is published then.
        """


def register_of(context: RunContext) -> Register | None:
    """Return the register of the release of a run, or None without a ledger."""
    is_listed = context.configuration.ledger is not None and context.purpose == "release"
    register: Register | None = owner_of(LEDGER) if is_listed else None
    return register
