"""docs/reproduction.md: written from its data files, and what it and the README claim."""

from __future__ import annotations

import re

import pytest
from experiments import FOLDER
from places import REPOSITORY
from printed_figures import Figure, Place, measured_figures, printed_figures, read_rows, read_tables
from quality import canbay
from reproduce import THESES, render_page

from anonspark.comparison.grid import load_grid

PAGE = (REPOSITORY / "docs" / "reproduction.md").read_text()
CANBAY = measured_figures("canbay-2019")
STRICT = [f"4.{number}" for number in range(1, 7)]
# Counted in the theses.
PRINTED = {
    "canbay-2019": 2_329,
    "vural-2017": 354,
    "saleh": 348,
    "distribution": 180,
    "var-inan-2018": 42,
}


def test_the_page_is_written_from_its_data_files() -> None:
    assert render_page() == PAGE


def test_the_page_has_at_most_5500_words_outside_of_tables() -> None:
    assert (
        len(re.sub(r"<details.*?</details>|^\|.*?$", "", PAGE, flags=re.S | re.M).split()) <= 5_500
    )


def test_each_row_of_the_overview_is_the_sum_of_the_files() -> None:
    """Printed, repeated, each verdict and not repeated, by thesis."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| [")]
    overview = {row[0]: row for row in rows}
    assert len(overview) == len(THESES)
    for (_, *cells), thesis in zip(overview.values(), THESES, strict=True):
        printed, repeated, *verdicts = (int(cell.replace(",", "")) for cell in cells[:7])
        others = int(cells[-1].replace(",", ""))
        lines = printed_figures(thesis).values()
        assert repeated == sum(map(len, lines)) == sum(verdicts)
        missing = [row for row in read_rows(FOLDER / "not_repeated.csv") if row["thesis"] == thesis]
        assert others == sum(int(row["figures"] or 0) for row in missing)
        assert printed == repeated + others == PRINTED[thesis]


@pytest.mark.parametrize("thesis", THESES)
def test_every_printed_table_is_on_the_page(thesis: str) -> None:
    described = [one.name for one in read_tables(thesis)]
    assert described == list(dict.fromkeys(place.table for place in printed_figures(thesis)))
    for table in read_tables(thesis, measured_figures(thesis)):
        assert table.verdicts.total() > 0
        assert f"<summary>{table.title}</summary>" in PAGE


def test_what_is_not_repeated_has_a_reason() -> None:
    for row in read_rows(FOLDER / "not_repeated.csv"):
        assert row["thesis"] in THESES
        assert row["part"]
        assert row["why"]


@pytest.mark.parametrize("run", ["strict", "relaxed", "canon", "scale"])
def test_each_run_is_the_thesis_model_once_for_each_k_and_number_of_rounds(run: str) -> None:
    cells = load_grid(FOLDER / f"canbay-2019-{run}.yaml").cells
    for k in (100, 200, 300, 400, 500) if run == "scale" else canbay.KS:
        for rho in (5, 6):
            settings = {**canbay.SETTINGS.get(run, {}), "privacy.k": k, "model.rho": rho}
            (cell,) = (one for one in cells if settings.items() <= one.settings.items())
            assert cell.configuration.model.published == "canbay-2019"  # type: ignore[attr-defined]
            # Other criteria than k, which the configuration of Adult may have, make other classes.
            assert not cell.configuration.privacy.criteria


# What README and the page's head claim ------------------------------------------------------------


def figures_of(table: str, round_: str) -> dict[str, Figure]:
    (line,) = (
        line for place, line in CANBAY.items() if (place.table, place.round) == (table, round_)
    )
    return line


def test_strict_mondrian_without_rounds_has_every_printed_figure() -> None:
    lines = [figures_of(table, "-") for table in STRICT]
    lines += [CANBAY[Place("4.7", str(k), "", "Mondrian")] for k in canbay.KS]
    assert {one.verdict for line in lines for one in line.values()} == {"equal", "rounding"}


def test_strict_mondrian_with_rounds_has_the_printed_classes_of_round_1() -> None:
    for table in STRICT:
        line = figures_of(table, "1")
        assert {line[name].verdict for name in canbay.COUNTS} == {"equal"}


def test_how_far_apart_rounds_are_is_what_the_readme_says() -> None:
    last = [figures_of(table, "5")["GCP_T"] for table in STRICT]
    changes = [f"{100 * one.difference / float(one.printed):+.1f}" for one in last]
    readme = " ".join((REPOSITORY / "README.md").read_text().split())
    said = r"its loss differs by (\S+) to (\S+)%"
    (least, most) = re.findall(said, readme)[0]
    assert (float(least), float(most)) == (min(map(float, changes)), max(map(float, changes)))
    assert f"is {least} to {most}% apart" in " ".join(PAGE.split())


def test_lists_of_table_5_3_are_equal_and_their_losses_near() -> None:
    figures = {
        place.model: (line["lists"].verdict, line["loss %"].verdict)
        for place, line in measured_figures("saleh").items()
        if place.table == "5.3"
    }
    assert figures.pop("optimized") == ("equal", "differs")
    criteria = ("k", "l = 2", "t = 0.2", "t = 0.3", "t = 0.4")
    assert figures == dict.fromkeys(criteria, ("equal", "spread"))
