"""The section of docs/reproduction.md that is written alone."""

from __future__ import annotations

import re

import pytest
from places import REPOSITORY
from reproduce import CHAPTERS, EXPERIMENTS
from reproduction_page import LEARNING, with_learning

from anonspark.comparison.grid import load_grid

PAGE = (REPOSITORY / "docs" / "reproduction.md").read_text()


def test_the_page_has_the_section_and_todays_head() -> None:
    assert PAGE.count(f"\n{LEARNING}\n") == 1
    assert with_learning(PAGE, None, PAGE) == PAGE


def test_a_section_takes_the_place_of_the_older_one() -> None:
    rest, _, _ = PAGE.partition(f"\n{LEARNING}\n")
    new = with_learning(PAGE, [LEARNING, "Nothing was measured."], PAGE)
    assert new == f"{rest}\n{LEARNING}\n\nNothing was measured.\n"


def test_a_page_made_anew_keeps_the_section_where_data_lack() -> None:
    rest, _, _ = PAGE.partition(f"\n{LEARNING}\n")
    assert with_learning(rest, None, PAGE) == PAGE
    without = with_learning(rest, None, rest)
    assert LEARNING not in without
    assert PAGE.startswith(without.rstrip("\n"))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_chapter_has_one_run_by_the_thesis_for_each_k_and_number_of_rounds(
    chapter: str,
) -> None:
    name, settings = CHAPTERS[chapter]
    cells = load_grid(EXPERIMENTS / f"{name}.yaml").cells
    for k in (100, 200, 300, 400, 500) if chapter == "scale" else (5, 10, 20, 30, 40, 50):
        for rho in (5, 6):
            wanted = {**settings, "privacy.k": k, "model.rho": rho}
            (cell,) = (one for one in cells if wanted.items() <= one.settings.items())
            assert cell.configuration.model.published == "canbay-2019"  # type: ignore[attr-defined]


# What README and the page's head claim ------------------------------------------------------------


def lines_of(table: str) -> list[list[str]]:
    """Return the cells of a table's lines, without those of the heading."""
    (block,) = re.findall(rf"\n### Table {re.escape(table)}: .*?\n\n(.*?)\n\n", PAGE, flags=re.S)
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()[2:]
    ]


def test_strict_mondrian_without_rounds_has_every_printed_figure() -> None:
    lines = [lines_of(f"4.{number}")[0] for number in range(1, 7)]
    lines += [line for line in lines_of("4.7") if line[0].endswith(" Mondrian")]
    assert len(lines) == 12
    for name, *cells, verdict in lines:
        assert name == "-" or name.endswith(" Mondrian")
        assert "differs" not in verdict
        assert "better" not in verdict
        assert not any("→" in cell for cell in cells)


def test_strict_mondrian_with_rounds_has_the_printed_classes_of_round_1() -> None:
    for number in range(1, 7):
        name, *cells, _ = lines_of(f"4.{number}")[1]
        assert name == "1"
        # |N|, |O|, ES, ES_T, DM, DM_T.
        assert not any("→" in cell or "≈" in cell for cell in cells[:6])


def test_how_far_apart_rounds_are_is_what_the_readme_says() -> None:
    changes = []
    for number in range(1, 7):
        (last,) = (line for line in lines_of(f"4.{number}") if line[0] == "5")
        (change,) = re.findall(r"([+-][\d.]+) %", last[8])
        changes.append(float(change))
    readme = " ".join((REPOSITORY / "README.md").read_text().split())
    said = r"the certainty penalty differs from the print by (\S+) to (\S+) %"
    (least, most) = re.findall(said, readme)[0]
    assert (float(least), float(most)) == (min(changes), max(changes))
    assert f"is {least} to {most} % apart" in " ".join(PAGE.split())


def test_every_table_is_of_printed_figures() -> None:
    """What is ours alone stands in no table that is compared with the print."""
    lists = [line[0] for line in lines_of("5.3")]
    assert lists == ["k = 3", "k = 3, l = 2", "k = 3, t = 0.2", "k = 3, t = 0.3", "k = 3, t = 0.4"]
    assert all(line[-1] == "equal" for line in lines_of("5.3"))
    assert "those are not public" not in PAGE
