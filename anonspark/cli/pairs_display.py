"""What the files of several releases show together, on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.console import Console

from anonspark.cli.display import titled_table
from anonspark.cli.verification_display import show_result, show_verification
from anonspark.verification.release_pairs import JointVerification

if TYPE_CHECKING:
    from anonspark.verification.release_pairs import PairVerification
    from anonspark.verification.result import Verification

_TITLES: Mapping[str, str] = {
    "pairs": "pairs of classes that may share a person",
    "payload_pairs": "such pairs with a payload of both",
    "impossible": "impossible pairs",
    "possible": "pairs that fewer than k people can be in",
    "proven": "pairs that somebody is in",
    "breaches": "breaches: somebody among fewer than k",
    "breaches_absent": "... by absence from one release",
    "persons_in_breaches": "people in breaches, at least",
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
    lines += [(title, figures[name]) for name, title in _TITLES.items()]
    if pair.original is not None:
        lines += [
            (f"with the original: {name.replace('_', ' ')}", value)
            for name, value in vars(pair.original).items()
        ]
    title = f"{pair.first} and {pair.second} together"
    console.print(titled_table(title, ("what", "found"), lines))
