"""Ids and days of runs, which name directories and files."""

from __future__ import annotations

import re

from anonspark.errors import ConfigurationError

RUN_DATE_VARIABLE = "ANONSPARK_RUN_DATE"
"""Environment variable that may hold the day of the run. ``--run-date`` sets it."""


_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def require_run_id(run_id: str) -> str:
    """Check the id of a run, which names a directory, and return it, or raise ConfigurationError.

    >>> require_run_id("2026-01-31.b")
    '2026-01-31.b'
    """
    if not _RUN_ID.fullmatch(run_id):
        raise ConfigurationError(
            "run id: expected at most 100 letters, digits, dots, hyphens and underscores, the "
            "first of them a letter or digit. Choose another"
        )
    return run_id
