"""The releases of a plan for a table in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

import pyarrow as pa

from anonspark.api.display import Closing, Shown, figures_chart
from anonspark.api.release import Release, notes_of
from anonspark.api.tables import GIVEN, Frame
from anonspark.presentation.blocks import Chart
from anonspark.presentation.card import Card
from anonspark.sharing.recipients.card import distribution_card

COALITIONS = pa.schema(
    [
        ("recipients", pa.list_(pa.string())),
        ("releases", pa.list_(pa.string())),
        ("persons", pa.int64()),
        ("joint_classes", pa.int64()),
        ("smallest", pa.int64()),
        ("required", pa.int64()),
        ("persons_below", pa.int64()),
        ("persons_alone", pa.int64()),
        ("attribute", pa.string()),
        ("required_l", pa.int64()),
        ("smallest_l", pa.int64()),
        ("holds", pa.bool_()),
    ]
)
"""Columns of the table of coalitions, which docs/recipients.md explains."""


@dataclass(frozen=True, repr=False)
class Distribution(Shown, Closing, Generic[Frame]):
    """The releases of a plan, over private files.

    It is a context manager. Its end, or :meth:`close`, removes the files of all releases. The end
    of Python removes those in a temporary directory of this machine.

    Parameters
    ----------
    releases : dict of str to Release
        The release of each recipient.
    coalitions : DataFrame
        Result of the joint check, as the kind of table that you passed. For each coalition it has
        a row about numbers of people, and one for each sensitive attribute that needs several
        values.
    other_strategy : dict of str to float or None
        ``gcp`` of each recipient's release with the other strategy, None if it is not possible.
        Empty if the plan does not ask for it.
    """

    releases: dict[str, Release[Frame]]
    coalitions: Frame
    other_strategy: dict[str, float | None]
    _coalition_table: pa.Table = field(repr=False)
    _close: Callable[[], None] = field(repr=False)

    def _card(self) -> Card:
        summaries = {name: release.figures.summary for name, release in self.releases.items()}
        notes = [
            f"{name}: {note}"
            for name, release in self.releases.items()
            for note in notes_of(release.manifest)
        ]
        others = {"certainty penalty (gcp) the other way": self.other_strategy}
        rows = self._coalition_table.to_pylist()
        return distribution_card(summaries, rows, others, notes, self._charts)

    def _charts(self) -> list[Chart]:
        """Draw the loss of each release, and the smallest class of each coalition."""
        losses = {
            name: float(release.figures.summary["gcp"])
            for name, release in self.releases.items()
            if release.figures.summary.get("gcp") is not None
        }
        smallest = {
            " + ".join(row["recipients"]): float(row["smallest"])
            for row in self._coalition_table.to_pylist()
            if row["smallest"] is not None
        }
        drawn = [
            figures_chart(
                "Loss of each release", losses, axis="certainty penalty (gcp)", rows="recipient"
            ),
            figures_chart(
                "Smallest joint class", smallest, axis="people", rows="recipients together"
            ),
        ]
        return [chart for chart in drawn if chart is not None]

    def close(self) -> None:
        """Remove the files of all releases. The ledger keeps its events."""
        self._close()


def plan_for_table(plan: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a copy of a plan that reads the caller's DataFrame and writes to a directory.

    >>> plan_for_table({"set": {"privacy.k": 5}}, "releases")
    {'set': {'privacy.k': 5, 'input.path': 'the given DataFrame'}, 'output': 'releases'}
    """
    settings = plan.get("set", {})
    return {**plan, "output": path, "set": {**settings, "input.path": GIVEN}}
