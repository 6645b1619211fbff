"""Adult, counted in a release: the estimates are those that `anonspark evaluate` measures."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

import anonspark
from anonspark.config import load_configuration, parse_configuration
from anonspark.core.queries import Queries, draw_queries
from anonspark.engine.local.engine import LocalEngine
from anonspark.labels.axes import Axis
from anonspark.pipeline.run import run
from anonspark.reading.counting import Count
from anonspark.reading.published import PublishedRelease
from anonspark.utility.evaluation import Evaluation, open_evaluation
from anonspark.utility.workload import SANITY_BOUND, estimate_queries

PAGE = Path(__file__).parents[2] / "docs" / "reading.md"

EXAMPLES = (
    ("age between 30 and 40", (8922.8, 8182, 9737), 8976),
    ('age between 30 and 40 and "hours-per-week" > 40', (3339.8, 2821, 3851), 3313),
    (
        '"hours-per-week" between 35 and 45 and "capital-gain" = 0',
        (17007.5, 16703, 17573),
        17185,
    ),
)


@pytest.fixture(scope="module")
def folder(adult_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a release of Adult with numbers and categories."""
    folder = tmp_path_factory.mktemp("adult") / "out"
    quasi_identifiers = ("age", "hours-per-week", "education-num", "sex", "race", "workclass")
    document = {
        "input": {
            "path": str(adult_path),
            "format": "csv",
            "options": {"header": "true", "inferSchema": "true"},
        },
        "attributes": {
            **dict.fromkeys(quasi_identifiers, "quasi_identifier"),
            "income": "sensitive",
        },
        "privacy": {"k": 10},
        "output": {"path": str(folder)},
        "execution": {"seed": 2**40 + 1},
    }
    run(LocalEngine(), parse_configuration(document))
    return folder


@pytest.fixture(scope="module")
def release(folder: Path) -> PublishedRelease:
    """Give it opened."""
    return anonspark.read(str(folder))


@pytest.fixture(scope="module")
def evaluation(folder: Path, adult_path: Path) -> Evaluation:
    """Give it beside its original."""
    return open_evaluation(LocalEngine(), str(folder), str(adult_path))


def as_text(axes: list[Axis], queries: Queries, number: int) -> str:
    """Write a drawn query as a question."""
    tests = []
    for place, axis in enumerate(axes):
        if not queries.asked[place, number]:
            continue
        low, high = queries.low[place, number], queries.high[place, number]
        if axis.scale == "text":
            texts = ", ".join(f"'{text}'" for text in axis.texts[int(low) : int(high) + 1])
            tests.append(f'"{axis.name}" in ({texts})')
        else:
            tests.append(f'"{axis.name}" between {low:.0f} and {high:.0f}')
    return " and ".join(tests)


def test_estimates_and_bounds(
    release: PublishedRelease, evaluation: Evaluation, adult_path: Path
) -> None:
    """Of random queries: the same estimates, and the truth between the bounds."""
    axes = list(evaluation.quasi_identifiers)
    filters = [axis for axis in evaluation.others if axis.name == "income"]
    queries = draw_queries(
        [axis.domain for axis in axes],
        [axis.domain for axis in filters],
        count=60,
        selectivity=0.05,
        seed=4,
    )
    estimates = estimate_queries(
        evaluation.release, axes, filters, queries, evaluation.missing_markers
    )
    database = duckdb.connect()
    database.execute(f"create table adult as from read_csv('{adult_path}')")
    errors = []
    for number, estimate in enumerate(estimates.tolist()):
        question = as_text([*axes, *filters], queries, number)
        found = release.count(question)
        assert isinstance(found, Count)
        assert found.estimate == pytest.approx(estimate, abs=1e-4)
        asked = f"select count(*) from adult where {question}"  # noqa: S608
        (truth,) = database.execute(asked).fetchone() or (0,)
        assert found.lower <= truth <= found.upper
        errors.append(abs(found.estimate - truth) / max(truth, SANITY_BOUND * len(release)))
    assert np.median(errors) < 0.15


def test_the_example_of_the_docs(
    adult_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures of docs/reading.md, of the release that conf/adult.yaml makes without its l."""
    configuration = Path(__file__).parents[2] / "conf" / "adult.yaml"
    places = [f"input.path={adult_path}", f"output.path={tmp_path / 'out'}"]
    places.append("privacy.l_diversity=[]")
    run(LocalEngine(), load_configuration(str(configuration), places))
    release = anonspark.read(str(tmp_path / "out"))

    def told(question: str) -> tuple[float, int, int]:
        found = release.count(question)
        assert isinstance(found, Count)
        return round(found.estimate, 1), found.lower, found.upper

    # A connection of its own: DuckDB's default one is shared with all tests of the process.
    database = duckdb.connect()
    for question, expected, truth in EXAMPLES:
        assert told(question) == expected
        asked = f"select count(*) from read_csv('{adult_path}') where {question}"  # noqa: S608
        assert database.execute(asked).fetchall() == [(truth,)]
    groups = release.count(EXAMPLES[0][0], by="income")
    assert isinstance(groups, dict)
    found = {value: (round(one.estimate, 1), one.lower, one.upper) for value, one in groups.items()}
    assert found == {"<=50K": (6446.3, 5985, 6956), ">50K": (2476.5, 2197, 2781)}
    # And by hand, as the page does it.
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path / "out")
    database.execute(Path("views.sql").read_text())
    row = database.execute(query).fetchone()
    assert row is not None
    assert (round(row[2], 1), row[0], row[1]) == EXAMPLES[0][1]
