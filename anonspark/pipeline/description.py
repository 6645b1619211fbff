"""What a manifest says of a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from anonspark.config import Configuration
from anonspark.layers.evaluate.drift import Drift
from anonspark.layers.evaluate.gates import GateResult
from anonspark.layers.generalize.classes import Generalizer
from anonspark.layers.publish.writing import published_names
from anonspark.pipeline.basis import Basis
from anonspark.progress import Progress
from anonspark.release.manifest import versions

__all__ = ["describe_release", "release_manifest"]


def describe_release(configuration: Configuration, generalizer: Generalizer) -> dict[str, Any]:
    """Return what a manifest says of a release before anything is counted."""
    return {
        "configuration": configuration.public_dict(),
        "published": {
            "columns": published_names(configuration, generalizer),
            "quasi_identifier_columns": [column.name for column in generalizer.columns()],
            "quasi_identifiers": [
                quasi_identifier.describe() for quasi_identifier in generalizer.quasi_identifiers
            ],
        },
    }


def release_manifest(
    spark_version: str,
    description: dict[str, Any],
    basis: Basis,
    summary: dict[str, Any],
    gates: Sequence[GateResult],
    drifts: Sequence[Drift],
    progress: Progress,
) -> dict[str, Any]:
    """Return a manifest but for the attempt, the warnings and the files.

    Parameters
    ----------
    spark_version : str
    description : dict
        Of :func:`describe_release`.
    basis : Basis
    summary : dict
        The row of the table, with its seconds.
    gates, drifts : sequence
    progress : Progress
        Knows the seconds of each stage.
    """
    return {
        "run_id": summary["run_id"],
        "started": summary["started"].isoformat(timespec="seconds"),
        "seconds": {name: round(seconds, 3) for name, seconds in progress.seconds.items()},
        "versions": versions(spark_version),
        "configuration": description["configuration"],
        "fingerprints": {
            name: summary[f"{name}_fingerprint"] for name in ("configuration", "input", "output")
        },
        "published": {
            "rows": summary["rows_published"],
            "rows_left_out": summary["rows_left_out"],
            "sensitive_values": basis.sensitive_values,
            "left_out_values": "told" if basis.values_told else "withheld",
            **description["published"],
        },
        "summary": {
            name: value
            for name, value in summary.items()
            if not name.endswith("_fingerprint") and name not in ("run_id", "started")
        },
        "gates": [
            {name: value for name, value in asdict(gate).items() if name != "within"}
            for gate in gates
        ],
        # A count that is withheld is judged by the least that it can be, and stays withheld.
        "drift": [
            asdict(drift) | ({"found": None} if summary.get(drift.metric) is None else {})
            for drift in drifts
        ],
    }
