"""The joint check: no coalition may distinguish too few people, with all its releases."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from anonspark.errors import ConfigurationError, GuaranteeError
from anonspark.sharing.ledger.check import describe_breach, list_coalitions
from anonspark.sharing.ledger.events import LedgerRelease
from anonspark.sharing.ledger.joint_classes import MembersOf, Signatures
from anonspark.sharing.recipients.plan import Plan

MOST_LISTED = 10
"""Coalitions that a message names at most."""


def coalitions_of(plan: Plan, earlier: Sequence[LedgerRelease]) -> list[tuple[str, ...]]:
    """Return the coalitions that a plan checks, including earlier releases that count.

    Raises ConfigurationError if they are too many, or ``together`` names an unknown recipient.
    """
    names = {*plan.names, *(release.recipient for release in earlier)}
    strangers = [
        f"collusion.together[{index}]: neither the plan nor the ledger knows {name!r}. Expected "
        f"one of {', '.join(sorted(names))}. Correct it"
        for index, group in enumerate(plan.file.collusion.together)
        for name in group
        if name not in names
    ]
    if strangers:
        raise ConfigurationError(*strangers)
    public = {recipient.name for recipient in plan.recipients if recipient.request.public}
    public |= {release.recipient for release in earlier if release.public}
    most = plan.file.collusion.recipients
    return list_coalitions(
        names,
        public=public,
        together=plan.file.collusion.together,
        size=None if most == "all" else most,
        of_plan=plan.names,
    )


def requires_check(plan: Plan) -> bool:
    """Return whether anything is demanded of joint classes."""
    return plan.demand.k > 1 or bool(plan.demand.diversity)


def check_jointly(
    releases: Sequence[MembersOf], plan: Plan, coalitions: Sequence[Collection[str]]
) -> list[dict[str, object]]:
    """Measure the joint classes of all coalitions, with all releases that count.

    Rows are those of :meth:`anonspark.sharing.ledger.joint_classes.Signatures.check`. One shuffle
    of all members, and those of each coalition.
    """
    if not requires_check(plan):
        return []
    repeated = bool(plan.file.record)
    signatures = Signatures.of(releases, list(plan.demand.diversity), repeated=repeated)
    try:
        return [
            row
            for coalition in coalitions
            for row in signatures.check(sorted(coalition), plan.demand)
        ]
    finally:
        signatures.release()


def require_joint_classes(rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise GuaranteeError with the worst coalitions if the demand does not hold for one.

    >>> require_joint_classes([{"holds": True}])
    """
    failed = [row for row in rows if not row["holds"]]
    if not failed:
        return
    worst = sorted(failed, key=lambda row: -row["persons_below"])
    sentences = [describe_breach(row) for row in worst[:MOST_LISTED]]
    more = len(failed) - len(sentences)
    rest = f"\n... and {more:,} more" if more else ""
    raise GuaranteeError(
        "\n".join(sentences)
        + rest
        + "\nnothing was published. Use strategy: nested, or lower collusion.k, or state "
        "collusion.recipients"
    )
