"""Charts of what a program found: the figures of a release, of its proof and of its use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from anonspark.core.figure_text import percent
from anonspark.presentation.bars import Bars, Series, bar_chart
from anonspark.presentation.blocks import Chart, Table
from anonspark.presentation.tips import words_of
from anonspark.reporting.class_sizes import size_bins

Row = Mapping[str, Any]

_ROOM = 0.85


def loss_chart(attributes: Sequence[Row]) -> Chart | None:
    """Draw the loss of each quasi-identifier. None if it was not measured.

    Parameters
    ----------
    attributes : sequence of mapping
        The rows of the table ``attributes``.
    """
    rows = [row for row in attributes if row.get("ncp") is not None]
    return _bars(
        "Loss of each attribute",
        [(str(row["attribute"]), 100 * float(row["ncp"])) for row in rows],
        axis="part of the range left open (%)",
        rows="quasi-identifier",
        columns=("attribute", "part of the range left open"),
        texts=[percent(float(row["ncp"])) for row in rows],
    )


def sizes_chart(sizes: Mapping[int, int], k: int) -> Chart | None:
    """Draw how large classes are. None without classes.

    Parameters
    ----------
    sizes : mapping of int to int
        Classes of each size.
    k : int
    """
    bins = size_bins(sizes, k) if sizes else []
    return _bars(
        "Classes by size",
        [(label, float(classes)) for label, classes, _ in bins],
        axis="classes",
        rows="records in a class",
        columns=("records in a class", "classes"),
        texts=[f"{classes:,}" for _, classes, _ in bins],
    )


def risk_chart(risk: Sequence[Row]) -> Chart | None:
    """Draw the risk of re-identification. None if it was not measured.

    Parameters
    ----------
    risk : sequence of mapping
        Rows of the table ``risk``, of the whole release.
    """
    shown = {
        f"{row['attacker']}, {name}": float(row[name])
        for row in risk
        for name in ("highest", "average")
        if row.get(name) is not None
    }
    threshold = next((row["threshold"] for row in risk if row.get("threshold") is not None), None)
    marks = () if threshold is None else ((100 * float(threshold), "accepted at most"),)
    return _bars(
        "Risk of re-identification",
        [(name, 100 * value) for name, value in shown.items()],
        axis="probability (%)",
        rows="attacker",
        columns=("attacker", "probability"),
        texts=[percent(value) for value in shown.values()],
        # A number beside the longest bar needs room, too.
        limit=100.0 if max(shown.values(), default=0.0) <= _ROOM else None,
        marks=marks,
    )


def figures_chart(
    title: str, figures: Mapping[str, float], *, axis: str, rows: str
) -> Chart | None:
    """Draw a bar for each figure. None without figures.

    Parameters
    ----------
    title : str
    figures : mapping of str to float
        NaN draws no bar.
    axis, rows : str
        What the figure and the things are.
    """
    return _bars(
        title,
        list(figures.items()),
        axis=axis,
        rows=rows,
        columns=(rows, axis),
        texts=["" if math.isnan(value) else f"{value:,.4g}" for value in figures.values()],
    )


def _bars(
    title: str,
    bars: Sequence[tuple[str, float]],
    *,
    axis: str,
    rows: str,
    columns: tuple[str, str],
    texts: Sequence[str],
    limit: float | None = None,
    marks: Sequence[tuple[float, str]] = (),
) -> Chart | None:
    if not bars:
        return None
    labels = [label for label, _ in bars]
    values = [value for _, value in bars]
    table = Table(title, columns, list(zip(labels, texts, strict=True)))
    description = "; ".join(f"{label}: {text}" for label, text in zip(labels, texts, strict=True))
    # Several charts of a notebook are in one page: each has names of its own.
    name = f"c{sha256(repr((title, bars)).encode()).hexdigest()[:10]}"
    drawn = Bars(
        title,
        labels,
        [Series(axis, values)],
        axis,
        rows,
        limit=limit,
        marks=marks,
        words=[
            words_of(label, {columns[1]: text} if text else {})
            for label, text in zip(labels, texts, strict=True)
        ],
    )
    return bar_chart(name, drawn, f"Bar chart: {title}. {description}", table)
