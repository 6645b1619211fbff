"""Compute what the theses print again, and write docs/reproduction.md.

    make reproduce
    .venv/bin/python benchmarks/reproduce.py saleh

The second only measures what one thesis prints. Ours are written to conf/experiments/measured, next
to what is printed, and the page is made of these files with conf/experiments/reproduction.md.jinja.
The page is the same for the same figures: it has no times and no dates.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from printed_figures import (
    FOLDER,
    MEASURED,
    Place,
    measured_figures,
    printed_figures,
    read_rows,
    read_tables,
    write_measured,
)
from quality import canbay, distribution, saleh, var_inan, vural
from quality.csv_tables import lacking

REPOSITORY = FOLDER.parents[1]
PAGE = REPOSITORY / "docs" / "reproduction.md"
MODULES = (canbay, vural, saleh, distribution, var_inan)
THESES: dict[str, ModuleType] = {module.THESIS: module for module in MODULES}


def render_page() -> str:
    """Return the page, of the figures that are printed and measured."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - Markdown
        keep_trailing_newline=True,
    )
    environment.filters |= {"span": span, "times": times, "percent": percent}
    figures = {name: measured_figures(name) for name in THESES}
    tables = {name: read_tables(name, figures[name]) for name in THESES}
    return environment.get_template("reproduction.md.jinja").render(
        tables=tables,
        facts={name: json.loads((MEASURED / f"{name}.json").read_text()) for name in THESES},
        missing=list(read_rows(FOLDER / "not_repeated.csv")),
        verdicts={name: sum((t.verdicts for t in of), Counter()) for name, of in tables.items()},
        figure=lambda thesis, column, *place: figures[thesis][Place(*place)][column],
    )


def span(values: Iterable[float], form: str = "{:+.1f}") -> str:
    """Write the smallest and the largest value."""
    all_values = list(values)
    return f"{form.format(min(all_values))} to {form.format(max(all_values))}"


def percent(ratios: Iterable[float | None]) -> str:
    """Write by how many percent multiples differ from one."""
    return f"{span([100 * (ratio - 1) for ratio in ratios if ratio is not None])}%"


def times(ratios: Iterable[float]) -> str:
    """Write how many times as much the print has, where ours is a multiple of it."""
    return span([1 / ratio for ratio in ratios], "{:.2f}")


def main() -> None:
    """Measure what the theses print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("theses", nargs="*", help=f"all of these if left out: {', '.join(THESES)}")
    logging.getLogger("anonspark").setLevel(logging.ERROR)
    data = Path(os.environ.get("ANONSPARK_DATA") or REPOSITORY.parent / "shared" / "data").resolve()
    for name in parser.parse_args().theses or THESES:
        missing = lacking(data, THESES[name].NEEDED)
        if missing:
            print(f"{name}: figures stay as they are, because {data} lacks {', '.join(missing)}")
        else:
            write_measured(name, *THESES[name].measure(data, printed_figures(name)))
    PAGE.write_text(render_page(), encoding="utf-8")
    print(f"written: {PAGE.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
