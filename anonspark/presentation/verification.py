"""What the files of a release prove, as a card."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from anonspark.core.criterion import CRITERIA
from anonspark.core.utility_score import columns_text
from anonspark.presentation.blocks import Cell, Chart, Table
from anonspark.presentation.card import Card
from anonspark.presentation.release import risk_table
from anonspark.verification.result import Verification


class Outcome(Protocol):
    """What was verified: failures, and warnings where there are none."""

    @property
    def failures(self) -> Sequence[str]:
        """What does not hold."""

    @property
    def warnings(self) -> Sequence[str]:
        """What holds, but may mean less than it seems to."""


def verdict(found: Outcome, k: int, promised: str = "All criteria hold") -> str:
    """Return whether everything holds, and what weakens it."""
    failed, warnings = len(found.failures), len(found.warnings)
    if failed:
        return f"{failed:,} of the checks failed."
    if k == 1:
        return f"{promised}, but k = 1 protects no one."
    if warnings:
        count = "1 warning" if warnings == 1 else f"{warnings:,} warnings"
        return f"{promised}, with {count}."
    return f"{promised}."


def notes_of(found: Outcome) -> list[str]:
    """Return what does not hold, and what weakens the rest."""
    return [*found.failures, *found.warnings]


def verification_card(
    title: str, found: Verification, charts: Callable[[], Sequence[Chart]] = tuple
) -> Card:
    """Return what was required and measured, the attacks, and whether all of it holds."""
    tables = [*_sensitive(found), _risk(found), *_attacks(found)]
    return Card(
        title,
        verdict(found, found.k),
        found.holds and found.k > 1,
        _figures(found),
        tables=[table for table in tables if table.rows],
        notes=notes_of(found),
        remarks=list(_remarks(found)),
        charts=charts,
    )


def _figures(found: Verification) -> list[tuple[str, Cell]]:
    published, units, presence = found.published, found.units, found.presence
    lines: list[tuple[str, Cell | None]] = [("k required", found.k)]
    if units is not None:
        source = " (as the run counted)" if units.not_published else ""
        lines.append((f"fewest people of a class{source}", units.fewest))
        if units.fewest_agreeing is not None:
            agreeing = "fewest people who agree in the classes of all records"
            lines += [
                (agreeing, units.fewest_agreeing),
                ("people who agree with no one in all of them", units.alone),
            ]
    lines += [
        ("smallest class", published.smallest),
        ("largest class", published.largest),
        ("classes", published.classes),
        ("records", published.rows),
        ("records alone in their class", published.sizes.get(1, 0)),
        ("records suppressed as a whole, left out", found.suppressed),
        ("columns that form classes", ", ".join(found.quasi_identifier_columns)),
        ("columns, as the run counted", columns_text(vars(found)) or None),
        ("fingerprint", published.fingerprint),
    ]
    for one in found.criteria:
        lines.append((f"{one.criterion.attribute}: {one.criterion.describe()}", one.measured))
    if presence is not None:
        lines.append(("presence", f"{presence.smallest:.4f} to {presence.largest:.4f}"))
    if found.classes_not_covered:
        lines.append(("classes that the population does not cover", found.classes_not_covered))
    return [(name, cell) for name, cell in lines if cell is not None]


def _sensitive(found: Verification) -> Iterator[Table]:
    """Return what the worst class reveals of each sensitive attribute."""
    figures = {"different values": "values"}
    figures |= {one.title: one.column for one in CRITERIA.values()}
    figures["homogeneous classes"] = "homogeneous_classes"
    figures["their records"] = "homogeneous_records"
    measured = [one.as_dict() for one in found.sensitive]
    rows = [
        [title, *(_cell(one[name]) for one in measured)]
        for title, name in figures.items()
        if any(one[name] is not None for one in measured)
    ]
    columns = ("in the worst class", *(one.attribute for one in found.sensitive))
    yield Table("Sensitive attributes", columns, rows)


def _cell(value: Cell | None) -> Cell:
    if value is None:
        return ""
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def _risk(found: Verification) -> Table:
    table = risk_table(found.risk)
    names = ("highest", "average", "at_risk", "unique")
    high = [", ".join(name for name in names if row[f"high_{name}"]) for row in found.risk]
    rows = [[*cells, called] for cells, called in zip(table.rows, high, strict=True)]
    return Table(table.caption, [*table.columns, "called high"], rows)


def _attacks(found: Verification) -> Iterator[Table]:
    """Return what the original and the population show."""
    if found.truthfulness is not None:
        yield _counts("Truthfulness", vars(found.truthfulness))
    if found.loss is not None:
        yield _counts("Loss", vars(found.loss))
    if found.ends is not None and found.ends.ends:
        yield _counts("Ends of ranges that isolate one record", vars(found.ends))
    for table, one in found.linkage.items():
        rows = {**vars(one), "unmatched": one.unmatched}
        if table == "original":
            rows |= {
                f"fewer than k, {name} values known": known.fewer_than_k
                for name, known in found.linkage_with_values.items()
                if known is not None
            }
        yield _counts(f"Linkage with the {table}", rows)


def _counts(title: str, figures: Mapping[str, Cell | None]) -> Table:
    named = {"dm": "discernibility metric", "re_identified": "re-identified"}
    rows = [
        (named.get(name, name.replace("_", " ")), value)
        for name, value in figures.items()
        if value is not None
    ]
    return Table(title, ("what", "figure"), rows)


def _remarks(found: Verification) -> Iterator[str]:
    singled_out = max((one.singled_out for one in found.linkage.values()), default=0)
    if found.k == 1 and singled_out:
        yield f"k = 1 hides no one: {singled_out:,} published records are singled out."
    if found.claimed:
        yield (
            f"{len(found.claimed):,} statements are claimed, not proven, because only the run or "
            f"the original can show them. --json lists them (claimed)."
        )
        files = [one.removeprefix("file: ") for one in found.claimed if "file: " in one]
        if files:
            yield f"Claimed files: {', '.join(files)}."
