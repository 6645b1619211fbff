"""Show what several releases reveal together, as a card."""

from __future__ import annotations

from collections.abc import Mapping

from anonspark.presentation.blocks import Cell, Table
from anonspark.presentation.card import Card
from anonspark.presentation.verification import notes_of, verdict
from anonspark.sharing.pairs.releases import JointVerification, PairVerification

_TITLES: Mapping[str, str] = {
    "pairs": "pairs of classes that may share a person",
    "payload_pairs": "such pairs with a payload of both",
    "impossible": "impossible pairs",
    "possible": "pairs that fewer than k people can be in",
    "proven": "pairs that certainly hold a person",
    "breaches": "breaches: a person among fewer than k",
    "breaches_absent": "... by absence from one release",
    "persons_in_breaches": "people in breaches, at least",
    "absent_from_first": "people of the second who are not in the first, at least",
    "absent_from_second": "people of the first who are not in the second, at least",
    "disclosed": "pairs that disclose a sensitive value",
    "disclosed_required": "... of an attribute that l is required of",
    "rounds": "rounds until nothing changed",
}


def joint_card(joint: JointVerification) -> Card:
    """Return what every two of several releases show."""
    figures: list[tuple[str, Cell]] = [
        (f"{side.release}, smallest class", side.published.smallest) for side in joint.releases
    ]
    return Card(
        "Releases together",
        verdict(joint, 0, "All criteria hold, of each release and of every two together"),
        joint.holds,
        [("releases", len(joint.releases)), *figures],
        [_pair_table(pair) for pair in joint.pairs],
        notes_of(joint),
    )


def _pair_table(pair: PairVerification) -> Table:
    """Show what two releases reveal together, and what the original adds to it, as one table."""
    figures = vars(pair.figures)
    too_few = f"fewer than {pair.k}"
    rows: list[tuple[str, Cell]] = [
        ("people", pair.relation),
        ("k of both together", pair.k),
        ("quasi-identifiers of both", ", ".join(pair.common)),
        ("published by both as it is", ", ".join(pair.payload)),
        *(
            (title, too_few if figures[name] is None else figures[name])
            for name, title in _TITLES.items()
        ),
    ]
    if pair.original is not None:
        rows += [
            (f"with the original: {name.replace('_', ' ')}", value)
            for name, value in vars(pair.original).items()
        ]
    return Table(f"{pair.first} and {pair.second} together", ("what", "found"), rows)
