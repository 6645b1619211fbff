"""Sections of the report that show single classes: a typical one, and inside the worst ones."""

from __future__ import annotations

from anonspark.page.blocks import Section, Table, Text
from anonspark.reporting.classes import ShownClass
from anonspark.reporting.disclosure import round_percent
from anonspark.reporting.evidence import Evidence


def example(evidence: Evidence) -> Section | None:
    """Show one published class as who gets the release sees it; None where there is none."""
    one = evidence.shown.typical
    if one is None or evidence.rules.hides(one.size):
        return None
    text = f"A typical class, as it is published: {one.size:,} records look like this. "
    text += _found(one, evidence)
    if one.attribute:
        text += (
            f" Of {one.attribute} they have {one.distinct:,} different "
            f"value{'s' * (one.distinct != 1)}, of which the most frequent has "
            f"{round_percent(one.share)}{' of the records' if evidence.people else ''}."
        )
    rows = [[column, label] for column, label in one.labels.items()]
    return Section(
        "example",
        "One published class",
        [
            Text(text),
            Table("What is published of each of its records", ("column", "published"), rows),
        ],
    )


def _found(one: ShownClass, evidence: Evidence) -> str:
    """Say how sure it is whose records they are."""
    if not evidence.people:
        return (
            f"Whoever knows all of it of somebody finds {one.size:,} records, and takes the right "
            f"one for theirs with a probability of {round_percent(1 / one.size)}."
        )
    text = f"Whoever knows all of it of somebody finds {one.size:,} records"
    fewest = min(evidence.people)
    if evidence.rules.hides(fewest):
        return f"{text}; how many people they are about was not counted."
    return (
        f"{text} of {fewest:,} people or more, and takes the right person for theirs with a "
        f"probability of {round_percent(1 / fewest)} at most."
    )


def worst_classes(evidence: Evidence) -> Section | None:
    """Name the worst classes; None outside, where nobody is to look for them first."""
    found = evidence.shown.worst
    if not evidence.inside or not found:
        return None
    of_records = " of the records" if evidence.people else ""
    return Section(
        "worst-classes",
        "Worst classes",
        [
            Text("The classes in which one value of a sensitive attribute has the largest share"
                 f"{of_records}. They are in the inside edition alone."),
            *(
                _table(name, [one for one in found if one.attribute == name])
                for name in dict.fromkeys(one.attribute for one in found)
            ),
        ],
    )  # fmt: skip


def _table(attribute: str, classes: list[ShownClass]) -> Table:
    columns = ("class", "records", "different values", "largest share", "most frequent value")
    rows = [
        [
            "; ".join(f"{column} {label}" for column, label in one.labels.items()),
            f"{one.size:,}",
            f"{one.distinct:,}",
            round_percent(one.share),
            one.value,
        ]
        for one in classes
    ]
    return Table(f"Worst classes by {attribute}", columns, rows)
