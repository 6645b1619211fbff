"""The part of docs/reproduction.md about theses on learning."""

# ruff: noqa: E501 - lines of the page

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from printed_figures import VERDICTS, Figure, Place, printed_figures
from reproduce import Line, count_verdicts, overview, table_of
from reproduction_page import LEARNING

from quality import saleh, var_inan
from quality.csv_tables import ADULT_FILES, MAMMOGRAPHIC, lacking
from quality.learned import Learned, learned
from quality.ml_utility import Scores
from quality.silos import blocks

Tables = dict[str, list[Line]]

NEEDED = ("adult.csv", *ADULT_FILES, MAMMOGRAPHIC, saleh.HOUSING, "hierarchies")

INTRODUCTION = """\
Saleh (master's thesis, Marmara University) measures classifiers on anonymized tables and federated
learning. Var and Inan 2018 choose attributes by noisy tables of counts. Their models depend on splits
and seeds that are not published, so you need one more verdict:

| cell | verdict | meaning |
| --- | --- | --- |
| `0.857 ~ 0.860` | within the spread | no farther apart than two runs of the same experiment: ±0.012 for classifiers on Adult, ±0.04 on the 249 test records of mammographic masses, ±0.008 for federated accuracy, what the farthest of three seeds is from their mean for its other figures, ±1 point for the loss, ±0.7 points for naive Bayes |

`.venv/bin/python benchmarks/reproduce.py --learning` only writes this section, in some minutes. You need `adult.csv`, `adult_raw.csv`, `adult_test.csv`, `mammographic_masses.csv` and
`california_housing.csv` in `$ANONSPARK_DATA`, and hierarchies of Adult."""

WHY = {
    "Coefficients": "H",
    "Loss": "H",
    "Lists of other tables": "O",
    "Classifiers on Adult": "M",
    "Classifiers on mammographic masses": "M",
    "Federated learning": "M, H",
    "Records": "N",
    "Naive Bayes": "M",
}
REASONS = """\
- H, hierarchies: the thesis publishes by groups of values whose most frequent class is about equally
  frequent, with unknown widths. Ours are 5, 10, 20 and 50%. k and the hierarchies of its federated releases are also unknown. Ours have k = 10 and sets of neighbours.
- M, models: split, seed, version and the treatment of missing values are unknown. The support
  vector machine of the print has the figures of the majority class, which is next to it here.
- N: Adult has 48,842 records in its two files."""

TITLES = {
    "Shares": "Shares of the most frequent income by education, Adult",
    "Coefficients": "Entropy coefficients of mammographic masses for severity, before and at k = 3",
    "Loss": "Loss of mammographic masses at k = 3",
    "Lists": "Table 5.3: lists of the partitioner, mammographic masses, k = 3",
    "Lists of other tables": "Lists of the partitioner, other tables, rows in the order of the file",
    "Classifiers on Adult": "Classifiers on Adult, 70% for training",
    "Classifiers on mammographic masses": "Classifiers on mammographic masses, mean of 10 splits",
    "Federated learning": "Federated learning on Adult, three holders, mean of 3 seeds",
    "Sensitivity": "Var and Inan: by how much counts change if a record is replaced",
    "Expected counts": "Var and Inan: expected counts of the rows 465, 1035 and 680, 320",
    "Records": "Var and Inan: records",
    "Naive Bayes": "Var and Inan: errors of naive Bayes on Adult, 3 folds of the complete records",
}


def learning_section(data: Path) -> list[str] | None:
    """Return the paragraphs of the section; None, with a line that says so, where data lack.

    Parameters
    ----------
    data : Path
        Folder of the public data sets.
    """
    missing = lacking(data, NEEDED)
    if missing:
        print(f"the section on learning stays as it is: {data} lacks {', '.join(missing)}")
        return None
    models = learned(data)
    of_saleh = saleh.figures(data, models)
    of_var = var_inan.figures(data)
    first = _tables(saleh.THESIS, of_saleh, saleh.spreads(models))
    second = _tables("var-inan-2018", of_var, var_inan.spread_of)
    return [
        LEARNING,
        INTRODUCTION,
        _total({**first, **second}),
        "\n".join(overview({**first, **second}, _why({**first, **second}), VERDICTS)),
        REASONS,
        "### What cannot be reproduced, or is not built",
        "\n".join(saleh.not_reproduced(data)),
        *_sections(
            first, {"Shares": saleh.groups_told(data), "Lists": saleh.losses_of_lists(data)}
        ),
        "### Classifiers compared with the majority class",
        "\n".join(_classifiers(models)),
        "\n".join(_areas(models)),
        "### Federated learning and the union of releases",
        "Features are those of `anonspark evaluate`. The network has layers of 64, 32 and 16, and is "
        "trained in 15 rounds by plain stochastic gradient descent, which averages the holders' "
        "models after each (McMahan et al. 2017). The package has no part of this "
        "(`benchmarks/quality/silos.py`). The holders anonymize by `smondrian` under one "
        "[coding](holders.md#the-coding), and `anonspark union` makes one release of theirs. Figures are means over three seeds, with the smallest and "
        "the largest.",
        *blocks(models.alike, models.differing),
        *_sections(second, {}),
        "\n".join(var_inan.told(data)),
    ]


def _tables(thesis: str, ours: saleh.Figures, spread: saleh.SpreadOf) -> Tables:
    tables: Tables = {}
    for place, printed in printed_figures(thesis).items():
        found = ours(place)
        figures = {
            column: Figure(column, text, found[column], False, spread(place, column))
            for column, text in printed.items()
        }
        tables.setdefault(place.table, []).append((_name(place), figures))
    return tables


def _name(place: Place) -> str:
    if place.table != "Lists":
        return place.model
    return f"k = {place.k}" + ("" if place.model == "k" else f", {place.model}")


def _why(tables: Tables) -> Mapping[str, str]:
    return {name: WHY.get(name, "") for name in tables}


def _total(tables: Tables) -> str:
    found = count_verdicts([line for lines in tables.values() for line in lines])
    return (
        f"{sum(found.values())} figures: {found['equal']} are equal, {found['rounding']} within the "
        f"print's rounding, {found['spread']} within the spread, {found['differs']} differ."
    )


def _sections(tables: Tables, notes: Mapping[str, str]) -> Iterator[str]:
    for name, lines in tables.items():
        yield f"### {TITLES[name]}"
        yield "\n".join(table_of("", lines))
        if name in notes:
            yield notes[name]


def _classifiers(models: Learned) -> Iterator[str]:
    def cell(scores: Scores, name: str) -> str:
        values = getattr(scores, name)
        spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
        return f"{values.mean():.3f}{spread}"

    yield "| table | learner | accuracy | majority class | macro-F1 | majority class |"
    yield "|" + " --- |" * 6
    for table, found in (
        ("Adult, one split", models.adult),
        ("mammographic masses, 10 splits", models.mammographic),
    ):
        majority = found["majority class"]
        for learner, one in found.items():
            if one is not majority:
                pairs = [
                    cell(which, name)
                    for name in ("accuracy", "f1_macro")
                    for which in (one, majority)
                ]
                yield f"| {table} | {learner} | {' | '.join(pairs)} |"


def _areas(models: Learned) -> Iterator[str]:
    told = ", ".join(f"{area:.4f} ({name})" for name, area in models.areas.items())
    order = list(models.areas.values())
    falls = "The order is" if order == sorted(order, reverse=True) else "The order is not"
    yield (
        f"Area of boosted trees on `adult_test.csv`, trained on: {told}. {falls} that of the print: "
        "original, k, t at equal k."
    )
