"""What holds throughout a run, whatever step it is at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pyspark.sql import SparkSession

from anonspark.config import Configuration
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.filesystem import FileSystem
from anonspark.progress import Progress

Purpose = Literal["release", "demonstration", "comparison"]
"""What a run is for: a release that somebody will use, one of invented people, or its figures."""


@dataclass(frozen=True)
class RunContext:
    """What holds throughout a run.

    Parameters
    ----------
    spark : SparkSession
    files : FileSystem
    configuration : Configuration
    run_id : str
    started : datetime
        In UTC.
    progress : Progress
        Where to tell what is going on.
    purpose : str
    """

    spark: SparkSession
    files: FileSystem
    configuration: Configuration
    run_id: str
    started: datetime
    progress: Progress
    purpose: Purpose

    @property
    def engine(self) -> SparkEngine:
        """The session as layers and models know it."""
        return SparkEngine(self.spark)

    @property
    def warns(self) -> bool:
        """Whether to look for what who releases the table should know."""
        return self.purpose != "comparison"
