"""Section of the report: how large classes are."""

from __future__ import annotations

from collections.abc import Mapping

from anonspark.presentation.bars import Bars, Series, bar_chart
from anonspark.presentation.blocks import Section, Table, Text
from anonspark.reporting.evidence import Evidence

_MOST_BINS = 14


def class_sizes(evidence: Evidence) -> Section | None:
    """Show how large the classes are, as far as the proof shows it."""
    sizes = evidence.verification.published.sizes
    if not sizes:
        return None
    bins = size_bins(sizes, evidence.k)
    labels = [label for label, _, _ in bins]
    classes = [float(number) for _, number, _ in bins]
    chart = bar_chart(
        "class-sizes",
        Bars(
            "Classes by size",
            labels,
            [Series("classes", classes)],
            "classes",
            "records in a class",
            words=[
                [
                    f"Classes of {label} records: {number:,}",
                    f"records in them: {evidence.rules.count(records)}",
                ]
                for label, number, records in bins
            ],
        ),
        f"Bar chart: number of classes by the number of records in a class. {len(bins)} bars, "
        f"from {labels[0]} to {labels[-1]} records.",
        Table(
            "Classes by size",
            ("records in a class", "classes", "records"),
            [
                [label, f"{number:,}", evidence.rules.count(records)]
                for label, number, records in bins
            ],
        ),
    )
    return Section(
        "class-sizes",
        "Class sizes",
        [
            Text("A class is all records with the same published quasi-identifiers. Larger "
                 "classes hide people better and show less detail."),
            chart,
        ],
    )  # fmt: skip


def size_bins(sizes: Mapping[int, int], k: int) -> list[tuple[str, int, int]]:
    """Return bins of class sizes: label, classes, records. Each with k records or more."""
    starts = _size_starts(k, max(sizes))
    merged: list[list[int]] = []
    for index, low in enumerate(starts):
        high = starts[index + 1] - 1 if index + 1 < len(starts) else max(low, *sizes)
        inside = [size for size in sizes if low <= size <= high]
        classes = sum(sizes[size] for size in inside)
        records = sum(size * sizes[size] for size in inside)
        if merged and merged[-1][3] < k:
            merged[-1][1:] = high, merged[-1][2] + classes, merged[-1][3] + records
        elif classes:
            merged.append([low, high, classes, records])
    bins = []
    for low, high, classes, records in merged:
        label = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        bins.append((f"up to {high:,}" if low < k else label, classes, records))
    return bins


def _size_starts(k: int, largest: int) -> list[int]:
    """Return where bins of class sizes begin. What is below k is one bin."""
    if largest - k < _MOST_BINS:
        starts = list(range(k, largest + 1))
    elif largest < 3 * k:
        starts = list(range(k, largest + 1, -(-(largest - k + 1) // _MOST_BINS)))
    else:
        multiples = (factor * 10**power for power in range(12) for factor in (1, 1.5, 2, 3, 5, 7))
        starts = [int(k * multiple) for multiple in multiples if k * multiple <= largest]
    return sorted({1, *starts})
