"""What holds throughout a run, whatever step it is at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine
from anonspark.pipeline.request import Request
from anonspark.progress import Progress

Purpose = Literal["release", "demonstration", "comparison"]
"""What a run is for: a release that somebody will use, one of invented people, or its figures."""


@dataclass(frozen=True)
class RunContext:
    """What holds throughout a run.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
    run_id : str
    started : datetime
        In UTC.
    progress : Progress
        Where to tell what is going on.
    purpose : str
    request : Request or None
        Of the recipient, where the release is one of a plan.
    """

    engine: Engine
    configuration: Configuration
    run_id: str
    started: datetime
    progress: Progress
    purpose: Purpose
    request: Request | None = None

    @property
    def files(self) -> Files:
        """Files and directories, as the tasks see them."""
        return self.engine.files

    @property
    def warns(self) -> bool:
        """Whether to look for what who releases the table should know."""
        return self.purpose != "comparison"
