"""How good each attribute of a release still is, as a letter."""

from __future__ import annotations

from anonspark.page.blocks import Block, Cell, Grade, Section, Table, Text
from anonspark.reporting.disclosure import round_percent
from anonspark.reporting.evidence import Evidence
from anonspark.reporting.marginals import Marginal
from anonspark.reporting.wording import distance

LIMITS = ((0.05, "A"), (0.15, "B"), (0.30, "C"), (0.60, "D"))
"""Largest share that is lost for each letter; beyond all of them the letter is E."""


def grade(lost: float) -> str:
    """Return the letter for a share that is lost, from 0 (nothing) to 1."""
    return next((letter for limit, letter in LIMITS if lost <= limit), "E")


def quality(evidence: Evidence) -> Section | None:
    """Grade each quasi-identifier by what is lost of it; None without the metrics."""
    rows = evidence.losses
    if not rows:
        return None
    moved = {one.attribute: _moved(one, evidence) for one in evidence.figures.marginals}
    has_original = any(one is not None for one in moved.values())
    has_target = any(row.get("association_before") is not None for row in rows)
    cells: list[list[Cell]] = []
    lost = []
    for row in rows:
        name, open_share = str(row["attribute"]), float(row["ncp"])
        other = moved.get(name)
        lost.append(max(open_share, other or 0.0))
        own: list[Cell] = [name, Grade(grade(lost[-1])), round_percent(open_share)]
        if has_original:
            own.append("" if other is None else round_percent(other))
        if has_target:
            own += [
                "" if row.get(key) is None else round_percent(max(float(row[key]), 0.0))
                for key in ("association_before", "association_after")
            ]
        cells.append(own)
    columns = ["attribute", "grade", "left open"]
    columns += ["moved to another bin"] * has_original
    columns += ["tells of the target: original", "tells of the target: release"] * has_target
    limits = ", ".join(f"{letter} up to {round_percent(limit)}" for limit, letter in LIMITS)
    text = (
        "The grade is given for what is lost of an attribute: the part of its range that a "
        "published value leaves open on average"
    )
    if has_original:
        text += ", or the share of the records that lie in another bin than in the original, "
        text += "whichever is larger"
    table = Table("Quality of each quasi-identifier", columns, cells)
    blocks: list[Block] = [Text(f"{text}: {limits}, E beyond."), table]
    if not has_original and not evidence.withholds_values:
        blocks.insert(1, Text("With the original (option --original) distributions count, too."))
    return Section("quality", "Quality of each attribute", blocks)


def _moved(marginal: Marginal, evidence: Evidence) -> float | None:
    if marginal.before is None:
        return None
    rules = evidence.rules
    return distance(rules.shares(marginal.before), rules.shares(marginal.after))
