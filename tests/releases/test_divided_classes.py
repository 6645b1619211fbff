"""Classes that are too many for every task give the figures that they give in every task."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from divided import MODELS, figures, publish_people, verify_both_ways, without_risk
from helpers import attribute, command, divided_classes, local_table

from anonspark.engine.local.engine import LocalEngine
from anonspark.labels import region_matching
from anonspark.labels.region_matching import LabelledTable, cut_leaves


@pytest.mark.parametrize("model", MODELS)
def test_figures_of_drawn_tables(engine: LocalEngine, tmp_path: Path, model: str) -> None:
    for seed in (1, 2):
        paths = publish_people(engine, tmp_path / str(seed), seed, model)
        found, divided = verify_both_ways(engine, *paths, sampled=8 * seed)
        assert found["holds"], found["failures"]
        # Of a sample of classes, fewer ends are looked at.
        assert divided["ends"]["ends"] <= found["ends"]["ends"]
        assert without_risk(divided | {"ends": 0}) == without_risk(found | {"ends": 0})
        assert (found["loss"]["gcp"] is not None) == (model == "numbers")


@pytest.mark.parametrize("limit", [-1, 0, 1])
def test_at_the_limit(limit: int) -> None:
    ages = [attribute("age", "integer")]
    release = local_table(pa.table({"age": [f"[{age}-{age + 9}]" for age in range(0, 90, 10)]}), 2)
    with divided_classes(most=9 + limit):
        labels = LabelledTable(release, ages)
        prepared = labels.prepare(local_table(pa.table({"age": [1]})), "original")
        division = labels.divide(prepared.places)
        assert labels.number == len(labels.classes) == 9
        assert labels.has_sample == (division.leaves is not None) == (limit < 0)


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
    assert "2 of the checks failed" in outcome.out + outcome.err


def test_what_a_population_does_not_show(engine: LocalEngine, tmp_path: Path) -> None:
    found, divided = verify_both_ways(engine, *publish_people(engine, tmp_path, 4, "smondrian"))
    assert divided["warnings"] == [
        *found["warnings"],
        f"risk by population: not measured: {found['classes']} classes, in which proven members "
        "are not looked for",
    ]
    assert divided["linkage"]["population"] == found["linkage"]["population"]
    assert divided["classes_not_covered"] == found["classes_not_covered"] == 0
