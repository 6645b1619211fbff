"""The rows of the table ``nodes``, as they follow from the rounds and what a lattice is like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from anonspark.core.levels import read_levels
from anonspark.verification.derived_tables import Levels, Within

Row = Mapping[str, Any]

Counted = Mapping[tuple[int, int], tuple[int, int]]
"""Classes, and records of the smallest of them, by round and node."""


def expected_nodes(
    nodes: Sequence[Row],
    rounds: Sequence[Row],
    heights: Mapping[str, int],
    counted: Counted,
    *,
    counts_told: bool,
) -> Iterator[Row]:
    """Yield the rows of the table, with bounds of what does not follow.

    Parameters
    ----------
    nodes, rounds : sequence of mapping
        Rows of the tables, each with the columns that identify it.
    heights : mapping of str to int
        Of each quasi-identifier, the levels of its hierarchy.
    counted : mapping
        See :func:`count_nodes`.
    counts_told : bool
        Whether the release shows how many records it leaves out.
    """
    by_round = {row["round"]: row for row in rounds}
    names = tuple(heights)
    for number, group in groupby(nodes, key=lambda row: row["round"]):
        of_round = by_round.get(number, {})
        chosen = read_levels(of_round.get("levels") or "", names) or ()
        taken: list[str] = []
        for place, row in enumerate(group, start=1):
            left_over = of_round.get("outlier_rows")
            is_told = counts_told and (place == 1 or not left_over)
            if place == 1:
                first, least = row, row["loss"]
            # Merging makes no class smaller, and none more.
            bounds = Within(1, first["classes"]), Within(first["min_class_size"])
            classes, smallest = counted.get((number, place), bounds)
            expected = {
                "round": number,
                "node": place,
                "levels": Levels(names, chosen, tuple(heights.values()), frozenset(taken)),
                "height": sum(read_levels(row["levels"], names) or ()),
                "classes": classes,
                "min_class_size": smallest,
                "suppressed": left_over if is_told else None,
                # The least loss first.
                "loss": Within(least),
            }
            if place == 1:
                expected |= {
                    name: of_round.get(name) for name in ("levels", "height", "classes", "loss")
                }
            yield expected
            taken.append(row["levels"])
            least = row["loss"]


def count_nodes(classes: pa.Table, nodes: Sequence[Row], heights: Mapping[str, int]) -> Counted:
    """Count the classes of nodes that follow from the chosen labels without a hierarchy.

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
        counted[row["round"], row["node"]] = len(sizes), int(pc.min(sizes).as_py() or 0)
    return counted
