"""Cleaning: what killed runs of a plan left, and the ends of the releases that they planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonspark.engine.files import Files
from anonspark.layers.publish.staging import find_stagings, remove_staging
from anonspark.ledger.key import read_key
from anonspark.ledger.ledger import open_ledger
from anonspark.ledger.lock import locked
from anonspark.recipients.plan import Plan
from anonspark.recipients.settling import settle


def is_plan(document: Mapping[str, Any]) -> bool:
    """Return whether a document is a plan, and not a configuration."""
    return "recipients" in document


def clean_plan(files: Files, plan: Plan, run_id: str | None = None) -> list[tuple[str, bool]]:
    """Remove what killed runs of a plan left, and write the ends of what they planned.

    Parameters
    ----------
    files : Files
    plan : Plan
    run_id : str or None
        Of this run only.

    Returns
    -------
    list of tuple of str and bool
        Directories, and whether they were removed: not where a process is at work on them.

    Raises
    ------
    ConfigurationError, DataError, PublishingError
    """
    staging_path = plan.base.execution.staging_path
    # The plan's own last: as long as it is there, the run can be gone on with.
    outputs = [*(one.configuration.output.path for one in plan.recipients), plan.output]
    found = [
        (place.private, remove_staging(files, place))
        for output in outputs
        for place in find_stagings(files, output, staging_path)
        if run_id in (None, place.run_id)
    ]
    if plan.ledger is not None:
        key = read_key(plan.ledger.key_file)
        layout = open_ledger(files, plan.ledger.path, key).layout
        with locked(files, layout, "clean"):
            settle(files, open_ledger(files, plan.ledger.path, key), staging_path)
    return found
