"""What a thesis on the distribution of health data prints about three models, computed again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments import run_experiments
from printed_figures import Compared, Place, Printed, compare_lines

from anonspark.comparison.cells import CellResult

THESIS = "distribution"
NEEDED = ("adult.csv",)
REQUESTED = ("workclass", "education", "occupation", "sex")
"""The columns of the recipient whose levels are printed."""


def measure(data: Path, printed: Printed) -> tuple[Compared, dict[str, Any]]:
    """Return the levels of its Table 6.1, and what each model loses."""
    experiments = run_experiments(THESIS, data)
    by_model = {
        f"Model {name[-1]}": {run.settings["privacy.k"]: run for run in results}
        for name, results in experiments.items()
    }

    def levels(place: Place) -> dict[str, float]:
        return levels_of(by_model[place.model][int(place.k)])

    losses = []
    for k in by_model["Model 3"]:
        models = {model: _losses(results[k]) for model, results in by_model.items()}
        losses.append({"k": k, "models": models, **_third_is_best(models)})
    return compare_lines(printed, levels, lambda *_: 0), {"losses": losses}


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


def _losses(result: CellResult) -> dict[str, Any]:
    """Return levels, and loss and minimal distortion of the requested columns.

    A value that is generalized or suppressed counts one in minimal distortion.
    """
    requested = [row for row in result.attributes if row["attribute"] in REQUESTED]
    levels, changed = levels_of(result), sum(row["generalized_rows"] for row in requested)
    return {
        "levels": [levels[name] for name in REQUESTED],
        "suppressed": result.summary["rows_suppressed"],
        "classes": result.summary["classes"],
        "loss": sum(row["loss"] for row in requested) / len(requested),
        "distortion": changed,
        "distortion_share": changed / len(requested) / result.summary["rows_in"],
    }
