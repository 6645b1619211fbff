"""Draw the picture of the first page: people of data/people.csv, before and after.

    python tools/draw_example.py docs/images/before-after.svg

Before are the people of one class of a release, after is what the release says of them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from markupsafe import Markup

import anonspark
from anonspark.presentation.svg import element

REPOSITORY = Path(__file__).resolve().parents[1]

K = 10
SHOWN = 5
CONFIGURATION = {
    "attributes": {
        "person_id": "identifier",
        "birth_date": {"role": "quasi_identifier", "grid": "month"},
        "sex": "quasi_identifier",
        "postal_code": {"role": "quasi_identifier", "grid": 100},
        "diagnosis": "sensitive",
    },
    "privacy": {"k": K, "l_diversity": {"attribute": "diagnosis", "l": 3}},
    "output": {"style": "bounds"},
    "execution": {"seed": 4820573920175538211},
}
BEFORE = {
    "full_name": 128,
    "birth_date": 88,
    "sex": 60,
    "postal_code": 92,
    "diagnosis": 170,
}  # pixels
AFTER = {"birth_date": 168, "sex": 60, "postal_code": 112, "diagnosis": 170}
LINE = 22.0
LETTER = 12.0
STYLE = """
text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #1f2933 }
.head { font-weight: 600; fill: #52606d }
.title { font-weight: 700; font-size: 14px }
.gone { fill: #c81e1e; text-decoration: line-through }
.kept { fill: #0f766e }
.sheet { fill: #ffffff; stroke: #cbd2d9 }
.arrow { fill: #0f766e }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7eb } .head { fill: #9aa5b1 } .gone { fill: #f98080 } .kept { fill: #5eead4 }
  .sheet { fill: #161b22; stroke: #3e4c59 } .arrow { fill: #5eead4 }
}
"""


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description="Draw the picture of the first page.")
    parser.add_argument("target", type=Path)
    parser.parse_args().target.write_text(draw(), encoding="utf-8")


def draw() -> str:
    """Return the picture, the same bytes each time.

    Returns
    -------
    str
        An SVG document.
    """
    people = pyarrow.csv.read_csv(REPOSITORY / "data" / "people.csv")
    with anonspark.anonymize(people, CONFIGURATION) as release:
        published = release.data
    before, after = _class_of(people, published)
    left = _table(f"before: {SHOWN} of {K} people", before, BEFORE, 0.0)
    start = sum(BEFORE.values()) + 84.0
    right = _table(f"after: everyone looks like {K - 1} others or more", after, AFTER, start)
    width, height = start + sum(AFTER.values()) + 16.0, LINE * (SHOWN + 3)
    middle = sum(BEFORE.values()) + 50.0
    arrow = element(
        "path",
        class_="arrow",
        d=f"M{middle - 22:g} {height / 2 - 3:g}h26v-8l18 11-18 11v-8h-26z",
    )
    drawn = element(
        "svg",
        element("style", Markup(STYLE)),  # noqa: S704 - the constant above
        left,
        arrow,
        right,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        role="img",
        aria_label="Records with names and dates of birth; beside them published ranges",
    )
    return f"{drawn}\n"


def _class_of(people: pa.Table, published: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return people of the first class that no other person fits into, and what is said of them."""
    keys = ["birth_date_min", "birth_date_max", "sex", "postal_code_min", "postal_code_max"]
    records = [tuple(map(str, record.values())) for record in published.select(keys).to_pylist()]
    first = {record: number for number, record in reversed(list(enumerate(records)))}
    sizes = Counter(records)
    for record, number in sorted(first.items(), key=itemgetter(1)):
        row = published.select(keys).slice(number, 1).to_pylist()[0]
        if len(row["sex"]) > 1:
            continue
        inside = pc.and_(
            pc.and_(
                _between(people["birth_date"], row["birth_date_min"], row["birth_date_max"]),
                _between(people["postal_code"], row["postal_code_min"], row["postal_code_max"]),
            ),
            pc.equal(people["sex"], row["sex"][0]),
        )
        members = people.filter(inside)
        if len(members) == sizes[record] == K:
            said = {
                "birth_date": f"{row['birth_date_min']} to {row['birth_date_max']}",
                "sex": row["sex"][0],
                "postal_code": f"{row['postal_code_min']} to {row['postal_code_max']}",
            }
            # Those whose diagnoses have room.
            lengths = pc.binary_length(members["diagnosis"]).to_numpy()
            shown = members.take(lengths.argsort(kind="stable")[:SHOWN])
            diagnoses = sorted(shown["diagnosis"].to_pylist())
            after = [said | {"diagnosis": diagnosis} for diagnosis in diagnoses]
            return shown, pa.Table.from_pylist(after)
    raise ValueError(f"no class of {K} people has one value of sex and nobody else inside")


def _between(column: pa.ChunkedArray, least: object, most: object) -> pa.ChunkedArray:
    typed = [pa.scalar(bound).cast(column.type) for bound in (least, most)]
    return pc.and_(pc.greater_equal(column, typed[0]), pc.less_equal(column, typed[1]))


def _table(title: str, rows: pa.Table, widths: dict[str, int], start: float) -> Markup:
    """Return a sheet with a heading."""
    parts = [
        element(
            "rect",
            class_="sheet",
            x=start + 1,
            y=LINE + 4,
            width=float(sum(widths.values()) + 12),
            height=LINE * (SHOWN + 1) + 10,
            rx=6.0,
        ),
        element("text", title, class_="title", x=start + 4, y=LETTER + 4),
    ]
    at = start + 10
    for name, width in widths.items():
        gone = "gone" if name == "full_name" else ""
        kept = "kept" if name != "diagnosis" and "full_name" not in widths else gone
        heading = element("text", name.replace("_", " "), class_="head", x=at, y=LINE * 2)
        parts.append(heading)
        for number, value in enumerate(rows[name].to_pylist()):
            height = LINE * (number + 3)
            parts.append(element("text", str(value), class_=kept, x=at, y=height))
        at += width
    return element("g", *parts)


if __name__ == "__main__":
    main()
