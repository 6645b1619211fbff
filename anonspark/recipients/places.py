"""The places of a plan: none of them may lie inside another."""

from __future__ import annotations

from itertools import combinations

from anonspark.engine.files import Files
from anonspark.errors import ConfigurationError
from anonspark.recipients.plan import Plan


def require_places(files: Files, plan: Plan) -> None:
    """Check that releases, ledger, source and staging lie apart.

    Parameters
    ----------
    files : Files
    plan : Plan

    Raises
    ------
    ConfigurationError
        Naming the keys of both places.
    """
    places = {
        f"recipients.{one.name}.output.path": one.configuration.output.path
        for one in plan.recipients
    }
    if plan.ledger is not None:
        places["ledger.path"] = plan.ledger.path
    if plan.base.execution.staging_path is not None:
        places["base.execution.staging_path"] = plan.base.execution.staging_path
    for number, path in enumerate(plan.base.input.paths_of_files):
        if not set(path) & set("*?[{"):
            places[f"base.input.path[{number}]"] = path
    resolved = {key: f"{files.resolved(path).rstrip('/')}/" for key, path in places.items()}
    problems = []
    for one, other in combinations(places, 2):
        mine, others = resolved[one], resolved[other]
        if mine == others:
            problems.append(f"{one} and {other}: found the same place; expected two; move one")
        elif mine.startswith(others) or others.startswith(mine):
            problems.append(
                f"{one} and {other}: found one inside the other; expected them apart; move one"
            )
    if problems:
        raise ConfigurationError(*problems)
