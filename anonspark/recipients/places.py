"""The places of a plan: none of them may lie inside another."""

from __future__ import annotations

from anonspark.engine.files import Files
from anonspark.layers.publish.paths import require_apart, require_target
from anonspark.recipients.plan import Plan


def require_places(files: Files, plan: Plan) -> None:
    """Check that releases, ledger, source and staging lie apart, and that releases lie at ours.

    Parameters
    ----------
    files : Files
    plan : Plan

    Raises
    ------
    ConfigurationError
        Naming the key, or the keys of both places.
    """
    places = {
        f"recipients.{one.name}.output.path": one.configuration.output.path
        for one in plan.recipients
    }
    for key, path in {"output": plan.output, **places}.items():
        require_target(files, key, path)
    if plan.ledger is not None:
        places["ledger.path"] = plan.ledger.path
    if plan.base.execution.staging_path is not None:
        places["base.execution.staging_path"] = plan.base.execution.staging_path
    for number, path in enumerate(plan.base.input.paths_of_files):
        if not set(path) & set("*?[{"):
            places[f"base.input.path[{number}]"] = path
    require_apart(files, places)
