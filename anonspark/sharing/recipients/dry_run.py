"""Check a plan, as far as possible before anything is anonymized."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from anonspark.engine.protocol import Engine
from anonspark.layers.publish.staging import open_staging
from anonspark.progress import Progress
from anonspark.sharing.ledger.key import Key, read_key
from anonspark.sharing.ledger.ledger import open_ledger
from anonspark.sharing.ledger.stored_files import require_files
from anonspark.sharing.recipients.frozen_source import rows_of
from anonspark.sharing.recipients.joint_check import coalitions_of
from anonspark.sharing.recipients.plan import Plan
from anonspark.sharing.recipients.source import read_source, require_places, require_rows


@dataclass(frozen=True)
class PlanLook:
    """The expected result of a plan.

    Parameters
    ----------
    rows : int
        Of the source.
    strata : int
        Groups of records that the same recipients may have.
    requests : list of dict
        Of each recipient ``recipient``, ``requested``, ``withheld`` and ``k``.
    coalitions : list of tuple of str
        That would be checked.
    """

    rows: int
    strata: int
    requests: list[dict[str, Any]]
    coalitions: list[tuple[str, ...]]

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return vars(self) | {"coalitions": [list(coalition) for coalition in self.coalitions]}


def look_at_plan(engine: Engine, plan: Plan, *, progress: Progress | None = None) -> PlanLook:
    """Check a plan, its source and its ledger. Nothing is anonymized.

    Raises
    ------
    ConfigurationError, DataError, PublishingError

    Notes
    -----
    As :func:`anonspark.sharing.recipients.source.read_source`, and one job that counts.
    """
    files, progress = engine.files, progress or Progress()
    require_places(files, plan)
    run_id = f"check-{uuid.uuid4().hex[:12]}"
    ledger = None
    key = Key.random()
    if plan.file.ledger is not None:
        key = read_key(plan.file.ledger.key_file)
        ledger = open_ledger(files, plan.file.ledger.path, key)
        require_files(ledger)
    coalitions = coalitions_of(plan, ledger.counted if ledger else [])
    staging_path = plan.base.execution.staging_path
    with (
        open_staging(files, plan.output, run_id, staging_path=staging_path) as staging,
        engine.running(run_id, progress),
        progress.stage("freeze the source"),
    ):
        frozen = read_source(engine, plan, key, f"{staging.records}/frozen")
        strata = frozen.strata()
    rows = [rows_of(strata, bit) for bit in range(len(plan.recipients))]
    require_rows(plan, rows)
    requests = [
        {
            "recipient": recipient.name,
            "requested": number,
            "withheld": 0,
            "k": recipient.configuration.privacy.k,
        }
        for recipient, number in zip(plan.recipients, rows, strict=True)
    ]
    groups = sum(pattern != 0 for pattern in strata)
    return PlanLook(sum(strata.values()), groups, requests, coalitions)
