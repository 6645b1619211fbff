"""What a release still tells of a target: of releases that tell all, nothing, or lies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from evaluated import KINDS, ROWS, people, write_raw_release, write_release
from helpers import command, write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from anonspark.core.association import association_loss, removed_uncertainty
from anonspark.engine.local.engine import LocalEngine
from anonspark.utility import class_counts
from anonspark.utility.association import Association
from anonspark.utility.bins import Brackets
from anonspark.utility.evaluation import open_evaluation


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return write_table(tmp_path / "original.parquet", people())


def found_in(release: Path, original: Path) -> Association:
    found = open_evaluation(LocalEngine(), str(release), str(original), "ill").association()
    assert found is not None
    return found


def test_a_release_that_is_its_original_loses_nothing(original: Path, tmp_path: Path) -> None:
    found = found_in(write_raw_release(tmp_path / "raw"), original)
    assert found.loss == 0
    assert [one.name for one in found.attributes] == ["age", "born", "job", "weight"]
    assert all(one.before == one.after for one in found.attributes)


def test_a_release_that_tells_nothing_loses_all(original: Path, tmp_path: Path) -> None:
    data: dict[str, Any] = {name: ["*"] * ROWS for name in KINDS}
    data["ill"] = people()["ill"]
    found = found_in(write_release(tmp_path / "all", data, ill="sensitive"), original)
    assert found.loss is not None
    assert found.loss > 0.99


def bins_of(values: list[Any]) -> list[int]:
    """Return the bin of each value, as the specification says it."""
    present = sorted(value for value in values if value is not None)
    edges = sorted(
        {
            next(v for v in present if 20 * sum(x <= v for x in present) >= i * len(present))
            for i in range(1, 20)
        }
    )
    return [
        len(edges) + 1 if value is None else sum(edge < value for edge in edges) for value in values
    ]


@pytest.mark.parametrize("name", ["age", "born", "weight"])
def test_bins_are_those_of_sorted_values(original: Path, tmp_path: Path, name: str) -> None:
    table = people()
    opened = open_evaluation(
        LocalEngine(), str(write_raw_release(tmp_path / "raw")), str(original), "ill"
    )
    found = opened.association()
    assert found is not None
    before = next(one.before for one in found.attributes if one.name == name)
    counted = np.zeros((22, 2), np.int64)
    classes = [str(one) for one in table["ill"].to_pylist()]
    for own, ill in zip(bins_of(table[name].to_pylist()), classes, strict=True):
        counted[own, int(ill == "yes")] += 1
    slow = removed_uncertainty(counted, counted.astype(float), counted.sum(axis=0))
    assert before == pytest.approx(slow, abs=1e-12)


def test_wider_labels_are_spread(original: Path, tmp_path: Path) -> None:
    table = people()
    data: dict[str, Any] = {
        "job": [
            "{clerk, cook}" if one in ("clerk", "cook") else "*" for one in table["job"].to_pylist()
        ],
        "ill": table["ill"],
    }
    found = found_in(write_release(tmp_path / "jobs", data, ill="sensitive"), original)
    jobs = ["clerk", "cook", "driver", "nurse", None]
    own, told = np.zeros((5, 2), np.int64), np.zeros((5, 2))
    for job, ill in zip(table["job"].to_pylist(), table["ill"].to_pylist(), strict=True):
        t = int(ill == "yes")
        own[jobs.index(job), t] += 1
        if job in ("clerk", "cook"):
            told[:2, t] += 1 / 2
        else:
            # Missing is one more value.
            told[:, t] += 1 / 5
    before = removed_uncertainty(own, own.astype(float), own.sum(axis=0))
    after = removed_uncertainty(own, told, own.sum(axis=0))
    assert found.attributes[0].before == pytest.approx(before, abs=1e-9)
    assert found.attributes[0].after == pytest.approx(after, abs=1e-6)
    assert found.loss == pytest.approx(association_loss([before], [after]), abs=1e-6)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), min_size=1, max_size=80),
    st.integers(1, 6),
)
def test_quantiles_around_any_steps(records: list[tuple[int, int]], number: int) -> None:
    values, classes = (np.array(own) for own in zip(*records, strict=True))
    values = values.astype(np.float64)
    # Any ascending values do, the last being the largest.
    steps = np.unique(np.append(np.sort(values)[:: max(1, len(values) // number)], values.max()))
    counts = np.zeros((len(steps), 3), np.int64)
    np.add.at(counts, (np.searchsorted(steps, values), classes), 1)
    brackets = Brackets.of(steps, counts)
    near = brackets.holds(values)
    different, places = np.unique(values[near], return_inverse=True)
    counts = np.zeros((len(different), 3), np.int64)
    np.add.at(counts, (places, classes[near]), 1)
    edges, up_to = brackets.edges(different, counts)
    in_order = np.sort(values)
    ranks = [-(-i * len(values) // 20) for i in range(1, 20)]
    assert edges.tolist() == sorted({float(in_order[rank - 1]) for rank in ranks})
    assert up_to.tolist() == [
        [int(((values <= edge) & (classes == t)).sum()) for t in range(3)] for edge in edges
    ]


@pytest.mark.parametrize("most", [1, 3, 10])
def test_numbers_of_many_values_are_looked_for_between_steps(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    release = write_raw_release(tmp_path / "raw")
    exactly = found_in(release, original)
    monkeypatch.setattr(class_counts, "_MOST_IN_PART", most)
    monkeypatch.setattr(class_counts, "_MOST_TOGETHER", most)
    monkeypatch.setattr(class_counts, "_DRAWN", 7)
    monkeypatch.setattr(class_counts, "_COMPACTED_AT", 5)
    monkeypatch.setattr(class_counts, "_DENSE", 1)
    assert found_in(release, original) == exactly


def test_records_without_a_target_are_left_out(tmp_path: Path) -> None:
    table = people()
    ill = [None if place % 7 == 0 else one for place, one in enumerate(table["ill"].to_pylist())]
    some = table.set_column(table.schema.get_field_index("ill"), "ill", pa.array(ill))
    release = write_raw_release(tmp_path / "raw")
    with_some = found_in(release, write_table(tmp_path / "some.parquet", some))
    kept = some.filter(pa.compute.is_valid(some["ill"]))
    without = found_in(release, write_table(tmp_path / "kept.parquet", kept))
    assert [one.before for one in with_some.attributes] == [
        one.before for one in without.attributes
    ]


def test_the_order_of_rows_decides_no_digit(original: Path, tmp_path: Path) -> None:
    release = write_raw_release(tmp_path / "raw")
    mixed = people().take(np.random.default_rng(4).permutation(ROWS))
    assert found_in(release, original) == found_in(
        release, write_table(tmp_path / "mixed.parquet", mixed)
    )


def test_a_release_that_lost_a_class(original: Path, tmp_path: Path) -> None:
    table = people()
    kept = table.filter(pa.compute.equal(table["ill"], "no"))
    data = {"job": ["*"] * len(kept), "ill": kept["ill"]}
    found = found_in(write_release(tmp_path / "one", data, ill="sensitive"), original)
    (job,) = found.attributes
    assert job.after is not None
    # It misleads: nobody seems to be ill.
    assert -100 < job.after < 0


def test_it_is_printed(original: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release = write_raw_release(tmp_path / "raw")
    words = ("evaluate", release, "--original", original, "--target", "ill")
    shown = command(capsys, *words)
    assert shown.code == 0, shown.err
    assert "What quasi-identifiers tell of ill: loss 0.0000" in shown.out
    told = json.loads(command(capsys, *words, "--json").out)["association"]
    assert told["loss"] == 0
    assert [set(one) for one in told["attributes"]] == [{"name", "before", "after"}] * 4
