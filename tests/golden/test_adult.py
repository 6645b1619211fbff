"""Adult, five numeric attributes: the printed figures of the theses, and ours, as tables.

All models cut Adult in memory, by the kernels alone. Runs of the whole pipeline have one line for
each way of cutting, and their written metrics are compared with one another, too; that a release
does not depend on tasks and files is in ``guarantees/test_determinism.py``.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import references
from cases import one_by_day
from counted_tables import Records
from data_sets import ADULT
from helpers import metrics, published, summary
from one_block import Release, options_of, release
from public_tables import read
from references import attribute_of, k_alone

from anonspark.config import parse_configuration
from anonspark.core.criteria import Criteria
from anonspark.core.criterion import Criterion
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run as run_pipeline

if TYPE_CHECKING:
    pass

ROWS = 30_162
MANY_TASKS, ONE_TASK = 8_000, 10**9

ALWAYS = {"separation": "always"}
BY_THE_THESIS = {"published": "canbay-2019"}
# The ways to cut that the figures below are of.
MODELS: dict[str, dict[str, Any]] = {
    "published": {"name": "smondrian", **BY_THE_THESIS},
    "balanced": {"name": "smondrian", "split": "strict", "cut": "balanced", "span": "data"},
    "relaxed": {"name": "smondrian", "split": "relaxed", "span": "data"},
    "relaxed, cell": {"name": "smondrian", "split": "relaxed", **BY_THE_THESIS},
    "canon": {"name": "canon"},
    "canon, random": {"name": "canon", **BY_THE_THESIS},
    "u-canon": {"name": "u-canon", **ALWAYS},
    "u-canon, density": {"name": "u-canon", "reference": "density", **ALWAYS},
    "u-canon, paying": {"name": "u-canon"},
    "microaggregation": {"name": "microaggregation"},
}
MODELS |= {
    "published, rounds": MODELS["published"] | {"name": "u-mondrian"},
    "published, su": MODELS["published"] | {"name": "su-mondrian"},
    "balanced, rounds": MODELS["balanced"] | {"name": "su-mondrian", "rho": 5, **ALWAYS},
    "relaxed, rounds": MODELS["relaxed"] | {"name": "su-mondrian", **ALWAYS},
    "relaxed, cell, rounds": MODELS["relaxed, cell"] | {"name": "su-mondrian"},
    "su-mondrian, paying": {"name": "su-mondrian", "refine": 0},
}


class Line(NamedTuple):
    """A way to cut, and what comes out: classes, DM, bounds of ``gcp_total``; None is any."""

    model: str
    k: int
    classes: int | None
    dm: int | None
    gcp_total: tuple[float, float]


def about(figure: float, by: float = 0.02) -> tuple[float, float]:
    return figure - by, figure + by


def at_most(figure: float) -> tuple[float, float]:
    return 0.0, figure


def near(figure: float) -> tuple[float, float]:
    """The thesis leaves the last round's remainders out of its sums; here every record counts."""
    return about(figure, 0.03 * figure)


IN_MEMORY = [
    Line("published", 5, 4553, 207_996, about(3952.62)),
    Line("published", 10, 2222, 425_890, about(6141.81)),
    Line("published", 30, 749, 1_267_990, about(10_367.28)),
    Line("balanced", 5, 4621, 205_134, about(2300.30)),
    Line("balanced", 10, 2265, 418_020, about(3759.11)),
    Line("balanced", 50, 447, 2_120_950, about(9787.22)),
    Line("relaxed", 5, 4096, 223_054, at_most(3265)),
    Line("relaxed", 10, 2048, 444_618, at_most(5110)),
    Line("relaxed", 20, 1024, 888_678, at_most(7650)),
    Line("relaxed", 30, 512, 1_776_890, at_most(11_200)),
    Line("relaxed, cell", 5, 4096, 223_054, at_most(np.inf)),
    Line("relaxed, cell", 10, 2048, 444_618, at_most(np.inf)),
    Line("relaxed, cell", 20, 1024, 888_678, at_most(np.inf)),
    Line("relaxed, cell", 30, 512, 1_776_890, at_most(np.inf)),
    Line("published, rounds", 5, None, 151_040, near(2636.09)),
    Line("published, rounds", 10, None, 302_328, near(4174)),
    Line("published, rounds", 50, None, 1_508_790, near(9248)),
    # Less than without rounds.
    Line("balanced, rounds", 5, None, 151_066, near(2241)),
    Line("balanced, rounds", 10, None, 302_296, near(3736)),
    Line("balanced, rounds", 50, None, 1_508_750, near(8911)),
    Line("su-mondrian, paying", 5, 5238, 180_628, about(2133.68)),
    Line("su-mondrian, paying", 10, 2564, 368_810, about(3548.52)),
    Line("su-mondrian, paying", 50, 497, 1_918_596, about(7974.37)),
    # As many classes, of the same sizes, as relaxed Mondrian makes.
    Line("canon", 5, 4096, 223_054, at_most(2900)),
    Line("canon", 10, 2048, 444_618, at_most(4750)),
    Line("canon", 50, 512, 1_776_890, at_most(10_200)),
    Line("u-canon", 5, 6026, 151_098, about(2292.66)),
    Line("u-canon", 10, 3008, 302_558, about(3861.99)),
    Line("u-canon", 50, 602, 1_513_122, about(9827.96)),
    Line("microaggregation", 5, 6032, 150_822, about(1390.496, 0.001)),
    Line("microaggregation", 10, 3016, 301_642, about(2488.688, 0.001)),
    Line("microaggregation", 50, 603, 1_508_718, about(6379.049, 0.001)),
]

# Ten equal copies at 10 k: the classes of one copy at k, each ten times as large.
TEN_COPIES = [
    Line("published", 100, 2222, 42_589_000, about(61_418.1, 0.2)),
    Line("published", 300, 749, 126_799_000, about(103_672.8, 0.2)),
    Line("published, su", 100, None, None, at_most(46_000)),
    Line("published, su", 300, None, None, at_most(83_000)),
    Line("balanced, rounds", 100, None, None, at_most(46_000)),
    Line("balanced, rounds", 300, None, None, at_most(83_000)),
]

# Records whose hashes Spark draws: what cuts by them loses a little else than in memory.
BY_RUNS = [
    (MANY_TASKS, Line("published", 5, 4553, 207_996, about(3952.62))),
    (ONE_TASK, Line("balanced", 10, 2265, 418_020, about(3759.1, 0.1))),
    (MANY_TASKS, Line("relaxed", 10, 2048, 444_618, at_most(5110))),
    (MANY_TASKS, Line("balanced, rounds", 10, None, None, near(3736))),
    (2_000, Line("canon", 5, 4096, 223_054, about(2760.74))),
    (ONE_TASK, Line("canon", 50, 512, 1_776_890, about(9603.01))),
    (ONE_TASK, Line("u-canon", 10, 3008, None, about(3872.51))),
    (ONE_TASK, Line("u-canon, density", 5, 6026, None, about(2239.59))),
    (10_000, Line("su-mondrian, paying", 10, 2564, None, about(3548.52))),
    (ONE_TASK, Line("u-canon, paying", 50, 564, None, about(9022.47))),
    (ONE_TASK, Line("microaggregation", 10, None, 301_642, about(2488.69))),
]
# Rounds that each run used of the five at most; the fourth and the fifth of one do not pay.
ROUNDS_THAT_PAY = {"su-mondrian, paying": 3, "u-canon, paying": 4}


def as_printed(found: dict[str, Any], line: Line) -> None:
    assert line.classes in (None, found["classes"])
    assert line.dm in (None, found["dm"])
    least, most = line.gcp_total
    assert least <= found["gcp_total"] <= most


def title(value: object) -> str | None:
    return f"{value.model}-k={value.k}" if isinstance(value, Line) else None


# In memory ----------------------------------------------------------------------------------------


@pytest.fixture
def adult(adult_path: Path) -> Records:
    records = read(adult_path, ADULT.quasi_identifiers)
    assert len(records) == ROWS
    return records


@pytest.fixture(scope="module")
def adult_ten_times(adult_path: Path) -> Records:
    table = pc.read_csv(adult_path).select(list(ADULT.quasi_identifiers))
    columns = [np.tile(column.to_numpy(), 10) for column in table.columns]
    return Records(columns, np.random.default_rng(1).permutation(10 * ROWS) << 32)


def cut(records: Records, model: str, k: int, seed: int = 1, **options: Any) -> Release:
    return release(records, k_alone(k), options_of(MODELS[model] | options), seed)


@pytest.mark.parametrize("line", IN_MEMORY, ids=title)
def test_adult_in_memory_matches_printed_figures(adult: Records, line: Line) -> None:
    found = cut(adult, line.model, line.k)
    as_printed(found.figures, line)
    if line.model == "microaggregation":
        assert found.sizes.max() < 2 * line.k


@pytest.mark.parametrize("line", TEN_COPIES, ids=title)
def test_ten_copies_in_memory(adult_ten_times: Records, line: Line) -> None:
    found = cut(adult_ten_times, line.model, line.k)
    as_printed(found.figures, line)


@pytest.mark.parametrize(
    ("k", "published"),
    [pytest.param(5, 3417.01), pytest.param(10, 5365.65), pytest.param(50, 11_079)],
)
def test_canon_with_random_vantage_points_on_average(
    adult: Records, k: int, published: float
) -> None:
    runs = [cut(adult, "canon, random", k, seed) for seed in range(8)]
    assert {each.classes for each in runs} == {cut(adult, "canon", k).classes}
    assert np.mean([each.gcp_total for each in runs]) == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize("k", [5, 10, 50])
def test_canon_hardly_depends_on_the_seed(adult: Records, k: int) -> None:
    (line,) = (line for line in IN_MEMORY if (line.model, line.k) == ("canon", k))
    for seed in (0, 2):
        found = cut(adult, "canon", k, seed)
        as_printed(found.figures, line)


def test_relaxed_hardly_depends_on_the_hashes(adult: Records) -> None:
    # Only records equal in all five attributes are told apart by hash, and they are alike.
    columns = [column.astype(np.int64) for column in adult.positions.T]
    found = cut(Records(columns, adult.hashes[::-1].copy()), "relaxed", 5)
    expected = cut(adult, "relaxed", 5)
    assert (found.classes, found.dm) == (expected.classes, expected.dm)
    assert found.gcp_total == pytest.approx(expected.gcp_total, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "k", "rounds"),
    [
        *(
            (model, k, rounds)
            for model in ("relaxed, rounds", "relaxed, cell, rounds")
            for k, rounds in {
                5: [(20480, 9682), (7450, 2232), (1280, 952), (640, 312), (312, 0)],
                10: [(20480, 9682), (5120, 4562), (2560, 2002), (1280, 722), (722, 0)],
                30: [(15360, 14802), (7680, 7122), (3840, 3282), (1920, 1362), (1362, 0)],
            }.items()
        ),
        ("published, rounds", 5, [(22765, 7397)]),
        ("published, rounds", 10, [(22220, 7942)]),
    ],
)
def test_rounds_in_memory(
    adult: Records, model: str, k: int, rounds: list[tuple[int, int]]
) -> None:
    """A release of r rounds has the classes of the first r - 1 rounds of a longer one."""
    sizes = cut(adult, model, k).sizes
    classes = [cut(adult, model, k, rho=rho).classes for rho in range(1, len(rounds) + 1)]
    finished = [0, *np.cumsum(sizes)[np.array(classes) - 1]]
    found = [(after - before, ROWS - after) for before, after in pairwise(finished)]
    assert found == rounds


def test_boundaries_further_out_in_memory(adult_path: Path) -> None:
    records = read(adult_path, ADULT.quasi_identifiers, "income")
    attribute = attribute_of("income", np.bincount(records.values[:, 0]).tolist())
    criteria = Criteria(10, (Criterion("income", "equal distance", 0.2),), (attribute,))
    found = release(records, criteria, options_of(MODELS["balanced"]))
    # Boundaries beside the medians alone give 1,039 classes and lose 28,569.9.
    assert (found.classes, found.gcp_total) == (1339, pytest.approx(22_569.2, abs=0.1))


def test_a_sample_is_that_of_the_reference(adult: Records) -> None:
    columns = [column[::100].astype(np.int64) for column in adult.positions.T]
    table = references.table_of(columns, adult.hashes[::100])
    groups = references.strict_mondrian(table, k_alone(5), balanced=True, cell=False)
    found = cut(Records(columns, adult.hashes[::100]), "balanced", 5)
    assert (found.classes, found.dm) == (len(groups), references.discernibility(groups))
    lost = references.global_certainty_penalty(table.positions, table.units, groups)
    assert found.gcp_total == pytest.approx(lost, rel=1e-12)


# By runs ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adult_file(adult_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write Adult with nothing but the quasi-identifiers: Canon draws by the whole content."""
    path = tmp_path_factory.mktemp("adult") / "adult.parquet"
    pq.write_table(pc.read_csv(adult_path).select(list(ADULT.quasi_identifiers)), path)
    return path


@pytest.fixture
def anonymize(tmp_path: Path) -> Any:
    """Run the pipeline; return the written tables ``summary`` (its row) and ``rounds``."""

    def run(
        table: Path, model: str, k: int, task_rows: int, **privacy: object
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        path = tmp_path / "release"
        names = pq.read_schema(table).names
        document = {
            "input": {"path": str(table)},
            "attributes": {name: ADULT.roles()[name] for name in names},
            "privacy": {"k": k, **privacy},
            "model": MODELS[model],
            "output": {"path": str(path)},
            "execution": {"task_rows": task_rows},
        }
        run_pipeline(LocalEngine(), parse_configuration(document))
        rounds = sorted(metrics(path, "rounds"), key=lambda row: row["round"])
        assert_tables_agree(summary(path), rounds, metrics(path, "classes"))
        assert published(path).num_rows == summary(path)["rows_in"] == pq.read_table(table).num_rows
        return summary(path), rounds

    return run


def assert_tables_agree(
    summary: dict[str, Any], rounds: list[dict[str, Any]], classes: list[dict[str, Any]]
) -> None:
    """Compare the tables of one run: each says the same in its own detail."""
    sizes = [row["size"] for row in classes]
    assert sum(sizes) == summary["rows_published"] == summary["rows_in"]
    assert len(sizes) == summary["classes"] == rounds[-1]["classes_total"]
    assert sum(size * size for size in sizes) == summary["dm"] == rounds[-1]["dm_total"]
    assert min(sizes) == summary["min_class_size"] >= summary["k"]
    assert max(sizes) == summary["max_class_size"]
    assert summary["mean_class_size"] == pytest.approx(sum(sizes) / len(sizes))
    assert summary["aecs"] == pytest.approx(sum(sizes) / (len(sizes) * summary["k"]))
    assert summary["median_class_size"] == median(sizes)
    assert 0 < summary["minimal_distortion"] <= len(ADULT.quasi_identifiers) * sum(sizes)
    lost = sum(row["size"] * row["ncp"] for row in classes)
    assert summary["gcp_total"] == pytest.approx(lost, rel=1e-9)
    assert summary["gcp_total"] == pytest.approx(rounds[-1]["gcp_total_cumulative"], rel=1e-12)
    assert summary["gcp"] == pytest.approx(lost / (len(ADULT.quasi_identifiers) * sum(sizes)))
    assert summary["published_min_class_size"] >= summary["k"]
    assert [row["round"] for row in rounds] == list(range(1, summary["rounds"] + 1))
    for earlier, later in pairwise(rounds):
        assert later["rows"] == earlier["outlier_rows"]
    assert rounds[-1]["outlier_rows"] == 0


@pytest.mark.parametrize(("task_rows", "line"), BY_RUNS, ids=title)
def test_by_a_run(anonymize: Any, adult_file: Path, task_rows: int, line: Line) -> None:
    found, rounds = anonymize(adult_file, line.model, line.k, task_rows)
    as_printed(found, line)
    if line.model == "microaggregation":
        assert found["max_class_size"] < 2 * line.k
    if line.model in ("u-canon", "u-canon, density"):
        assert found["rounds"] == 5
    if line.model in ROUNDS_THAT_PAY:
        assert found["rounds"] == ROUNDS_THAT_PAY[line.model]
        if_last = [row["gcp_total_if_last"] for row in rounds]
        assert found["gcp_total"] == pytest.approx(min(if_last), rel=1e-12)
        # The rules are told without being asked for.
        assert (found["rule_a"], found["rule_b"], found["rule_c"]) == (1, 1, 1)


def test_rounds_by_a_run(anonymize: Any, adult_file: Path) -> None:
    _, rounds = anonymize(adult_file, "relaxed, rounds", 5, ONE_TASK)
    found = [(row["normal_rows"], row["outlier_rows"]) for row in rounds]
    assert found == [(20480, 9682), (7450, 2232), (1280, 952), (640, 312), (312, 0)]


def test_u_mondrian_by_a_run(anonymize: Any, adult_file: Path) -> None:
    found, rounds = anonymize(adult_file, "published, rounds", 5, MANY_TASKS)
    assert (rounds[0]["normal_rows"], rounds[0]["outlier_rows"]) == (22765, 7397)
    # Every group of the first round keeps k records.
    assert (rounds[0]["classes"], rounds[0]["dm"]) == (4553, 4553 * 25)
    as_printed(found, Line("published, rounds", 5, None, None, near(2636.09)))
    # The baseline is told without being asked for.
    assert (found["baseline_classes"], found["baseline_dm"]) == (4553, 207_996)
    assert (found["rule_a"], found["rule_b"]) == (1, 1)
    assert len(rounds) <= 5


def test_boundaries_further_out_on_the_cluster(
    anonymize: Any, adult_path: Path, tmp_path: Path
) -> None:
    path = tmp_path / "adult.parquet"
    pq.write_table(pc.read_csv(adult_path).select(list(ADULT.roles())), path)
    closeness = {"attribute": "income", "t": 0.2}
    found, _ = anonymize(path, "balanced", 10, 2_000, t_closeness=closeness)
    assert (found["classes"], found["gcp_total"]) == (1339, pytest.approx(22_569.2, abs=0.1))


@pytest.mark.parametrize("line", one_by_day(TEN_COPIES[0], TEN_COPIES[3]), ids=title)
def test_ten_copies_by_a_run(anonymize: Any, adult_file: Path, tmp_path: Path, line: Line) -> None:
    path = tmp_path / "ten_adults.parquet"
    pq.write_table(pa.concat_tables([pq.read_table(adult_file)] * 10), path, row_group_size=50_000)
    found, _ = anonymize(path, line.model, line.k, 80_000)
    as_printed(found, line)
