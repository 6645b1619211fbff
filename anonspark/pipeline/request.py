"""What a recipient asked for, where a run makes one of the releases of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anonspark.layers.evaluate.withholding import is_few


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
    """

    told: Mapping[str, Any]
    rows_requested: int
    rows_withheld: int

    def figures(self, k: int) -> dict[str, int | None]:
        """Return both counts as they are told: not where fewer than k records are withheld."""
        few = is_few(self.rows_withheld, k)
        return {
            "rows_requested": None if few else self.rows_requested,
            "rows_withheld": None if few else self.rows_withheld,
        }

    def entry(self, k: int) -> dict[str, Any]:
        """Return what the manifest says."""
        return {**self.told, **self.figures(k)}
