"""Make the report that the gallery shows, and draw its parts.

    python tools/draw_report.py build/gallery                         # people.html
    python tools/draw_report.py build/gallery --pictures docs/images  # and pictures, with Chromium

It is the report of a release of data/people.csv by conf/people.yaml.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from pathlib import Path

from anonspark.cli.application import main as run_command

REPOSITORY = Path(__file__).resolve().parents[1]

CHROMIUM = Path("/usr/bin/chromium")
WIDTH = 1280
FIRST_PAGE = 545  # pixels
SECTIONS = ("risk-curve", "marginals", "class-sizes")
CHARTS = 2
"""Of a section, as many as are drawn: a section of values has one for each column."""


def main() -> None:
    """Make the report, and draw it where that is asked for."""
    parser = argparse.ArgumentParser(description="Make the report that the gallery shows.")
    parser.add_argument("target", type=Path)
    parser.add_argument("--pictures", type=Path, help="draw its parts into this folder")
    arguments = parser.parse_args()
    arguments.target.mkdir(parents=True, exist_ok=True)
    page = arguments.target.resolve() / "people.html"
    make(page)
    if arguments.pictures:
        draw(page, arguments.pictures.resolve())


def make(page: Path) -> None:
    """Write the report.

    Raises
    ------
    RuntimeError
        If the release or the report cannot be made.
    """
    people = str(REPOSITORY / "data" / "people.csv")
    # The report has the path of the release on top.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        release = "people"
        placed = {"input.path": people, "output.path": release}
        options = [part for key in placed for part in ("--set", f"{key}={placed[key]}")]
        for command in (
            ["run", f"{REPOSITORY}/conf/people.yaml", "--run-id", "gallery", *options],
            ["report", release, "--original", people, "--out", str(page)],
        ):
            if run_command([*command, "--no-progress"]):
                raise RuntimeError(f"anonspark {command[0]} failed")


def draw(page: Path, folder: Path) -> None:
    """Draw the first page and some sections of a report as PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        shown = browser.new_page(viewport={"width": WIDTH, "height": FIRST_PAGE})
        shown.goto(page.as_uri())
        shown.screenshot(path=folder / "report.png")
        for name in SECTIONS:
            shown.locator(f"section[aria-labelledby={name}] figure").evaluate_all(
                f"charts => charts.slice({CHARTS}).forEach(chart => chart.remove())"
            )
            section = shown.locator(f"section[aria-labelledby={name}] .charts")
            section.first.screenshot(path=folder / f"report-{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
