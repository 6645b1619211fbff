"""Pages, and cards: the last lines of a run on one screen, tables of ``anonspark evaluate``."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from anonspark.cli.command import Terminal
from anonspark.core.model_scores import accuracy_difference
from anonspark.pipeline.context import Release
from anonspark.pipeline.warnings.release_warning import ReleaseWarning
from anonspark.presentation.blocks import (
    Chart,
    Code,
    Role,
    Section,
    Table,
    Text,
    Verdict,
    cell_text,
)
from anonspark.presentation.card import table_text
from anonspark.presentation.charts import Bars, Line, Lines, Series, draw_bars, draw_lines, ticks
from anonspark.presentation.document import render
from anonspark.presentation.release import published_card
from anonspark.presentation.svg import WIDTH, Tip, shortened, text_width, tips, words_of
from anonspark.presentation.terminal import show_blocks
from anonspark.presentation.utility import utility_card
from anonspark.utility.evaluation import Utility
from anonspark.utility.models import Learning, ModelDifference, ModelLoss, Score
from anonspark.utility.workload import WorkloadError

BARS = Bars(
    "hours",
    ["below 20", "20 and more"],
    [Series("original", [40.0, 60.0]), Series("release", [45.0, 55.0])],
    "share of the records (%)",
    "value (integer)",
)
LINES = Lines(
    "gcp against k",
    [Line("su-mondrian", [(2, 0.01), (10, 0.04), (100, 0.5)]), Line("<mdav>", [(2, 0.02)])],
    "k",
    "certainty penalty",
    logarithmic=True,
)


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))  # noqa: S314 - our own
    return [one.text or "" for one in root.iter() if one.tag.endswith("text")]


def test_a_chart_has_title_axes_units_and_legend_as_text() -> None:
    svg = draw_bars(BARS, "one", "about")
    assert svg == draw_bars(BARS, "one", "about")
    found = texts(svg)
    assert {"hours", "share of the records (%)", "value (integer)", "below 20"} <= set(found)
    assert {"original", "release"} <= set(found)


def test_all_colours_of_a_chart_are_those_of_the_page() -> None:
    for svg in (draw_bars(BARS, "one", "about"), draw_lines(LINES, "about")):
        assert "var(--ink)" in svg
        assert not re.search(
            r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b(?!\w)", svg.split("</title>")[-1]
        )


def test_ids_of_two_charts_do_not_clash_and_all_references_lead_somewhere() -> None:
    one, two = draw_bars(BARS, "one", "about"), draw_bars(BARS, "two", "about")
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, two)]
    assert not ids[0] & ids[1]
    for svg, own in zip((one, two), ids, strict=True):
        assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg)) <= own


def test_an_image_says_what_it_shows_and_styles_nothing_else() -> None:
    svg = draw_bars(BARS, "one", 'a "chart" of <hours> & more')
    assert svg.startswith("<svg ")
    assert 'role="img"' in svg
    assert 'aria-label="a &#34;chart&#34; of &lt;hours&gt; &amp; more"' in svg
    for unwanted in ("<style", "<?xml", "<!DOCTYPE", "<metadata", "<script", "http:"):
        assert unwanted not in svg.replace('xmlns:xlink="http:', "")


@pytest.mark.parametrize(
    "name", ["$x^2$", "<b>&amp;", "a\nb\x00c", "漢字", "\u202eevil", "x" * 200]
)
def test_any_name_is_shown_as_text(name: str) -> None:
    bars = Bars(name, [name], [Series("classes", [1.0])], "classes", name)
    found = texts(draw_bars(bars, "one", name))
    assert any(name.strip("\u202e")[:1] in text for text in found)
    assert not any("\n" in text or "\x00" in text or "\u202e" in text for text in found)


@pytest.mark.parametrize(("values", "drawn"), [([0.0, 0.0], 2), ([float("nan"), 3.0], 1)])
def test_bars_of_nothing_are_drawn_and_those_of_unknown_numbers_not(
    values: list[float], drawn: int
) -> None:
    svg = draw_bars(Bars("t", ["a", "b"], [Series("s", values)], "records", "what"), "one", "about")
    assert svg.count("<rect") == drawn
    assert "nan" not in svg


def test_stacked_bars_begin_where_the_others_end() -> None:
    series = [Series("put", [30.0]), Series("left", [10.0])]
    svg = draw_bars(Bars("t", ["a"], series, "records", "round", stacked=True), "one", "about")
    first, second = (
        [float(one.get(name, "")) for name in ("x", "width")]
        for one in list(ElementTree.fromstring(svg))  # noqa: S314 - our own
        if one.tag == "rect"
    )
    assert second[0] == pytest.approx(sum(first), abs=0.02)
    assert first[1] == pytest.approx(3 * second[1], abs=0.05)


def test_lines_have_their_numbers_names_and_markers() -> None:
    svg = draw_lines(LINES, "about")
    assert {"gcp against k", "k", "certainty penalty", "2", "10", "100", "0.4"} <= set(texts(svg))
    assert {"su-mondrian", "<mdav>"} <= set(texts(svg))
    # Three points and one, and one each in the legend.
    assert svg.count('style="fill: var(--first)"') == 4
    assert svg.count('style="fill: var(--second)"') == 2


def test_lines_reach_below_nothing_and_have_intervals() -> None:
    line = Line("loss", [(3, -0.01), (10, 0.04)], [(-0.02, 0.0), None])
    svg = draw_lines(Lines("loss against k", [line], "k", "loss", logarithmic=False), "about")
    assert {"-0.02", "0", "0.02", "0.04"} <= set(texts(svg))
    # The ticks of 0 and of 0.02 below it are where the one interval ends.
    places = {
        one.text: float(one.get("y", ""))
        for one in ElementTree.fromstring(svg).iter()  # noqa: S314 - our own
        if one.tag.endswith("text") and one.text in ("0", "-0.02", "0.02")
    }
    assert places["-0.02"] - places["0"] == pytest.approx(places["0"] - places["0.02"], abs=0.02)
    (low, high) = re.findall(r" ([\d.]+)V([\d.]+)M[\d.]+ [\d.]+H", svg)[0]
    expected = places["-0.02"] - places["0"]
    assert float(low) - float(high) == pytest.approx(expected, abs=0.02)


@cases(__file__, "end", "whole", "expected")
def test_numbers_of_an_axis_are_round(end: float, whole: bool, expected: list[float]) -> None:
    assert ticks(end, 5, whole=whole) == pytest.approx(expected)


def test_a_text_that_does_not_fit_is_cut() -> None:
    assert shortened("age", 50) == "age"
    cut = shortened("W" * 99, WIDTH)
    assert cut.endswith("W…")
    assert text_width(cut) <= WIDTH


def page(*blocks: object) -> str:
    return render("A & <title>", "sub", [Section("one", "One", blocks)], "foot")  # type: ignore[arg-type]


def test_a_page_escapes_everything_but_charts() -> None:
    from markupsafe import Markup

    table = Table("<c>", ("<h>", "x"), [("<r>", "<v>"), ("v", Verdict(False))])
    made = page(Text("<p>"), Code("<pre>", "<label>"), table, Chart(Markup("<svg></svg>"), table))
    for text in ("title", "p", "pre", "c", "h", "v"):
        assert f"&lt;{text}&gt;" in made
    assert "<svg></svg>" in made
    assert '<span class="bad">' in made


def test_tables_have_captions_and_headings() -> None:
    made = page(Table("Records", ("what", "records"), [("published", "10")]))
    assert "<caption>Records</caption>" in made
    assert '<th scope="col">what</th><th scope="col" class="number">records</th>' in made
    assert '<th scope="row">published</th><td class="number">10</td>' in made


def test_a_page_needs_nothing_from_elsewhere() -> None:
    made = page(Text("x"))
    assert "<script" not in made
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", made)
    assert "@import" not in made
    assert "url(" not in made


# What charts say where they are pointed at: inside the chart, as text, and only where told.


def said(svg: str) -> list[list[str]]:
    """Return the lines of each place of a chart."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [(one.text or "").split("\n") for one in root.findall(".//path/title")]


def test_each_row_of_bars_says_its_words() -> None:
    words = [words_of("below 20", {"original": "40 records", "release": "45 records"}), ["<more>"]]
    svg = draw_bars(replace(BARS, words=words), "one", "about")
    assert said(svg) == [["below 20", "original: 40 records", "release: 45 records"], ["<more>"]]


def test_a_chart_that_is_told_nothing_says_nothing() -> None:
    line = Line("a", [(1.0, 2.0)])
    for svg in (
        draw_bars(BARS, "one", "about"),
        draw_lines(Lines("t", [line], "k", "loss", logarithmic=False), "about"),
    ):
        assert "tips" not in svg
        assert 'role="img"' in svg.partition(">")[0]


def test_one_text_stands_beside_its_name() -> None:
    assert words_of("17 to 25", {"release": "1,240 records"}) == ["17 to 25: 1,240 records"]


def test_places_across_share_a_chart_of_lines_without_a_gap() -> None:
    lines = [Line("a", [(1.0, 0.2), (2.0, 0.1), (4.0, 0.0)]), Line("b", [(2.0, 0.3)])]
    words = {1.0: ["one"], 2.0: ["two"], 4.0: ["four"]}
    svg = draw_lines(Lines("t", lines, "k", "loss", logarithmic=True, words=words), "about")
    assert said(svg) == [["one"], ["two"], ["four"]]
    areas = [(int(left), int(right)) for left, right in re.findall(r'"M(\d+) \d+H(\d+)V', svg)]
    assert [right for _, right in areas] == [*(left for left, _ in areas[1:]), round(WIDTH)]


@given(words=st.lists(st.text(max_size=90), min_size=1, max_size=3))
def test_words_stay_text(words: list[str]) -> None:
    (drawn,) = said(tips([Tip(1.0, 2.0, 24.0, 10.0, words)]))
    assert drawn == ["".join(c if c.isprintable() else " " for c in one) for one in words]


@pytest.mark.parametrize("limit", [None, 100.0])
def test_bars_beside_each_other_have_their_numbers_inside(limit: float | None) -> None:
    bars = replace(BARS, series=[Series("before", [100.0, 8.28]), Series("after", [0.061, 15.5])])
    root = ElementTree.fromstring(draw_bars(replace(bars, limit=limit), "one", "about"))  # noqa: S314 - our own
    found = {
        one.text: float(one.attrib["x"])
        for one in root.iter()
        if one.tag.endswith("text") and "." in (one.text or "")
    }
    assert list(found) == ["100.0", "8.3", "0.1", "15.5"], "as many decimals everywhere"
    assert all(x + text_width(text or "") <= WIDTH for text, x in found.items())


def test_round_numbers_of_an_axis_come_first_where_room_is_short() -> None:
    points = [(float(one), 1.0) for one in (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 75)]
    found = texts(draw_lines(replace(LINES, lines=[Line("risk", points)]), "about"))
    assert "50" in found
    assert "40" not in found


def test_a_single_chart_is_right_of_its_text_and_a_wide_table_below() -> None:
    narrow, wide = Table("few", ["a", "b"], []), Table("many", list("abcdef"), [])
    chart = Chart(draw_bars(BARS, "one", "about"), narrow)
    places = {
        "chart": [Text("about"), chart],
        "narrow": [Text("about"), narrow],
        "wide": [Text("about"), wide],
        "two": [Text("about"), chart, chart],
        "first": [chart, Text("about")],
    }
    found = {
        name: [Section(name, name, blocks).narrow(place) for place in range(3)]
        for name, blocks in places.items()
    }
    assert [name for name, own in found.items() if own[1]] == ["chart", "narrow"]
    assert not any(own[0] or own[2] for own in found.values())


def test_printed_pages_have_their_number_and_footer() -> None:
    page = render("t", "s", [], "", printed_footer='release "}</style>\\ 12ab')
    assert 'content: "release style 12ab"' in page
    assert 'content: "Page " counter(page) " of " counter(pages)' in page


SUMMARY: dict[str, Any] = {
    "run_id": "monday", "k": 5, "rows_published": 1000, "rows_dropped_missing": 12,
    "rows_suppressed": 0, "rows_left_out": 0, "published_classes": 100,
    "published_min_class_size": 6, "utility_score": 97.5,
}  # fmt: skip
ATTRIBUTES = [
    {"attribute": f"column-{place}", "loss": loss}
    for place, loss in enumerate((0.01, 0.2, None, 0.05, 0.3))
]
RISK = [
    {"round": 1, "attacker": "prosecutor", "highest": 0.9, "average": 0.8},
    {"round": None, "attacker": "prosecutor", "highest": 0.2, "average": 0.125},
]


def criterion(name: str, measured: float | None) -> dict[str, Any]:
    return {"criterion": name, "attribute": "ill", "required": 2.0, "measured": measured}


def shown(
    summary: dict[str, Any] = SUMMARY,
    *,
    criteria: int = 0,
    warnings: int = 0,
    earlier: bool = False,
) -> list[str]:
    privacy = [{"criterion": "k", "required": 5.0, "measured": 6.0}]
    privacy += [criterion(f"criterion {place}", 3.0) for place in range(criteria)]
    told = [ReleaseWarning("rare_values", "text", "ill", {})] * warnings
    release = Release(
        "out/people", summary, [], ATTRIBUTES, privacy, RISK, {}, told, earlier=earlier
    )
    console = Terminal(file=io.StringIO(), soft_wrap=True)
    show_blocks(console, [published_card(release)])
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


def test_what_was_there_already_is_told_so() -> None:
    summary = {**SUMMARY, "started": datetime(2026, 11, 21, 2, tzinfo=UTC)}
    first, *others = shown(summary, earlier=True)
    assert first == (
        "Nothing left to do: release monday of 2026-11-21 02:00 UTC is complete: every "
        "record matches at least 5 others (k = 5)"
    )
    assert "not read, so not compared with the release's" in "\n".join(others)
    assert "not compared" not in "\n".join(shown(summary))


def test_the_verdict_comes_first_and_all_is_told() -> None:
    first, *others = shown(criteria=1, warnings=2)
    assert first == "Release monday is published: every record matches at least 5 others (k = 5)"
    text = "\n".join(others)
    for words in (
        "at         out/people",
        "1,000 published, 12 dropped (missing quasi-identifier)",
        "100, of 10.0 records on average, the smallest of 6",
        "re-identification risk 20.0% at most, 12.5% on average",
        "criterion 0 of ill: 3 in the worst class, 2 required",
        "very good (97.5 of 100 for the detail kept in the published columns)",
        "column-4 (30.00% of its range), column-1 (20.00% of its range), column-3 (5.00%",
        "2 warnings in the log and in the manifest",
    ):
        assert words in text


def test_it_is_one_screen_whatever_was_required() -> None:
    lines = shown(criteria=30, warnings=9)
    assert len(lines) <= 16
    assert any("26 more criteria: --details" in line for line in lines)


def test_people_are_counted_where_they_count() -> None:
    first, *_ = shown({**SUMMARY, "smallest_units": 7})
    assert first.endswith("every class covers at least 7 people (k = 5)")


def test_a_count_of_few_records_is_not_told() -> None:
    lines = shown({**SUMMARY, "rows_left_out": None, "rows_suppressed": None})
    assert any("fewer than 5 left out (no class)" in line for line in lines)


def test_a_pipe_and_a_notebook_have_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Terminal(file=io.StringIO()).width > 1000
    assert Terminal(file=io.StringIO(), force_terminal=True).width <= 1000
    monkeypatch.setenv("COLUMNS", "70")
    assert Terminal(file=io.StringIO()).width == 70
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert Terminal(file=io.StringIO()).width > 1000


@pytest.mark.parametrize("name", ["identifier", "quasi-identifier", "sensitive", "insensitive"])
def test_a_role_has_a_colour_on_pages_and_its_name_everywhere(name: str) -> None:
    table = Table("Columns", ("column", "role"), [["age", Role(name)]])
    page = render(
        title="t",
        kind="k",
        subtitle="s",
        opening=Section("a", "A", [table]),
        sections=[],
        footer="",
    )
    assert f'<span class="role role-{name}">{name}</span>' in page
    assert re.search(rf"\.role-{name} {{ border-color: #[0-9a-f]{{6}}; }}", page)
    assert cell_text(Role(name)) == name

    assert name in table_text(table)


WORKLOAD = WorkloadError(1000, ["age", "job"], [], 0.05, 30.2, 0.0123, 0.02, 0.001, 0.03)


def utility_shown(learning: Learning | None) -> str:
    console = Console(file=io.StringIO(), width=100)
    card = utility_card("out/people", Utility(30162, WORKLOAD, None, learning))
    show_blocks(console, [card])
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_errors_of_counts() -> None:
    text = utility_shown(None)
    for words in ("out/people", "1,000", "age, job", "no sensitive attribute", "5.00%", "1.23%"):
        assert words in text
    assert "Learning" not in text


def learned(classes: int, *, held_out: bool = False, left_out: int = 0) -> Learning:
    area = 0.9 if classes == 2 else None
    scores = [
        Score("original", "random forest", 0.81, 0.43, 0.4, 0.41, 0.6, area),
        Score("original_with_test", "random forest", 0.82, 0.44, 0.41, 0.42, 0.6, area),
        Score("release", "random forest", 0.8, 0.45, 0.37, 0.4, 0.6, area),
    ]
    found = accuracy_difference(9000, 400, 310)
    difference = ModelDifference("random forest", found, found if classes == 2 else None)
    loss = ModelLoss("accuracy", "random forest", "random forest", 0.01, found.standard_error)
    return Learning(
        "income", classes, held_out, 9000, left_out, 0.75, scores, [difference], loss, None
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_of_two_and_of_more_classes_are_shown(classes: int) -> None:
    text = utility_shown(learned(classes))
    assert "9,000 original records" in text
    assert "accuracy 0.7500" in " ".join(text.split())
    assert "original with the test records" in text
    assert ("ROC AUC" in text) == (classes == 2)
    assert ("weighted" in text) == (classes == 3)
    assert "0.4500" in text
    assert "0.3700" in text


def test_differences_are_shown_with_their_intervals() -> None:
    text = utility_shown(learned(3))
    assert "not comparable" in " ".join(text.split())
    (row,) = (line for line in text.splitlines() if "loses" in line)
    assert [word for word in row.split() if word[0] in "-±"] == ["-0.0100", "±0.0058"]
    words = "compared with the best of the release (random forest): loss of accuracy 0.0100 ±0.0058"
    assert words in " ".join(text.split())
    assert "left out" not in text
    text = utility_shown(learned(2, held_out=True, left_out=1234))
    assert "not comparable" not in " ".join(text.split())
    assert "1,234 held-out records are of a class that the original has not" in text


def test_nothing_has_no_sign() -> None:
    assert [cell_text(figure) for figure in (-0.0, -0.00001, -0.00005, -1234.0)] == [
        "0.0000",
        "0.0000",
        "-0.0001",
        "-1,234.0",
    ]
