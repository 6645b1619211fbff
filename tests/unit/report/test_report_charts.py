from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from anonspark.page.blocks import Chart, Code, Section, Table, Text, Verdict
from anonspark.page.document import render
from anonspark.report.charts import Bars, HeatMap, Series, draw_bars, draw_heat_map

BARS = Bars(
    "hours",
    ["below 20", "20 and more"],
    [Series("original", [40.0, 60.0]), Series("release", [45.0, 55.0])],
    "share of the records (%)",
    "value (integer)",
)


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg.replace("xlink:href", "href"))  # noqa: S314 - our own
    return [one.text or "" for one in root.iter() if one.tag.endswith("text")]


def test_a_chart_is_the_same_every_time() -> None:
    assert draw_bars(BARS, "one", "about") == draw_bars(BARS, "one", "about")


def test_a_chart_has_title_axes_units_and_legend_as_text() -> None:
    found = texts(draw_bars(BARS, "one", "about"))
    assert {"hours", "share of the records (%)", "value (integer)", "below 20"} <= set(found)
    assert {"original", "release"} <= set(found)


def test_all_colours_of_a_chart_are_those_of_the_page() -> None:
    for svg in (
        draw_bars(BARS, "one", "about"),
        draw_heat_map(HeatMap("t", ["a", "b"], np.array([[1, -0.3], [-0.3, 1]])), "two", "about"),
    ):
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


def test_a_matrix_leaves_out_what_is_not_known_and_writes_no_negative_nothing() -> None:
    matrix = np.array([[1.0, -0.001], [np.nan, -0.25]])
    found = texts(draw_heat_map(HeatMap("t", ["a", "b"], matrix), "one", "about"))
    assert sorted(set(found) - {"a", "b", "t"}) == sorted({"1", ".00", "\N{MINUS SIGN}.25"})


def test_bars_of_nothing_are_drawn() -> None:
    bars = Bars("t", ["a"], [Series("s", [0.0])], "records", "what")
    assert "<svg" in draw_bars(bars, "one", "about")


def page(*blocks: object) -> str:
    return render("A & <title>", "sub", [Section("one", "One", blocks)], "foot")  # type: ignore[arg-type]


def test_a_page_escapes_everything_but_charts() -> None:
    from markupsafe import Markup

    table = Table("<c>", ("<h>", "x"), [("<r>", "<v>"), ("v", Verdict(False))])
    made = page(Text("<p>"), Code("<pre>", "<label>"), table, Chart(Markup("<svg></svg>"), table))
    for text in (
        "&lt;title&gt;",
        "&lt;p&gt;",
        "&lt;pre&gt;",
        "&lt;c&gt;",
        "&lt;h&gt;",
        "&lt;v&gt;",
    ):
        assert text in made
    assert "<svg></svg>" in made
    assert '<span class="bad">' in made


def test_tables_have_captions_and_headings() -> None:
    made = page(Table("Records", ("what", "records"), [("published", "10")]))
    assert "<caption>Records</caption>" in made
    assert '<th scope="col">what</th><th scope="col">records</th>' in made
    assert '<th scope="row">published</th><td>10</td>' in made


def test_a_page_needs_nothing_from_elsewhere() -> None:
    made = page(Text("x"))
    assert "<script" not in made
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", made)
    assert "@import" not in made
    assert "url(" not in made
