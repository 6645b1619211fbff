"""What Var and Inan (2018) print about noisy contingency tables, computed again."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from printed_figures import Compared, Place, Printed, compare_lines

from anonspark.core.association import entropy, gini_score
from anonspark.sharing.selection.mechanisms import loss_of_a_record, rank, scale_of, with_noise
from quality import selection
from quality.csv_tables import ADULT_FILES, Texts, read_adult
from quality.learned import learned_choices
from quality.private_choice import ALL, CAR, EXPERIMENTS, Curves, Errors, Folds, mean_errors
from quality.selection import Counts

THESIS = "var-inan-2018"
NEEDED = ("adult.csv", *ADULT_FILES, CAR)
EXAMPLE = np.array([[465, 1035], [680, 320]])
"""Its table of two values (rows) and two classes."""

BEST = 7
RUNS = 100
EPSILONS = ("0.02", "0.05", "0.1", "0.5")
THIRDS_EPSILON = "0.1"
SPREAD_OF_ERROR = 0.7
"""In per cent: what is done with numbers and missing values is not told."""

Record = tuple[int, ...]


def measure(data: Path, printed: Printed) -> tuple[Compared, dict[str, Any]]:
    """Return our figures of its tables, and facts about them."""
    choices = learned_choices(data)
    compared = compare_lines(printed, figures(data, choices), spread_of)
    return compared, {"told": list(told(data)), "choices": choices}


def sensitivity(counts: Callable[[Record], Iterable[Hashable]], records: Iterable[Record]) -> int:
    """Return by how much all counts together change when one record replaces another.

    Parameters
    ----------
    counts : callable
        The counts that a record is in.
    records : iterable of tuple of int
        All possible ones.
    """
    return max(
        len(set(counts(before)) ^ set(counts(after))) for before, after in permutations(records, 2)
    )


def sensitivities() -> dict[str, int]:
    """Return the sensitivity of two counting queries, of one table, and of fourteen."""
    people = list(product(range(2), range(3)))
    # How many women there are, and how many of one age.
    queries = sensitivity(
        lambda one: [name for name, true in (("sex", one[0]), ("age", one[1] == 1)) if true],
        people,
    )
    table = sensitivity(lambda one: [one], people)
    # Fourteen attributes of two values each and a class: the worst replacement changes all.
    extremes: list[Record] = [(0,) * 15, (1,) * 15, (0,) * 14 + (1,)]
    tables = sensitivity(
        lambda one: [(place, value, one[-1]) for place, value in enumerate(one[:-1])], extremes
    )
    return {"two counting queries": queries, "one table": table, "14 tables": tables}


def expected(counts: Counts) -> Counts:
    """Return the counts that are expected of independent values and classes."""
    products: Counts = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return products


def scale_of_noise(tables: int, epsilon: str) -> Fraction:
    """Return the scale of the noise where neighbours replace a record, as the paper has it."""
    return scale_of(tables, loss_of_a_record(Fraction(epsilon), "replace"))


def figures(data: Path, choices: dict[str, Curves]) -> Callable[[Place], dict[str, float]]:
    """Return our figures of a line of a table of conf/experiments/printed/var-inan-2018.csv."""
    (errors,) = (each for _, name, each in choices["Adult"]["epsilon"] if name == ALL)
    changes, matrix = sensitivities(), expected(EXAMPLE)
    car = EXPERIMENTS["Car"].read(data)
    ours: dict[tuple[str, str], dict[str, float]] = {
        **{("Sensitivity", name): {"sensitivity": value} for name, value in changes.items()},
        **{
            ("Expected counts", f"value {row + 1}"): {
                f"class {column + 1}": float(matrix[row, column]) for column in range(2)
            }
            for row in range(2)
        },
        ("Table 2", "Adult"): of_data_set(read_adult(data), errors),
        ("Table 2", "Car"): of_data_set(car, errors_of_two_classes(car)),
    }
    return lambda place: ours[place.table, place.model]


def of_data_set(table: Texts, errors: Errors) -> dict[str, float]:
    """Return what Table 2 has of a data set: its size, and errors without selection."""
    return {
        "attributes": len(table.names) - 1,
        "records": len(table.rows),
        "classes": len(set(table.column(table.names[-1]))),
        **{f"{learner}, error %": 100 * share for learner, share in errors.items()},
    }


def errors_of_two_classes(car: Texts) -> Errors:
    """Return errors on Car Evaluation where all but unacceptable cars are one class."""
    rows = [(*row[:-1], row[-1] if row[-1] == "unacc" else "acc") for row in car.rows]
    folds = Folds(Texts(car.names, rows), EXPERIMENTS["Car"])
    return mean_errors(folds, "chi_square", len(car.names) - 1, None)


def spread_of(_: Place, column: str) -> float:
    """Return within which distance a figure of another draw is the same."""
    return SPREAD_OF_ERROR if column.endswith("error %") else 0


def overlap(tables: Sequence[Counts], best: set[int], epsilon: str, runs: int = RUNS) -> float:
    """Return the mean share of the true best among as many that noisy tables rank first."""
    below = random.Random(epsilon).randrange  # noqa: S311 - a measurement that can be repeated
    scale = scale_of(len(tables), loss_of_a_record(Fraction(epsilon), "replace"))
    shares = []
    for _ in range(runs):
        ranked = rank(with_noise(tables, scale, below), scale, "chi_square")
        chosen = {one.index for one in ranked[: len(best)]}
        shares.append(len(chosen & best) / len(best))
    return float(np.mean(shares))


def best_of(tables: Sequence[Counts], count: int) -> set[int]:
    """Return the places of the best attributes, without noise."""
    order = sorted(range(len(tables)), key=lambda place: (-gini_score(tables[place]), place))
    return set(order[:count])


def curves(adult: Path, runs: int = RUNS) -> tuple[dict[str, float], dict[int, float], float]:
    """Return overlaps by epsilon, by thirds of the records, and where all are chosen."""
    whole = selection.adult(adult).counts
    best = best_of(whole, BEST)
    by_epsilon = {epsilon: overlap(whole, best, epsilon, runs) for epsilon in EPSILONS}
    records = int(whole[0].sum())
    by_records = {}
    for third in (1, 2, 3):
        tables = selection.adult(adult, records * third // 3).counts
        found = overlap(tables, best_of(tables, BEST), THIRDS_EPSILON, runs)
        by_records[records * third // 3] = found
    everything = overlap(whole, set(range(len(whole))), EPSILONS[0], 1)
    return by_epsilon, by_records, everything


def told(data: Path) -> Iterator[str]:
    """Write what is not a printed figure beside ours."""
    both = read_adult(data)
    missing = len(both.rows) - len(both.complete().rows)
    by_epsilon, by_records, everything = curves(data / "adult.csv")
    together = sensitivities()["14 tables"]
    of_epsilon = ", ".join(f"{value:.3f} at {name}" for name, value in by_epsilon.items())
    of_records = ", ".join(f"{value:.3f} of {name:,}" for name, value in by_records.items())
    yield (
        f"- If a record is replaced, the counts of 14 tables change by {together} together. The "
        "paper prints the 2 of one table. This figure is derived from it."
    )
    yield (
        f"- Noise at ε = 0.5, where a record is replaced by another: scale "
        f"{scale_of_noise(14, '0.5')} for 14 tables and {scale_of_noise(6, '0.5')} for 6 "
        "(2n / ε). n is the number of tables that are looked at. The paper also puts the number "
        "of attributes that are chosen in its place, but the loss is then larger than "
        "stated, and we do not offer it."
    )
    yield (
        "- The entropy of the columns of its table of two values and two classes is "
        f"{entropy(EXAMPLE.sum(axis=0)):.6f} bits."
    )
    yield (
        f"- Listwise deletion takes {missing:,} of {len(both.rows):,} records away and leaves "
        f"{len(both.rows) - missing:,}: not few, as the paper calls them."
    )
    yield (
        "- The attributes that are chosen: the share of the true best 7 of 14 "
        f"attributes among those that noisy tables rank first, by chi-square, over {RUNS} runs, "
        f"rises with ε ({of_epsilon}) and with the records (at ε = {THIRDS_EPSILON}: "
        f"{of_records}), and is {everything:.0f} where all are chosen."
    )
