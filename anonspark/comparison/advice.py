"""What a trial of models comes to, in one sentence, and the setting that makes the winner."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonspark.comparison.cells import CellResult
from anonspark.comparison.grid import Trial

_WORTH = 0.98
"""From this share of the loss on another model is not worth a change."""


@dataclass(frozen=True)
class Advice:
    """What to do.

    Parameters
    ----------
    sentence : str
        Without a full stop.
    overrides : tuple of str
        What ``--set`` takes to do it; empty where the configuration is best as it is.
    """

    sentence: str
    overrides: tuple[str, ...] = ()

    @property
    def command_line(self) -> str:
        """The options of the command line."""
        return " ".join(f"--set {shlex.quote(one)}" for one in self.overrides)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"sentence": self.sentence, "set": list(self.overrides)}


def advise(trial: Trial, results: Sequence[CellResult]) -> Advice:
    """Say which model loses least at the configuration's k, and what more protection would cost.

    Parameters
    ----------
    trial : Trial
    results : sequence of CellResult
        Of all cells, in their order: of equal losses the first is best.
    """
    losses = {
        (result.settings["model.name"], result.settings["privacy.k"]): result.summary
        for result in results
        if not result.refused
    }
    at_k = {name: summary for (name, k), summary in losses.items() if k == trial.k}
    if not at_k:
        return Advice(
            f"no model can keep what is required at k = {trial.k:,}: the reasons are above; weaken "
            "what is required, or name fewer quasi-identifiers"
        )
    best = min(at_k, key=lambda name: float(at_k[name]["gcp"]))
    least = float(at_k[best]["gcp"])
    own = trial.model if trial.model in at_k else None
    if own is not None and least > _WORTH * float(at_k[own]["gcp"]):
        best = own
    lost = float(at_k[best]["gcp"])
    named = f"at k = {trial.k:,} {best}"
    if best == own:
        named += (
            ", which the configuration has," if trial.names_model else ", which is the default,"
        )
    is_least = lost == least
    sentence = f"{named} loses {'least' if is_least else 'about as little as any'} (gcp {lost:.4f}"
    if not is_least:
        sentence += f", the least is {least:.4f}"
    if own is not None and best != own:
        before = float(at_k[own]["gcp"])
        sentence += f", {lost / before:.2f} of {own}'s {before:.4f}"
    elif trial.model is not None and own is None:
        sentence += f"; {trial.model} is refused"
    sentence += f"){_left_out(at_k[best])}"
    more = [
        f"{float(summary['gcp']):.4f} at k = {k:,}"
        for (name, k), summary in losses.items()
        if name == best and k > trial.k
    ]
    if more:
        sentence += f"; it would lose {' and '.join(more)}"
    if best == own:
        return Advice(sentence)
    override = f"model={{name: {best}}}" if trial.has_options else f"model.name={best}"
    return Advice(sentence, (override,))


def _left_out(summary: Mapping[str, Any]) -> str:
    """Say how many records the winner leaves out, if it does."""
    left_out = summary.get("rows_left_out")
    if left_out == 0:
        return ""
    if left_out is None:
        return f" and leaves fewer than {summary['k']:,} records out"
    return f" and leaves {left_out:,} records out"
