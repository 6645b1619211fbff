"""What a release is worth to those who count with it or train models on it, as a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from anonspark.core.model_scores import Difference
from anonspark.presentation.blocks import Cell, Chart, Table, Text
from anonspark.presentation.card import Card
from anonspark.utility.association import Association
from anonspark.utility.evaluation import Utility
from anonspark.utility.learned_hierarchies import Arrangement
from anonspark.utility.models import Learning
from anonspark.utility.workload import MEASURES, WorkloadError

_TRAINED_ON = {
    "original": "original",
    "original_with_test": "original with the test records",
    "release": "release",
}


def utility_card(
    title: str, utility: Utility, charts: Callable[[], Sequence[Chart]] = tuple
) -> Card:
    """Show the usefulness of a release, in sentences and in figures."""
    learning, association = utility.learning, utility.association
    tables = [] if association is None else [_association(association)]
    remarks, notes = [], []
    if learning is not None:
        tables += [_scores(learning), *([_differences(learning)] if learning.differences else [])]
        remarks = list(_remarks(learning))
        if not learning.held_out:
            notes.append(
                "The release has seen the records that models were tested on. Give holdout, "
                "records that were not anonymized, for a fair comparison."
            )
    figures = _workload(utility.workload)
    return Card(
        title, utility.sentence, None, figures, tables, notes, charts=charts, remarks=remarks
    )


def _workload(workload: WorkloadError) -> list[tuple[str, Cell]]:
    return [
        ("counting queries", workload.queries),
        ("ranges of", ", ".join(workload.attributes)),
        ("and of", ", ".join(workload.filters) or "no sensitive attribute"),
        ("records selected, mean", f"{workload.selectivity:.2%}"),
        ("errors related to at least, records", f"{workload.sanity_bound:,.1f}"),
        ("median relative error", f"{workload.median:.2%}"),
        ("mean relative error", f"{workload.mean:.2%}"),
        ("quartiles", f"{workload.first_quartile:.2%} to {workload.third_quartile:.2%}"),
    ]


def _association(result: Association) -> Table:
    loss = "the original predicts nothing" if result.loss is None else f"loss {result.loss:z.4f}"
    rows = [
        [row.name, *("none" if share is None else share for share in (row.before, row.after))]
        for row in result.attributes
    ]
    title = f"Association of quasi-identifiers with {result.target}: {loss}"
    return Table(title, ("quasi-identifier", "original", "release"), rows)


def _scores(learning: Learning) -> Table:
    tests = "held-out" if learning.held_out else "original"
    binary = learning.classes == 2
    rows: list[list[Cell]] = [
        [
            score.learner,
            _TRAINED_ON[score.trained_on],
            score.accuracy,
            score.precision,
            score.recall,
            score.f1,
            *(["none" if score.roc_auc is None else score.roc_auc] if binary else []),
        ]
        for score in sorted(learning.scores, key=lambda row: row.learner)
    ]
    return Table(
        f"Learning {learning.target}, tested on {learning.test_records:,} {tests} records. The "
        f"most frequent class alone: accuracy {learning.majority:.4f}",
        (
            *("learner", "trained on", "accuracy"),
            *(name if binary else f"weighted {name}" for name in ("precision", "recall", "F1")),
            *(["ROC AUC"] if binary else []),
        ),
        rows,
    )


def _differences(learning: Learning) -> Table:
    marked = "" if learning.held_out else ", not comparable: the release has seen the test"
    rows = []
    for pair in learning.differences:
        rows.append([pair.learner, "accuracy", *_difference(pair.accuracy)])
        if pair.roc_auc is not None:
            rows.append(["", "ROC AUC", *_difference(pair.roc_auc)])
    return Table(
        f"Release compared with original, ±1.96 standard errors{marked}",
        ("learner", "score", "difference", "the release"),
        rows,
    )


def _difference(gap: Difference) -> tuple[str, str]:
    verdict = gap.verdict or "one record of a class"
    return f"{gap.difference:+z.4f}{_margin(gap.standard_error)}", verdict


def _margin(standard_error: float | None) -> str:
    return "" if standard_error is None else f" ±{1.96 * standard_error:.4f}"


def _remarks(learning: Learning) -> Iterator[str]:
    if learning.test_left_out:
        yield (
            f"{learning.test_left_out:,} held-out records are of a class that the original has "
            "not. They were left out"
        )
    if learning.classes == 2 and learning.without_area is not None:
        yield f"No ROC AUC: {learning.without_area}"
    loss = learning.loss
    if loss is not None:
        yield (
            f"Best model of the original ({loss.original}) compared with the best of the release "
            f"({loss.release}): loss of {MEASURES[loss.measure]} {loss.loss:z.4f}"
            f"{_margin(loss.standard_error)}"
        )


def arrangement_blocks(result: Arrangement) -> Iterator[Table | Text]:
    """Show what was learned, in figures. Values are only in the files."""
    least = result.min_records
    rare = "without records" if least is None else f"with fewer than {least:,} records"
    grouped = any(item.levels for item in result.attributes)
    rows: list[list[Cell]] = []
    for item in result.attributes:
        row: list[Cell] = [item.name, len(item.values), item.rare, item.association]
        if grouped:
            levels = zip(item.levels, item.kept, strict=True)
            row.append(
                ", ".join(f"{len(group):,} ({share:.1%})" for group, share in levels) or "none"
            )
        rows.append(row)
    columns = ["attribute", "values", rare, "association"]
    columns += ["groups (share of it kept)"] if grouped else []
    yield Table(f"Association of values with {result.target}", columns, rows)
    yield from (Text(f"Written: {path}") for path in result.files)
    yield Text(
        "Read and correct them before you put them into a configuration, because they show which "
        "values go with which class"
    )
