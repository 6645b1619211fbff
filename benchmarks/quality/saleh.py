"""What Saleh's thesis prints about k-anonymity and classifiers, computed again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from printed_figures import Compared, Place, Printed, compare_lines, printed_figures

from quality.adult_releases import PRIVACY, entropy_loss_of
from quality.csv_tables import (
    ADULT_FILES,
    HOUSING,
    MAMMOGRAPHIC,
    Texts,
    read_adult,
    read_mammographic,
    read_texts,
)
from quality.equal_records import SEVEN, keep_equal_records
from quality.first_cut import at_least, first_cut_lists, predicate
from quality.frequency_groups import groups_of, leading_classes, published_by_groups
from quality.holders import QUASI_IDENTIFIERS
from quality.learned import Learned, learned
from quality.ml_utility import OCEAN, Scores
from quality.silos import blocks
from quality.uncertainty import entropy_loss, loss_of, uncertainty_coefficient

THESIS = "saleh"
NEEDED = ("adult.csv", *ADULT_FILES, MAMMOGRAPHIC, HOUSING, "hierarchies")
SEVERITY, INCOME = "Severity", "income"
ORDERS = 12

SPREADS = {
    "Classifiers on Adult": 0.012,
    # Two standard deviations of our ten splits; the print has one of 249 records.
    "Classifiers on mammographic masses": 0.04,
}
SPREAD_OF_LOSS = 1.0
SPREAD_OF_ACCURACY = 0.008
Figures = Callable[[Place], dict[str, float]]
SpreadOf = Callable[[Place, str], float]


def measure(data: Path, printed: Printed) -> tuple[Compared, dict[str, Any]]:
    """Return our figures of its tables, and facts about them."""
    models = learned(data)
    compared = compare_lines(printed, figures(data, models), spreads(models))
    areas = list(models.areas.values())
    return compared, {
        "groups": groups_told(data),
        "losses": losses_of_lists(data),
        "not_reproduced": list(not_reproduced(data)),
        "classifiers": list(classifiers(models)),
        "best": {
            name: {
                each: max(of.accuracy.mean() for of in found.values())
                for each, found in tables.items()
            }
            for name, tables in (
                ("Adult", models.adult),
                ("mammographic masses", models.mammographic),
            )
        },
        "areas": models.areas,
        "areas_fall": areas == sorted(areas, reverse=True),
        "holders": list(blocks(models.alike, models.differing)),
    }


def classifiers(models: Learned) -> Iterator[list[str]]:
    """Return accuracy and macro-F1 of each classifier on an original and on anonymized tables."""

    def cell(scores: Scores) -> str:
        pairs = (scores.accuracy, scores.f1_macro)
        return " / ".join(
            f"{one.mean():.3f}" + (f" ± {one.std(ddof=1):.3f}" if len(one) > 1 else "")
            for one in pairs
        )

    for table, tables in (
        ("Adult, one split", models.adult),
        ("mammographic masses, 10 splits", models.mammographic),
        ("California housing, one split", {"original": models.housing}),
    ):
        for learner in tables["original"]:
            yield [table, learner, *(cell(scores[learner]) for scores in tables.values())]


def spreads(learned: Learned) -> SpreadOf:
    """Return within which distance a figure of another draw is the same."""

    def spread_of(place: Place, column: str) -> float:
        if (place.table, place.model) == ("Loss", "from our groups"):
            return SPREAD_OF_LOSS
        if place.table != "Federated learning":
            return SPREADS.get(place.table, 0)
        # What k the anonymized tables of the thesis have is not told, so nothing is near.
        if place.model != "raw":
            return 0
        if column == "accuracy":
            return SPREAD_OF_ACCURACY
        name, training = column.lower(), "federated, raw"
        mean = getattr(learned.alike.mean(training), name)
        return float(max(abs(mean - end) for end in learned.alike.range(training, name)))

    return spread_of


def figures(data: Path, learned: Learned) -> Figures:
    """Return our figures of a line of a table of conf/experiments/printed/saleh.csv."""
    masses = read_mammographic(data).complete()
    adult = read_adult(data)
    columns, target = masses.names[:-1], masses.column(SEVERITY)
    original = [masses.column(name) for name in columns]
    lists = first_cut_lists(masses, columns, at_least(3))
    published = published_by_groups(masses, columns, SEVERITY, lists)
    education = leading_classes(adult.column("education"), adult.column(INCOME))

    def of_lists(place: Place) -> dict[str, float]:
        return {"lists": len(lists_of(masses, int(place.k), place.model))}

    def of_loss(place: Place) -> dict[str, float]:
        if place.model == "from our groups":
            return {"loss %": 100 * entropy_loss(original, published, target)}
        printed = [
            one for where, one in printed_figures(THESIS).items() if where.table == "Coefficients"
        ]
        before, after = ([float(one[name]) for one in printed] for name in ("before", "after"))
        return {"loss %": 100 * loss_of(before, after)}

    def of_coefficients(place: Place) -> dict[str, float]:
        which = columns.index(place.model)
        return {
            "before": uncertainty_coefficient(original[which], target),
            "after": uncertainty_coefficient(published[which], target),
        }

    def of_others(place: Place) -> dict[str, float]:
        table, names, _ = other_table(data, place.model)
        return {"lists": len(first_cut_lists(table, names, at_least(int(place.k))))}

    def of_adult(place: Place) -> dict[str, float]:
        one = learned.adult["original"][place.model]
        return {"accuracy": one.accuracy.mean(), "macro-F1": one.f1_macro.mean()}

    def of_masses(place: Place) -> dict[str, float]:
        return {"accuracy": learned.mammographic["original"][place.model].accuracy.mean()}

    def of_holders(place: Place) -> dict[str, float]:
        k = 0 if place.model == "raw" else 10
        one = learned.alike.mean(f"federated, {place.model}", k)
        return {
            "accuracy": one.accuracy, "precision": one.precision, "recall": one.recall, "F1": one.f1
        }  # fmt: skip

    kinds: dict[str, Figures] = {
        "Shares": lambda place: {"share": education[place.model].share},
        "Coefficients": of_coefficients,
        "Loss": of_loss,
        "Lists": of_lists,
        "Lists of other tables": of_others,
        "Classifiers on Adult": of_adult,
        "Classifiers on mammographic masses": of_masses,
        "Federated learning": of_holders,
    }
    return lambda place: kinds[place.table](place)


def lists_of(masses: Texts, k: int, criterion: str) -> list[list[int]]:
    """Cut mammographic masses by k alone (``k``), or by ``l = 2``, ``t = 0.3`` and their like."""
    allowed = predicate(k, criterion, masses.column(SEVERITY))
    return first_cut_lists(masses, masses.names[:-1], allowed)


def losses_of_lists(data: Path) -> dict[str, float]:
    """Return what the lists of Table 5.3 lose in percent, published by our groups."""
    masses = read_mammographic(data).complete()
    columns, target = masses.names[:-1], masses.column(SEVERITY)
    original = [masses.column(name) for name in columns]
    losses = {}
    for place in printed_figures(THESIS):
        if place.table == "Lists":
            lists = lists_of(masses, int(place.k), place.model)
            published = published_by_groups(masses, columns, SEVERITY, lists)
            losses[place.model] = 100 * entropy_loss(original, published, target)
    return losses


def other_table(data: Path, name: str) -> tuple[Texts, tuple[str, ...], str]:
    """Return a table whose printed counts cannot be had again, its columns and its target."""
    if name == "Adult":
        return read_adult(data).complete(), QUASI_IDENTIFIERS, INCOME
    housing = read_texts(data / HOUSING)
    return housing, housing.names[:-1], OCEAN


def shuffled(table: Texts, seed: int) -> Texts:
    """Return the rows in another order."""
    rows = random.Random(seed).sample(table.rows, len(table.rows))  # noqa: S311 - an order
    return Texts(table.names, rows)


def counts_by_order(data: Path, name: str, orders: int, k: int = 3) -> list[int]:
    """Return how many lists there are of so many random orders of the rows."""
    table, columns, _ = other_table(data, name)
    return [
        len(first_cut_lists(shuffled(table, seed), columns, at_least(k))) for seed in range(orders)
    ]


def groups_told(data: Path) -> str:
    """Write how many frequency groups there are on Adult."""
    adult = read_adult(data)
    income = adult.column(INCOME)
    education = leading_classes(adult.column("education"), income)
    by_rho = ", ".join(f"{len(groups_of(education, rho))} at rho = {rho}" for rho in (2, 5, 10, 20))
    names = ("workclass", "occupation", "marital-status", "relationship", "native-country")
    others = ", ".join(
        f"{name} {len(groups_of(leading_classes(adult.column(name), income), 10))}"
        for name in names
    )
    sizes = sorted(len(group) for group in groups_of(education, 10).values())
    return (
        f"Frequency groups of education: {by_rho}. Their sizes at rho = 10 are "
        f"{', '.join(map(str, sizes))}. Of others at rho = 10, `?` being a value: {others}."
    )


def not_reproduced(data: Path) -> Iterator[str]:
    """Write what cannot be had again, or is not built, with what shows it."""
    adult = counts_by_order(data, "Adult", ORDERS)
    yield (
        f"- O, order: the partitioner cuts values in the order of their first appearance. "
        f"{ORDERS} random orders of the complete rows of Adult give {min(adult):,} to "
        f"{max(adult):,} lists at k = 3. The print has 9,246, with an "
        "unknown order and unknown attributes."
    )
    housing, columns, target = other_table(data, "California housing")
    other = shuffled(housing, 0)

    def counts(table: Texts) -> list[str]:
        classes = table.column(target)
        predicates = (predicate(3, each, classes) for each in ("k", "l = 2", "t = 0.4"))
        return [f"{len(first_cut_lists(table, columns, each)):,}" for each in predicates]

    given, mixed = counts(housing), counts(other)
    classes = len(set(housing.column(target)))
    yield (
        f"- California housing, k = 3, has {given[0]} lists in the order of the file, {given[1]} "
        f"with l = 2 and {given[2]} with t = 0.4; with its rows shuffled {mixed[0]}, {mixed[1]} "
        f"and {mixed[2]}. The print has 5,351 lists of three classes where the file has {classes}. "
        "Its rows of t = 0.3 and 0.4, and those of Adult, contradict its own rule: in them a "
        "looser t loses more. So they are left out."
    )
    complete = read_adult(data).complete()
    kept = {k: keep_equal_records(complete, k) for k in (3, 5, 50)}
    losses = ", ".join(f"{one.gcp:.4f} to {one.gcp_safe:.4f} at k = {k}" for k, one in kept.items())
    yield (
        '- Not built: "optimized k-anonymity", by which records of a class that are equal, and at '
        "least k, keep their values, and the rest is generalized separately. As written it "
        "leaves rests "
        f"below k: in the classes that `smondrian` makes of {len(complete.rows):,} records of "
        f"Adult, with {len(SEVEN)} quasi-identifiers and k = 3, {kept[3].below:,} records are then "
        "in classes smaller than 3. Made safe, so that a rest is empty or at least k, it lowers "
        f"gcp from {losses}."
    )
    by_entropy = ", ".join(
        f"{100 * entropy_loss_of(data, privacy):+.1f}% ({name})"
        for name, privacy in PRIVACY.items()
    )
    yield (
        "- Not built: the loss by entropy coefficients. Many texts over few records look "
        "informative, and the width of a value reveals the target: releases of `adult.csv` by "
        f"`smondrian` lose {by_entropy} by it, less than nothing. "
        "[Association](utility.md#association) is measured instead."
    )
    yield (
        "- Not claimed: that anonymized training data protect federated models from membership "
        "inference. The thesis argues it and does not measure it."
    )
