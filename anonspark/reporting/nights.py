"""All runs below a directory: what they published, and when."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from anonspark.core.figures import HISTORY, arrow_schema
from anonspark.engine.files import Files, literal
from anonspark.engine.protocol import Engine
from anonspark.errors import DataError, EnvironmentProblem, GuaranteeError
from anonspark.redaction import redact
from anonspark.release.manifest import MANIFEST, read_manifest

_LOGGER = logging.getLogger("anonspark")

FIGURES = (
    "k",
    "columns_in",
    "columns_published",
    "rows_in",
    "rows_published",
    "rows_suppressed",
    "rows_dropped_missing",
    "published_classes",
    "published_min_class_size",
    "loss",
    "utility_score",
    "association_loss",
    "seconds",
)
"""Columns of the table ``summary`` that describe a night."""

_DEPTHS = ("", "/*", "/*/*", "/*/*/*")


@dataclass(frozen=True)
class Night:
    """One run.

    Parameters
    ----------
    run_id : str
    job : str
        As configured.
    started : datetime
        In UTC.
    release : str or None
        Where its release is, if it still is. One that a later run replaced is not.
    figures : mapping of str to number or None
        Of :data:`FIGURES`. None where a figure is withheld or unknown.
    """

    run_id: str
    job: str
    started: datetime
    release: str | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return the fields as JSON values."""
        return asdict(self) | {"started": self.started.isoformat(timespec="seconds")}


def read_nights(engine: Engine, directory: str) -> list[Night]:
    """Find all runs below a directory.

    Parameters
    ----------
    engine : Engine
    directory : str
        What ``metrics.append_to`` names, or one that releases and such tables lie in, three
        folders deep at most.

    Returns
    -------
    list of Night
        By the time that they began. A run that is recorded in several places is there once.

    Raises
    ------
    DataError
        If there is no run, or a table cannot be read.

    Notes
    -----
    A look into each of these folders, and one job over the small files of the tables of all runs.
    A release whose manifest cannot be read is left out with a warning.
    """
    root = directory.rstrip("/") or "/"
    nights: dict[tuple[str, str], Night] = {}
    for night in (*_in_tables(engine, root), *_in_manifests(engine.files, root)):
        earlier = nights.get((night.job, night.run_id))
        # What the table tells of a run that was repeated is newer, and its release is here.
        if earlier is None or earlier.started <= night.started:
            nights[night.job, night.run_id] = night
    if not nights:
        raise DataError(
            f"{redact(root)}: found no release and no tables of all runs. Expected "
            "the directory of metrics.append_to, or one with releases in it"
        )
    return sorted(nights.values(), key=lambda night: (night.started, night.job, night.run_id))


def _below(files: Files, root: str, name: str) -> Iterator[str]:
    """Return what has a name in the root or up to three folders deep, without hidden folders."""
    for depth in _DEPTHS:
        for address in files.matches(f"{literal(root)}{depth}/{name}"):
            inside = address.removeprefix(files.qualified(root))
            if not any(part.startswith(".") for part in inside.split("/")):
                yield address


def _in_tables(engine: Engine, root: str) -> Iterator[Night]:
    files = _below(engine.files, root, "summary/date=*/*.parquet")
    paths = sorted({address.rpartition("/")[0] for address in files})
    if not paths:
        return
    schema = arrow_schema(HISTORY)
    with engine.reading((root,), ""):
        rows = engine.staged(paths, schema).collect().to_pylist()
    for row in rows:
        yield Night(
            run_id=row["run_id"],
            job=row["job"] or "",
            started=_utc(row["started"]),
            figures={name: _number(row.get(name)) for name in FIGURES},
        )


def _in_manifests(files: Files, root: str) -> Iterator[Night]:
    for address in _below(files, root, MANIFEST):
        release = address.removesuffix(f"/{MANIFEST}")
        try:
            manifest = read_manifest(files, release)
            started = _moment(manifest.document.get("started"))
        except (DataError, GuaranteeError, EnvironmentProblem) as error:
            _LOGGER.warning("left out, because its manifest cannot be read: %s", error)
            continue
        if started is None or not manifest.run_id:
            continue
        metrics = manifest.configuration.get("metrics") or {}
        yield Night(
            run_id=manifest.run_id,
            job=str(metrics.get("job") or ""),
            started=started,
            release=redact(release),
            figures={name: _number(manifest.summary.get(name)) for name in FIGURES},
        )


def jobs_of(nights: Iterable[Night]) -> list[str]:
    """Return the names of the jobs, in order."""
    return sorted({night.job for night in nights})


def _moment(text: object) -> datetime | None:
    try:
        return _utc(datetime.fromisoformat(str(text)))
    except ValueError:
        return None


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _number(value: Any) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
