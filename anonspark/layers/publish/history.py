"""The tables of all runs: ``summary`` and ``rounds`` of every release, appended by date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from anonspark.config import Configuration
from anonspark.core.figures import HISTORY, ROUNDS, arrow_schema
from anonspark.engine.files import Files, literal, require_ours
from anonspark.engine.protocol import Engine
from anonspark.engine.tasks import Batches
from anonspark.errors import ConfigurationError, PublishingError
from anonspark.layers.publish.tables import parquet_file
from anonspark.redaction import redact

_TABLES = ("summary", "rounds")


def require_history(files: Files, path: str) -> None:
    """Create the tables of all runs in a directory, if they do not exist.

    Raises ConfigurationError if they cannot be created, or belong to another user.
    """
    try:
        for name in _TABLES:
            require_ours(files, "metrics.append_to", f"{path}/{name}")
            files.make_directory(f"{path}/{name}")
    except OSError as error:
        raise ConfigurationError(
            f"metrics.append_to: cannot create the tables below {path}. Check that it can be "
            "written"
        ) from error


def last_comparable_run(
    engine: Engine, configuration: Configuration, run_id: str, started: datetime
) -> dict[str, Any] | None:
    """Return the row of the last earlier run of the same job with the same settings, or None.

    ``run_id`` and ``started`` are those of this run: what it left in an earlier attempt does not
    count. Raises DataError if the table cannot be read.

    One job over the small files of this month and the one before, and one more over the whole table
    if they hold no such run. A row of each file reaches the driver.
    """
    path = f"{configuration.metrics.append_to}/summary"
    month_before = started.replace(day=1) - timedelta(days=1)
    recent = [
        address
        for month in (started, month_before)
        for address in engine.files.matches(f"{literal(path)}/date={month:%Y-%m}-*")
    ]
    schema = arrow_schema(HISTORY)
    comparable = _Comparable(
        redact(configuration.metrics.job or ""),
        configuration.settings_fingerprint(),
        started,
        run_id,
    )
    with engine.reading((path,), "metrics.append_to: "):
        for paths in (recent, [path]):
            if not paths:
                continue
            rows = engine.staged(paths, schema).map_batches(comparable, schema).collect()
            if len(rows):
                row: dict[str, Any] = _latest(rows).to_pylist()[0]
                return row
    return None


@dataclass(frozen=True)
class _Comparable:
    """Finds the last row of each batch that is of the same job with the same settings."""

    job: str
    settings: str
    started: datetime
    run_id: str

    def __call__(self, batches: Batches) -> Batches:
        names = [figure.name for figure in HISTORY]
        for batch in batches:
            # Columns that come from names of directories are dropped.
            rows = pa.Table.from_batches([batch.select(names)])
            conditions = (
                pc.equal(rows["job"], self.job),
                pc.equal(rows["settings_fingerprint"], self.settings),
                pc.less(rows["started"], pa.scalar(self.started, rows["started"].type)),
                pc.not_equal(rows["run_id"], self.run_id),
            )
            matching = rows.filter(reduce(pc.and_, conditions))
            if len(matching):
                yield from _latest(matching).combine_chunks().to_batches()


def _latest(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("started", "descending")]).slice(0, 1)


def _is_of_run(files: Files, path: str, run_id: str) -> bool:
    """Return whether a file holds rows of a run and nothing else."""
    try:
        content = pa.py_buffer(files.read_part(path, 0, files.size(path)))
        ids = parquet.read_table(pa.BufferReader(content), columns=["run_id"])["run_id"]
    except (pa.ArrowException, KeyError, OSError):
        return False
    return set(ids.to_pylist()) == {run_id}


def append_to_history(
    files: Files,
    configuration: Configuration,
    summary: dict[str, Any],
    rounds: Sequence[dict[str, object]],
) -> None:
    """Add a release's rows to the tables of all runs, in place of those of its earlier attempt.

    Raises PublishingError if they cannot be written, or another file has their path. The release
    stays published. No job. Two small files, each renamed when it is complete, and a search for the
    run id in every date of the table. The row of the summary is written last and deleted last, so
    the same id run again cleans up after any interruption.
    """
    root = configuration.metrics.append_to
    run_id = summary["run_id"]
    date = f"date={summary['started']:%Y-%m-%d}"
    row = summary | {
        "job": configuration.metrics.job,
        "settings_fingerprint": configuration.settings_fingerprint(),
    }
    try:
        addresses = [
            address
            for table in _TABLES
            for address in files.matches(f"{literal(str(root))}/{table}/date=*/{run_id}.parquet")
        ]
        earlier = {address.split("/")[-2] for address in addresses if "/summary/date=" in address}
        strange = [address for address in addresses if not _is_of_run(files, address, run_id)]
        if strange:
            raise PublishingError(
                f"metrics.append_to: what is at {strange[0]} is no row of run {run_id}, so it is "
                f"not replaced. Move it elsewhere, and run again with --run-id {run_id}. The "
                f"release at {configuration.output.path} is complete"
            )
        for table, content in (
            ("rounds", parquet_file(rounds, arrow_schema(ROUNDS))),
            ("summary", parquet_file([row], arrow_schema(HISTORY))),
        ):
            directory = f"{root}/{table}/{date}"
            fault = files.fault(directory)
            if fault is not None:
                raise PublishingError(
                    f"metrics.append_to: {directory} {fault}. Then run again with --run-id "
                    f"{run_id}. The release at {configuration.output.path} is complete"
                )
            files.make_directory(directory)
            files.replace(f"{directory}/{run_id}.parquet", content, f".{run_id}.parquet.writing")
            for other in earlier - {date}:
                files.delete(f"{root}/{table}/{other}/{run_id}.parquet")
    except (OSError, ConfigurationError) as error:
        raise PublishingError(
            f"metrics.append_to: the release at {configuration.output.path} is complete, only its "
            f"rows could not be appended below {root}. Check that it can be written, and run "
            f"again with --run-id {run_id}"
        ) from error
