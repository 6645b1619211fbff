"""The report of a small release in a real browser, with what models learn from it."""

from __future__ import annotations

import datetime
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cases import cases
from commands import Cli
from evaluated import people
from helpers import configuration_file, document_file, local_table, write_table
from places import REPOSITORY, skip_or_fail
from release_folders import list_files, rewrite

import anonspark
from anonspark.cli.application import main
from anonspark.config.decision import Decision
from anonspark.core.hierarchies.hierarchy import Hierarchy
from anonspark.demo.people import EDUCATION_ORDER
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.parquet_encoding import encode_table
from anonspark.errors import DataError
from anonspark.labels.regions import published_attributes
from anonspark.release.manifest import Manifest, read_manifest
from anonspark.reporting.build_report import _shows_regions, make_report
from anonspark.reporting.figures import measure
from anonspark.reporting.marginals import Marginal

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request


CHROMIUM = Path("/usr/bin/chromium")
K = 5
QUASI_IDENTIFIERS = ("birth_date", "sex", "postal_code", "education", "income", "hours_per_week")


class Made(NamedTuple):
    """A release of invented people and its report."""

    people: Path
    release: Path
    report: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("report")
    people, release = folder / "people.parquet", folder / "release"
    write_table(people, pyarrow.csv.read_csv(REPOSITORY / "data" / "people.csv").slice(0, 600))
    document = {
        "input": {"path": str(people)},
        "attributes": {
            "person_id": "identifier",
            "full_name": "identifier",
            **{name: {"role": "quasi_identifier", "grid": "auto"} for name in QUASI_IDENTIFIERS},
            "education": {"role": "quasi_identifier", "order": list(EDUCATION_ORDER)},
            "diagnosis": "sensitive",
        },
        # A few are left out: their number must not be told.
        "missing": "drop",
        "privacy": {"k": K, "l_diversity": {"attribute": "diagnosis", "l": 2}},
        "output": {"path": str(release)},
    }
    path = document_file(folder, document)
    assert main(["run", str(path), "--report", "--no-progress", "--run-id", "demo"]) == 0
    return Made(people, release, (release / "report.html").read_text())


def people_of(made: Made) -> list[dict[str, Any]]:
    return pq.read_table(made.people).to_pylist()


def as_text(value: object) -> set[str]:
    """Ways in which a value may be written."""
    if isinstance(value, (int, float)):
        return {f"{value}", f"{value:,}", f"{value:.2f}", f"{value:,.2f}", f"{value:g}"}
    return {value.isoformat() if isinstance(value, datetime.date) else str(value)}


def rows_of(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows])


# Content


def test_the_report_begins_with_what_decides_and_has_all_sections(made: Made) -> None:
    titles = [unescape(title) for title in re.findall(r"<h2[^>]*>(.*?)</h2>", made.report)]
    assert titles == [
        "At a glance",
        "What weakens it",
        "What to do next",
        "Risk curve",
        "Quality of each attribute",
        "Guarantee and proof",
        "What was published",
        "How useful it is",
        "Values before and after",
        "Risk before and after",
        "Class sizes",
        "Stricter promises",
        "Loss of each attribute",
        "Rounds",
        "Time it took",
        "Configuration and fingerprints",
        "Glossary",
    ]
    assert "The guarantee holds" in made.report
    assert f"anonspark verify {made.release} --original {made.people}" in made.report
    manifest = json.loads((made.release / "manifest.json").read_text())
    for fingerprint in manifest["fingerprints"].values():
        assert fingerprint in made.report


def test_the_same_release_has_the_same_report(made: Made, cli: Cli, tmp_path: Path) -> None:
    reports = []
    for name in ("once.html", "again.html"):
        out = tmp_path / name
        outcome = cli.ends(0, "report", made.release, "--original", made.people, "--out", out)
        assert str(out) in outcome.out
        reports.append(out.read_text())
    assert reports[0] == reports[1]
    # That of the run differs in the proof alone, which was the run's.
    kept = [without_proof(one) for one in (made.report, reports[0])]
    assert kept[0] == kept[1]
    assert "truthfulness: records without" in reports[0]
    assert "truthfulness: records without" not in made.report
    assert "Ranges end on a grid of month (birth_date)" in reports[0]


def without_proof(report: str) -> str:
    # A run does not count the ends of ranges either.
    ends = r'<li class="[\w -]*"><h3>Ends of ranges.*?</li>\s*'
    proof = r'<section aria-labelledby="guarantee">.*?</section>'
    return re.sub(f"{proof}|{ends}", "", report, flags=re.DOTALL)


def test_the_file_is_small(made: Made) -> None:
    assert len(made.report.encode()) < 3_000_000


# Privacy


def test_no_identifier_is_in_the_report(made: Made) -> None:
    for person in people_of(made):
        assert person["full_name"] not in made.report
        assert person["person_id"] not in made.report


def test_no_tuple_of_quasi_identifiers_is_in_the_report(made: Made) -> None:
    words = set(re.findall(r"[^<>\s\"]+", unescape(made.report)))
    whole = unescape(made.report)
    for person in people_of(made):
        values = [person[name] for name in QUASI_IDENTIFIERS if person[name] is not None]
        assert not all(
            any(text in (words if " " not in text else whole) for text in as_text(value))
            for value in values
        )


def test_no_value_of_few_people_is_in_the_report(made: Made) -> None:
    """Dates of birth, codes and incomes are those of one or two people each."""
    plain = re.sub(r"<(svg|style)\b.*?</\1>", "", made.report, flags=re.DOTALL)
    words = set(re.findall(r"[\w.,-]+", plain))
    words |= set(re.findall(r"<text[^>]*>([^<]*)</text>", made.report))
    people = people_of(made)
    for name in ("birth_date", "income"):
        values = [person[name] for person in people]
        extremes = (min(values), max(values))
        rare = {value for value in values if values.count(value) < K}
        # Edges are round numbers, which somebody may have by chance.
        shown = {value for value in rare if as_text(value) & words}
        assert not shown.intersection(extremes)
        assert len(shown) <= 1


def test_few_people_are_not_counted(made: Made) -> None:
    manifest = json.loads((made.release / "manifest.json").read_text())
    dropped = manifest["summary"]["rows_dropped_missing"]
    assert dropped != 0
    shown = f"fewer than {K}" if dropped is None else f"{dropped}"
    heading = '<th scope="row">left out because a quasi-identifier is missing</th>'
    assert re.search(rf"{heading}<td[^>]*>{shown}</td>", made.report)
    for table in re.findall(r"<caption>Distribution of.*?</table>", made.report, re.S):
        for counts in re.findall(r"<td[^>]*>([\d,]+)</td>", table):
            assert int(counts.replace(",", "")) % K == 0


# Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        skip_or_fail(f"{CHROMIUM} is missing: install Debian's package chromium to test the report")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
            "--disable-background-networking --disable-component-update --disable-sync"
        )
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=flags.split())
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, made: Made, tmp_path: Path) -> Iterator[Page]:
    # As it comes out of a mail: alone, under another name.
    attachment = tmp_path / "attachment.html"
    attachment.write_text(made.report)
    page = browser.new_page()
    complaints: list[str] = []
    requests: list[str] = []

    def note(message: ConsoleMessage) -> None:
        complaints.append(message.text)

    def ask(request: Request) -> None:
        requests.append(request.url)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", ask)
    page.goto(attachment.as_uri())
    yield page
    page.close()
    assert not complaints
    assert [url for url in requests if not url.startswith("data:")] == [attachment.as_uri()]


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_nothing_overflows(page: Page, width: int, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # No text of a chart is cut off.
    cut = page.evaluate(
        """[...document.querySelectorAll('svg text')].filter(text => {
            if (!text.getClientRects().length) return false;
            const inner = text.getBoundingClientRect();
            const outer = text.ownerSVGElement.getBoundingClientRect();
            return inner.left < outer.left - 1 || inner.right > outer.right + 1
                || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1;
        }).map(text => text.textContent)"""
    )
    assert cut == []
    overlapping = page.evaluate(
        """[...document.querySelectorAll('svg')].flatMap(chart => {
            const boxes = [...chart.querySelectorAll('text')].map(one => {
                const box = one.getBoundingClientRect();
                return [one.textContent, box.left + 1, box.right - 1, box.top + 2, box.bottom - 2];
            });
            return boxes.flatMap((one, place) => boxes.slice(place + 1)
                .filter(two => one[1] < two[2] && two[1] < one[2]
                    && one[3] < two[4] && two[3] < one[4])
                .map(two => [one[0], two[0]]));
        })"""
    )
    assert overlapping == []


def test_every_chart_has_its_table_and_its_words(page: Page) -> None:
    charts = page.locator("svg")
    assert charts.count() >= len(QUASI_IDENTIFIERS) + 8
    assert page.locator("figure").count() == charts.count()
    for number in range(charts.count()):
        figure = page.locator("figure").nth(number)
        chart = figure.locator("svg")
        assert chart.get_attribute("role") in ("img", "group")
        assert len(chart.get_attribute("aria-label") or "") > 20
        table = figure.locator("details table")
        assert table.locator("caption").count() == 1
        assert table.locator("tbody tr").count() >= 1
        assert table.locator("thead th[scope=col]").count() >= 2
        assert table.locator("tbody tr th[scope=row]").count() == table.locator("tbody tr").count()
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))


def test_text_is_readable_in_light_and_dark_and_printed(page: Page) -> None:
    for media, scheme in (("screen", "light"), ("screen", "dark"), ("print", "dark")):
        page.emulate_media(media=media, color_scheme=scheme)  # type: ignore[arg-type]
        shown = ("p", "svg text", "caption", ".good", "figure summary, nav a", ".tile h3", ".value")
        for selector in (*shown, ".tile .mixed", ".grade", ".items p", ".term", "dd", ".soft"):
            found = page.evaluate(
                """selector => {
                    const one = document.querySelector(selector), style = getComputedStyle(one);
                    const text = one.namespaceURI.endsWith('svg') ? style.fill : style.color;
                    let behind = one, colour;
                    do {
                        colour = getComputedStyle(behind).backgroundColor;
                        behind = behind.parentElement;
                    } while (behind && /, 0\\)|transparent/.test(colour));
                    return [text, colour];
                }""",
                selector,
            )
            assert contrast(*found) >= 4.5, (media, scheme, selector, found)


def test_a_word_is_explained_where_it_stands(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    words = page.locator(".term")
    assert words.count() >= 5
    for number in range(words.count()):
        word = words.nth(number)
        if not word.is_visible():
            continue
        tip, anchor = word.locator(".tip"), word.get_attribute("aria-describedby")
        assert not tip.is_visible()
        word.focus()
        assert tip.is_visible()
        box = tip.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 400
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        assert page.locator(f"#{anchor}").inner_text() == tip.inner_text()


def test_a_chart_says_its_figures_where_it_is_pointed_at(page: Page) -> None:
    """The browser shows the title of what is below the pointer."""
    for section in ("risk-curve", "marginals"):
        part = page.locator(f"section[aria-labelledby={section}] .tips > path").nth(2)
        assert part.locator("title").text_content()
        box = part.bounding_box()
        assert box is not None
        part.scroll_into_view_if_needed()
        below = part.evaluate(
            """one => {
                const box = one.getBoundingClientRect();
                const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
                return document.elementFromPoint(x, y) === one;
            }"""
        )
        assert below


def test_it_is_printed_with_its_glossary_and_without_what_is_closed(page: Page) -> None:
    assert page.pdf(format="A4").startswith(b"%PDF-")
    page.emulate_media(media="print")
    assert page.locator("#term-class").is_visible()
    assert not page.locator("#appendix").is_visible()
    assert not page.locator("nav").is_visible()
    tiles = page.locator(".tile")
    tops = {round((tiles.nth(number).bounding_box() or {})["y"]) for number in range(5)}
    assert len(tops) == 1


def contrast(*colours: str) -> float:
    """Contrast ratio of two colours (WCAG 2.1)."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    darker, lighter = sorted(map(luminance, colours))
    return (lighter + 0.05) / (darker + 0.05)


# Other releases


def test_hierarchies_masks_and_suppressed_values(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {
        "job": {"role": "quasi_identifier", "hierarchy": "jobs.csv"},
        "code": {"role": "quasi_identifier", "hierarchy": {"prefix": [1, 2]}},
        "day": {"role": "quasi_identifier", "hierarchy": {"calendar": ["year"]}},
        "age": {"role": "quasi_identifier"},
    }
    manifest = {
        "configuration": {
            "input": {"missing_markers": ["?"]},
            "attributes": attributes,
            "missing": "category",
            "privacy": {"k": 4},
            "output": {"style": "interval"},
        },
        "published": {
            "quasi_identifiers": [
                {"name": "job", "kind": "category"},
                {"name": "code", "kind": "category"},
                {"name": "day", "kind": "category"},
                {"name": "age", "kind": "integer", "type": "int64"},
            ],
            "quasi_identifier_columns": ["job", "code", "day", "age"],
        },
    }
    hierarchy = Hierarchy.from_rows(
        [("nurse", "care", "*"), ("doctor", "care", "*"), ("smith", "craft", "*")]
    )
    released = [("care", "061**", "2001", "[20-29]")] * 6 + [("smith", "07200", "*", "*")] * 4
    data = rows_of(("job", "code", "day", "age"), released)
    day = datetime.date(2001, 3, 4)
    raw = [("nurse", "06110", day, 20)] * 3 + [("doctor", "06120", day, 29)] * 3
    raw += [("smith", "07200", datetime.date(1970, 1, 1), 77)] * 4
    original = rows_of(("job", "code", "day", "age"), raw)

    def by_label(one: Marginal) -> dict[str, tuple[float | None, float]]:
        before = one.before or (None,) * len(one.labels)
        return dict(zip(one.labels, zip(before, one.after, strict=True), strict=True))

    figures = measure(
        local_table(data), Manifest(manifest), {"job": hierarchy}, local_table(original)
    )
    job, code, day_of, age = map(by_label, figures.marginals)
    # Nurses and doctors are three each: together they are told, under the name of their group.
    assert job == {"care": (6, 6.0), "craft": (4, 4.0)}
    assert sum(before or 0 for before, _ in code.values()) == 10
    assert not {"06110", "06120"} & set(code)
    assert sum(after for _, after in day_of.values()) == pytest.approx(10)
    assert day_of["any value (*)"] == (0, 4.0)
    assert age["any value (*)"] == (0, 4.0)
    assert figures.original is not None
    assert figures.original.sizes == {3: 2, 4: 1}

    alone = measure(local_table(data), Manifest(manifest), {"job": hierarchy})
    assert by_label(alone.marginals[0]) == {"care": (None, 6.0), "craft": (None, 4.0)}

    monkeypatch.setattr("anonspark.reporting.original._MOST_TEXTS", 2)
    with pytest.raises(DataError, match="more than 2 different texts in the column 'job'"):
        measure(local_table(data), Manifest(manifest), {"job": hierarchy}, local_table(original))


@pytest.mark.parametrize("label", ["*", "missing", "* or missing"])
def test_attributes_of_which_nothing_is_told(label: str) -> None:
    rules = {
        "code": {"prefix": [1, 2]},
        "income": {"intervals": [10]},
        "day": {"calendar": ["year"]},
        "job": "jobs.csv",
    }
    manifest = {
        "configuration": {
            "input": {"missing_markers": ["?"]},
            "attributes": {
                name: {"role": "quasi_identifier", "hierarchy": rule}
                for name, rule in rules.items()
            },
            "missing": "category",
            "privacy": {"k": 2},
            "output": {"style": "interval"},
        },
        "published": {
            "quasi_identifiers": [{"name": name, "kind": "category"} for name in rules],
            "quasi_identifier_columns": list(rules),
        },
    }
    hierarchy = Hierarchy.from_rows([("nurse", "care", "*"), ("smith", "craft", "*")])
    data = rows_of(("code", "income", "day", "job"), [(label,) * 4] * 5)
    for one in measure(local_table(data), Manifest(manifest), {"job": hierarchy}).marginals:
        assert sum(one.after) == pytest.approx(5), one


def test_a_release_that_does_not_hold_says_so(made: Made, tmp_path: Path, cli: Cli) -> None:
    release = tmp_path / "release"
    shutil.copytree(made.release, release)
    (part,) = (release / "data").glob("part-*")
    rewrite(part, encode_table(pq.read_table(part).slice(2).replace_schema_metadata(None)))
    shutil.rmtree(release / "metrics")
    list_files(release)
    report, _ = make_report(LocalEngine(), str(release))
    assert "The guarantee does not hold" in report
    assert f">fewer than {K}</td>" in report
    assert "another one" in report
    assert not re.search(rf"<td[^>]*>{K - 2}</td>", report)
    outcome = cli.ends(0, "report", release, "--out", tmp_path / "bad.html", "--json")
    assert json.loads(outcome.out) == {"report": str(tmp_path / "bad.html"), "holds": False}
    assert f"{release}: the guarantee does not hold" in outcome.err
    outcome = cli("report", made.release, "--out", tmp_path / "good.html", "--json")
    assert json.loads(outcome.out)["holds"] is True
    assert "does not hold" not in outcome.err


def test_an_original_without_the_columns_is_refused(made: Made) -> None:
    manifest = read_manifest(LocalEngine().files, str(made.release))
    data = pq.read_table(made.release / "data")
    without = pq.read_table(made.people).drop_columns(["birth_date"])
    with pytest.raises(DataError, match="--original: lacks the columns 'birth_date'"):
        measure(local_table(data), manifest, {}, local_table(without))


def test_means_count_where_they_lie() -> None:
    manifest = {
        "configuration": {
            "attributes": {"age": {"role": "quasi_identifier"}},
            "privacy": {"k": 5},
            "output": {"style": "mean"},
        },
        "published": {
            "quasi_identifiers": [{"name": "age", "kind": "integer", "type": "int64"}],
            "quasi_identifier_columns": ["age"],
        },
    }
    means = [(mean,) for mean in (22.5, 37.5, 52.5) for _ in range(10)]
    data = local_table(rows_of(("age",), means))
    (marginal,) = measure(data, Manifest(manifest), {}).marginals
    assert marginal.before is None
    assert sum(marginal.after) == 30
    assert set(marginal.after) <= {10.0, 20.0}
    # They hide the regions that attacks look in.
    assert not _shows_regions(published_attributes(Manifest(manifest)))


# The decision


def decided(made: Made, folder: Path, cli: Cli, text: str, *words: object) -> tuple[int, str]:
    """Return the exit code of a report with a decision, and its page or what is wrong."""
    (folder / "decision.yaml").write_text(text)
    page = folder / "page.html"
    outcome = cli("report", made.release, "--decision", folder / "decision.yaml", "--out", page,
        "--no-progress", *words,
    )  # fmt: skip
    return outcome.code, page.read_text() if outcome.code == 0 else outcome.err


def rows_of_page(page: str, section: str) -> dict[str, str]:
    """Return the first and the last cell of each row of a section's tables."""
    inside = page.partition(f'id="{section}"')[2].partition("</section>")[0]
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in inside.split("<tr>")]
    return {unescape(re.sub("<[^>]+>", "", row[0])): row[-1] for row in found if row}


def test_a_decision_is_printed_with_the_fingerprint(made: Made, tmp_path: Path, cli: Cli) -> None:
    text = (
        "recipients: <script>alert(1)</script> & sons\nthreshold: 1/11, as EMA 0070\ndate:\n"
        "valid_until: 2028\ncolumns: {sex: neighbours <b>see</b> it, city: not needed}\n"
    )
    code, page = decided(made, tmp_path, cli, text)
    assert code == 0, page
    rows = rows_of_page(page, "decision")
    assert (
        rows["Fingerprint of the release"]
        == read_manifest(LocalEngine().files, str(made.release)).fingerprint
    )
    assert rows["Threshold of the risk, and the reason for it"] == "1/11, as EMA 0070"
    blank = rows["Role of the column education"]
    assert rows["Date"] == rows["Name of the person who decides"] == blank == ""
    assert rows["Valid until, and what makes it void earlier"] == "2028"
    assert rows["Role of the column city"] == "not needed"
    named = "Recipients, and what they use the release for", "Role of the column sex"
    escaped = tuple(rows[name] for name in named)
    assert escaped == (
        "&lt;script&gt;alert(1)&lt;/script&gt; &amp; sons", "neighbours &lt;b&gt;see&lt;/b&gt; it"
    )  # fmt: skip
    assert set(Decision.model_fields) >= {"attackers", "attempt", "singling_out", "inference"}
    assert 'id="decision"' not in made.report


@cases(__file__, "text", "problem")
def test_what_is_no_decision(made: Made, tmp_path: Path, cli: Cli, text: str, problem: str) -> None:
    code, message = decided(made, tmp_path, cli, text)
    assert code == 2
    assert problem in message


class LearnedRelease(NamedTuple):
    """A release, and what it was made of."""

    release: Path
    original: Path
    holdout: Path


@pytest.fixture(scope="module")
def learned_release(tmp_path_factory: pytest.TempPathFactory) -> LearnedRelease:
    folder = tmp_path_factory.mktemp("learned")
    table = people().drop_columns(["born", "visits"])
    original = write_table(folder / "input.parquet", table.slice(0, 400))
    holdout = write_table(folder / "holdout.parquet", table.slice(400))
    attributes = {**dict.fromkeys(("age", "job", "weight"), "quasi_identifier"), "ill": "sensitive"}
    path = configuration_file(folder, attributes=attributes, missing="category")
    assert main(["run", str(path), "--no-progress"]) == 0
    return LearnedRelease(folder / "release", original, holdout)


@pytest.mark.parametrize("held_out", [True, False])
def test_the_sentence_is_that_of_evaluate(
    learned_release: LearnedRelease, cli: Cli, tmp_path: Path, held_out: bool
) -> None:
    given = ["--original", learned_release.original, "--target", "ill", "--no-progress"]
    given += ["--holdout", learned_release.holdout] * held_out
    told = json.loads(cli("evaluate", learned_release.release, *given, "--json").out)
    out = tmp_path / "report.html"
    cli.ends(0, "report", learned_release.release, *given, "--out", out)
    page = unescape(out.read_text())
    # The report has no counts by ranges.
    about_models = told["sentence"].partition(". ")[0]
    sentence = f"{about_models[0].upper()}{about_models[1:]}."
    assert "as good as on the original (95% interval" in sentence
    # In the tile and in the section.
    assert page.count(sentence) == 2
    assert ("flattering" in page) is not held_out
    share = f"{100 * told['kept']['share']:.1f}%"
    assert re.search(rf'class="[^"]*value[^"]*">{share}<', page)
    for one in told["learning"]["differences"]:
        assert f"{one['roc_auc']['difference']:+.4f}" in page
    if held_out:
        html = anonspark.report(
            learned_release.release,
            original=learned_release.original,
            target="ill",
            holdout=learned_release.holdout,
        ).html
        assert html == out.read_text()


def test_too_few_test_records_are_refused(
    learned_release: LearnedRelease, cli: Cli, tmp_path: Path
) -> None:
    few = write_table(tmp_path / "few.parquet", pq.read_table(learned_release.holdout).slice(0, 4))
    given = ["--original", learned_release.original, "--target", "ill", "--no-progress"]
    outcome = cli.ends(3, "report", learned_release.release, *given, "--holdout", few)
    assert "fewer than 5 test records. Expected k = 5 or none of each kind" in outcome.err
    assert not (learned_release.release / "report.html").exists()
    outcome = cli.ends(2, "report", learned_release.release, "--target", "ill", "--no-progress")
    assert "--target: found no --original. " in outcome.err
