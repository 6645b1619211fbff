"""What the files of a release prove, on the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from anonspark.cli.display import titled_table
from anonspark.core.criterion import CRITERIA
from anonspark.core.figures import RISK, shown
from anonspark.core.utility_score import columns_text
from anonspark.sharing.pairs.releases import JointVerification

if TYPE_CHECKING:
    from anonspark.sharing.pairs.releases import JointVerification, PairVerification
    from anonspark.verification.result import Verification


def show_verification(console: Console, verification: Verification) -> None:
    """Show what was required and found, the attacks, and at last whether all of it holds."""
    published = verification.published
    lines: list[tuple[str, object]] = [
        ("k required", verification.k),
        ("smallest class by published tuple", published.smallest),
        ("largest class by published tuple", published.largest),
        ("classes by published tuple", published.classes),
        ("records", published.rows),
        ("records alone in their class", published.sizes.get(1, 0)),
        ("columns that form classes", ", ".join(verification.quasi_identifier_columns)),
        ("fingerprint", published.fingerprint),
    ]
    if verification.suppressed is not None:
        suppressed = "records suppressed as a whole, left out"
        lines.insert(-1, (suppressed, verification.suppressed))
    told_columns = columns_text(vars(verification))
    if told_columns:
        lines.insert(-1, ("columns, as the run counted", told_columns))
    if verification.units is not None:
        units = verification.units
        told = " (as the run counted)" if units.not_published else ""
        lines.insert(2, (f"fewest people of a class{told}", units.fewest))
        if units.fewest_agreeing is not None:
            agreeing = "fewest people who agree in the classes of all records"
            lines.insert(3, (agreeing, units.fewest_agreeing))
            lines.insert(4, ("people who agree with nobody in all of them", units.alone))
    for one in verification.criteria:
        criterion = one.criterion
        lines.append((f"{criterion.attribute}: {criterion.describe()}", one.measured))
    if verification.presence is not None:
        presence = verification.presence
        lines.append(("presence", f"{presence.smallest:.4f} to {presence.largest:.4f}"))
    if verification.classes_not_covered:
        lines.append(
            ("classes that the population does not cover", verification.classes_not_covered)
        )
    console.print(titled_table(verification.release, ("what", "found"), lines))
    _show_sensitive(console, verification)
    columns = [figure.name for figure in shown(RISK)]
    rows = [
        [*("" if row[name] is None else row[name] for name in columns), _called_high(row)]
        for row in verification.risk
    ]
    title = "Risk of re-identification, as probabilities"
    console.print(titled_table(title, [*columns, "called high"], rows))
    _show_attacks(console, verification)
    singled_out = max((one.singled_out for one in verification.linkage.values()), default=0)
    if verification.k == 1 and singled_out:
        console.print(f"k = 1 hides nobody: {singled_out:,} published records are singled out.")
    if verification.claimed:
        number = len(verification.claimed)
        console.print(
            f"{number:,} statements are claimed, not proven: only the run or the original tells "
            "them. --json lists them (claimed)."
        )
        files = [one.removeprefix("file: ") for one in verification.claimed if "file: " in one]
        if files:
            console.print(f"Claimed files: {', '.join(files)}.")
    show_result(console, "All criteria hold", verification)


def show_result(console: Console, holds: str, found: Verification | JointVerification) -> None:
    """Show whether everything holds, in the colour of what weakens it.

    Parameters
    ----------
    console : Console
    holds : str
        What is said where it does.
    found : Verification or JointVerification
    """
    warnings = len(found.warnings)
    if not found.holds:
        console.print(f"{len(found.failures):,} of the checks failed.", style="red")
    elif getattr(found, "k", None) == 1:
        console.print(f"{holds}, but k = 1 protects nobody.", style="red")
    elif warnings:
        count = "1 warning" if warnings == 1 else f"{warnings:,} warnings"
        console.print(f"{holds}, with {count} (see the log).", style="yellow")
    else:
        console.print(f"{holds}.", style="green")


def _called_high(row: Mapping[str, object]) -> str:
    """Return the figures that exceed what is accepted."""
    return ", ".join(
        name for name in ("highest", "average", "at_risk", "unique") if row[f"high_{name}"]
    )


def _show_sensitive(console: Console, verification: Verification) -> None:
    """Show what the worst class tells of each sensitive attribute."""
    figures = {"different values": "values"}
    for kind, one in CRITERIA.items():
        figures[one.title] = one.column
        if kind == "distinct":
            figures["... of merged spellings"] = "distinct_merged"
            figures["... without missing"] = "distinct_present"
    figures["homogeneous classes"] = "homogeneous_classes"
    figures["their records"] = "homogeneous_records"
    measured = [found.as_dict() for found in verification.sensitive]
    rows = [
        (title, *(_shown(found[name]) for found in measured))
        for title, name in figures.items()
        if any(found[name] is not None for found in measured)
    ]
    if rows:
        columns = ("in the worst class", *(found.attribute for found in verification.sensitive))
        console.print(titled_table("Sensitive attributes", columns, rows))


def _shown(value: object) -> object:
    if value is None:
        return ""
    return "infinite" if isinstance(value, float) and math.isinf(value) else value


def _show_attacks(console: Console, verification: Verification) -> None:
    lines: list[tuple[str, object]] = []
    truthfulness = verification.truthfulness
    if truthfulness is not None:
        lines += [
            (f"truthfulness: {name.replace('_', ' ')}", value)
            for name, value in vars(truthfulness).items()
        ]
    if verification.loss is not None:
        lines += [
            (f"loss: {name.replace('_', ' ')}", value)
            for name, value in vars(verification.loss).items()
            if value is not None
        ]
    for table, found in verification.linkage.items():
        lines += [
            (f"linkage with the {table}: {name.replace('_', ' ')}", value)
            for name, value in {**vars(found), "unmatched": found.unmatched}.items()
        ]
    lines += [
        (f"linkage with the original, {name} values known: fewer than k", found.fewer_than_k)
        for name, found in verification.linkage_with_values.items()
        if found is not None
    ]
    if lines:
        console.print(titled_table("With the tables given", ("what", "figure"), lines))


_TITLES: Mapping[str, str] = {
    "pairs": "pairs of classes that may share a person",
    "payload_pairs": "such pairs with a payload of both",
    "impossible": "impossible pairs",
    "possible": "pairs that fewer than k people can be in",
    "proven": "pairs that somebody is in",
    "breaches": "breaches: somebody among fewer than k",
    "breaches_absent": "... by absence from one release",
    "persons_in_breaches": "people in breaches, at least",
    "absent_from_first": "people of the second who are not in the first, at least",
    "absent_from_second": "people of the first who are not in the second, at least",
    "disclosed": "pairs that disclose a sensitive value",
    "disclosed_required": "... of an attribute that l is required of",
    "rounds": "rounds until nothing changed",
}


def show_proof(console: Console, found: Verification | JointVerification) -> None:
    """Show what one release shows, or several."""
    if not isinstance(found, JointVerification):
        show_verification(console, found)
        return
    for release in found.releases:
        show_verification(console, release)
    for pair in found.pairs:
        _show_pair(console, pair)
    show_result(console, "All criteria hold, of each release and of every two together", found)


def _show_pair(console: Console, pair: PairVerification) -> None:
    lines: list[tuple[str, object]] = [
        ("people", pair.relation),
        ("k of both together", pair.k),
        ("quasi-identifiers of both", ", ".join(pair.common)),
        ("published by both as it is", ", ".join(pair.payload)),
    ]
    figures = vars(pair.figures)
    few = f"fewer than {pair.k}"
    lines += [
        (title, few if figures[name] is None else figures[name]) for name, title in _TITLES.items()
    ]
    if pair.original is not None:
        lines += [
            (f"with the original: {name.replace('_', ' ')}", value)
            for name, value in vars(pair.original).items()
        ]
    title = f"{pair.first} and {pair.second} together"
    console.print(titled_table(title, ("what", "found"), lines))
