"""What holds throughout a run, whatever step it is at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from anonspark.config import Configuration
from anonspark.engine.files import Files
from anonspark.engine.protocol import Engine
from anonspark.layers.evaluate.withholding import is_few
from anonspark.progress import Progress


@dataclass(frozen=True)
class Request:
    """What a recipient asked for, and what of it is given.

    Parameters
    ----------
    told : mapping
        What the manifest says of it, which is nothing about anybody else.
    rows_requested : int
        Records that the recipient may have.
    rows_withheld : int
        Of them, those that are kept out so that no coalition can tell too few people apart.
    has_ledger : bool
        Whether other releases of the same people follow. The difference of a count of two of them
        would show one record that neither publishes, so no count of such records is in any.
    """

    told: Mapping[str, Any]
    rows_requested: int
    rows_withheld: int
    has_ledger: bool = False

    def figures(self, k: int) -> dict[str, int | None]:
        """Return both counts, without those that would show fewer than k withheld records."""
        few = self.has_ledger or is_few(self.rows_withheld, k)
        return {
            "rows_requested": None if few else self.rows_requested,
            "rows_withheld": None if few else self.rows_withheld,
        }

    def entry(self, k: int) -> dict[str, Any]:
        """Return what the manifest says."""
        return {**self.told, **self.figures(k)}


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
    compares : bool
        Whether other models are tried beside that of the run.
    """

    engine: Engine
    configuration: Configuration
    run_id: str
    started: datetime
    progress: Progress
    purpose: Purpose
    request: Request | None = None
    compares: bool = False

    @property
    def files(self) -> Files:
        """Files and directories, as the tasks see them."""
        return self.engine.files

    @property
    def warns(self) -> bool:
        """Whether to look for what who releases the table should know."""
        return self.purpose != "comparison"
