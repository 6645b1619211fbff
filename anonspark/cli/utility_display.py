"""What ``anonspark evaluate`` found, on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from anonspark.utility.usefulness import MEASURES

if TYPE_CHECKING:
    from anonspark.core.model_scores import Difference
    from anonspark.utility.association import Association
    from anonspark.utility.evaluation import Utility
    from anonspark.utility.learned_hierarchies import Arrangement
    from anonspark.utility.models import Learning
    from anonspark.utility.workload import WorkloadError

_TRAINED_ON = {
    "original": "original",
    "original_with_test": "original with the test records",
    "release": "release",
}


def show_utility(console: Console, release: str, utility: Utility) -> None:
    """Show how useful a release is, in a sentence and in figures."""
    sentence = utility.sentence
    console.print(f"{sentence[0].upper()}{sentence[1:]}", style="bold")
    console.print(_workload_table(release, utility.workload))
    if utility.association is not None:
        console.print(_association_table(utility.association))
    if utility.learning is not None:
        _show_learning(console, utility.learning)


def show_arrangement(console: Console, found: Arrangement) -> None:
    """Show what was learned, in figures; values stand in the files alone."""
    least = found.min_records
    table = Table(
        title=f"What values tell of {found.target}", title_justify="left", header_style="bold"
    )
    table.add_column("attribute")
    rare = "without records" if least is None else f"with fewer than {least:,} records"
    for name in ("values", rare, "association"):
        table.add_column(name, justify="right")
    grouped = any(one.levels for one in found.attributes)
    if grouped:
        table.add_column("groups (share of it kept)", justify="right", overflow="fold")
    for one in found.attributes:
        row = [one.name, f"{len(one.values):,}", f"{one.rare:,}", f"{one.association:.4f}"]
        if grouped:
            levels = zip(one.levels, one.kept, strict=True)
            row.append(", ".join(f"{len(own):,} ({kept:.1%})" for own, kept in levels) or "none")
        table.add_row(*row)
    console.print(table)
    for path in found.files:
        console.print(f"Written: {path}")
    console.print(
        "Read and correct them before you put them into a configuration: they tell which values go "
        "with which class"
    )


def _workload_table(release: str, workload: WorkloadError) -> Table:
    table = Table(title=f"{release}: errors of counts", title_justify="left", header_style="bold")
    table.add_column("what")
    table.add_column("found", justify="right", overflow="fold")
    table.add_row("queries", f"{workload.queries:,}")
    table.add_row("ranges of", ", ".join(workload.attributes))
    table.add_row("and of", ", ".join(workload.filters) or "no sensitive attribute")
    table.add_row("records selected, mean", f"{workload.selectivity:.2%}")
    table.add_row("errors related to at least, records", f"{workload.sanity_bound:,.1f}")
    table.add_row("median relative error", f"{workload.median:.2%}")
    table.add_row("mean relative error", f"{workload.mean:.2%}")
    quartiles = f"{workload.first_quartile:.2%} to {workload.third_quartile:.2%}"
    table.add_row("quartiles", quartiles)
    return table


def _association_table(found: Association) -> Table:
    loss = "the original tells nothing" if found.loss is None else f"loss {found.loss:.4f}"
    table = Table(
        title=f"What quasi-identifiers tell of {found.target}: {loss}",
        title_justify="left",
        header_style="bold",
    )
    table.add_column("quasi-identifier")
    for name in ("original", "release"):
        table.add_column(name, justify="right")
    for one in found.attributes:
        shares = (one.before, one.after)
        table.add_row(one.name, *("none" if share is None else f"{share:.4f}" for share in shares))
    return table


def _show_learning(console: Console, learning: Learning) -> None:
    console.print(_learning_table(learning))
    notes = []
    if learning.test_left_out:
        notes.append(
            f"{learning.test_left_out:,} held-out records are of a class that the original has "
            "not; they were left out"
        )
    if learning.classes == 2 and learning.without_area is not None:
        notes.append(f"No ROC AUC: {learning.without_area}")
    if learning.differences:
        console.print(_difference_table(learning))
    loss = learning.loss
    if loss is not None:
        notes.append(
            f"Best model of the original ({loss.original}) beside the best of the release "
            f"({loss.release}): loss of {MEASURES[loss.measure]} {loss.loss:.4f}"
            f"{_margin(loss.standard_error)}"
        )
    for note in notes:
        console.print(note)


def _difference_table(learning: Learning) -> Table:
    marked = "" if learning.held_out else "; not comparable, the release has seen the test"
    table = Table(
        title=f"Release beside original, +-1.96 standard errors{marked}",
        title_justify="left",
        header_style="bold",
    )
    for name in ("learner", "score"):
        table.add_column(name)
    table.add_column("difference", justify="right")
    table.add_column("the release")
    for own in learning.differences:
        table.add_row(own.learner, "accuracy", *_difference_cells(own.accuracy))
        if own.roc_auc is not None:
            table.add_row("", "ROC AUC", *_difference_cells(own.roc_auc))
    return table


def _difference_cells(found: Difference) -> tuple[str, str]:
    verdict = found.verdict or "one record of a class"
    return f"{found.difference:+.4f}{_margin(found.standard_error)}", verdict


def _margin(standard_error: float | None) -> str:
    return "" if standard_error is None else f" +-{1.96 * standard_error:.4f}"


def _learning_table(learning: Learning) -> Table:
    tests = "held-out" if learning.held_out else "original"
    table = Table(
        title=(
            f"Learning {learning.target}, tested on {learning.test_records:,} {tests} records; "
            f"the most frequent class alone: accuracy {learning.majority:.4f}"
        ),
        title_justify="left",
        header_style="bold",
    )
    for name in ("learner", "trained on"):
        table.add_column(name)
    for name in ("accuracy", "F1" if learning.classes == 2 else "weighted F1"):
        table.add_column(name, justify="right")
    if learning.classes == 2:
        table.add_column("ROC AUC", justify="right")
    for score in sorted(learning.scores, key=lambda one: one.learner):
        row = [
            score.learner,
            _TRAINED_ON[score.trained_on],
            f"{score.accuracy:.4f}",
            f"{score.f1:.4f}",
        ]
        if learning.classes == 2:
            row.append("none" if score.roc_auc is None else f"{score.roc_auc:.4f}")
        table.add_row(*row)
    return table
