"""Verifications as a proof returns them, from the few figures that a test is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonspark.core.criterion import Criterion
from anonspark.verification.proof.classes import PublishedClasses
from anonspark.verification.proof.criteria import MeasuredCriterion
from anonspark.verification.proof.sensitive_figures import SensitiveFigures
from anonspark.verification.proof.unit_criteria import MeasuredUnits
from anonspark.verification.result import Verification

_RISK = {
    **{"attacker": "prosecutor", "highest": 0.1, "average": 0.1, "at_risk": 0.0, "unique": 0.0},
    **{"accepted_average": 0.1, "threshold": 0.2},
    **dict.fromkeys(("high_highest", "high_at_risk", "high_average"), False),
}


def verification(
    *,
    rows: int = 1000,
    classes: int = 50,
    smallest: int = 10,
    sizes: Sequence[Sequence[int]] = (),
    people: Sequence[Sequence[int]] = (),
    holds: bool = True,
    criteria: Sequence[Mapping[str, Any]] = (),
    sensitive: Sequence[Mapping[str, Any]] = (),
    risk: Sequence[Mapping[str, Any]] = (),
    **parts: Any,
) -> Verification:
    """Return a verification of k = 10.

    Parameters
    ----------
    sizes, people : sequence of (int, int)
        Records, or people, of a class, and how many classes have so many.
    criteria : sequence of mapping
        ``attribute``, ``criterion``, ``required`` and perhaps ``c``. None is violated.
    sensitive : sequence of mapping
        ``attribute``, ``largest_share`` or None, and fields of SensitiveFigures.
    risk : sequence of mapping
        What differs from a prosecutor's risk that is not high.
    """
    published = PublishedClasses(rows, classes, smallest, smallest, dict(map(tuple, sizes)), 0, 0)
    figures = []
    for one in sensitive:
        share, others = one["largest_share"], {**one}
        del others["largest_share"]
        worst = {} if share is None else {"largest_share": share}
        figures.append(SensitiveFigures(**{"values": None, "worst": worst, **others}))
    return Verification(
        "release",
        10,
        ["age"],
        published,
        [
            MeasuredCriterion(
                Criterion(one["attribute"], one["criterion"], one["required"], one.get("c", 0.0)),
                *(1.0, 0, 0),
            )
            for one in criteria
        ],
        figures,
        [{**_RISK, **one} for one in risk],
        MeasuredUnits(("pid",), dict(map(tuple, people))) if people else None,
        failures=parts.pop("failures", [] if holds else ["it does not hold"]),
        **parts,
    )
