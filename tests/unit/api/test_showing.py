"""What programs get shows itself: text of few lines, HTML that is safe in somebody's page."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

import anonspark
from anonspark import api
from anonspark.api.progress import NotebookProgress, progress_for
from anonspark.errors import ConfigurationError
from anonspark.presentation.card import MOST_LINES

ODD = "<b onmouseover=alert(1)>town"
SECRET = "wooden leg"  # noqa: S105 - a value of the data


def people() -> pd.DataFrame:
    rows = range(120)
    return pd.DataFrame(
        {
            "age": [20 + 7 * row % 31 for row in rows],
            ODD: ["ABC"[row % 3] for row in rows],
            "illness": [("cold", "flu", SECRET)[row % 3] for row in rows],
            "visits": [row % 2 for row in rows],
        }
    )


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    table = people()
    roles = {"quasi_identifiers": ["age", ODD], "sensitive": ["illness"]}
    release = anonspark.anonymize(table, k=5, **roles, insensitive=["visits"], seed=7)
    shown = {
        "release": release,
        "proof": release.verify(original=table),
        "failed": anonspark.verify(table, quasi_identifiers=["age"], k=100),
        "utility": anonspark.evaluate(release, table, target="illness"),
        "comparison": anonspark.compare(
            table, k=[2, 5], model=["su-mondrian", "mondrian"], **roles
        ),
        "one setting": anonspark.compare(table, k=3, **roles),
        "profile": anonspark.profile(table, k=5),
        "loss": release.plot_loss(),
        "sizes": release.plot_sizes(),
        "risk": release.plot_risk(),
        "errors": anonspark.evaluate(release, table).plot_errors(),
        "report": release.report(original=table),
    }
    release.close()
    return shown


def test_text_is_short_and_begins_with_the_verdict(found: dict[str, Any]) -> None:
    for name, one in found.items():
        lines = repr(one).splitlines()
        assert len(lines) <= MOST_LINES, name
        assert max(map(len, lines)) <= 160, name
        assert SECRET not in repr(one)
    (useful,) = [line for line in repr(found["release"]).splitlines() if "of 100" in line]
    assert useful.startswith("  utility"), "it is no warning"
    assert '<th scope="row">utility</th>' in found["release"]._repr_html_()
    first = {name: repr(one).partition("\n")[0] for name, one in found.items()}
    assert first["release"] == "Release: ! every record matches at least 4 others (k = 5)"
    assert first["proof"] == "Verification: ! All criteria hold, with 1 warning."
    assert first["failed"] == "Verification: ✗ 1 of the checks failed."
    assert "  ! the smallest class of the release has 3" in repr(found["failed"])
    assert first["comparison"].startswith("Comparison: best by loss, smaller is better: k=2, ")
    assert "attribute  " in repr(found["loss"])


def test_html_is_a_piece_of_a_page(found: dict[str, Any]) -> None:
    for name in set(found) - {"report"}:
        html = found[name]._repr_html_()
        assert "<b onmouseover" not in html, name
        assert SECRET not in html, name
        assert not re.search(r"<script|<link|https?://|<html|<body", html), name
        style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
        assert style is not None
        selectors = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]*\{", "", style[1]))
        assert all(".anonspark" in one for selector in selectors for one in selector.split(",")), (
            name
        )
        ids = re.findall(r'\bid="([^"]*)"', html)
        assert len(ids) == len(set(ids))
    for name in ("release", "proof", "utility", "comparison", "one setting", "profile"):
        assert found[name]._repr_html_().count("<svg") == 2, name
    assert "&lt;b onmouseover" in found["release"]._repr_html_()


def test_a_page_is_shown_in_a_frame_of_its_own(found: dict[str, Any], tmp_path: Path) -> None:
    page = found["report"]
    assert page._repr_html_().startswith("<iframe sandbox srcdoc=")
    saved = page.save(str(tmp_path / "report.html"))
    assert (tmp_path / "report.html").read_text() == page.html
    assert str(tmp_path) in repr(saved)
    assert "<html" in found["comparison"].report().html


def test_what_needs_the_files_says_that_they_are_gone(found: dict[str, Any]) -> None:
    release = found["release"]
    assert len(release.data) == len(release.to_pandas()) == release.to_polars().height == 120
    for ask in (
        release.verify,
        release.report,
        lambda: anonspark.evaluate(release, people()),
        lambda: anonspark.report(release),
        lambda: anonspark.verify(release),
    ):
        with pytest.raises(ConfigurationError, match="it was closed, which removed its files"):
            ask()


def test_showing_prints_where_there_is_no_notebook(
    found: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("release", "loss", "report"):
        found[name].show()
        assert capsys.readouterr().out == f"{found[name]!r}\n"


def test_a_notebook_has_one_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def show(shown: str, **_: Any) -> Any:
        written.append(shown)
        return SimpleNamespace(update=written.append)

    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    display = SimpleNamespace(HTML=str, display=show)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    progress = progress_for(shows=True)
    assert isinstance(progress, NotebookProgress)
    with progress.stage("prepare <it>", rows=1000):
        progress.report_step("counting")
        progress._show()
    assert written[0] == "<span>prepare &lt;it&gt;: 1,000 rows ... 0 s</span>"
    assert "<span>prepare &lt;it&gt;: 1,000 rows: counting ... 0 s</span>" in written
    assert written[-1] == "<span></span>"
    assert not isinstance(progress_for(shows=False), NotebookProgress)


def test_nothing_is_told_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with anonspark.anonymize(people(), k=5, quasi_identifiers=["age"]):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_notebook_shows_the_line_and_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    cell = (
        "import anonspark, pandas\n"
        "people = pandas.DataFrame({'age': [20 + n % 8 for n in range(40)]})\n"
        "anonspark.anonymize(people, k=5, quasi_identifiers=['agee'])"
    )
    InteractiveShell().run_cell(cell)
    _, asked, *marks, message = capsys.readouterr().out.splitlines()
    assert asked.strip() == cell.splitlines()[-1]
    assert len(marks) <= 1
    assert message.startswith("DataError: attributes.agee: the input has no such column.")


@pytest.mark.parametrize(
    ("columns", "headline"),
    [
        ({"age": range(60), "seen": range(100, 160)}, "identified by each of 2 columns"),
        ({"age": range(60), "site": ["a"] * 60}, "every record is identified by one column"),
        ({"site": ["a"] * 60}, "no column was found that identifies records"),
    ],
)
def test_a_profile_says_what_identifies_by_itself(columns: dict[str, Any], headline: str) -> None:
    text = repr(anonspark.profile(pd.DataFrame(columns)))
    assert headline in text.splitlines()[0]
    assert "Sets of 0" not in text


WITH_EXAMPLES = ("functions", "release", "results")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_that_is_slow() -> None:
    code = "import sys, anonspark; print(*sorted(name.partition('.')[0] for name in sys.modules))"
    slow = {"numba", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "narwhals", "rich"}
    assert slow.isdisjoint(python(code).split())


def test_no_part_of_the_package_shadows_a_public_name() -> None:
    """Whoever imports a module of the package sets an attribute of its name."""
    names = set(anonspark.__all__) - {"__version__"}
    assert names.isdisjoint(part.name for part in pkgutil.iter_modules(anonspark.__path__))
    assert all(getattr(anonspark, name) is getattr(api, name) for name in names)
    assert all(callable(getattr(api, name)) for name in names)


def test_public_names_are_those_of_the_room() -> None:
    assert set(anonspark.__all__) == {*api.__all__, "__version__"}
    assert set(anonspark.__all__) <= set(dir(anonspark))
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        _ = anonspark.anonymise


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result = doctest.testmod(importlib.import_module(f"anonspark.api.{name}"))
    assert result.failed == 0
    assert result.attempted >= 3
    assert list(tmp_path.iterdir()) == []


def test_every_public_function_has_an_example() -> None:
    functions = [getattr(api, name) for name in api.__all__ if name[0].islower()]
    assert len(functions) >= 8
    without = {one.__name__ for one in functions if ">>>" not in (one.__doc__ or "")}
    # A selection needs a ledger, a union two releases of one coding: docs/ has examples that run.
    assert without == {"select", "union"}
