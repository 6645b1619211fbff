"""Runs that failed, beside the tables of all runs: a small file each, until the id succeeds."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from anonspark._version import __version__
from anonspark.config import Configuration
from anonspark.core.run_ids import require_run_id
from anonspark.engine.files import Files, literal, require_ours
from anonspark.errors import AnonsparkError, ConfigurationError, exit_code_of
from anonspark.layers.publish.prometheus import local_path
from anonspark.ownership import fault_at, write_aside
from anonspark.progress import Progress
from anonspark.redaction import redact

FAILURES = "failures"
"""Directory of ``metrics.append_to`` that has them, by the date on which they began."""

_MOST_LETTERS = 500

# Not that of a name, such as night-3 or 2026-11-24; 3 of 8 may be written 3/8, which no path is.
_NUMBER = re.compile(r"(?<![\w.,/-])-?\d[\d.,]*(?:/\d[\d.,]*)?(?![\w/-])(?<![.,])")

_LOGGER = logging.getLogger("anonspark")


def note_outcome(
    configuration: Configuration,
    progress: Progress,
    *,
    started: datetime,
    error: BaseException | None,
    published: bool,
    files: Files | None,
) -> None:
    """Note in the tables of all runs that a run failed, or forget that its id failed before.

    Parameters
    ----------
    configuration : Configuration
        Nothing happens where it names no tables.
    progress : Progress
        Of the run: its name and the stage that failed.
    started : datetime
        With a time zone.
    error : BaseException or None
        Why it ended. None where all went well.
    published : bool
        Whether the release stands: then only its report failed.
    files : Files or None
        None where no engine started: only local tables can be written then.

    Notes
    -----
    One small file is written, or looked for by its name in every date. What cannot be written is a
    warning: the run has failed already, or its release stands.
    """
    root = configuration.metrics.append_to
    if root is None:
        return
    run_id = progress.run_id or f"{started:%Y%m%dT%H%M%SZ}"
    name = f"{require_run_id(run_id)}.json"
    try:
        if error is None or published:
            _forget(root, name, files)
        else:
            date = f"date={started:%Y-%m-%d}"
            row = _row(configuration, progress, run_id, started, error)
            _write(f"{root}/{FAILURES}/{date}", name, json.dumps(row, ensure_ascii=False), files)
    except (OSError, ConfigurationError):
        _LOGGER.warning(
            "metrics.append_to: how the run ended could not be noted below %s. Check the path and "
            "its permissions",
            root,
        )


def _row(
    configuration: Configuration,
    progress: Progress,
    run_id: str,
    started: datetime,
    error: BaseException,
) -> Mapping[str, Any]:
    # Messages of ours hold no value of the data, but counts that tables withhold; of other errors
    # only the kind is told.
    text = f"ended by {type(error).__name__}"
    if isinstance(error, AnonsparkError):
        text = redact(str(error))
    return {
        "run_id": run_id,
        "job": redact(configuration.metrics.job),
        "model": configuration.model.name,
        "k": configuration.privacy.k,
        "started": started.isoformat(),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "exit_code": exit_code_of(error),
        "stage": progress.current,
        "message": _NUMBER.sub("…", text.split("\n")[0])[:_MOST_LETTERS],
        "version": __version__,
    }


def _write(directory: str, name: str, text: str, files: Files | None) -> None:
    aside = f".{name}.writing"
    above = directory.rpartition("/")[0]
    if files is not None:
        for path in (above, directory):
            require_ours(files, "metrics.append_to", path)
        files.make_directory(directory)
        files.replace(f"{directory}/{name}", text.encode(), aside)
        return
    local = local_path(directory)
    if local is None:
        raise OSError("no engine started")
    if fault_at(local.parent) or fault_at(local):
        raise OSError("somebody else's")
    local.mkdir(parents=True, exist_ok=True)
    write_aside(local / aside, text.encode())
    (local / aside).replace(local / name)


def _forget(root: str, name: str, files: Files | None) -> None:
    if files is not None:
        for address in files.matches(f"{literal(root)}/{FAILURES}/date=*/{name}"):
            files.delete(address)


def read_failure(text: str) -> Mapping[str, Any] | None:
    """Return what :func:`note_outcome` wrote, None where it is something else."""
    with suppress(ValueError):
        row = json.loads(text)
        if isinstance(row, dict) and {"run_id", "started", "exit_code"} <= set(row):
            return row
    return None
