"""What models lose on releases of Adult: the tables of docs/models.md about models and privacy.

    .venv/bin/python benchmarks/model_loss.py --data ../shared/data

Prints Markdown, made by `anonspark compare` with an evaluation: by this process, whose learners are
those of scikit-learn, or with ``--engine spark`` by Spark and its learners. ``privacy`` has several
criteria on nine quasi-identifiers, ``arrangements`` several orders and hierarchies of categories
at k = 10, those that ``anonspark arrange`` learns among them. Models learn income and are tested on
adult_test.csv, which was not anonymized.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml
from scipy.stats import spearmanr

from anonspark.comparison.grid import load_grid
from anonspark.comparison.runner import compare
from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.engine.spark.session import open_session
from anonspark.utility.learned_hierarchies import arrange

QUASI_IDENTIFIERS = (
    "age", "workclass", "education", "marital-status", "occupation", "race", "sex",
    "native-country", "relationship",
)  # fmt: skip
CATEGORIES = tuple(name for name in QUASI_IDENTIFIERS if name not in ("age", "sex"))
FULL = ("relationship",)
INSENSITIVE = ("hours-per-week", "capital-gain", "capital-loss")
LEARNERS = ("gradient_boosted_trees", "logistic_regression", "random_forest")
SOURCE = {"format": "csv", "options": {"header": "true", "inferSchema": "true"}}

T = {"attribute": "income", "t": 0.4}
L = {"attribute": "income", "l": 2}


def configuration(data: Path, arranged: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the configuration of all cells, with what is said of each category."""
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier", **arranged.get(name, {})} for name in QUASI_IDENTIFIERS
    }
    attributes |= dict.fromkeys(INSENSITIVE, "insensitive") | {"income": "sensitive"}
    return {
        "input": {"path": str(data / "adult.csv"), **SOURCE},
        "attributes": attributes,
        "privacy": {"k": 10},
        "model": {"name": "smondrian"},
        "output": {"path": "-"},
    }


def by_hand(data: Path) -> dict[str, dict[str, Any]]:
    """Return the hierarchies that ARX comes with."""
    folder = data / "hierarchies"
    return {
        name: {
            "hierarchy": str(
                folder / f"adult_{'full_' if name in FULL else ''}hierarchy_{name}.csv"
            )
        }
        for name in CATEGORIES
    }


def learned(engine: Engine, data: Path, form: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Return what ``anonspark arrange`` learns of each category."""
    own = parse_configuration(configuration(data, {}))
    out = str(folder / form)
    found = arrange(engine, own, "income", out, attributes=CATEGORIES, form=form)  # type: ignore[arg-type]
    if form == "order":
        return {one.name: {"order": list(one.values)} for one in found.attributes}
    return {one.name: {"hierarchy": f"{out}/{one.name}.csv"} for one in found.attributes}


def rows(
    engine: Engine,
    data: Path,
    base: Mapping[str, Any],
    axes: Sequence[Mapping[str, Any]],
    output: Path,
) -> Iterator[dict[str, Any]]:
    """Run a grid; the row of the original comes first."""
    grid = output.with_suffix(".yaml")
    document = {
        "base": dict(base),
        "axes": list(axes),
        "evaluation": {
            "target": "income",
            "holdout": {"path": str(data / "adult_test.csv"), **SOURCE},
        },
        "rank_by": "model_loss",
        "output": str(output),
    }
    grid.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    loaded = load_grid(grid)
    found = compare(engine, loaded)
    by_cell = {row["cell"]: row for row in found.rows}
    first = next(iter(found.results.values())).evaluation["learning"]
    original: dict[str, Any] = {"accuracy_majority": first["majority"]}
    for score in first["scores"]:
        if score["trained_on"] == "original":
            learner = score["learner"].replace(" ", "_").replace("-", "_")
            original |= {f"{name}_{learner}": score[name] for name in ("roc_auc", "accuracy")}
    yield original
    for cell in loaded.cells:
        yield by_cell[cell.id]


def printed(what: str, row: Mapping[str, Any]) -> dict[str, str]:
    """Return a row as it is printed: of each learner the area, and the accuracy in brackets."""
    loss = row.get("model_loss")
    figures = {
        "classes": "" if loss is None else f"{row['classes']:,}",
        "gcp": f"{row.get('gcp', 0):.4f}",
        "association loss": f"{row.get('association_loss', 0):.4f}",
        "median error": f"{row.get('median_query_error', 0):.1%}",
    }
    for learner in LEARNERS:
        area, accuracy = row[f"roc_auc_{learner}"], row[f"accuracy_{learner}"]
        figures[learner.replace("_", " ")] = f"{area:.4f} ({accuracy:.4f})"
    figures["model loss"] = (
        "0" if loss is None else f"{loss:.4f} ±{1.96 * row['model_loss_error']:.4f}"
    )
    return {"release": what, **figures}


def print_table(
    title: str, table: Iterator[tuple[str, Mapping[str, Any]]]
) -> list[Mapping[str, Any]]:
    """Print a Markdown table, and return the rows of its releases."""
    found = []
    for number, (what, row) in enumerate(table):
        figures = printed(what, row)
        if number == 0:
            majority = row["accuracy_majority"]
            print(f"\n{title}; the most frequent class alone: accuracy {majority:.4f}\n")
            print("| " + " | ".join(figures) + " |\n|" + " --- |" * len(figures))
        else:
            found.append(row)
        print("| " + " | ".join(figures.values()) + " |", flush=True)
    return found


def print_correlations(releases: Sequence[Mapping[str, Any]]) -> None:
    """Print how far losses and areas of the releases rank alike, by Spearman."""
    print(f"\nRank correlations over {len(releases)} releases\n")
    print("| | " + " | ".join(one.replace("_", " ") for one in LEARNERS) + " |")
    print("|" + " --- |" * (len(LEARNERS) + 1))
    for loss in ("association_loss", "gcp"):
        found = [
            spearmanr([row[loss] for row in releases], [row[f"roc_auc_{one}"] for row in releases])
            for one in LEARNERS
        ]
        figures = " | ".join(f"{one.statistic:.2f}" for one in found)
        print(f"| {loss.replace('_', ' ')} | {figures} |", flush=True)


def privacy(engine: Engine, data: Path, folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Compare criteria."""
    axes: list[dict[str, Any]] = [
        {"privacy.k": [3]},
        {"privacy.k": [3], "privacy.t_closeness": [T]},
        {"privacy.k": [3], "privacy.l_diversity": [L]},
        {"privacy.k": [10, 50]},
    ]
    names = ("original", "k = 3", "k = 3, t = 0.4", "k = 3, l = 2", "k = 10", "k = 50")
    base = configuration(data, by_hand(data))
    yield from zip(names, rows(engine, data, base, axes, folder / "privacy"), strict=True)


def arrangements(
    engine: Engine, data: Path, folder: Path
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Compare orders and hierarchies of the categories."""
    variants = {
        "hierarchies by hand (ARX)": by_hand(data),
        "learned hierarchies": learned(engine, data, "hierarchy", folder),
        "order of code points": {},
        "learned order": learned(engine, data, "order", folder),
    }
    for number, (name, arranged) in enumerate(variants.items()):
        base = configuration(data, arranged)
        found = rows(engine, data, base, [{"privacy.k": [10]}], folder / f"arrangement-{number}")
        original, row = found
        if number == 0:
            yield "original", original
        yield name, row


TABLES = {
    "privacy": ("Criteria", privacy),
    "arrangements": ("Arrangements of the categories, k = 10", arrangements),
}


def main() -> None:
    """Parse the arguments, run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--tables", nargs="+", choices=tuple(TABLES), default=tuple(TABLES))
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine: Engine = LocalEngine()
        if options.engine == "spark":
            engine = SparkEngine(stack.enter_context(open_session("local[2]")))
        releases: dict[tuple[Any, ...], Mapping[str, Any]] = {}
        for name in options.tables:
            title, table = TABLES[name]
            for row in print_table(title, table(engine, options.data.resolve(), folder)):
                # One release is in both tables.
                releases[row["classes"], row["gcp"]] = row
        print_correlations(list(releases.values()))


if __name__ == "__main__":
    main()
