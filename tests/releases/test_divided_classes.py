"""Classes that are too many for every task give the figures that they give in every task."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from commands import command
from divided import MODELS, figures, publish_people, verify_both_ways
from helpers import attribute, divided_classes, local_table

from anonspark.engine.local.engine import LocalEngine
from anonspark.labels import region_matching
from anonspark.labels.region_matching import (
    LabelledTable,
    TooManyClassesError,
    collect_classes,
    cut_leaves,
)


@pytest.mark.parametrize("model", MODELS)
def test_figures_of_drawn_tables(engine: LocalEngine, tmp_path: Path, model: str) -> None:
    for seed in (1, 2):
        paths = publish_people(engine, tmp_path / str(seed), seed, model)
        found, divided = verify_both_ways(engine, *paths)
        assert found["holds"], found["failures"]
        assert divided == found
        assert (found["loss"]["gcp"] is not None) == (model == "numbers")


def test_a_sample_of_classes_shows_where_to_cut(engine: LocalEngine, tmp_path: Path) -> None:
    paths = publish_people(engine, tmp_path, 4, "numbers")
    found, divided = verify_both_ways(engine, *paths, sampled=5)
    # Fewer ends are looked at, and so fewer members are proven.
    assert 0 < divided["ends"]["ends"] < found["ends"]["ends"]
    some = {"ends": None, "risk": None}
    assert divided | some == found | some


@pytest.mark.parametrize("limit", [-1, 0, 1])
def test_at_the_limit(limit: int) -> None:
    ages = [attribute("age", "integer")]
    release = local_table(pa.table({"age": [f"[{age}-{age + 9}]" for age in range(0, 90, 10)]}), 2)
    with divided_classes(most=9 + limit):
        labels = LabelledTable(release, ages)
        prepared = labels.prepare(local_table(pa.table({"age": [1]})), "original")
        reader = labels.reader(prepared.compared_as)
        assert labels.number == len(labels.classes) == 9
        assert labels.has_sample == (reader.leaves is not None) == (limit < 0)
        # What has no other way yet, as a mapping, says so.
        if limit < 0:
            with pytest.raises(TooManyClassesError, match="release: more than 8 classes"):
                collect_classes(labels.data, ages)
        else:
            assert len(collect_classes(labels.data, ages)) == 9


def test_leaves_share_out_all_codes() -> None:
    draw = np.random.default_rng(0)
    low = draw.integers(0, 12, (300, 2)).astype(np.int32)
    high = np.minimum(low + draw.integers(0, 4, low.shape), 12).astype(np.int32)
    leaves = cut_leaves(low, high, [12, 12], 60)
    assert len(leaves) > 8
    for point in product(range(13), repeat=2):
        assert sum(((first <= point) & (last >= point)).all() for first, last, _ in leaves) == 1
    for first, last, touching in leaves:
        assert touching == int(((low <= last) & (high >= first)).all(axis=1).sum())
    assert max(touching for *_, touching in leaves) <= 60
    # Boxes of all codes cannot be cut, and those that overlap are cut up to some copies.
    assert len(cut_leaves(np.zeros_like(low), np.full_like(low, 12), [12, 12], 60)) == 1
    low = draw.integers(0, 900, (2000, 2)).astype(np.int32)
    copies = sum(touching for *_, touching in cut_leaves(low, low + 400, [1400, 1400], 100))
    assert 10 * 2000 <= copies < 11 * 2000


def test_regions_that_overlap_too_much(
    engine: LocalEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release, original, population = publish_people(engine, tmp_path, 3, "overlapping")
    tables = ("--original", original, "--population", population)
    with divided_classes(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_matching, "_MOST_IN_LEAF", 1)
        found = figures(engine, release, original=original, population=population)
        outcome = command(capsys, "verify", release, *tables)
    assert found["truthfulness"] is None
    assert found["linkage"] == {}
    classes = f"release: {found['classes']} classes, whose regions overlap too much to be cut"
    assert found["failures"] == [
        f"truthfulness and linkage attack: not measured: {classes}",
        f"linkage attack with the population: not measured: {classes}",
    ]
    # The others go on.
    assert found["loss"]["rows"] == 40
    assert found["ends"]["ends"] > 0
    assert outcome.code == 4
    assert "of the checks failed" in outcome.out + outcome.err
