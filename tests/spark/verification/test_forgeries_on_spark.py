"""What Spark writes is forged like what this process writes, and Spark refuses the same."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from forgeries import Nothing, check_release, forge, try_forgery, verified
from sound_releases import make_release

from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.spark.engine import SparkEngine

SEEDS = (1, 2, 15, 70)


@pytest.mark.night
def test_forgeries(engine: SparkEngine, tmp_path: Path) -> None:
    sound = [make_release(seed, tmp_path / f"{seed}", engine=engine) for seed in SEEDS]
    for release in sound:
        assert not isinstance(verified(release.path, release.original, engine), str)
        assert not isinstance(verified(release.path, release.original), str)
        assert check_release(release.path) == 0
    holes = []
    for seed in range(200):
        draw = random.Random(seed)  # noqa: S311
        source = draw.choice(sound)
        forged = Path(shutil.copytree(source.path, tmp_path / "forged", symlinks=True))
        try:
            forgery = forge(draw, forged)
            by_spark = seed % 8 == 0
            judge = engine if by_spark else LocalEngine()
            outcome = try_forgery(forgery, forged, source.original, judge)
            if outcome.verdict == "accepted" or not outcome.agrees:
                holes.append(f"{seed}: {source.title}, by Spark: {by_spark}: {outcome}")
        except Nothing:
            continue
        finally:
            shutil.rmtree(forged)
    assert not holes
