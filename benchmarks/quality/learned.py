"""What models learned, measured once and kept as long as code and data are those it was made of."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quality.csv_tables import ADULT_FILES, MAMMOGRAPHIC
from quality.holders import (
    KS,
    SEEDS,
    K,
    Measured,
    Score,
    measure,
    parts_by_relationship,
    random_parts,
)
from quality.ml_utility import Scores, areas_of_boosted_trees, on_adult, on_mammographic

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT = REPOSITORY / "out" / "learned.json"
_PROGRAMS = ("averaging", "csv_tables", "ml_utility", "network", "holders")


@dataclass(frozen=True)
class Learned:
    """All that was measured of models.

    Parameters
    ----------
    alike, differing : Measured
        Of holders with equal random parts, and of holders by relationship.
    adult, mammographic : dict of str to Scores
        Of classifiers on originals.
    areas : dict of str to float
        Of boosted trees, by what they were trained on.
    """

    alike: Measured
    differing: Measured
    adult: dict[str, Scores]
    mammographic: dict[str, Scores]
    areas: dict[str, float]


def learned(data: Path) -> Learned:
    """Return what was measured before, or measure it: some minutes on one core."""
    made_of = _digest(data)
    if KEPT.exists():
        kept = json.loads(KEPT.read_text())
        if kept["made_of"] == made_of:
            return _read(kept)
    found = Learned(
        alike=measure(data, random_parts, KS, SEEDS),
        differing=measure(data, parts_by_relationship, (K,), SEEDS),
        adult=on_adult(data),
        mammographic=on_mammographic(data),
        areas=areas_of_boosted_trees(data),
    )
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps({"made_of": made_of, **_write(found)}))
    return found


def _digest(data: Path) -> str:
    sources = [
        *sorted((REPOSITORY / "anonspark").rglob("*.py")),
        *(Path(__file__).with_name(f"{name}.py") for name in _PROGRAMS),
        *(data / name for name in (*ADULT_FILES, MAMMOGRAPHIC, "adult.csv")),
    ]
    digest = hashlib.sha256()
    for path in sources:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _write(found: Learned) -> dict[str, Any]:
    return {
        **{
            name: {
                "scores": [
                    [training, k, list(map(asdict, scores))]
                    for (training, k), scores in one.scores.items()
                ],
                "majority": one.majority,
                "shares": one.shares,
            }
            for name, one in (("alike", found.alike), ("differing", found.differing))
        },
        **{
            name: {
                learner: [s.accuracy.tolist(), s.f1_macro.tolist()] for learner, s in one.items()
            }
            for name, one in (("adult", found.adult), ("mammographic", found.mammographic))
        },
        "areas": found.areas,
    }


def _read(kept: dict[str, Any]) -> Learned:
    def measured(name: str) -> Measured:
        one = kept[name]
        scores = {(training, k): [Score(**s) for s in each] for training, k, each in one["scores"]}
        return Measured(scores, one["majority"], one["shares"])

    def scores(name: str) -> dict[str, Scores]:
        return {
            learner: Scores(*(np.asarray(values) for values in each))
            for learner, each in kept[name].items()
        }

    return Learned(
        alike=measured("alike"),
        differing=measured("differing"),
        adult=scores("adult"),
        mammographic=scores("mammographic"),
        areas=kept["areas"],
    )
