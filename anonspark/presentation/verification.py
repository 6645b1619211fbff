"""What the files of a release prove, as a card."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Protocol

from anonspark.presentation.blocks import Cell, Chart, Table
from anonspark.presentation.card import Card
from anonspark.presentation.release import criteria_lines, risk_text
from anonspark.verification.result import Verification

_ELSEWHERE = ("release", "holds", "failures", "warnings", "claimed")
"""What is shown above the tables, or below them."""

# Letters of a cell. A pipe has no width.
_LINE = 80


class Outcome(Protocol):
    """A verification: failures, and warnings."""

    @property
    def failures(self) -> Sequence[str]:
        """The promises that do not hold."""

    @property
    def warnings(self) -> Sequence[str]:
        """The promises that hold, but may mean less than it seems."""


def verdict(proof: Outcome, k: int, promised: str = "All criteria hold") -> str:
    """Say whether everything holds, and what weakens it."""
    failed, warnings = len(proof.failures), len(proof.warnings)
    if failed:
        return f"{failed:,} of the checks failed."
    if k == 1:
        return f"{promised}, but k = 1 protects no one."
    if warnings:
        count = "1 warning" if warnings == 1 else f"{warnings:,} warnings"
        return f"{promised}, with {count}."
    return f"{promised}."


def notes_of(proof: Outcome) -> list[str]:
    """List failures, and what weakens the rest."""
    return [*proof.failures, *proof.warnings]


def verification_card(
    title: str,
    proof: Verification,
    charts: Callable[[], Sequence[Chart]] = tuple,
    *,
    details: bool = False,
) -> Card:
    """Show on one screen what was required and measured, and whether all of it holds.

    Tables of all figures follow if ``details`` are asked for, or if something does not hold.
    """
    tables: list[Table] = []
    if details or proof.failures:
        document = proof.as_dict()
        shown = {name: document[name] for name in document if name not in _ELSEWHERE}
        tables = [*_tables(shown), _claims(proof.claimed)]
    return Card(
        title,
        verdict(proof, proof.k),
        proof.holds and proof.k > 1,
        list(_summary(proof)),
        tables=[table for table in tables if table.rows],
        notes=notes_of(proof),
        charts=charts,
    )


def _summary(proof: Verification) -> Iterator[tuple[str, Cell]]:
    """Yield the lines that everyone reads."""
    published, units, truth, loss = proof.published, proof.units, proof.truthfulness, proof.loss
    yield "k", f"{proof.k:,} required, {published.smallest:,} records in the smallest class"
    if units is not None:
        source = " (as the run counted)" if units.not_published else ""
        yield "people", f"{units.fewest:,} in the class that has the fewest{source}"
    yield "records", f"{published.rows:,} in {published.classes:,} classes"
    yield from criteria_lines(
        [
            f"{criterion.criterion.describe()} on {criterion.criterion.attribute}: "
            f"{criterion.measured:.4g} in the worst class"
            for criterion in proof.criteria
        ]
    )
    if (presence := proof.presence) is not None:
        yield "presence", f"{presence.smallest:.4f} to {presence.largest:.4f}"
    yield "risk", risk_text(proof.risk)
    if loss is not None:
        span = "" if loss.gcp is None else f", certainty penalty {loss.gcp:.4f} of 1"
        yield "loss", f"discernibility {loss.dm:,}{span}"
    if truth is not None:
        yield "original", f"{truth.matched:,} of {truth.originals:,} records found in the release"
    for table, linkage in proof.linkage.items():
        least = f"{linkage.smallest_candidates:,} candidates or more for {linkage.matched:,}"
        yield "linkage", f"{least} {table} records, {linkage.singled_out:,} singled out"
    if (signature := proof.signature) is not None:
        signer = signature.signer or "not checked: --signers FILE"
        yield "signed", f"{signer} ({signature.key})"
    elif proof.claimed:
        yield "signed", "by no one"
    if proof.claimed:
        yield "claimed", f"{len(proof.claimed):,} statements are claimed, not proven: --details"


def _claims(claimed: Sequence[str]) -> Table:
    """List by file what only the run or the original can show."""
    files = {claim.partition(": ")[0]: list[str]() for claim in claimed}
    for claim in claimed:
        files[claim.partition(": ")[0]].append(claim.partition(": ")[2] or "all")
    rows = [
        (file if not number else "", line)
        for file, names in files.items()
        for number, line in enumerate(wrap(", ".join(names), _LINE, break_long_words=False))
    ]
    return Table("Claimed by the run, not proven", ("where", "what"), rows)


def _tables(document: Mapping[str, Any], caption: str = "") -> Iterator[Table]:
    """Show the figures of a JSON object under its own names, then those of each part of it."""
    figures = [
        (_words(name), _cell(value))
        for name, value in document.items()
        if isinstance(value, str | int | float) or _has(value, str)
    ]
    if figures:
        yield Table(caption or "All figures", ("what", "figure"), figures)
    for name, value in document.items():
        words = ", ".join(filter(None, (caption, _words(name))))
        if isinstance(value, dict):
            yield from _tables(value, words)
        elif _has(value, dict):
            first = next(key for key in value[0] if isinstance(value[0][key], str))
            rows = [[_words(key), *(_cell(row[key]) for row in value)] for key in value[0]]
            columns = (_words(first), *(str(row[first]) for row in value))
            yield Table(words, columns, [row for row in rows if row[0] != first and any(row[1:])])


def _has(value: object, kind: type) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], kind)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Cell | list[str] | None) -> Cell:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(value) if isinstance(value, list) else value if value is not None else ""
