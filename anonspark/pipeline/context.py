"""Define the facts that hold throughout a run."""

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
    """The request of a recipient, and its fulfilment.

    Parameters
    ----------
    content : mapping
        Its entry in the manifest, which says nothing about other recipients.
    rows_requested : int
        Records that the recipient may have.
    rows_withheld : int
        Those of them that are kept out so that no coalition can distinguish too few people.
    has_ledger : bool
        Whether other releases of the same people follow. The difference of a count of two of them
        would show one record that neither publishes, so no count of such records is in any.
    """

    content: Mapping[str, Any]
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

    def entry(self, k: int) -> dict[str, object]:
        """Return what the manifest says."""
        return {**self.content, **self.figures(k)}


Purpose = Literal["release", "demonstration", "comparison"]
"""The purpose of a run: a release for use, one of invented people, or its figures."""


@dataclass(frozen=True)
class RunContext:
    """The facts that hold throughout a run.

    Parameters
    ----------
    engine : Engine
    configuration : Configuration
    run_id : str
    started : datetime
        In UTC.
    progress : Progress
        Where progress is reported.
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
        """Return whether to look for what who releases the table should know."""
        return self.purpose != "comparison"
