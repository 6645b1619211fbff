"""What is said of a union: its tables of metrics, and its manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from anonspark._version import __version__
from anonspark.core.figures import SUMMARY, TABLES, arrow_schema
from anonspark.engine.files import PublishedFile
from anonspark.engine.protocol import Engine
from anonspark.holders.form import Form
from anonspark.layers.publish.companions.writing import write_companions
from anonspark.layers.publish.staging import Staging
from anonspark.layers.publish.tables import write_rows
from anonspark.progress import Progress
from anonspark.release.manifest import NOT_PROTECTED, listing, versions, write_manifest
from anonspark.verification.result import Verification

Row = dict[str, Any]
"""A row of a table of metrics: column to figure, text or moment."""


@dataclass(frozen=True)
class Figures:
    """The figures of a union.

    Parameters
    ----------
    summary : dict
        The one row of its table. What only a run has is None: a union has no original.
    privacy, risk : list of dict
        Rows of their tables.
    different : mapping of str to int
        Different values of each attribute that a distance is about.
    """

    summary: Row
    privacy: list[Row]
    risk: list[Row]
    different: dict[str, int]


def figures_of(form: Form, proof: Verification, run_id: str, started: datetime) -> Figures:
    """Return the figures of a proven union.

    Parameters
    ----------
    form : Form
    proof : Verification
        Of its staged records.
    run_id : str
    started : datetime
        In UTC.
    """
    own, published = {"run_id": run_id}, proof.published
    summary: Row = {
        **{figure.name: None for figure in SUMMARY},
        **own,
        "k": form.privacy.k,
        "rows_published": published.rows,
        "published_classes": published.classes,
        "published_min_class_size": published.smallest,
        "output_fingerprint": published.fingerprint,
        "version": __version__,
        "started": started,
        "seconds": (datetime.now(UTC) - started).total_seconds(),
    }
    size = {
        "attribute": None,
        "criterion": "k",
        "required": float(form.privacy.k),
        "c": None,
        "measured": float(published.smallest),
    }
    distances = {one.criterion.attribute for one in proof.criteria if one.criterion.is_distance}
    return Figures(
        summary,
        privacy=[own | row for row in (size, *(one.row() for one in proof.criteria))],
        risk=[own | row for row in proof.risk],
        different={
            one.attribute: one.values
            for one in proof.sensitive
            if one.attribute in distances and one.values is not None
        },
    )


def stage_figures(
    engine: Engine,
    staging: Staging,
    form: Form,
    figures: Figures,
    written: Sequence[PublishedFile],
    progress: Progress,
) -> None:
    """Write the tables of metrics and the manifest.

    Parameters
    ----------
    engine : Engine
    staging : Staging
    form : Form
    figures : Figures
    written : sequence of PublishedFile
        The records.
    progress : Progress
        It knows the seconds of the stages so far.

    Raises
    ------
    PublishingError
    """
    files, summary = engine.files, figures.summary
    listed = list(written)
    for name, rows in (
        ("summary", [summary]),
        ("privacy", figures.privacy),
        ("risk", figures.risk),
    ):
        schema = arrow_schema(TABLES[name])
        listed.append(write_rows(files, rows, schema, staging.release, f"metrics/{name}"))
    description = form.description
    manifest = {
        "run_id": summary["run_id"],
        "started": summary["started"].isoformat(timespec="seconds"),
        "seconds": {name: round(own, 3) for name, own in progress.seconds.items()},
        "versions": versions(engine.versions),
        **description,
        "fingerprints": {"output": summary["output_fingerprint"]},
        "published": {
            "rows": summary["rows_published"],
            "sensitive_values": figures.different,
            **description["published"],
        },
        "summary": {
            name: value
            for name, value in summary.items()
            if not name.endswith("_fingerprint") and name not in ("run_id", "started")
        },
        "warnings": [
            {
                "code": "people_of_two_holders",
                "attribute": None,
                "text": NOT_PROTECTED,
                "figures": {},
            }
        ],
    }
    schema = engine.published(f"{staging.release}/data", form.manifest.data_format).schema
    listed += write_companions(files, manifest, schema, listed, staging.release)
    manifest["files"] = listing(listed)
    write_manifest(files, staging.manifest, manifest)
