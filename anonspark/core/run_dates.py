"""Read the day of a run, which the environment may set."""

from __future__ import annotations

RUN_DATE_VARIABLE = "ANONSPARK_RUN_DATE"
"""Environment variable that may hold the day of the run. ``--run-date`` sets it."""
