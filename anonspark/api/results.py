"""What verifying, measuring, comparing, choosing and uniting found, as a program shows it.

Each is what the room that found it says, and shows itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from anonspark.api.pictures import figures_chart, risk_chart, sizes_chart
from anonspark.api.shown import Page, Picture, Shown
from anonspark.comparison import runner
from anonspark.comparison.grid import Grid, settings_label
from anonspark.comparison.ranking import METRICS
from anonspark.comparison.report import charts as comparison_charts
from anonspark.comparison.report import comparison_report
from anonspark.core.figure_text import figure_rows, figure_text
from anonspark.core.figures import SUMMARY
from anonspark.core.utility_score import columns_text
from anonspark.presentation.blocks import Chart, Table
from anonspark.presentation.card import Card
from anonspark.profiling import profile
from anonspark.profiling.page import profile_page
from anonspark.profiling.wording import (
    ROLES,
    dependency_texts,
    measured_text,
    share_text,
    unique_text,
    unit_text,
)
from anonspark.reporting.disclosure import percent
from anonspark.sharing.holders import union
from anonspark.sharing.pairs import releases as release_pairs
from anonspark.sharing.selection import writing
from anonspark.utility import evaluation
from anonspark.utility.usefulness import describe_usefulness
from anonspark.verification import result

_Own = TypeVar("_Own", bound=Shown)

_MOST_BARS = 12
_MOST_COLUMNS = 24
_MOST_RELEASES = 6


def own(kind: Callable[..., _Own], found: Any, **more: Any) -> _Own:
    """Return what a room found as what shows itself.

    Parameters
    ----------
    kind : type
        A class of this module.
    found : object
        A dataclass that it is one of.
    **more : object
        What the room does not say.
    """
    said = {one.name: getattr(found, one.name) for one in dataclasses.fields(found)}
    return kind(**said, **more)


def _drawn(*charts: Chart | None) -> list[Chart]:
    return [chart for chart in charts if chart is not None]


def _picture(chart: Chart | None) -> Picture | None:
    return None if chart is None else Picture(chart)


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
        """Draw how large the classes are. None if nothing was published."""
        return _picture(sizes_chart(self.published.sizes, self.k))

    def plot_risk(self) -> Picture | None:
        """Draw the risk of re-identification. None if it was not measured."""
        return _picture(risk_chart(self.risk))

    def _card(self) -> Card:
        published = self.published
        failed = len(self.failures)
        if self.holds:
            verdict = f"everything that was promised holds, with k = {self.k:,}"
            if self.k == 1:
                verdict = "no protection, because k = 1 lets every record be a class of its own"
        else:
            verdict = self.failures[0] if failed == 1 else f"{failed:,} things do not hold"
        figures = [
            ("k required", f"{self.k:,}"),
            ("smallest class", f"{published.smallest:,}"),
            ("largest class", f"{published.largest:,}"),
            ("classes", f"{published.classes:,}"),
            ("records", f"{published.rows:,}"),
            ("records alone in their class", f"{published.sizes.get(1, 0):,}"),
        ]
        columns = columns_text(vars(self))
        if columns:
            figures.append(("columns", columns))
        if self.units is not None:
            figures.append(("fewest people in a class", f"{self.units.fewest:,}"))
        figures += [
            (f"{one.criterion.attribute}: {one.criterion.describe()}", f"{one.measured:,.4g}")
            for one in self.criteria[:4]
        ]
        figures += [
            (f"{one.attribute}: homogeneous classes", f"{one.homogeneous_classes:,}")
            for one in self.sensitive[:4]
            if one.homogeneous_classes is not None
        ]
        figures += [
            (f"people singled out with the {table}", f"{one.singled_out:,}")
            for table, one in self.linkage.items()
        ]
        if self.truthfulness is not None:
            told = "yes" if self.truthfulness.holds else "no"
            figures.append(("every published range contains the original value", told))
        return Card(
            "Verification",
            verdict,
            self.holds and self.k > 1,
            figures,
            notes=[*(self.failures if failed > 1 else []), *self.warnings],
            charts=lambda: _drawn(sizes_chart(published.sizes, self.k), risk_chart(self.risk)),
        )


class JointVerification(Shown, release_pairs.JointVerification):
    """Result of verifying several releases, each by itself and every two together."""

    def _card(self) -> Card:
        failed = len(self.failures)
        if self.holds:
            verdict = "everything that was promised holds, of each release and of every two"
        else:
            verdict = self.failures[0] if failed == 1 else f"{failed:,} things do not hold"
        number = {}
        figures = [("releases", f"{len(self.releases):,}")]
        for place, one in enumerate(self.releases, 1):
            number[one.release] = place
            figures.append((f"release {place}, smallest class", f"{one.published.smallest:,}"))
        columns = ["releases", "people", "k", "pairs of classes", "breaches", "people in them"]
        rows = [
            [
                " and ".join(str(number.get(each, each)) for each in (one.first, one.second)),
                one.relation,
                f"{one.k:,}",
                f"{one.figures.pairs:,}",
                f"{one.figures.breaches:,}",
                f"{one.figures.persons_in_breaches:,}",
            ]
            for one in self.pairs
        ]
        return Card(
            "Releases together",
            verdict,
            self.holds,
            figures[:_MOST_RELEASES],
            Table("Every two of them", columns, rows),
            [*(self.failures if failed > 1 else []), *self.warnings],
        )


class Utility(Shown, evaluation.Utility):
    """Usefulness of a release for counting and for training models."""

    def plot_errors(self) -> Picture | None:
        """Draw the errors of counts from the release."""
        return _picture(self._errors())

    def plot_models(self) -> Picture | None:
        """Draw how well models predict. None without a target."""
        return _picture(self._models())

    def _errors(self) -> Chart | None:
        found = self.workload
        return figures_chart(
            "Errors of counts",
            {
                "a quarter are off by less than": 100 * found.first_quartile,
                "half": 100 * found.median,
                "three quarters": 100 * found.third_quartile,
            },
            axis="relative error (%)",
            rows="of 1,000 counting queries" if found.queries == 1000 else "of the queries",
        )

    def _scores(self) -> tuple[str, dict[str, float]]:
        """Return what models are measured by, and that of each."""
        learning = self.learning
        if learning is None:
            return "", {}
        shown = [one for one in learning.scores if one.trained_on in ("original", "release")]
        areas = {f"{one.learner}, {one.trained_on}": one.roc_auc for one in shown}
        if None not in areas.values():
            found = {name: float(area) for name, area in areas.items() if area is not None}
            return "ROC AUC", found | {"guessing": 0.5}
        accuracies = {f"{one.learner}, {one.trained_on}": one.accuracy for one in shown}
        return "accuracy", accuracies | {"the most frequent value alone": learning.majority}

    def _models(self) -> Chart | None:
        if self.learning is None:
            return None
        measure, scores = self._scores()
        return figures_chart(
            f"Models that tell {self.learning.target}",
            scores,
            axis=f"{measure} (0 to 1)",
            rows="model, and what it was trained on",
        )

    def _card(self) -> Card:
        found = self.workload
        figures = [
            ("records of the original", f"{self.records:,}"),
            ("counting queries", f"{found.queries:,}"),
            ("relative error of a count, median", percent(found.median)),
            ("relative error of a count, mean", percent(found.mean)),
        ]
        notes = []
        if self.association is not None:
            figures += [
                (f"{one.name} tells of the target, before and after",
                 f"{percent(one.before)}, {percent(one.after)}")
                for one in self.association.attributes[:6]
                if one.before is not None and one.after is not None and one.after >= 0
            ]  # fmt: skip
        if self.learning is not None:
            measure, scores = self._scores()
            figures += [(f"{name}: {measure}", f"{score:.4f}") for name, score in scores.items()]
            if not self.learning.held_out:
                notes.append(
                    "The release has seen the records that models were tested on; give holdout, "
                    "records that were not anonymized, for a fair comparison."
                )
        verdict = describe_usefulness(found, self.learning)
        return Card(
            "Evaluation",
            verdict,
            figures=figures,
            notes=notes,
            charts=lambda: _drawn(self._errors(), self._models()),
        )


class Comparison(Shown, runner.Comparison):
    """Figures of several settings on one table.

    Parameters
    ----------
    grid : Grid
        The settings that were compared.
    **found : object
    """

    def __init__(self, *, grid: Grid, **found: Any) -> None:
        super().__init__(**found)
        object.__setattr__(self, "grid", grid)

    grid: Grid

    @property
    def best(self) -> list[Mapping[str, Any]]:
        """Rows of the best cell for each protection."""
        return [row for row in self.rows if row["place"] == 1]

    def plot(self) -> Picture | None:
        """Draw the figure that ranks the cells. None if no cell was published."""
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

    def _label(self, row: Mapping[str, Any]) -> str:
        return settings_label(self.results[row["cell"]].settings)

    def _charts(self) -> list[Chart]:
        done = [row for row in self.rows if row["status"] == "done"]
        lines = [one for one in comparison_charts(self.grid, done) if isinstance(one, Chart)]
        if len(lines) >= 2:
            return lines[:2]
        names = list(dict.fromkeys([self.grid.rank_by, "gcp", "classes"]))[:2]
        bars = [
            figures_chart(
                METRICS[name].axis,
                {
                    self._label(row): float(row[name])
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
        rank_by = self.grid.rank_by
        best = self.best
        refused = sum(row["status"] == "refused" for row in self.rows)
        better = METRICS[rank_by].better
        told = "; ".join(
            f"{self._label(row)} ({rank_by} {figure_text(row.get(rank_by))})" for row in best[:4]
        )
        verdict = (
            f"best by {rank_by}, {better} is better: {told}"
            if best
            else "nothing could be published with any of the settings"
        )
        if self.advice is not None:
            verdict = self.advice.sentence
        columns = list(dict.fromkeys(["place", rank_by, "classes", "seconds"]))
        table = Table(
            f"Settings, the best of each protection first, by {rank_by}",
            ["settings", *columns],
            [
                [self._label(row), *own]
                for row, own in zip(self.rows, figure_rows(self.rows, columns), strict=True)
            ],
        )
        reasons = [
            f"refused: {self._label(row)}: {row['reason']}"
            for row in self.rows
            if row["status"] == "refused"
        ]
        return Card(
            "Comparison",
            verdict,
            None if best else False,
            [("settings tried", f"{len(self.rows):,}"), ("of them refused", f"{refused:,}")],
            table,
            [*self.notes, *reasons],
            self._charts,
        )


class Profile(Shown, profile.Profile):
    """Columns and values of a table that identify people.

    Examples
    --------
    >>> import anonspark, pandas
    >>> people = pandas.DataFrame({"age": [20 + n % 40 for n in range(80)]})
    >>> found = anonspark.profile(people)
    >>> found.rows, [one.name for one in found.columns]
    (80, ['age'])
    """

    def plot(self) -> Picture | None:
        """Draw how many records have a rare value, for each column."""
        return _picture(self._few())

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
            {one.name: 100 * one.counts.few / self.rows for one in self.columns[:_MOST_COLUMNS]},
            axis="share of the records (%)",
            rows="column",
        )

    def _together(self) -> Chart | None:
        number = self.sample_rows
        return figures_chart(
            "Columns together that single records out",
            {
                " + ".join(one.columns): 100 * one.unique / number
                for size in (2, 3)
                for one in self.uniqueness.of_size(size)[:4]
            },
            axis="unique records (%)",
            rows="columns",
        )

    def _card(self) -> Card:
        unique = unique_text(self)
        table = Table(
            "Columns",
            ["column", "kind", "values", f"fewer than {self.k}", "proposed role"],
            [
                [
                    one.name,
                    one.kind,
                    f"{one.counts.distinct:,}",
                    share_text(one.counts.few, self.rows),
                    ROLES[one.role],
                ]
                for one in self.columns
            ],
        )
        unit = unit_text(self)
        return Card(
            "Profile",
            unique[-1] if unique else "no columns together tell records apart",
            None,
            [("records", f"{self.rows:,}"), ("columns", f"{len(self.columns):,}")],
            table,
            [measured_text(self), *([unit] if unit else []), *dependency_texts(self)],
            lambda: _drawn(self._few(), self._together()),
        )


class Union(Shown, union.Union):
    """A union that was published."""

    def _card(self) -> Card:
        shown = [
            (figure.title.format(**self.summary), figure_text(self.summary.get(figure.name)))
            for figure in SUMMARY
            if figure.line and self.summary.get(figure.name) is not None
        ]
        parts = {
            str(part["holder"] or f"part {number}"): float(part["rows"])
            for number, part in enumerate(self.parts, 1)
            if part.get("rows") is not None
        }
        return Card(
            "Union",
            f"{len(self.parts):,} releases are one, and what it promises was proved anew",
            True,
            [("where", self.path), *shown[:10]],
            notes=self.warnings,
            charts=lambda: _drawn(
                figures_chart("Records of each part", parts, axis="records", rows="part"),
                risk_chart([row for row in self.risk if row.get("round") is None]),
            ),
        )


class Selection(Shown, writing.Selection):
    """Attributes that were chosen under differential privacy, and their cost."""

    def _card(self) -> Card:
        return Card(
            "Selection",
            f"{len(self.attributes):,} attributes are chosen",
            figures=[
                *((f"choice {place}", name) for place, name in enumerate(self.attributes[:12], 1)),
                ("epsilon spent", str(self.told["epsilon"])),
                ("where", self.output),
            ],
            notes=[str(self.told["guarantee"])],
        )


__all__: Sequence[str] = (
    "Comparison",
    "JointVerification",
    "Profile",
    "Selection",
    "Union",
    "Utility",
    "Verification",
    "own",
)
