"""What Saleh's thesis prints about k-anonymity and classifiers, computed again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from printed_figures import Compared, Place, Printed, compare_lines

from quality.adult_releases import PRIVACY, entropy_loss_of
from quality.csv_tables import (
    ADULT_FILES,
    HOUSING,
    MAMMOGRAPHIC,
    Texts,
    read_adult,
    read_mammographic,
)
from quality.equal_records import SEVEN, keep_equal_records
from quality.first_cut import OPTIMIZED, equal_apart, first_cut_lists, predicate
from quality.frequency_groups import groups_of, leading_classes, published_by_groups
from quality.holders import QUASI_IDENTIFIERS
from quality.learned import Learned, learned
from quality.ml_utility import (
    HOUSING_COLUMNS,
    MAJORITY,
    OCEAN,
    ORIGINAL,
    TEST_SHARE,
    K,
    Scores,
    read_housing,
)
from quality.silos import blocks
from quality.uncertainty import entropy_loss, loss_of, uncertainty_coefficient

THESIS = "saleh"
NEEDED = ("adult.csv", *ADULT_FILES, MAMMOGRAPHIC, HOUSING, "hierarchies")
SEVERITY, INCOME = "Severity", "income"
ORDERS = 12
SILOS = 3
TABLES = {"5.3": "masses", "5.4": "Adult", "5.5": "housing"}
"""Of lists and losses."""
CLASSIFIED = {"5.8": "Adult", "5.9": "masses", "5.10": "housing"}
"""Of classifiers on anonymized tables, whose columns name the criterion. Those of the tables
before name the data set."""

SPREADS = {"Adult": 0.012, "housing": 0.012, "masses": 0.04}
"""About two standard deviations of a share among the test records; the print has one split."""
SPREAD_OF_LOSS = 1.0
SPREAD_OF_ACCURACY = 0.008
Figures = Callable[[Place], dict[str, float]]
SpreadOf = Callable[[Place, str], float]


@dataclass(frozen=True)
class Table:
    """A table of the thesis, its quasi-identifiers and its target.

    Parameters
    ----------
    texts : Texts
    columns : tuple of str
    target : str
    """

    texts: Texts
    columns: tuple[str, ...]
    target: str

    def lists(self, criterion: str, k: int = K) -> list[list[int]]:
        """Cut it by a criterion and k."""
        allowed = predicate(k, criterion, self.texts.column(self.target))
        return first_cut_lists(self.texts, self.columns, allowed)

    def published(self, lists: list[list[int]]) -> list[list[str]]:
        """Publish lists by frequency groups."""
        return published_by_groups(self.texts, self.columns, self.target, lists)

    def loss(self, lists: list[list[int]]) -> float:
        """Return what lists lose, published by frequency groups, in percent."""
        original = [self.texts.column(name) for name in self.columns]
        target = self.texts.column(self.target)
        return 100 * entropy_loss(original, self.published(lists), target)

    def shuffled(self, seed: int) -> Table:
        """Return it with the rows in another order."""
        rows = random.Random(seed).sample(self.texts.rows, len(self.texts.rows))  # noqa: S311 - an order
        return replace(self, texts=Texts(self.texts.names, rows))


def read_table(data: Path, name: str) -> Table:
    """Return mammographic masses without missing values, Adult or California housing."""
    if name == "Adult":
        return Table(read_adult(data), QUASI_IDENTIFIERS, INCOME)
    if name == "housing":
        return Table(read_housing(data), HOUSING_COLUMNS, OCEAN)
    texts = read_mammographic(data).complete()
    return Table(texts, texts.names[:-1], SEVERITY)


def measure(data: Path, printed: Printed) -> tuple[Compared, dict[str, Any]]:
    """Return our figures of its tables, and facts about them."""
    models = learned(data)
    compared = compare_lines(printed, figures(data, models, printed), spreads(models))
    areas = list(models.areas.values())
    majority = {table: found[ORIGINAL][MAJORITY] for table, found in models.classified.items()}
    return compared, {
        "groups": groups_told(data),
        "not_reproduced": list(not_reproduced(data)),
        "majority": {
            table: [one.accuracy.mean(), one.f1_macro.mean()] for table, one in majority.items()
        },
        "areas": models.areas,
        "areas_fall": areas == sorted(areas, reverse=True),
        "holders": list(blocks(models.alike, models.differing)),
    }


def spreads(learned: Learned) -> SpreadOf:
    """Return within which distance a figure of another draw is the same."""

    def spread_of(place: Place, column: str) -> float:
        if column == "loss %":
            return SPREAD_OF_LOSS
        if column.endswith((", accuracy", ", F1")):
            return SPREADS[CLASSIFIED.get(place.table, column.rpartition(", ")[0])]
        # The k of the anonymized holders is not named, so nothing is near.
        if place.table != "7.1 and 7.2" or place.model != "raw":
            return 0
        if column == "accuracy":
            return SPREAD_OF_ACCURACY
        name, training = column.lower(), "federated, raw"
        mean = getattr(learned.alike.mean(training), name)
        return float(max(abs(mean - end) for end in learned.alike.range(training, name)))

    return spread_of


def figures(data: Path, learned: Learned, printed: Printed) -> Figures:
    """Return our figures of a line of a table of conf/experiments/printed/saleh.csv."""
    tables = {name: read_table(data, name) for name in TABLES.values()}
    masses, adult = tables["masses"], tables["Adult"].texts
    target = masses.texts.column(SEVERITY)
    original = {name: masses.texts.column(name) for name in masses.texts.names}
    columns = masses.published(masses.lists("k"))
    published = {**dict(zip(masses.columns, columns, strict=True)), SEVERITY: target}
    education = leading_classes(adult.column("education"), adult.column(INCOME))

    def of_printed_coefficients(_: Place) -> dict[str, float]:
        lines = [
            line
            for place, line in printed.items()
            if place.table == "5.1 and 5.2" and place.model != SEVERITY
        ]
        before, after = ([float(line[name]) for line in lines] for name in ("before", "after"))
        return {"loss %": 100 * loss_of(before, after)}

    def of_coefficients(place: Place) -> dict[str, float]:
        return {
            "before": uncertainty_coefficient(original[place.model], target),
            "after": uncertainty_coefficient(published[place.model], target),
        }

    def of_lists(place: Place) -> dict[str, float]:
        table = tables[TABLES[place.table]]
        lists = cut = table.lists(place.model)
        if place.model == OPTIMIZED:
            lists = equal_apart(table.texts, table.columns, cut, K)
        return {"lists": len(cut), "loss %": table.loss(lists)}

    def of_silos(place: Place) -> dict[str, float]:
        silo = silos(tables["Adult"])[int(place.model[-1]) - 1]
        return {"loss %": silo.loss(silo.lists("k"))}

    def of_originals(place: Place) -> dict[str, float]:
        criterion = ORIGINAL if place.table == "5.6" else OPTIMIZED
        return of_scores(
            {table: of[criterion][place.model] for table, of in learned.classified.items()}
        )

    def of_anonymized(place: Place) -> dict[str, float]:
        of = learned.classified[CLASSIFIED[place.table]]
        return of_scores({criterion: found[place.model] for criterion, found in of.items()})

    def of_holders(place: Place) -> dict[str, float]:
        k = 0 if place.model == "raw" else 10
        one = learned.alike.mean(f"federated, {place.model}", k)
        return {
            "accuracy": one.accuracy, "precision": one.precision, "recall": one.recall, "F1": one.f1
        }  # fmt: skip

    kinds: dict[str, Figures] = {
        "2.2": lambda place: {"share": education[place.model].share},
        "5.1 and 5.2": of_coefficients,
        "Loss": of_printed_coefficients,
        "5.6": of_originals,
        "5.7": of_originals,
        "Silos": of_silos,
        "7.1 and 7.2": of_holders,
        **dict.fromkeys(TABLES, of_lists),
        **dict.fromkeys(CLASSIFIED, of_anonymized),
    }
    return lambda place: kinds[place.table](place)


def of_scores(scores: Mapping[str, Scores]) -> dict[str, float]:
    """Return means over the splits."""
    accuracies = {f"{name}, accuracy": one.accuracy.mean() for name, one in scores.items()}
    return accuracies | {f"{name}, F1": one.f1_macro.mean() for name, one in scores.items()}


def silos(adult: Table) -> list[Table]:
    """Part the training records into equal random parts, each with its own hierarchies."""
    mixed = adult.shuffled(0)
    known = mixed.texts.rows[round(TEST_SHARE * len(mixed.texts.rows)) :]
    return [
        replace(adult, texts=Texts(adult.texts.names, known[silo::SILOS])) for silo in range(SILOS)
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
    adult = read_table(data, "Adult")
    adult = replace(adult, texts=adult.texts.complete())
    counts = [len(adult.shuffled(seed).lists("k")) for seed in range(ORDERS)]
    housing = read_table(data, "housing").shuffled(0)
    mixed = [f"{len(housing.lists(criterion)):,}" for criterion in ("k", "l = 2", "t = 0.4")]
    yield (
        f"- O, order: the partitioner cuts values in the order of their first appearance, and the "
        f"order of the rows is not named. {ORDERS} random orders of the complete rows of Adult "
        f"give {min(counts):,} to {max(counts):,} lists at k = 3. California housing with its rows "
        f"shuffled has {mixed[0]} lists, {mixed[1]} with l = 2 and {mixed[2]} with t = 0.4."
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
