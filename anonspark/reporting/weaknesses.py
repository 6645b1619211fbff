"""What weakens a release that keeps its promise: what can be inferred, and what singles out."""

from __future__ import annotations

from collections.abc import Iterator

from anonspark.presentation.blocks import Block, Item, Items, Section, Text
from anonspark.reporting.evidence import Evidence, round_percent

# From this share of one value on a class tells it almost surely.
_ALMOST_SURE = 0.5

_TOO_MANY_VALUES = (
    "It has more than 50,000 different values, or values that cannot be compared, as lists, so "
    "what a class reveals of it is not measured."
)


# What is measured of every sensitive attribute counts records.
_MORE = "Counted by person, the share may be higher, up to 100%."


def weaknesses(evidence: Evidence) -> Section:
    """Show what can be inferred of every sensitive attribute, what singles out, and warnings."""
    items = weakness_items(evidence)
    blocks: list[Block] = [
        Text("None of the weaknesses that are measured here was found. Not measured: background "
             "knowledge, other releases, membership, knowledge of the method.")
    ]  # fmt: skip
    if evidence.only_untrue:
        blocks = [
            Text("The release was not shown to be true: see below, under Guarantee and proof. The "
                 "following was also found.", "bad")
        ]  # fmt: skip
    elif not evidence.holds:
        blocks = [
            Text("The release does not keep its promise: what is broken is listed below, under "
                 "Guarantee and proof. The following was also found, or follows from it.", "bad")
        ]  # fmt: skip
    elif any(item.tone for item in items):
        blocks = [
            Text("None of this breaks the promise. Consider it before you decide about the "
                 "release. Remedies are below.")
        ]  # fmt: skip
    return Section("weaknesses", "What weakens it", [*blocks, *([Items(items)] if items else [])])


def weakness_items(evidence: Evidence) -> list[Item]:
    """Return what weakens a release, one item for each thing."""
    items = [*_inferred(evidence), *_risky(evidence), *_singling_out(evidence), *_warned(evidence)]
    # What is bad comes first, and what stands in its order stays there.
    return sorted(items, key=lambda item: ("bad", "mixed", "").index(item.tone))


def shares_tried(evidence: Evidence, attribute: str) -> dict[float, tuple[int, int]]:
    """Return classes and records in which one value has more than each share that was tried."""
    return {
        case.criterion.bound: (case.violating_classes, case.violating_records)
        for case in evidence.verification.tried
        if case.criterion.attribute == attribute and case.criterion.kind == "alpha"
    }


def _inferred(evidence: Evidence) -> Iterator[Item]:
    for sensitive in evidence.verification.sensitive:
        name, rules = sensitive.attribute, evidence.rules
        share = sensitive.worst.get("largest_share")
        if share is None:
            yield Item(f"{name}: not measured", _TOO_MANY_VALUES, "mixed")
            continue
        homogeneous = sensitive.homogeneous_classes or 0
        if homogeneous:
            records = rules.count(sensitive.homogeneous_records or 0)
            several = homogeneous > 1
            subject, pronoun = ("They are", "one of them") if several else ("It is", "it")
            yield Item(
                f"{name}: {_classes(homogeneous)} with one value only",
                f"{subject} homogeneous, with {records} records: if a person is known to be in "
                f"{pronoun}, the {name} is certain.",
                "bad",
            )
            continue
        if share < _ALMOST_SURE:
            text = f"In no class one value of {name} has a larger share."
            title = f"{name}: {round_percent(share)} at most"
            if evidence.people:
                text = f"In no class one value of {name} has a larger share of the records. {_MORE}"
                title += " of the records"
            yield Item(title, text)
            continue
        # Of a single class it would tell by its records which one it is.
        sentences = [
            f". In {_classes(classes)} with {rules.count(records)} records one value has more than "
            f"{round_percent(bound)}{' of the records' if evidence.people else ''}"
            for bound, (classes, records) in sorted(shares_tried(evidence, name).items())
            if classes > 1
        ]
        if evidence.people:
            yield Item(
                f"{name}: {round_percent(share)} of one class's records share one value",
                f"So many of its records have the same value of {name}. {_MORE} No class has "
                f"records of one value only{''.join(sentences)}.",
                "mixed",
            )
            continue
        yield Item(
            f"{name}: {round_percent(share)} of one class share one value",
            f"A guess of the {name} of a person in that class is right with this probability"
            f"{', though every requirement is met' if evidence.holds else ''}. "
            f"No class has one value only{''.join(sentences)}.",
            "mixed",
        )


def _classes(number: int) -> str:
    return "1 class" if number == 1 else f"{number:,} classes"


def _risky(evidence: Evidence) -> Iterator[Item]:
    row = evidence.prosecutor
    if row is not None and row["high_highest"]:
        highest, threshold = (round_percent(float(row[name])) for name in ("highest", "threshold"))
        counted, what = evidence.at_risk
        at_risk = evidence.rules.share(float(row["at_risk"]), counted, what)
        yield Item(
            "The highest risk is above the threshold",
            f"It is {highest}. More than {threshold} counts as high. So high is the risk of "
            f"{at_risk}{f' of the {what}' if at_risk.endswith('%') else ''}.",
            "mixed",
        )


def _singling_out(evidence: Evidence) -> Iterator[Item]:
    for warning in evidence.manifest.document.get("warnings") or ():
        if warning.get("code") in ("rare_values", "column_identifies"):
            tone = "bad" if warning["code"] == "column_identifies" else "mixed"
            name = str(warning["attribute"])
            yield Item(f"{name}: singles people out by itself", _sentence(warning["text"]), tone)


def _warned(evidence: Evidence) -> Iterator[Item]:
    warnings = []
    for warning in evidence.manifest.document.get("warnings") or ():
        warnings.append(str(warning["text"]))
        # Those have an item of their own, and the size of a block is about the machine.
        if warning.get("code") not in ("rare_values", "column_identifies", "large_block"):
            tone = "bad" if warning.get("code") == "people_alone" else "mixed"
            yield Item(str(warning.get("attribute") or "The run"), _sentence(warning["text"]), tone)
    for text in evidence.verification.warnings:
        if not any(text.endswith(warning) for warning in warnings):
            yield Item("The proof", _sentence(text), "mixed")


def _sentence(text: object) -> str:
    """Return a warning as a sentence: in a log it follows a key."""
    sentence = str(text)
    if not sentence.startswith(("execution.", "attributes.")):
        sentence = sentence[:1].upper() + sentence[1:]
    return sentence if sentence.endswith(".") else f"{sentence}."
