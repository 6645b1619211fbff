"""Federated learning, and what it is compared with, on Adult in the hands of three holders.

    PYTHONPATH=benchmarks .venv/bin/python -m quality.silos --data ../shared/data

Five models are trained on the same split: on the pooled records, federated on the holders' records,
on the anonymized pool, on the union of what the holders anonymized apart, and federated on those.
The network and the averaging are NumPy; the product has no part of this. Releases are made by the
engine without Java, with ``smondrian`` and under one coding; their features are those of
``anonspark evaluate``. Prints the Markdown that docs/reproduction.md has. Takes some minutes on one
core.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from quality.holders import (
    KS,
    SEEDS,
    TRAININGS,
    K,
    Measured,
    measure,
    parts_by_relationship,
    random_parts,
)

POOLED_RAW, FEDERATED_RAW, POOLED, UNION, FEDERATED = TRAININGS
FIGURES = ("accuracy", "precision", "recall", "f1", "area")


def table_of_scores(measured: Measured, k: int = K) -> Iterator[str]:
    """Write the five trainings as a Markdown table: means over the seeds, and the ranges."""
    yield "| training | accuracy | precision | recall | F1 | area |"
    yield "|" + " --- |" * 6
    for training in TRAININGS:
        of = k if (training, k) in measured.scores else 0
        mean = measured.mean(training, of)
        ranges = ((name, *measured.range(training, name, of)) for name in FIGURES)
        cells = [
            f"{getattr(mean, name):.3f} ({low:.3f} to {high:.3f})" for name, low, high in ranges
        ]
        yield f"| {training} | {' | '.join(cells)} |"
    majority = measured.majority
    yield (
        f"| always the most frequent class | {sum(majority) / len(majority):.3f} "
        f"({min(majority):.3f} to {max(majority):.3f}) | | | | 0.500 |"
    )


def table_of_areas(measured: Measured, ks: Sequence[int] = KS) -> Iterator[str]:
    """Write what anonymizing apart costs, by k: means of the areas over the seeds."""
    yield "| k | pooled, anonymized | union of anonymized | federated, anonymized |"
    yield "|" + " --- |" * 4
    for k in ks:
        cells = [
            f"{measured.mean(training, k).area:.4f}" for training in (POOLED, UNION, FEDERATED)
        ]
        yield f"| {k} | {' | '.join(cells)} |"


def differences(measured: Measured, one: str, other: str, name: str, k: int = K) -> list[float]:
    """Return by how much a figure of one training is above another's, for each seed."""
    found = []
    for training in (one, other):
        of = k if (training, k) in measured.scores else 0
        found.append([getattr(score, name) for score in measured.scores[training, of]])
    return [first - second for first, second in zip(*found, strict=True)]


def requirements(alike: Measured, differing: Measured) -> Iterator[tuple[str, str, bool]]:
    """Tell what is required of the measurement, what was measured, and whether it is so.

    Of every seed, not of their means.
    """
    low, high = alike.range(FEDERATED_RAW, "accuracy")
    yield (
        "accuracy, federated, raw: 0.850 ± 0.008",
        f"{low:.3f} to {high:.3f}",
        0.842 <= low <= high <= 0.858,
    )
    least = min(
        min(differences(alike, anonymized, raw, "accuracy"))
        for anonymized, raw in (
            (POOLED, POOLED_RAW),
            (UNION, POOLED_RAW),
            (FEDERATED, FEDERATED_RAW),
        )
    )
    yield (
        f"accuracy, anonymized at k = {K}: at most 0.02 below raw",
        f"{least:+.3f} at least",
        least >= -0.02,
    )
    for what, measured in (("holders alike", alike), ("holders that differ", differing)):
        least = min(differences(measured, UNION, FEDERATED, "area"))
        yield (
            f"area, {what}: union at most 0.003 below federated, anonymized",
            f"{least:+.4f} at least",
            least >= -0.003,
        )
    above = differences(differing, UNION, FEDERATED_RAW, "area")
    yield (
        "area, holders that differ: union above federated, raw, in the mean",
        f"{sum(above) / len(above):+.4f}",
        sum(above) > 0,
    )


def table_of_requirements(alike: Measured, differing: Measured) -> Iterator[str]:
    """Write them as a Markdown table."""
    yield "| required | measured | met |"
    yield "| --- | --- | --- |"
    for required, found, met in requirements(alike, differing):
        yield f"| {required} | {found} | {'yes' if met else 'no'} |"


def blocks(alike: Measured, differing: Measured) -> Iterator[str]:
    """Write all tables, with a line before each."""
    yield f"Three holders with equal random parts. Releases have k = {K}:"
    yield "\n".join(table_of_scores(alike))
    yield "What it costs to anonymize apart, by k (mean areas):"
    yield "\n".join(table_of_areas(alike))
    shares = [f"{100 * sum(one) / len(one):.0f}%" for one in zip(*differing.shares, strict=True)]
    yield (
        "Holders that differ: married, not in family, and others, of whom "
        f"{', '.join(shares)} have more than 50K. k = {K}:"
    )
    yield "\n".join(table_of_scores(differing))
    yield "\n".join(table_of_requirements(alike, differing))


def main() -> None:
    """Train everything and print the tables."""
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    options = parser.parse_args()
    alike = measure(options.data, random_parts, KS, options.seeds)
    differing = measure(options.data, parts_by_relationship, (K,), options.seeds)
    print("\n\n".join(blocks(alike, differing)))


if __name__ == "__main__":
    main()
