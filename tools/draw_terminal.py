"""Draw a terminal with `init`, `run` and `verify` of data/people.csv, as README shows it.

python tools/draw_terminal.py docs/images/terminal.svg
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markupsafe import Markup

from anonspark.presentation.svg import element

REPOSITORY = Path(__file__).resolve().parents[1]

COLUMNS = 96
COMMANDS = (
    "anonspark init people.csv",
    "anonspark run people.yaml",
    "anonspark verify out/people --original people.csv",
)
SEED = "4820573920175538211"
RUN_ID = "ca5b995405ff"
"""What is random for a user, and the same in each picture."""

LETTER, LINE = 7.25, 18  # pixels
STYLE = """
text { font: 12px ui-monospace, SFMono-Regular, Menlo, monospace; fill: #e4e7eb; white-space: pre }
.prompt { fill: #5eead4 }
.sheet { fill: #161b22; stroke: #3e4c59 }
"""


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description="Draw a terminal with three commands.")
    parser.add_argument("target", type=Path)
    parser.parse_args().target.write_text(draw(), encoding="utf-8")


def draw() -> str:
    """Return the picture, the same bytes each time.

    Returns
    -------
    str
        An SVG document.
    """
    lines = record()
    width, height = COLUMNS * LETTER + 24, (len(lines) + 1) * LINE
    texts = [
        element("text", line, class_="prompt" if line.startswith("$ ") else "output", x=12, y=y)
        for y, line in zip(range(22, 22 + LINE * len(lines), LINE), lines, strict=True)
        if line
    ]
    drawn = element(
        "svg",
        element("style", Markup(STYLE)),  # noqa: S704 - the constant above
        element("rect", class_="sheet", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=6),
        *texts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}",
        role="img",
        aria_label="A terminal: init writes a configuration, run publishes, verify proves it",
    )
    return f"{drawn}\n"


def record() -> list[str]:
    """Run the commands in an empty folder, and return what a terminal shows of them."""
    environment = {**os.environ, "COLUMNS": str(COLUMNS)}
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(REPOSITORY / "data" / "people.csv", folder)
        for command in COMMANDS:
            done = subprocess.run(  # noqa: S603 - the commands above
                [sys.executable, "-m", *command.split()],
                cwd=folder,
                env=environment,
                check=True,
                capture_output=True,
                text=True,
            )
            Path(folder, "people.seed").write_text(SEED, encoding="utf-8")
            printed = re.sub(r"\b[0-9a-f]{12}\b", RUN_ID, done.stdout)
            lines += [f"$ {command}", *printed.rstrip("\n").split("\n"), ""]
    return lines[:-1]


if __name__ == "__main__":
    main()
