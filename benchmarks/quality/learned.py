"""What models learned, measured once and kept as long as code and data are those it was made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quality import private_choice
from quality.csv_tables import ADULT_FILES, HOUSING, MAMMOGRAPHIC
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
from quality.ml_utility import (
    Found,
    Scores,
    areas_of_boosted_trees,
    on_adult,
    on_housing,
    on_mammographic,
)
from quality.private_choice import CAR, Curves

REPOSITORY = Path(__file__).resolve().parents[2]
KEPT = REPOSITORY / "out" / "learned"
CLASSIFIED: Mapping[str, tuple[tuple[str, ...], Callable[[Path], dict[str, Found]]]] = {
    "masses": ((MAMMOGRAPHIC,), on_mammographic),
    "housing": ((HOUSING,), on_housing),
    "Adult": (ADULT_FILES, on_adult),
}


@dataclass(frozen=True)
class Learned:
    """All that was measured of models.

    Parameters
    ----------
    alike, differing : Measured
        Of holders with equal random parts, and of holders by relationship.
    classified : dict of str to dict of str to dict of str to Scores
        Of classifiers, by table: on the original and on anonymized ones.
    areas : dict of str to float
        Of boosted trees, by what they were trained on.
    """

    alike: Measured
    differing: Measured
    classified: dict[str, dict[str, Found]]
    areas: dict[str, float]


def learned(data: Path) -> Learned:
    """Return what was measured before, or measure it: some minutes on one core."""
    split = _kept(
        "holders",
        ("*.py",),
        ("averaging", "csv_tables", "holders", "network"),
        [data / name for name in ADULT_FILES],
        lambda: {
            "alike": _write_measured(measure(data, random_parts, KS, SEEDS)),
            "differing": _write_measured(measure(data, parts_by_relationship, (K,), SEEDS)),
        },
    )
    areas = _kept(
        "areas",
        ("*.py",),
        ("adult_releases", "ml_utility"),
        [data / name for name in ("adult.csv", "adult_test.csv")],
        lambda: areas_of_boosted_trees(data),
    )
    return Learned(
        alike=_read_measured(split["alike"]),
        differing=_read_measured(split["differing"]),
        classified={table: classified(data, table) for table in CLASSIFIED},
        areas={key: area for key, area in areas.items() if key != "made_of"},
    )


def classified(data: Path, table: str) -> dict[str, Found]:
    """Return how well classifiers do on a table and on what was anonymized of it."""
    files, scores = CLASSIFIED[table]
    kept = _kept(
        f"classifiers-{table}",
        (),
        ("csv_tables", "first_cut", "frequency_groups", "ml_utility"),
        [data / name for name in files],
        lambda: {key: _write_scores(one) for key, one in scores(data).items()},
    )
    return {key: _read_scores(one) for key, one in kept.items() if key != "made_of"}


def learned_choices(data: Path) -> dict[str, Curves]:
    """Return errors on attributes that are chosen: :func:`quality.private_choice.measure`."""
    kept = _kept(
        "choices",
        ("counting.py", "domains.py", "mechanisms.py", "attribute_scores.py", "exact_noise.py"),
        ("csv_tables", "ml_utility", "naive_bayes", "private_choice", "selection"),
        [data / name for name in (*ADULT_FILES, CAR)],
        lambda: {"errors": private_choice.measure(data)},
    )
    errors: dict[str, Curves] = kept["errors"]
    return errors


def _kept(
    name: str,
    package: Sequence[str],
    programs: Sequence[str],
    files: Sequence[Path],
    make: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """Return what a file keeps, as long as it was made of this code and these files.

    Of the package only the modules count that patterns name.
    """
    sources = [
        *sorted(path for one in package for path in (REPOSITORY / "anonspark").rglob(one)),
        *(Path(__file__).with_name(f"{program}.py") for program in programs),
        *files,
    ]
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    made_of = digest.hexdigest()
    path = KEPT / f"{name}.json"
    if path.exists():
        kept: dict[str, Any] = json.loads(path.read_text())
        if kept["made_of"] == made_of:
            return kept
    found = {"made_of": made_of, **make()}
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found))
    return found


def _write_measured(one: Measured) -> dict[str, Any]:
    scores = [
        [training, k, [asdict(score) for score in found]]
        for (training, k), found in one.scores.items()
    ]
    return {"scores": scores, "majority": one.majority, "shares": one.shares}


def _read_measured(kept: dict[str, Any]) -> Measured:
    scores = {
        (training, k): [Score(**one) for one in found] for training, k, found in kept["scores"]
    }
    return Measured(scores, kept["majority"], kept["shares"])


def _write_scores(scores: Mapping[str, Scores]) -> dict[str, Any]:
    return {name: [one.accuracy.tolist(), one.f1_macro.tolist()] for name, one in scores.items()}


def _read_scores(kept: dict[str, Any]) -> dict[str, Scores]:
    return {name: Scores(*(np.asarray(values) for values in found)) for name, found in kept.items()}
