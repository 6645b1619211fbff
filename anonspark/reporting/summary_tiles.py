"""The first lines of a report: five figures that decide whether a release is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from anonspark.core.model_scores import columns_text, mean_span, utility_word
from anonspark.presentation.blocks import Block, Cell, Grade, Section, Table, Text, Tile, Tiles
from anonspark.reporting.advice import weakness_items
from anonspark.reporting.evidence import Evidence, prosecutor_of, round_percent
from anonspark.reporting.marginals import Marginal
from anonspark.reporting.usefulness import distance, sentence_of
from anonspark.utility.workload import kept_of

LIMITS = ((0.05, "A"), (0.15, "B"), (0.30, "C"), (0.60, "D"))
"""Largest share that is lost for each letter. Beyond all of them the letter is E."""


def grade(lost: float) -> str:
    """Return the letter for a share that is lost, from 0 (nothing) to 1.

    >>> [grade(share) for share in (0.05, 0.06, 0.9)]
    ['A', 'B', 'E']
    """
    return next((letter for limit, letter in LIMITS if lost <= limit), "E")


def quality(evidence: Evidence) -> Section | None:
    """Grade the loss of each quasi-identifier, or return None without the metrics."""
    rows = evidence.losses
    if not rows:
        return None
    moved = {
        marginal.attribute: _moved(marginal, evidence) for marginal in evidence.figures.marginals
    }
    has_original = any(share is not None for share in moved.values())
    has_target = any(row.get("association_before") is not None for row in rows)
    cells: list[list[Cell]] = []
    lost = []
    for row in rows:
        name, open_share = str(row["attribute"]), float(row["loss"])
        other = moved.get(name)
        lost.append(max(open_share, other or 0.0))
        line: list[Cell] = [name, Grade(grade(lost[-1])), round_percent(open_share)]
        if has_original:
            line.append("" if other is None else round_percent(other))
        if has_target:
            line += [
                "" if row.get(key) is None else round_percent(max(float(row[key]), 0.0))
                for key in ("association_before", "association_after")
            ]
        cells.append(line)
    columns = ["attribute", "grade", "left open"]
    columns += ["moved to another bin"] * has_original
    about_target = "information about the target"
    columns += [f"{about_target}: original", f"{about_target}: release"] * has_target
    limits = ", ".join(f"{letter} up to {round_percent(limit)}" for limit, letter in LIMITS)
    text = (
        "The grade is given for what is lost of an attribute: the part of its range that a "
        "published value leaves open on average, of categories the part of their other values"
    )
    if has_original:
        text += ", or the share of the records that lie in another bin than in the original, "
        text += "whichever is larger"
    table = Table("Quality of each quasi-identifier", columns, cells)
    blocks: list[Block] = [Text(f"{text}: {limits}, E beyond."), table]
    if not has_original and not evidence.withholds_values:
        blocks.insert(1, Text("With the original (option --original) distributions also count."))
    return Section("quality", "Quality of each attribute", blocks)


def _moved(marginal: Marginal, evidence: Evidence) -> float | None:
    if marginal.before is None:
        return None
    rules = evidence.rules
    return distance(rules.shares(marginal.before), rules.shares(marginal.after))


def glance(evidence: Evidence) -> Section:
    """Show verdict, risk, records lost, usefulness and the weakest class, side by side."""
    tiles = [
        _verdict(evidence),
        _risk(evidence),
        *_people(evidence),
        _lost(evidence),
        _usefulness(evidence),
        _weakest(evidence),
    ]
    return Section("glance", "At a glance", [Tiles([*tiles, *_ends(evidence)])])


def _ends(evidence: Evidence) -> Iterator[Tile]:
    """Yield what the ends of ranges give away, if an original shows it."""
    ends = evidence.verification.ends
    if ends is None or not ends.ends:
        return
    described = evidence.manifest.quasi_identifiers
    grids = ", ".join(f"{row['grid']} ({row['name']})" for row in described if "grid" in row)
    lines = [f"on a grid of {grids}"] if grids else []
    if any("grid" not in row and row["kind"] not in ("category", "boolean") for row in described):
        lines.append("at values of records")
    text = f"Ranges end {' or '.join(lines)}. "
    text += f"The strips at {ends.by_strip:,} of {ends.ends:,} ends hold one record."
    share = ends.by_strip / ends.ends
    yield Tile("Ends of ranges", round_percent(share), text, "mixed" if share > 0.1 else "good")


def _verdict(evidence: Evidence) -> Tile:
    """Say whether the release keeps its promise, and how many things weaken it."""
    promise = f"k = {evidence.k:,}"
    criteria = len(evidence.verification.criteria)
    if criteria:
        promise += f" and {criteria:,} more requirement{'s' * (criteria > 1)}"
    if evidence.only_untrue:
        text = (
            f"{promise}: every class keeps this. Truthfulness was not shown: perhaps the original "
            "that was given is another table. If it is not, the release must not be used."
        )
        return Tile("Verdict", "does not hold", text, "bad")
    if not evidence.holds:
        return Tile(
            "Verdict", "does not hold", f"{promise}: not kept. The release must not be used.", "bad"
        )
    if evidence.k == 1:
        text = f"{promise} lets every record be a class by itself: no one is protected."
        return Tile("Verdict", "no protection", text, "bad")
    number = sum(1 for item in weakness_items(evidence) if item.tone)
    if not number:
        return Tile("Verdict", "holds", f"{promise}: every requirement is met.", "good")
    weaken = "1 thing weakens it" if number == 1 else f"{number:,} things weaken it"
    text = f"{promise}: every requirement is met. {weaken}. See below."
    return Tile("Verdict", "holds", text, "mixed")


def _risk(evidence: Evidence) -> Tile:
    """Show the prosecutor's highest and average risk, and those of the original if known."""
    after, before = evidence.prosecutor, prosecutor_of(evidence.risk_before)
    if after is None:
        return Tile("Risk of re-identification", "not measured", "The proof found no class.", "bad")
    value = round_percent(float(after["highest"]))
    text = (
        f"At most {value}, {round_percent(float(after['average']))} on average, for an attacker "
        "who knows the quasi-identifiers of one record of a person, and nothing else"
    )
    if before is not None:
        value = f"{round_percent(float(before['highest']))} → {value}"
        text += f". Before, {round_percent(float(before['average']))} on average"
    if after.get("high_average"):
        accepted = round_percent(float(after["accepted_average"]))
        text += f". More than {accepted} on average counts as high (evaluate.risk.average)"
    high = after.get("high_highest") or after.get("high_at_risk") or after.get("high_average")
    return Tile(
        "Risk before and after" if before is not None else "Risk of re-identification",
        value,
        f"{text}.",
        "bad" if evidence.k == 1 else "mixed" if high else "good",
    )


def _people(evidence: Evidence) -> Iterator[Tile]:
    """Show how many people are found by all of their records, if these stay together."""
    units, rules = evidence.verification.units, evidence.rules
    if units is None or units.alone is None:
        return
    text = "No one is alone in the classes of all records."
    if units.alone:
        text = (
            "So many people agree with no one else in the classes of all their records. An "
            "attacker who knows the quasi-identifiers of all of them finds the person for sure."
        )
    tone = "bad" if units.alone else "good"
    yield Tile("People found by all their records", rules.count(units.alone), text, tone)


def _lost(evidence: Evidence) -> Tile:
    """Show how many records are not published, for lack of a value or by suppression."""
    counts = evidence.counts
    if evidence.manifest.parts or "rows_in" not in counts:
        text = (
            f"{evidence.rows:,} records are published. The report of each part shows what it lost."
        )
        return Tile("Records lost", "not known", text)
    dropped, without = (counts.get(name) for name in ("rows_dropped_missing", "rows_suppressed"))
    total, shown = counts["rows_in"], [int(rows) for rows in (dropped, without) if rows is not None]
    lost = sum(shown)
    value = evidence.rules.count(lost)
    if len(shown) < 2:
        value = f"{lost:,} and a few" if lost else evidence.rules.few
        if not shown:
            value = "a few"
    text = "No record was left out." if not lost and len(shown) == 2 else ""
    if not text:
        missing, classless = (evidence.rules.count(number) for number in (dropped, without))
        text = f"{missing} lacked a value, {classless} were suppressed"
        text += "." if total is None else f", of {total:,}."
    share = lost / total if total else 0.0
    tone = "good" if share <= 0.02 else "mixed"
    if evidence.only_untrue:
        text, tone = f"{text} The run reported this for the table that it read.", "mixed"
    return Tile("Records lost", value, text, tone)


def _usefulness(evidence: Evidence) -> Tile:
    learning = evidence.learning
    score = kept_of(learning)
    if learning is None or score is None:
        return _of_figures(evidence)
    if not score.enough or score.share is None:
        tile = _of_figures(evidence)
        return replace(tile, text=f"{tile.text} How well models learn is unknown. See below.")
    value = f"{100 * max(score.share, 0.0):.1f}%"
    good = score.share >= 0.9 and score.held_out
    tone = "good" if good else "mixed" if score.share > 0 else "bad"
    return Tile("Usefulness", value, sentence_of(learning), tone)


def _of_figures(evidence: Evidence) -> Tile:
    """Show the utility score, and the share of information about the target that is lost."""
    score = evidence.counts.get("utility_score")
    if score is None:
        hidden, without = "Means hide what is lost.", "The release came without its metrics."
        return Tile("Usefulness", "not known", hidden if evidence.attributes else without)
    word = "not judged" if evidence.k == 1 else utility_word(float(score))
    lost = round_percent(mean_span(evidence.counts))
    columns = columns_text(evidence.counts)
    text = (
        f"{float(score):.1f} of 100 for the detail kept in the published columns"
        f"{f', {columns}' if columns else ''}. Published values span {lost} of their column's "
        "range on average."
    )
    association = evidence.counts.get("association_loss")
    if association is not None:
        lost = round_percent(max(0.0, float(association)))
        text += f" Of the information that the attributes have about the target, {lost} is lost."
    published, columns_in = (evidence.counts.get(f"columns_{of}") for of in ("published", "in"))
    most_left_out = 2 * (published or 0) < (columns_in or 0)
    is_good = float(score) >= 85 and evidence.k > 1 and not most_left_out
    return Tile("Usefulness", word, text, "good" if is_good else "mixed")


def _weakest(evidence: Evidence) -> Tile:
    """Show the class that reveals most of a sensitive attribute, or else the smallest size."""
    measured = [
        # If a class reveals several attributes, the one that it reveals of most records.
        (sensitive.worst["largest_share"], sensitive.homogeneous_records or 0, sensitive.attribute)
        for sensitive in evidence.verification.sensitive
        if "largest_share" in sensitive.worst
    ]
    smallest = evidence.rules.count(evidence.verification.published.smallest)
    if not measured:
        text = "The smallest class has so many records. "
        text += (
            "What it reveals of the sensitive attributes is not measured."
            if evidence.verification.sensitive
            else "Nothing sensitive is published."
        )
        return Tile("Weakest class", f"{smallest} records", text)
    share, _, attribute = max(measured)
    if share == 1:
        text = (
            f"All records of a class have the same value of {attribute}: if a person is known to "
            f"be in it, this value is certain."
        )
        return Tile("Weakest class", "100% share one value", text, "bad")
    which = "So many records of one class" if share >= 0.75 else "In no class more records"
    text = f"{which} have the same value of {attribute}"
    if evidence.people:
        # Shares of sensitive values count records, not people.
        text += ". Counted by person, the share may be higher, up to 100%"
    elif share >= 0.75:
        text += ": if a person is known to be in it, this value is almost certain"
    tone = "mixed" if share >= 0.5 else "good"
    return Tile("Weakest class", f"{round_percent(share)} share one value", f"{text}.", tone)
