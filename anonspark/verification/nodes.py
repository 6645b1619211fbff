"""What the table ``nodes`` says, held against the rounds and against what a lattice is like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.levels import read_levels

Row = Mapping[str, Any]

Counted = Mapping[tuple[int, int], tuple[int, int]]
"""Classes, and records of the smallest of them, by round and node."""

Claim = tuple[str, Any, Any, str]
"""Key, what was found, what is expected, and what says so."""


def claims_of_nodes(
    nodes: Sequence[Row],
    rounds: Sequence[Row],
    heights: Mapping[str, int],
    counted: Counted,
) -> Iterator[Claim]:
    """Yield what the table says beside what follows from the others.

    Parameters
    ----------
    nodes, rounds : sequence of mapping
        Rows of the tables, each with what tells it from others.
    heights : mapping of str to int
        Of each quasi-identifier, the levels of its hierarchy.
    counted : mapping
        See :func:`count_nodes`.
    """
    numbers = sorted({row["round"] for row in nodes})
    yield "round", numbers, sorted(row["round"] for row in rounds), "metrics/rounds"
    by_round = {row["round"]: row for row in rounds}
    for number in numbers:
        own = sorted((row for row in nodes if row["round"] == number), key=lambda row: row["node"])
        places = [row["node"] for row in own]
        yield f"round {number}: node", places, list(range(1, len(own) + 1)), "its meaning"
        if number in by_round:
            yield from _of_chosen(own[0], by_round[number])
        yield from _of_lattice(own, heights)
    for row in nodes:
        found = counted.get((row["round"], row["node"]))
        if found is not None:
            key = f"round {row['round']}: node {row['node']}"
            for name, number in zip(("classes", "min_class_size"), found, strict=True):
                yield f"{key}: {name}", row[name], number, "metrics/classes"


def _of_chosen(chosen: Row, of_round: Row) -> Iterator[Claim]:
    where = f"round {chosen['round']}: node 1"
    for name in ("levels", "height", "classes", "loss"):
        yield f"{where}: {name}", chosen.get(name), of_round.get(name), "metrics/rounds"
    if chosen.get("suppressed") is not None:
        left_over = of_round.get("outlier_rows")
        yield f"{where}: suppressed", chosen["suppressed"], left_over, "metrics/rounds"


def _of_lattice(nodes: Sequence[Row], heights: Mapping[str, int]) -> Iterator[Claim]:
    """Compare the nodes of a round with the first one, which all others generalize."""
    levels = [read_levels(row["levels"], tuple(heights)) for row in nodes]
    where, source = f"round {nodes[0]['round']}", "its meaning"
    chosen = levels[0]
    if chosen is None or any(one is None for one in levels):
        yield f"{where}: levels", "others", "levels of all quasi-identifiers", source
        return
    known = [one for one in levels if one is not None]
    yield f"{where}: different levels", len(set(known)), len(known), source
    top = tuple(heights.values())
    between = all(
        low <= level <= high
        for one in known
        for low, level, high in zip(chosen, one, top, strict=True)
    )
    yield f"{where}: levels from node 1 up to the hierarchies' heights", between, True, source
    for row, one in zip(nodes, known, strict=True):
        key = f"{where}: node {row['node']}"
        yield f"{key}: height", row.get("height"), sum(one), "levels"
    losses = [row["loss"] for row in nodes]
    yield f"{where}: loss (ascending)", losses == sorted(losses), True, source
    # Merging makes no class smaller, and none more.
    fewer = all(row["classes"] <= nodes[0]["classes"] for row in nodes)
    larger = all(row["min_class_size"] >= nodes[0]["min_class_size"] for row in nodes)
    yield f"{where}: no more classes than node 1", fewer, True, source
    yield f"{where}: no class smaller than that of node 1", larger, True, source


def count_nodes(classes: pa.Table, nodes: Sequence[Row], heights: Mapping[str, int]) -> Counted:
    """Count the classes of nodes that the labels of the chosen one tell of without a hierarchy.

    These are the nodes that raise attributes to the top alone, where all labels become one.

    Parameters
    ----------
    classes : pyarrow.Table
        The table ``classes``: ``round``, ``size``, and of each quasi-identifier ``<name>_min``.
    nodes : sequence of mapping
        Rows of the table ``nodes``.
    heights : mapping of str to int
        Of each quasi-identifier, the levels of its hierarchy.
    """
    chosen = {
        row["round"]: read_levels(row["levels"], tuple(heights))
        for row in nodes
        if row["node"] == 1
    }
    counted: dict[tuple[int, int], tuple[int, int]] = {}
    for row in nodes:
        low, high = chosen.get(row["round"]), read_levels(row["levels"], tuple(heights))
        if low is None or high is None:
            continue
        steps = list(zip(heights.items(), low, high, strict=True))
        if any(own < level < height for (_, height), own, level in steps):
            continue
        kept = [f"{name}_min" for (name, _), own, level in steps if own == level]
        of_round = classes.filter(pc.equal(classes.column("round"), row["round"]))
        if not of_round.num_rows:
            continue
        sizes = of_round.group_by(kept).aggregate([("size", "sum")]).column("size_sum")
        counted[row["round"], row["node"]] = len(sizes), int(pc.min(sizes).as_py())
    return counted
