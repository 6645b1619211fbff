"""What to do next with a release: stricter settings, and what each would cost, as measured."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from anonspark.core.criterion import Criterion
from anonspark.core.figure_text import figure_text
from anonspark.page.blocks import Item, Items, Section, Table, Text
from anonspark.reporting.disclosure import round_percent
from anonspark.reporting.evidence import Evidence
from anonspark.verification.criteria import MeasuredCriterion

# A promise that this share of the records would have to be put together anew for is worth a try.
_BEARABLE = 0.25

# Attributes in the order of the configuration that something is said of.
_MOST_ATTRIBUTES = 5


def advice(evidence: Evidence) -> Section | None:
    """Say what can be done, with the line that does it; None of a union, which no run made."""
    if evidence.manifest.parts:
        return None
    items = [*_broken(evidence), *_larger_classes(evidence), *_stricter(evidence)]
    items += _columns(evidence)
    if not items:
        text = "Nothing has to be done. How other settings would do, anonspark compare tells."
        return Section("advice", "What to do next", [Text(text)])
    blocks: list[Any] = [
        Text("Each line is added to the command that made the release. How many classes would not "
             "keep a stricter promise was measured in this release; a new run puts their records "
             "together with others, which costs usefulness."),
        Items(items),
    ]  # fmt: skip
    table = _table(evidence)
    if table is not None:
        blocks.append(table)
    return Section("advice", "What to do next", blocks)


def _broken(evidence: Evidence) -> Iterator[Item]:
    if not evidence.holds:
        text = "It does not keep its promise. Publish it again, and find out who changed it."
        yield Item("Do not use this release", text, "bad")


def _larger_classes(evidence: Evidence) -> Iterator[Item]:
    """Say which k brings the highest risk below the threshold, where it is above."""
    row: Mapping[str, Any] = next(iter(evidence.verification.get("risk") or ()), {})
    if not row.get("high_highest") or not row.get("threshold"):
        return
    # A threshold of 1 / 3 asks for 3 records, however it is rounded.
    wanted = math.ceil(1 / float(row["threshold"]) - 1e-9)
    if wanted <= evidence.k:
        # So much is required already, and the release does not keep it.
        return
    sizes = evidence.verification.get("sizes") or ()
    small = [(int(size), int(classes)) for size, classes in sizes if int(size) < wanted]
    yield Item(
        f"Ask for classes of {wanted:,} records",
        f"The highest risk is then at most {round_percent(1 / wanted)}. "
        f"{_failing(sum(one for _, one in small), sum(a * b for a, b in small), evidence)}",
        code=f"--set privacy.k={wanted}",
    )


def _stricter(evidence: Evidence) -> Iterator[Item]:
    """Say which stricter promise about each sensitive attribute is within reach."""
    found = stricter_than_required(evidence)
    names = list(dict.fromkeys(one.criterion.attribute for one in found))
    if evidence.verification.get("units"):
        # What was tried counts records, and what would be asked for counts people.
        return
    for name in names[:_MOST_ATTRIBUTES]:
        own = [one for one in found if one.criterion.attribute == name]
        by_kind = {
            kinds: [one for one in own if one.criterion.kind in kinds]
            for kinds in (("ordered distance", "equal distance"), ("alpha",))
        }
        homogeneous = [
            one for one in own if one.criterion.kind == "distinct" and one.criterion.bound == 2
        ]
        for tried in (homogeneous, *by_kind.values()):
            chosen = _within_reach(tried, evidence)
            if chosen is not None:
                yield _item(chosen, evidence)


def stricter_than_required(evidence: Evidence) -> list[MeasuredCriterion]:
    """Return what was tried, without what the requirements ask for already.

    Where a release holds, none of its classes violates that; where it does not, some may.
    """
    required = [
        Criterion(
            one["attribute"], one["criterion"], float(one["required"]), float(one.get("c") or 0.0)
        )
        for one in evidence.verification.get("criteria") or ()
    ]
    return [
        one
        for one in evidence.tried
        if not any(_asks_for(other, one.criterion) for other in required)
    ]


def _asks_for(required: Criterion, tried: Criterion) -> bool:
    """Return whether a criterion that is required asks for one that was tried."""
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
    records = int(evidence.verification.get("rows", 0))
    some = [one for one in tried if one.violating_classes]
    few = [one for one in some if one.violating_records <= _BEARABLE * records]
    if few:
        return min(few, key=lambda one: one.criterion.bound)
    return max(some, key=lambda one: one.criterion.bound, default=None)


def _item(one: MeasuredCriterion, evidence: Evidence) -> Item:
    name, bound = one.criterion.attribute, one.criterion.bound
    if one.criterion.kind == "distinct":
        title = f"Ask for {bound:g} different values of {name} in every class"
        what = "No class would tell it for sure. "
    elif one.criterion.kind == "alpha":
        title = f"Bound the largest share of one {name} at {round_percent(bound)}"
        what = "No guess of it would be right more often in any class. "
    else:
        title = f"Keep {name} in every class near to its distribution in the whole table"
        what = (
            f"This is t-closeness with t = {figure_text(bound)}; the farthest class of the release "
            f"has {figure_text(one.measured, 3)}. "
        )
    failing = _failing(one.violating_classes, one.violating_records, evidence)
    return Item(title, what + failing, code=_set_line(one, evidence))


def _failing(classes: int, records: int, evidence: Evidence) -> str:
    total = int(evidence.verification.get("classes", 0))
    if not classes:
        return f"All {total:,} classes of this release keep it already."
    if classes == 1:
        return f"One of {total:,} classes does not keep it now."
    share = evidence.rules.share(
        records / max(int(evidence.verification.get("rows", 0)), 1),
        int(evidence.verification.get("rows", 0)),
    )
    return (
        f"{classes:,} of {total:,} classes do not keep it now, with "
        f"{evidence.rules.count(records)} records ({share})."
    )


_KEYS = {"alpha": "alpha", "distinct": "l"}


def _set_line(one: MeasuredCriterion, evidence: Evidence) -> str:
    """Return the option that asks for a criterion, beside those that are asked for already."""
    criterion = one.criterion
    section = criterion.type.key
    bound: float | int = criterion.bound
    added: dict[str, Any] = {"attribute": criterion.attribute}
    if section == "l_diversity":
        bound = int(bound)
    added[_KEYS.get(criterion.kind, "t")] = bound
    if criterion.kind == "ordered distance":
        added["distance"] = "ordered"
    others = evidence.manifest.configuration["privacy"].get(section) or []
    replaced = {"attribute", *({"kind"} if section == "l_diversity" else {"distance"})}
    like = {"attribute": criterion.attribute, "kind": "distinct", "distance": _distance(added)}
    kept = [
        {key: value for key, value in other.items() if value is not None}
        for other in others
        if any(other.get(key, like.get(key)) != like.get(key) for key in replaced)
    ]
    value = [*kept, added] if kept else added
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000).strip()
    return f"--set {shlex.quote(f'privacy.{section}={text}')}"


def _distance(added: Mapping[str, Any]) -> str:
    return str(added.get("distance", "equal"))


def _columns(evidence: Evidence) -> Iterator[Item]:
    """Say what to do with columns that single people out by themselves."""
    for one in evidence.manifest.document.get("warnings") or ():
        name = one.get("attribute")
        if one.get("code") == "column_identifies":
            yield Item(
                f"Do not publish {name}",
                "It tells most people apart by itself. If it is needed, make it coarser before.",
                code=_role_line(str(name), "identifier"),
            )
        elif one.get("code") == "rare_values":
            role = evidence.manifest.attributes.get(str(name), {}).get("role")
            text = (
                "Who knows a rare value of somebody finds the record. As a quasi-identifier it is "
                "generalized like the others; or join its rare values in the input."
            )
            # A sensitive attribute that is generalized is not protected as one any more.
            line = "" if role == "sensitive" else _role_line(str(name), "quasi_identifier")
            if role == "sensitive":
                text = (
                    "Who knows a rare value of somebody finds the record, and with it the class. "
                    "Join its rare values in the input, as a group of their own."
                )
            yield Item(f"Join the rare values of {name}", text, code=line)


def _role_line(name: str, role: str) -> str:
    """Return the option that gives an attribute a role; none where its name looks like a path."""
    return "" if "." in name else f"--set {shlex.quote(f'attributes.{name}={role}')}"


def _table(evidence: Evidence) -> Table | None:
    """Show what every promise that was tried would cost."""
    total = int(evidence.verification.get("rows", 0))
    rows = [
        [
            one.criterion.attribute,
            one.criterion.type.words.format(
                bound=one.criterion.bound, c=one.criterion.c, kind=one.criterion.kind
            ),
            f"{one.violating_classes:,}",
            # Of a single class they would tell which one it is.
            *(
                ("", "")
                if one.violating_classes == 1
                else (
                    evidence.rules.count(one.violating_records),
                    evidence.rules.share(one.violating_records / max(total, 1), total),
                )
            ),
        ]
        for one in stricter_than_required(evidence)
        if one.violating_classes
    ]
    if not rows:
        return None
    columns = ("attribute", "promise", "classes", "records", "share")
    return Table("Stricter promises, and the classes that do not keep them now", columns, rows)
