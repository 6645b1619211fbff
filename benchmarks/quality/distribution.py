"""What a thesis on the distribution of health data prints about three models, computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import PARTS, run_experiments
from printed_figures import Compared, Place, Printed, compare_lines

from anonspark.comparison.table import CellResult

THESIS = "distribution"
NEEDED = ("adult.csv",)
REQUESTED = ("workclass", "education", "occupation", "sex")
"""The columns of the recipient whose levels are printed."""
COMPARED_PART = 1
"""Of Model 1, from 0: the thesis does not name the provider whose levels it prints."""


def measure(data: Path, printed: Printed) -> tuple[Compared, dict[str, Any]]:
    """Return the levels of its Table 6.1, and what each model loses."""
    # Of Model 1 the runs of each part, of the others one run.
    by_model: dict[str, dict[int, list[CellResult]]] = {}
    for name, results in run_experiments(THESIS, data).items():
        runs = by_model.setdefault(f"Model {name[-1]}", {})
        for run in results:
            runs.setdefault(run.settings["privacy.k"], []).append(run)

    def of_part(part: int) -> Callable[[Place], dict[str, float]]:
        def levels(place: Place) -> dict[str, float]:
            runs = by_model[place.model][int(place.k)]
            return levels_of(runs[part if len(runs) > 1 else 0])

        return levels

    parts = []
    for part in range(PARTS):
        compared = compare_lines(printed, of_part(part), lambda *_: 0)
        lines = [line for place, line in compared.items() if place.model == "Model 1"]
        parts.append(sum(all(one.verdict == "equal" for one in line.values()) for line in lines))
    losses = []
    for k in by_model["Model 3"]:
        models = {model: _losses(runs[k]) for model, runs in by_model.items()}
        losses.append({"k": k, "models": models, **_third_is_best(models)})
    figures = compare_lines(printed, of_part(COMPARED_PART), lambda *_: 0)
    return figures, {"losses": losses, "equal_rows": parts}


def _third_is_best(models: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    *others, third = models.values()
    return {
        "third_wins": all(third["loss"] < model["loss"] for model in others),
        "third_distorts_least": all(
            third["distortion_share"] < model["distortion_share"] for model in others
        ),
    }


def levels_of(result: CellResult) -> dict[str, float]:
    """Return the level of each attribute."""
    (only,) = result.rounds
    pairs = (part.split("=") for part in only["levels"].split(", "))
    return {name: int(level) for name, level in pairs}


def _losses(results: Sequence[CellResult]) -> dict[str, Any]:
    """Return levels, and loss and minimal distortion of the requested columns, of all parts.

    A value that is generalized or suppressed counts one in minimal distortion.
    """
    records = [run.summary["rows_in"] for run in results]
    requested = [
        [row for row in run.attributes if row["attribute"] in REQUESTED] for run in results
    ]
    changed = sum(row["generalized_rows"] for rows in requested for row in rows)
    lost = sum(
        number * sum(row["loss"] for row in rows)
        for number, rows in zip(records, requested, strict=True)
    )
    values = len(REQUESTED) * sum(records)
    return {
        "levels": [[levels_of(run)[name] for name in REQUESTED] for run in results],
        "suppressed": sum(run.summary["rows_suppressed"] for run in results),
        "classes": sum(run.summary["classes"] for run in results),
        "loss": lost / values,
        "distortion": changed,
        "distortion_share": changed / values,
    }
