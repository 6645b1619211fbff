"""What verifying, measuring, comparing, choosing and uniting found, as a program shows it.

Each is what the room that found it says, and shows itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from anonspark.api.display import (
    Page,
    Picture,
    Shown,
    figures_chart,
    picture,
    risk_chart,
    sizes_chart,
)
from anonspark.comparison import runner
from anonspark.comparison.card import comparison_card, label
from anonspark.comparison.grid import METRICS, Grid
from anonspark.comparison.report import charts as comparison_charts
from anonspark.comparison.report import comparison_report
from anonspark.conversion import convert
from anonspark.presentation.blocks import Chart
from anonspark.presentation.card import Card
from anonspark.presentation.utility import utility_card
from anonspark.presentation.verification import verification_card
from anonspark.profiling import profile
from anonspark.profiling.page import profile_card, profile_page
from anonspark.sharing.holders import union
from anonspark.sharing.holders.card import union_card
from anonspark.sharing.pairs import releases as release_pairs
from anonspark.sharing.pairs.card import joint_card
from anonspark.sharing.selection import selecting
from anonspark.sharing.selection.card import selection_card
from anonspark.utility import evaluation
from anonspark.verification import result

_Result = TypeVar("_Result", bound=Shown)

_MOST_BARS = 12
_MOST_COLUMNS = 24


def as_result(kind: Callable[..., _Result], content: Any, **more: Any) -> _Result:
    """Wrap the result of a room, a dataclass, in a class of this module that shows itself."""
    fields = {field.name: getattr(content, field.name) for field in dataclasses.fields(content)}
    return kind(**fields, **more)


def _drawn(*charts: Chart | None) -> list[Chart]:
    return [chart for chart in charts if chart is not None]


class Verification(Shown, result.Verification):
    """Result of verifying a release or a table.

    Examples
    --------
    >>> import anonspark, pandas
    >>> ages = pandas.DataFrame({"age": ["20-29", "20-29", "30-39"]})
    >>> proof = anonspark.verify(ages, quasi_identifiers=["age"], k=2)
    >>> proof.plot_sizes()
    Classes by size
    records in a class  classes
    up to 2                   2
    """

    def plot_sizes(self) -> Picture | None:
        """Draw how large the classes are, or return None if nothing was published."""
        return picture(sizes_chart(self.published.sizes, self.k))

    def plot_risk(self) -> Picture | None:
        """Draw the risk of re-identification, or return None if it was not measured."""
        return picture(risk_chart(self.risk))

    def _card(self) -> Card:
        card = verification_card("Verification", self, self._charts)
        fingerprint = ("fingerprint", self.published.fingerprint)
        return dataclasses.replace(card, figures=[*card.figures, fingerprint])

    def _charts(self) -> list[Chart]:
        return _drawn(sizes_chart(self.published.sizes, self.k), risk_chart(self.risk))


class JointVerification(Shown, release_pairs.JointVerification):
    """Result of verifying several releases, each by itself and every two together."""

    def _card(self) -> Card:
        return joint_card(self)


class Utility(Shown, evaluation.Utility):
    """Usefulness of a release for counting and for training models."""

    def plot_errors(self) -> Picture | None:
        """Draw the errors of counts from the release."""
        return picture(self._errors())

    def plot_models(self) -> Picture | None:
        """Draw how well models predict, or return None without a target."""
        return picture(self._models())

    def _errors(self) -> Chart | None:
        workload = self.workload
        return figures_chart(
            "Errors of counts",
            {
                "a quarter are off by less than": 100 * workload.first_quartile,
                "half": 100 * workload.median,
                "three quarters": 100 * workload.third_quartile,
            },
            axis="relative error (%)",
            rows="of 1,000 counting queries" if workload.queries == 1000 else "of the queries",
        )

    def _scores(self) -> tuple[str, dict[str, float]]:
        """Return the measure of the models, and the score of each."""
        learning = self.learning
        if learning is None:
            return "", {}
        shown = [score for score in learning.scores if score.trained_on in ("original", "release")]
        areas = {f"{score.learner}, {score.trained_on}": score.roc_auc for score in shown}
        if None not in areas.values():
            numbers = {name: float(area) for name, area in areas.items() if area is not None}
            return "ROC AUC", numbers | {"guessing": 0.5}
        accuracies = {f"{score.learner}, {score.trained_on}": score.accuracy for score in shown}
        return "accuracy", accuracies | {"always the most frequent value": learning.majority}

    def _models(self) -> Chart | None:
        if self.learning is None:
            return None
        measure, scores = self._scores()
        return figures_chart(
            f"Models that predict {self.learning.target}",
            scores,
            axis=f"{measure} (0 to 1)",
            rows="model, and what it was trained on",
        )

    def _card(self) -> Card:
        return utility_card("Evaluation", self, lambda: _drawn(self._errors(), self._models()))


class Comparison(Shown, runner.Comparison):
    """Figures of several settings on one table, and the grid of these settings."""

    def __init__(self, *, grid: Grid, **fields: Any) -> None:
        super().__init__(**fields)
        object.__setattr__(self, "grid", grid)

    grid: Grid

    @property
    def best(self) -> list[Mapping[str, Any]]:
        """Rows of the best cell for each protection."""
        return [row for row in self.rows if row["place"] == 1]

    def plot(self) -> Picture | None:
        """Draw the figure that ranks the cells, or return None if no cell was published."""
        charts = self._charts()
        return Picture(charts[0]) if charts else None

    def report(self, path: str | None = None) -> Page:
        """Write the report, one HTML page.

        Parameters
        ----------
        path : str or None
            Local file to write, which is replaced. None writes nothing.
        """
        page = Page(comparison_report(self.grid, self.rows, self.notes))
        return page if path is None else page.save(path)

    def _charts(self) -> list[Chart]:
        """Draw the first two line charts of the grid, or bars of two figures if it has fewer."""
        done = [row for row in self.rows if row["status"] == "done"]
        lines = [chart for chart in comparison_charts(self.grid, done) if isinstance(chart, Chart)]
        if len(lines) >= 2:
            return lines[:2]
        names = list(dict.fromkeys([self.grid.rank_by, "loss", "classes"]))[:2]
        bars = [
            figures_chart(
                METRICS[name].axis,
                {
                    label(self, row): float(row[name])
                    for row in done[:_MOST_BARS]
                    if row.get(name) is not None
                },
                axis=METRICS[name].axis,
                rows="settings",
            )
            for name in names
        ]
        return _drawn(*bars)

    def _card(self) -> Card:
        return comparison_card("Comparison", self.grid, self, self._charts)


class Profile(Shown, profile.Profile):
    """Columns and values of a table that identify people.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 40 for n in range(80)]})
    >>> profile = anonspark.profile(people)
    >>> profile.rows, [column.name for column in profile.columns]
    (80, ['age'])
    """

    def plot(self) -> Picture | None:
        """Draw how many records have a rare value, for each column."""
        return picture(self._few())

    def report(self, path: str | None = None) -> Page:
        """Write the page.

        Parameters
        ----------
        path : str or None
            Local file to write, which is replaced. None writes nothing.
        """
        page = Page(profile_page(self))
        return page if path is None else page.save(path)

    def _few(self) -> Chart | None:
        return figures_chart(
            f"Records whose value fewer than {self.k} share",
            {
                column.name: 100 * column.counts.few / self.rows
                for column in self.columns[:_MOST_COLUMNS]
            },
            axis="share of the records (%)",
            rows="column",
        )

    def _together(self) -> Chart | None:
        number = self.sample_rows
        return figures_chart(
            "Columns together that single records out",
            {
                " + ".join(combined.columns): 100 * combined.unique / number
                for size in (2, 3)
                for combined in self.uniqueness.of_size(size)[:4]
            },
            axis="unique records (%)",
            rows="columns",
        )

    def _card(self) -> Card:
        return profile_card("Profile", self, lambda: _drawn(self._few(), self._together()))


class Conversion(Shown, convert.Conversion):
    """Files that were converted to Parquet, and what each column became."""

    def _card(self) -> Card:
        return self.card


class Union(Shown, union.Union):
    """A union that was published."""

    def _card(self) -> Card:
        return union_card(self, self._charts)

    def _charts(self) -> list[Chart]:
        parts = {
            str(part["holder"] or f"part {number}"): float(part["rows"])
            for number, part in enumerate(self.parts, 1)
            if part.get("rows") is not None
        }
        return _drawn(
            figures_chart("Records of each part", parts, axis="records", rows="part"),
            risk_chart([row for row in self.risk if row.get("round") is None]),
        )


class Selection(Shown, selecting.Selection):
    """Attributes that were chosen under differential privacy, and their cost."""

    def _card(self) -> Card:
        return selection_card(self)
