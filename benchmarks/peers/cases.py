"""What was measured: one case for each tool, table and k, kept as JSON from run to run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

__all__ = ["Case", "Cases"]

Status = Literal["done", "over", "failed", "not installed"]


@dataclass(frozen=True)
class Case:
    """One tool over one table with one k.

    Parameters
    ----------
    tool : str
    version : str
    rows, k : int
    status : str
        ``over``: stopped at its limit.
    reason : str
        Why it failed or could not be installed.
    limit : float
        Seconds that it was given.
    seconds : float or None
    peak_mebibytes : int or None
        Of all its processes together.
    figures : dict or None
        See :func:`peers.verifying.figures`.
    second_opinion : dict or None
        ``k`` and ``l`` as pycanon counts them, or ``reason``.
    measured : dict
        Machine, versions, and a remark.
    """

    tool: str
    version: str
    rows: int
    k: int
    status: Status
    reason: str = ""
    limit: float = 0.0
    seconds: float | None = None
    peak_mebibytes: int | None = None
    figures: dict[str, Any] | None = None
    second_opinion: dict[str, Any] | None = None
    measured: dict[str, str] = field(default_factory=dict)

    def is_settled(self, limit: float) -> bool:
        """Whether running it once more, with this limit, would tell nothing new."""
        if self.status == "over":
            return self.limit >= limit
        return self.status != "not installed"


class Cases:
    """All cases of a file; each change is written at once.

    Parameters
    ----------
    path : Path
        Made where it is missing.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cases: dict[tuple[str, int, int], Case] = {}
        if path.is_file():
            for one in json.loads(path.read_text(encoding="utf-8"))["cases"]:
                self._cases[one["tool"], one["rows"], one["k"]] = Case(**one)

    def __iter__(self) -> Iterator[Case]:
        """Yield them by table, k and name."""
        return iter(sorted(self._cases.values(), key=lambda one: (one.rows, one.k, one.tool)))

    def get(self, tool: str, rows: int, k: int) -> Case | None:
        """Return a case, None where it was not measured yet."""
        return self._cases.get((tool, rows, k))

    def put(self, case: Case) -> None:
        """Keep a case in the place of an earlier one."""
        self._cases[case.tool, case.rows, case.k] = case
        self._path.parent.mkdir(parents=True, exist_ok=True)
        written = self._path.with_suffix(".new")
        document = {"cases": [asdict(one) for one in self]}
        written.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        written.replace(self._path)
