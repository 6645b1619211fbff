"""Grids: what a grid file may say, its cells and their names, who is ranked where."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cases import cases
from helpers import document_file
from places import REPOSITORY

from anonspark.comparison.evaluation import FIGURES
from anonspark.comparison.grid import METRICS, Contestant, Grid, dominated, load_grid, places
from anonspark.comparison.report import comparison_report
from anonspark.comparison.table import CellResult, axis_column, comparison_rows
from anonspark.core.figures import SUMMARY
from anonspark.errors import ConfigurationError

EXPERIMENTS = REPOSITORY / "conf" / "experiments"

BASE: dict[str, Any] = {
    "input": {"path": "people.parquet"},
    "attributes": {"age": "quasi_identifier", "income": "sensitive"},
    "privacy": {"k": 5},
}


def grid_file(tmp_path: Path, **keys: Any) -> Path:
    document = {"base": BASE, "axes": {"privacy.k": [5, 10]}, "output": "out/grid"} | keys
    return document_file(tmp_path, document, "grid.yaml")


def problems(tmp_path: Path, *overrides: str, **keys: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as error:
        load_grid(grid_file(tmp_path, **keys), overrides)
    # Behind the place in the file, which other tests look at.
    return tuple(re.sub(r"^\S+\.yaml:\d+:\d+: ", "", told) for told in error.value.problems)


def test_a_block_is_a_product_and_blocks_follow_each_other(tmp_path: Path) -> None:
    axes = [
        {"model.name": ["smondrian"], "model.cut": ["published"], "privacy.k": [5, 10]},
        {"model.name": ["su-mondrian"], "model.rho": [2, 3], "privacy.k": [5]},
    ]
    grid = load_grid(grid_file(tmp_path, axes=axes))
    assert [cell.label for cell in grid.cells] == [
        "smondrian, cut=published, k=5",
        "smondrian, cut=published, k=10",
        "su-mondrian, rho=2, k=5",
        "su-mondrian, rho=3, k=5",
    ]
    assert grid.cells[2].words == "su-mondrian, k = 5, rho=2"
    assert grid.axes == ("model.name", "model.cut", "privacy.k", "model.rho")
    assert [cell.configuration.privacy.k for cell in grid.cells] == [5, 10, 5, 5]
    assert [cell.configuration.model.name for cell in grid.cells][2:] == ["su-mondrian"] * 2
    assert len({cell.id for cell in grid.cells}) == 4
    assert (grid.rank_by, grid.output, grid.title) == ("loss", "out/grid", None)


def test_a_configuration_is_run_once(tmp_path: Path) -> None:
    axes = [{"privacy.k": [5, 10]}, {"model.name": ["su-mondrian"], "privacy.k": [10, 20]}]
    grid = load_grid(grid_file(tmp_path, axes=axes))
    assert [cell.label for cell in grid.cells] == ["k=5", "k=10", "su-mondrian, k=20"]
    # Progress tells model and k of each.
    words = ["su-mondrian, k = 5", "su-mondrian, k = 10", "su-mondrian, k = 20"]
    assert [cell.words for cell in grid.cells] == words


def test_a_cell_is_named_by_its_configuration_not_by_the_grid(tmp_path: Path) -> None:
    (five, ten) = load_grid(grid_file(tmp_path)).cells
    elsewhere = {"axes": {"privacy.k": [10]}, "output": "elsewhere", "title": "Another"}
    (same,) = load_grid(grid_file(tmp_path, **elsewhere)).cells
    assert same.id == ten.id != five.id
    (other,) = load_grid(grid_file(tmp_path, **elsewhere), ["model.rho=2"]).cells
    assert other.id != ten.id


def test_the_base_is_a_path_beside_the_grid_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(BASE | {"output": {"path": "out/base"}}))
    path = grid_file(tmp_path, base="base.yaml", set={"model.name": "canon", "privacy.k": 3})
    grid = load_grid(path, ["model.name=u-canon"])
    assert {cell.configuration.model.name for cell in grid.cells} == {"u-canon"}
    assert [cell.configuration.privacy.k for cell in grid.cells] == [5, 10]
    assert {cell.configuration.output.path for cell in grid.cells} == {"-"}


@cases(__file__, "key", "values")
def test_values_of_axes_arrive_as_they_are(tmp_path: Path, key: str, values: list[object]) -> None:
    grid = load_grid(grid_file(tmp_path, axes={key: values}))
    section, name = key.split(".")
    found = [getattr(getattr(cell.configuration, section), name) for cell in grid.cells]
    assert found == values


def test_lists_and_mappings_are_values_of_axes(tmp_path: Path) -> None:
    diverse = {"attribute": "income", "l": 2}
    axes = {"privacy.l_diversity": [[], diverse, [diverse, diverse | {"kind": "entropy"}]]}
    grid = load_grid(grid_file(tmp_path, axes=axes))
    assert [len(cell.configuration.privacy.l_diversity) for cell in grid.cells] == [0, 1, 2]
    assert grid.cells[1].label == 'l_diversity={"attribute": "income", "l": 2}'
    # A text is no number.
    (problem,) = problems(tmp_path, axes={"privacy.k": ["10", 5]})
    assert problem.startswith("privacy.k: found the text '10'")


@cases(__file__, "key", "reason")
def test_what_all_cells_share_cannot_be_varied(tmp_path: Path, key: str, reason: str) -> None:
    (problem,) = problems(tmp_path, axes={key: [1, 2]})
    assert problem.startswith("axes[0].")
    assert reason in problem


def test_other_axes_that_are_refused(tmp_path: Path) -> None:
    assert "found a whole section" in problems(tmp_path, axes={"model": [{"name": "canon"}]})[0]
    assert "Did you mean 'privacy'?" in problems(tmp_path, axes={"privcy.k": [5]})[0]
    assert "found a value twice" in problems(tmp_path, axes={"privacy.k": [5, 5]})[0]
    assert "found an empty list" in problems(tmp_path, axes={"privacy.k": []})[0]
    assert "axes: " in problems(tmp_path, axes=[])[0]


def test_cells_that_need_the_input_in_another_way(tmp_path: Path) -> None:
    attributes = {"age": {"role": "quasi_identifier", "grid": "auto"}, "income": "sensitive"}
    blocks = [{"model.name": ["su-mondrian"]}, {"model.published": ["canbay-2019"]}]
    (problem,) = problems(tmp_path, base=BASE | {"attributes": attributes}, axes=blocks)
    assert problem.startswith("axes: the input is prepared once for all cells, and ")
    assert "in different ways: su-mondrian; " in problem


def test_all_cells_are_checked_and_a_problem_is_told_once(tmp_path: Path) -> None:
    found = problems(
        tmp_path,
        axes={
            "model.name": ["canon", "smondrian"],
            "model.cut": ["published"],
            "privacy.k": [5, 0],
        },
    )
    assert len(found) == 2
    assert found[0].startswith("model.cut: unknown key")
    assert found[0].endswith("(in 2 of 4 settings, first in: canon, cut=published, k=5)")
    assert found[1].startswith("privacy.k: found the whole number 0")
    assert "(in 2 of 4 settings" in found[1]
    # What is wrong in every cell is wrong in the base.
    (problem,) = problems(tmp_path, "missing=never")
    assert problem.startswith("missing: found the text 'never'")
    assert "settings" not in problem


def test_other_keys_of_the_file(tmp_path: Path) -> None:
    assert problems(tmp_path, rankby="dm")[0].startswith("rankby: unknown key. Did you mean")
    assert "Did you mean 'gcp'?" in problems(tmp_path, rank_by="gpc")[0]
    assert "evaluate.information" in problems(tmp_path, rank_by="entropy")[0]
    assert "base: " in problems(tmp_path, base="nowhere.yaml")[0]
    assert "no such file" in problems(tmp_path, base="nowhere.yaml")[0]
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(ConfigurationError, match="Expected a mapping with 'base'"):
        load_grid(tmp_path / "empty.yaml")


def test_figures_to_rank_by_are_columns_of_the_summary_or_of_an_evaluation() -> None:
    assert set(METRICS) <= {figure.name for figure in (*SUMMARY, *FIGURES)}


# Ranking ------------------------------------------------------------------------------------------


def contestant(
    k: int, value: float | None, suppressed: int = 0, protection: str = ""
) -> Contestant:
    return Contestant((protection,), k, suppressed, value)


def test_places_are_among_equal_privacy_settings() -> None:
    all_of_them = [
        contestant(5, 3.0),
        contestant(5, 1.0),
        contestant(5, 3.0),
        contestant(10, 9.0),
        contestant(5, 0.5, protection="l = 2"),
        contestant(5, None),
    ]
    assert places(all_of_them) == [2, 1, 2, 1, 1, None]


def test_dominated_is_who_is_worse_in_something_and_better_in_nothing() -> None:
    cases = [
        (contestant(5, 3.0), True),  # the next one loses less
        (contestant(5, 2.0), True),  # a larger k for the same loss
        (contestant(10, 2.0), False),
        (contestant(10, 2.0), False),  # the same in everything
        (contestant(10, 2.0, suppressed=1), True),
        (contestant(10, 1.0, suppressed=1), False),
        (contestant(10, 9.0, protection="l = 2"), False),  # not comparable
        (contestant(50, None), None),
    ]
    assert dominated([one for one, _ in cases]) == [expected for _, expected in cases]


def result(grid: Grid, place: int, **summary: Any) -> CellResult:
    cell = grid.cells[place]
    figures = {"rows_in": 100, "dm": 1, "gcp": 0.5, "classes": 7, "rows_suppressed": 0}
    return CellResult(
        cell=cell.id,
        settings=cell.settings,
        input="-",
        reason=None if summary else "privacy.k: <b>cannot</b> hold",
        configuration=cell.configuration.public_dict(),
        summary=figures | {"seconds": 1.0} | summary if summary else {},
        rounds=[],
        attributes=[],
        privacy=[],
        risk=[],
        seconds={},
    )


@pytest.fixture
def small_grid(tmp_path: Path) -> Grid:
    axes = {"model.name": ["smondrian", "canon"], "privacy.k": [5, 10]}
    return load_grid(grid_file(tmp_path, axes=axes, rank_by="classes", title="Two & two"))


def test_rows_are_ordered_by_privacy_and_place(small_grid: Grid) -> None:
    results = [
        result(small_grid, 0, classes=5),
        result(small_grid, 1),
        result(small_grid, 2, classes=9),
        result(small_grid, 3, classes=4),
    ]
    rows = comparison_rows(small_grid, results)
    # More classes are better.
    assert [(row["k"], row["model_name"], row["place"], row["dominated"]) for row in rows] == [
        (5, "canon", 1, False),
        (5, "smondrian", 2, True),
        (10, "canon", 1, False),
        (10, "smondrian", None, None),
    ]
    assert [row["status"] for row in rows] == ["done", "done", "done", "refused"]


def test_the_report_has_a_line_for_each_model_and_says_what_was_refused(small_grid: Grid) -> None:
    results = [result(small_grid, place, classes=place + 1) for place in range(3)]
    page = comparison_report(
        small_grid, comparison_rows(small_grid, [*results, result(small_grid, 3)])
    )
    assert "<h1>Two &amp; two</h1>" in page
    assert page.count("<svg ") == 4
    assert "Best by classes: canon, k=5 (3); smondrian, k=10 (2)." in page
    assert "classes against k: one line for each of canon, smondrian" in page
    assert "privacy.k: &lt;b&gt;cannot&lt;/b&gt; hold" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?:http|//)", page)


def test_a_report_without_any_release(small_grid: Grid) -> None:
    rows = comparison_rows(small_grid, [result(small_grid, place) for place in range(4)])
    assert "none of which could be published" in comparison_report(small_grid, rows)


@pytest.mark.parametrize(
    ("key", "column"), [("privacy.k", "privacy_k"), ('model.levels."a-b"', "model_levels_a_b")]
)
def test_columns_of_axes_need_no_quotes(key: str, column: str) -> None:
    assert axis_column(key) == column


# The experiments of the theses --------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [REPOSITORY / "conf" / "adult-comparison.yaml", *sorted(EXPERIMENTS.glob("*.yaml"))],
    ids=lambda path: path.stem,
)
def test_grids_of_the_repository_are_right(path: Path) -> None:
    grid = load_grid(path)
    assert grid.title
    assert grid.cells


def printed(name: str) -> list[dict[str, str]]:
    with (EXPERIMENTS / "printed" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_printed_figures_are_those_of_the_thesis() -> None:
    """Each line of each table, if the transcript of the thesis is there."""
    transcript = REPOSITORY.parent / "shared" / "spec" / "thesis-tables.md"
    if not transcript.exists():
        pytest.skip(f"{transcript} is missing")
    text = transcript.read_text()
    # Of the tables on Diabetes the transcript has none.
    tables = set(re.findall(r"^## Table (\S+):", text, flags=re.M))
    found: dict[tuple[str, str, str, str], dict[str, str]] = {}
    for row in printed("canbay-2019"):
        key = (row["table"], row["k"], row["round"], row["model"])
        if row["table"] in tables:
            found.setdefault(key, {})[row["column"]] = row["printed"]
    lines = []
    for block in re.split(r"^## Table ", text, flags=re.M)[1:]:
        title, *rest = block.splitlines()
        cells = [line.strip("|").split("|") for line in rest if line.startswith("|")]
        header = [name.strip() for name in cells[0]]
        lines += [(title, dict(zip(header, map(str.strip, row), strict=True))) for row in cells[2:]]
    assert len(lines) == len(found) == len({str(line) for line in lines})
    for (title, line), (key, figures) in zip(lines, found.items(), strict=True):
        table, k, number, _ = key
        assert title.startswith(f"{table}: ")
        assert line.pop("i", "") == number
        assert line.pop("k", k) == k
        line.pop("model", None)
        assert figures == line
