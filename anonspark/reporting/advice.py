"""What weakens a release, and what to do next: stricter settings, and what each would cost."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from anonspark.core.criterion import Criterion
from anonspark.core.figure_text import figure_text, k_of
from anonspark.presentation.blocks import Block, Item, Items, Section, Table, Text
from anonspark.reporting.evidence import Evidence, round_percent
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.proof.measures import SensitiveValues

# From this share of one value on a class tells it almost surely.
_ALMOST_SURE = 0.5

_TOO_MANY_VALUES = (
    "It has more than 50,000 different values, or values that cannot be compared, as lists, so "
    "what a class reveals of it is not measured."
)


# Shares of sensitive values count records, not people.
_MORE = "Counted by person, the share may be higher, up to 100%."


def weaknesses(evidence: Evidence) -> Section:
    """Show what an attacker can infer or single out, and warnings, below a sentence that sums up.

    The sentence depends on whether the promise of the release holds, is broken, or is untrue.
    """
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
    """List what weakens a release, the worst first."""
    items = [*_inferred(evidence), *_risky(evidence), *_singling_out(evidence), *_warned(evidence)]
    # The worst comes first. Items of one tone keep their order.
    return sorted(items, key=lambda item: ("bad", "mixed", "").index(item.tone))


def shares_tried(evidence: Evidence, attribute: str) -> dict[float, tuple[int, int]]:
    """Return the classes and records in which one value has more than each share that was tried."""
    return {
        case.criterion.bound: (case.violating_classes, case.violating_records)
        for case in evidence.verification.tried
        if case.criterion.attribute == attribute and case.criterion.kind == "alpha"
    }


def _inferred(evidence: Evidence) -> Iterator[Item]:
    """Advise on sensitive values that an attacker can infer from a class, for each attribute."""
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
        # The number of its records would show which class a single one is.
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
        # The first two have an item of their own. The size of a block is about the machine.
        if warning.get("code") not in ("rare_values", "column_identifies", "large_block"):
            tone = "bad" if warning.get("code") == "people_alone" else "mixed"
            yield Item(str(warning.get("attribute") or "The run"), _sentence(warning["text"]), tone)
    for text in evidence.verification.warnings:
        if not any(text.endswith(warning) for warning in warnings):
            yield Item("The proof", _sentence(text), "mixed")


def _sentence(text: object) -> str:
    """Turn a warning, which follows a key in a log, into a sentence.

    >>> _sentence("others than its owner can read the file")
    'Others than its owner can read the file.'
    """
    sentence = str(text)
    if not sentence.startswith(("execution.", "attributes.")):
        sentence = sentence[:1].upper() + sentence[1:]
    return sentence if sentence.endswith(".") else f"{sentence}."


# A promise that this share of the records would have to be put together anew for is worth a try.
_BEARABLE = 0.25

# Attributes in the order of the configuration that something is said of.
_MOST_ATTRIBUTES = 5


def advice(evidence: Evidence) -> Section | None:
    """Show what to do and the option that does it, or return None for a union: no run made it."""
    if evidence.manifest.parts:
        return None
    items = [*_broken(evidence), *_larger_classes(evidence), *_stricter(evidence)]
    items += _columns(evidence)
    if not items:
        text = (
            "No stricter setting follows from what is measured. Use anonspark compare to try some."
        )
        return Section("advice", "What to do next", [Text(text)])
    blocks: list[Block] = [
        Text("Add one or more of these options to the command anonspark run. How many classes "
             "would break a stricter promise was measured in this release. A new run puts their "
             "records together with others, which costs usefulness."),
        Items(items),
    ]  # fmt: skip
    return Section("advice", "What to do next", blocks)


def _broken(evidence: Evidence) -> Iterator[Item]:
    if evidence.only_untrue:
        text = (
            "Its records are not those of the original that was given. Give the table that it was "
            "made of. If it was that one, publish it again, and find out who changed it."
        )
        yield Item("Do not use this release before it is shown to be true", text, "bad")
    elif not evidence.holds:
        text = "It does not keep its promise. Publish it again, and find out who changed it."
        yield Item("Do not use this release", text, "bad")


def _larger_classes(evidence: Evidence) -> Iterator[Item]:
    """Propose the k that brings the highest risk below the threshold, if it is above."""
    row = evidence.prosecutor
    if row is None or not row["high_highest"]:
        return
    k = k_of(float(row["threshold"]))
    if k <= evidence.k:
        # This k is required already, and the release does not keep it.
        return
    small = {size: classes for size, classes in evidence.hidden_among.items() if size < k}
    records = sum(size * classes for size, classes in small.items())
    _, what = evidence.at_risk
    yield Item(
        f"Ask for classes of {k:,} {what}",
        f"The highest risk is then at most {round_percent(1 / k)}. "
        f"{_failing(sum(small.values()), None if evidence.people else records, evidence)}",
        code=f"--set privacy.k={k}",
    )


def _stricter(evidence: Evidence) -> Iterator[Item]:
    """Propose the stricter promises about each sensitive attribute that are within reach.

    A later ``--set`` of a key replaces an earlier one, so all attributes of a key have one line.
    """
    hidden = _not_to_publish(evidence)
    cases = [
        case for case in stricter_than_required(evidence) if case.criterion.attribute not in hidden
    ]
    names = list(dict.fromkeys(case.criterion.attribute for case in cases))
    if evidence.people:
        # The tried criteria count records, but required ones would count people.
        return
    by_key: dict[str, list[MeasuredCriterion]] = {}
    for name in names[:_MOST_ATTRIBUTES]:
        same = [case for case in cases if case.criterion.attribute == name]
        by_kind = {
            kinds: [case for case in same if case.criterion.kind in kinds]
            for kinds in (("ordered distance", "equal distance"), ("alpha",))
        }
        homogeneous = [
            case for case in same if case.criterion.kind == "distinct" and case.criterion.bound == 2
        ]
        for tried in (homogeneous, *by_kind.values()):
            chosen = _within_reach(tried, evidence)
            if chosen is not None:
                by_key.setdefault(chosen.criterion.type.key, []).append(chosen)
    for key, chosen_cases in by_key.items():
        yield _item(key, chosen_cases, evidence)


def stricter_than_required(evidence: Evidence) -> list[MeasuredCriterion]:
    """Return what was tried, without what the requirements include already.

    A release that holds has no class that violates those. One that does not hold may have some.
    """
    proof = evidence.verification
    return [
        case
        for case in proof.tried
        if not any(_includes(required.criterion, case.criterion) for required in proof.criteria)
    ]


def _includes(required: Criterion, tried: Criterion) -> bool:
    """Return whether a required criterion includes one that was tried."""
    if tried.kind != "distinct" or required.attribute != tried.attribute:
        return required.is_as_strict_as(tried)
    match required.kind:
        case "distinct" | "entropy" | "recursive":
            values = required.bound
        case "alpha":
            values = 1 / required.bound
        case _:
            return False
    return math.ceil(values - 1e-9) >= tried.bound


def _within_reach(
    tried: Sequence[MeasuredCriterion], evidence: Evidence
) -> MeasuredCriterion | None:
    """Return the strictest bound that few enough records violate, of those that some violate."""
    violated = [case for case in tried if case.violating_classes]
    bearable = [case for case in violated if case.violating_records <= _BEARABLE * evidence.rows]
    if bearable:
        return min(bearable, key=lambda case: case.criterion.bound)
    return max(violated, key=lambda case: case.criterion.bound, default=None)


def _item(key: str, cases: Sequence[MeasuredCriterion], evidence: Evidence) -> Item:
    """Advise criteria of one key, with the option that sets all of them."""
    texts = [_text(case, evidence) for case in cases]
    if len(cases) > 1:
        texts = [
            f"{case.criterion.attribute}: {text}" for case, text in zip(cases, texts, strict=True)
        ]
    return Item(_title(cases), " ".join(texts), code=_set_line(key, cases, evidence))


def _title(cases: Sequence[MeasuredCriterion]) -> str:
    first, several = cases[0].criterion, len(cases) > 1
    listed = _listed([case.criterion.attribute for case in cases])
    if first.kind == "distinct":
        return f"Ask for {first.bound:g} different values of {listed} in every class"
    if first.kind == "alpha" and several:
        return f"Bound the largest share of one value of {listed}"
    if first.kind == "alpha":
        return f"Bound the largest share of one {listed} at {round_percent(first.bound)}"
    whose = "their" if several else "its"
    return f"Keep {listed} in every class near to {whose} distribution in the whole table"


def _text(case: MeasuredCriterion, evidence: Evidence) -> str:
    share = round_percent(case.criterion.bound)
    bound = figure_text(case.criterion.bound)
    farthest = figure_text(case.measured, 3)
    what = {
        "distinct": "No class would reveal it for sure.",
        "alpha": f"No guess of it would be right more often than {share} in any class.",
    }.get(
        case.criterion.kind,
        f"This is t-closeness with t = {bound}. The farthest class of the release has {farthest}.",
    )
    return f"{what} {_failing(case.violating_classes, case.violating_records, evidence)}"


def _failing(classes: int, records: int | None, evidence: Evidence) -> str:
    """Write how many classes do not keep a promise, and how many records if that is known."""
    total = evidence.verification.published.classes
    if not classes:
        return f"All {total:,} classes of this release keep it already."
    if classes == 1:
        return f"One of {total:,} classes does not keep it now."
    if records is None:
        return f"{classes:,} of {total:,} classes do not keep it now."
    share = evidence.rules.share(records / evidence.rows, evidence.rows)
    return (
        f"{classes:,} of {total:,} classes do not keep it now, with "
        f"{evidence.rules.count(records)} records ({share})."
    )


_KEYS = {"alpha": "alpha", "distinct": "l"}


def _set_line(section: str, cases: Sequence[MeasuredCriterion], evidence: Evidence) -> str:
    """Write the option that sets criteria of a key, and keeps those that are set already."""
    added = [_section_of(case.criterion) for case in cases]
    replaced = [_unbounded(entry) for entry in added]
    remaining = [
        {key: value for key, value in entry.items() if value is not None}
        for entry in evidence.manifest.configuration["privacy"].get(section) or []
        if _unbounded(entry) not in replaced
    ]
    value: Any = [*remaining, *added]
    if len(value) == 1:
        (value,) = value
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).strip()
    return f"--set {shlex.quote(f'privacy.{section}={text}')}"


def _section_of(criterion: Criterion) -> dict[str, object]:
    """Return a criterion as a section of the configuration.

    >>> _section_of(Criterion("income", "distinct", 3.0))
    {'attribute': 'income', 'l': 3}
    """
    # A number of different values is a whole one.
    bound = int(criterion.bound) if criterion.kind == "distinct" else criterion.bound
    distance = {"distance": "ordered"} if criterion.kind == "ordered distance" else {}
    return {"attribute": criterion.attribute, _KEYS.get(criterion.kind, "t"): bound, **distance}


def _unbounded(section: Mapping[str, Any]) -> tuple[object, ...]:
    """Identify a section of a criterion without its bound: a stricter one replaces it."""
    kind, distance = section.get("kind", "distinct"), section.get("distance", "equal")
    return section["attribute"], kind, distance


def _not_to_publish(evidence: Evidence) -> set[str]:
    """Return the columns that should be left out, for which no other advice is given."""
    warnings = evidence.manifest.document.get("warnings") or ()
    return {
        str(warning.get("attribute"))
        for warning in warnings
        if warning.get("code") == "column_identifies"
    }


def _columns(evidence: Evidence) -> Iterator[Item]:
    """Advise on columns whose values single people out."""
    sensitive = []
    for warning in evidence.manifest.document.get("warnings") or ():
        name = warning.get("attribute")
        if warning.get("code") == "column_identifies":
            yield Item(
                f"Do not publish {name}",
                "It identifies most people by itself. If you need it, make it coarser first.",
                code=_role_line(str(name), "identifier", evidence),
            )
        elif warning.get("code") == "rare_values":
            if evidence.manifest.attributes.get(str(name), {}).get("role") == "sensitive":
                # One that is generalized is not protected as a sensitive attribute any more.
                sensitive.append(str(name))
                continue
            text = (
                "An attacker who knows a person's rare value finds the record. As a "
                "quasi-identifier it is "
                "generalized like the others. Or join its rare values in the input."
            )
            line = _role_line(str(name), "quasi_identifier", evidence)
            yield Item(f"Join the rare values of {name}", text, code=line)
    if sensitive:
        yield Item(
            f"Join the rare values of {_listed(sensitive)}",
            "An attacker who knows a person's rare value finds the record, and with it the class. "
            "Join rare values in the input, as a separate group.",
        )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _role_line(name: str, role: str, evidence: Evidence) -> str:
    """Write the option that sets the role of an attribute, or return "" if it cannot be set so.

    Its name looks like a path, or another setting needs the role that it has.
    """
    configuration = evidence.manifest.configuration
    association = (configuration.get("evaluate") or {}).get("association") or {}
    criteria = [listed for listed in configuration["privacy"].values() if isinstance(listed, list)]
    needed = {item["attribute"] for listed in criteria for item in listed if isinstance(item, dict)}
    if name in {*needed, association.get("target")} or "." in name:
        return ""
    return f"--set {shlex.quote(f'attributes.{name}={role}')}"


def stricter(evidence: Evidence) -> Section | None:
    """Show what every promise that was tried would cost."""
    cases = [case for case in stricter_than_required(evidence) if case.violating_classes]
    rows = [_cost_row(case, evidence) for case in cases]
    if not rows or evidence.manifest.parts:
        return None
    columns = ("attribute", "promise", "classes", "records", "share")
    title = "Stricter promises, and the classes that do not keep them now"
    if evidence.people:
        title = "Stricter promises, if records counted, and the classes that do not keep them now"
    return Section("stricter", "Stricter promises", [Table(title, columns, rows)])


def _cost_row(case: MeasuredCriterion, evidence: Evidence) -> list[str]:
    """Name a promise, and count the classes and records of the release that break it."""
    criterion, records, rules = case.criterion, case.violating_records, evidence.rules
    words = criterion.type.words.format(bound=criterion.bound, c=criterion.c, kind=criterion.kind)
    row = [criterion.attribute, words, f"{case.violating_classes:,}"]
    # The records of a single class would show which class it is.
    if case.violating_classes == 1:
        return [*row, "", ""]
    return [*row, rules.count(records), rules.share(records / evidence.rows, evidence.rows)]


DISTANCES = (0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
"""Largest distances of t-closeness that are tried."""

SHARES = (0.9, 0.75, 0.5)
"""Largest shares of one value that are tried."""

DIVERSITIES = (2, 3, 4, 5, 6, 8, 10)
"""Different values that are tried."""


def trials(values: SensitiveValues) -> Sequence[Criterion]:
    """Return the criteria that a report tries on the classes, for one sensitive attribute."""
    name = values.name
    distances = [Criterion(name, "equal distance", t) for t in DISTANCES]
    if values.is_ordered:
        distances = [Criterion(name, "ordered distance", t) for t in DISTANCES]
    shares = [Criterion(name, "alpha", share) for share in SHARES]
    # No class can have more values than there are.
    several = [
        Criterion(name, "distinct", float(diversity))
        for diversity in DIVERSITIES
        if diversity <= len(values.values)
    ]
    return [*distances, *shares, *several]
