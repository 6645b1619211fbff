"""Adult's attributes scored for the income, arranged by it, and noisy tables of papers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from cases import cases, one_by_day
from places import require_data
from printed_figures import Figure, printed_figures
from quality import selection
from quality.csv_tables import ADULT_FILES, read_adult
from quality.private_choice import CAR, EXPERIMENTS, FOLDS, Folds, mean_errors
from quality.selection import Tables
from quality.var_inan import EXAMPLE, curves, expected, scale_of_noise, sensitivities

from anonspark.config import parse_configuration
from anonspark.core.association import chi_square, entropy, gini_score, information_gain
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.sharing.selection.counting import count_tables
from anonspark.sharing.selection.domains import Domain
from anonspark.sharing.selection.mechanisms import Score
from anonspark.utility.learned_hierarchies import arrange

# Rows, chi-square, information gain, sum of squares by records, score of the choice.
EXACT = {
    "relationship": (6, 6233.8405, 0.16617832, 21214.7787, 5_430_980),
    "marital-status": (7, 6061.7480, 0.15747082, 21150.4298, 5_414_507),
    "education": (16, 4070.3816, 0.09339399, 20405.8178, 5_223_884),
    "education-num": (16, 4070.3816, 0.09339399, 20405.8178, 5_223_884),
    "occupation": (14, 3687.6207, 0.09319446, 20262.6958, 5_187_242),
    "age": (16, 3066.1524, 0.09294828, 20030.3162, 5_127_754),
    "sex": (2, 1416.3568, 0.03740641, 19413.4244, 4_969_835),
    "capital-loss": (10, 686.9037, 0.01409122, 19140.6672, 4_900_007),
    "native-country": (41, 317.7367, 0.00932901, 19002.6282, 4_864_657),
    # Not printed in the specification.
    "capital-gain": (15, 4044.8543, 0.08953599, 20396.2726, 5_221_444),
    "hours-per-week": (10, 2029.3932, 0.05059176, 19642.6511, 5_028_515),
    "workclass": (7, 804.1575, 0.01710448, 19184.5108, 4_911_233),
    "race": (5, 304.2414, 0.00829411, 18997.5820, 4_863_378),
    "fnlwgt": (17, 51.4160, 0.00124848, 18903.0455, 4_839_171),
}
IN_ORDER = [
    *("relationship", "marital-status", "education", "education-num", "capital-gain"),
    *("occupation", "age", "hours-per-week", "sex", "workclass", "capital-loss"),
    *("native-country", "race", "fnlwgt"),
]


@pytest.fixture(scope="module")
def adult(adult_path: Path) -> Tables:
    return selection.adult(adult_path)


def test_exact_tables(adult: Tables) -> None:
    tables = dict(zip(adult.names, adult.counts, strict=True))
    assert set(EXACT) == set(tables)
    for name, (rows, chi, gain, squares, score) in EXACT.items():
        counts = tables[name]
        # Those for other and missing values are empty.
        assert counts.shape == (rows + 2, 2)
        assert counts[-2:].sum() == 0
        assert counts.sum(axis=0).tolist() == [22_654, 7_508]
        assert chi_square(counts) == pytest.approx(chi, abs=5e-5)
        assert information_gain(counts) == pytest.approx(gain, abs=5e-9)
        own = sum((row**2).sum() / row.sum() for row in counts if row.sum())
        assert own == pytest.approx(squares, abs=5e-5)
        assert gini_score(counts) == score
    for measure in (chi_square, gini_score):
        scores = {name: float(measure(counts)) for name, counts in tables.items()}
        found = sorted(tables, key=lambda name: (-scores[name], list(tables).index(name)))
        assert found == IN_ORDER
    gains = {name: information_gain(counts) for name, counts in tables.items()}
    by_gain = sorted(tables, key=lambda name: (-gains[name], list(tables).index(name)))
    assert by_gain.index("capital-gain") == by_gain.index("age") + 1


# Mechanism, score and epsilon: mean share of the true best seven, share of runs with exactly these.
WITH_NOISE: dict[tuple[str, Score, str], tuple[float, float]] = {
    ("top", "gini", "0.1"): (0.988, 0.92),
    ("top", "gini", "0.25"): (1.000, 1.00),
    ("top", "gini", "0.5"): (1.000, 1.00),
    ("top", "information_gain", "0.1"): (0.829, 0.19),
    ("top", "information_gain", "0.25"): (0.966, 0.78),
    ("top", "information_gain", "0.5"): (0.998, 0.98),
    ("tables", "chi_square", "0.1"): (0.890, 0.30),
    ("tables", "information_gain", "0.1"): (0.887, 0.27),
    ("tables", "information_gain", "0.25"): (0.978, 0.84),
}


@pytest.mark.parametrize(("case", "expected"), WITH_NOISE.items(), ids=str)
def test_choices_with_noise(
    adult: Tables, case: tuple[str, Score, str], expected: tuple[float, float]
) -> None:
    # benchmarks/quality/selection.py has all rows, 300 runs each.
    overlap, exact = selection.simulate(adult, *case, runs=300 if case[0] == "top" else 120)
    assert overlap == pytest.approx(expected[0], abs=0.02)
    assert exact == pytest.approx(expected[1], abs=0.08)


@cases(__file__, "case", "expected")
def test_few_attributes_make_no_difference(
    data_directory: Path, case: list[Any], expected: float
) -> None:
    path = data_directory / "car.csv"
    require_data(path)
    cars = selection.cars(path)
    assert cars.counts[0].sum() == 1_728
    assert selection.simulate(cars, *case, chosen=3)[0] == pytest.approx(expected, abs=0.02)


def test_more_loss_and_more_records_choose_better(adult: Tables, adult_path: Path) -> None:
    def overlap(tables: Tables, epsilon: str, chosen: int = 7) -> float:
        return selection.simulate(tables, "top", "gini", epsilon, chosen=chosen, runs=150)[0]

    by_loss = [overlap(adult, epsilon) for epsilon in ("0.01", "0.03", "0.1")]
    assert sorted(by_loss) == by_loss
    assert by_loss[0] < by_loss[2] - 0.1
    thirds = [selection.adult(adult_path, 10_054 * part) for part in (1, 2, 3)]
    by_records = [overlap(one, "0.05") for one in thirds]
    assert sorted(by_records) == by_records
    assert by_records[0] < by_records[2] - 0.1
    assert overlap(adult, "0.01", chosen=14) == 1


def test_listwise_deletion(data_directory: Path) -> None:
    counted = []
    for name in ("adult_raw.csv", "adult_test.csv"):
        path = data_directory / name
        require_data(path)
        table = selection.read(path)
        names = [one for one in table.column_names if one != "income"]
        domains = [Domain.of_values(one, ["-"]) for one in names]
        target = Domain.of_values("income", ["<=50K", ">50K"])
        counted.append(
            [
                int(
                    count_tables(LocalEngine().wrap(table), domains, target, ["?"], drop_missing=d)[
                        0
                    ].sum()
                )
                for d in (False, True)
            ]
        )
    every, left = np.sum(counted, axis=0).tolist()
    assert (every, every - left, left) == (48_842, 3_620, 45_222)


def test_texts_in_bins() -> None:
    domain = Domain.of_edges("age", [20, 30.5])
    texts = pa.array(["10", " 20 ", "30.5", "1e9", "NaN", "", "old", None, "-inf"])
    assert domain.rows_of(texts, ["?"]).tolist() == [0, 1, 2, 2, 4, 4, 3, 4, 3]
    assert domain.labels == ("below 20", "[20, 30.5)", "from 30.5")


def test_a_record_more_changes_one_cell_of_each_table() -> None:
    columns: dict[str, list[Any]] = {
        "age": [20.0, 31, None, float("nan"), 1e9, -5, 20, 99.5],
        "job": ["a", " b ", None, "?", "zzz", "", "a", "b"],
        "ill": ["yes", "no", "yes", "yes", "no", "no", "perhaps", None],
    }
    domains = [
        Domain.of_edges("age", [20, 30]),
        Domain.of_values("job", ["a", "b"]),
        Domain.of_groups("job", {"a": "both", "b": "both"}),
    ]
    target = Domain.of_values("ill", ["no", "yes"])

    def counted(rows: int, *, drop: bool = False) -> list[np.ndarray]:
        table = pa.table({name: values[:rows] for name, values in columns.items()})
        engine = LocalEngine()
        return count_tables(engine.wrap(table), domains, target, ["?"], drop_missing=drop)

    before = counted(0)
    assert [one.shape for one in before] == [(5, 2), (4, 2), (3, 2)]
    for rows in range(1, 9):
        after = counted(rows)
        # The last two have no target of the domain.
        changed = 1 if rows <= 6 else 0
        assert [int(np.abs(b - a).sum()) for a, b in zip(before, after, strict=True)] == [
            changed
        ] * 3
        before = after
    assert before[0].tolist() == [[1, 0], [0, 1], [2, 0], [0, 0], [0, 2]]
    assert before[1].tolist() == [[0, 1], [1, 0], [1, 0], [1, 2]]
    assert counted(8, drop=True)[0].sum() == 3


ATTRIBUTES = (
    *("age", "workclass", "education", "marital-status", "occupation", "race", "sex"),
    *("native-country", "relationship"),
)
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "9th", "11th", "7th-8th", "10th", "12th", "HS-grad"),
    *("Some-college", "Assoc-acdm", "Assoc-voc", "Bachelors", "Masters", "Doctorate"),
    "Prof-school",
)


def document_of(adult: Path, out: Path) -> dict[str, Any]:
    attributes: dict[str, Any] = {name: {"role": "quasi_identifier"} for name in ATTRIBUTES}
    attributes["age"]["type"] = "number"
    attributes["income"] = {"role": "sensitive"}
    return {
        "input": {"path": str(adult), "format": "csv", "options": {"header": "true"}},
        "attributes": attributes,
        "privacy": {"k": 10},
        "model": {"name": "smondrian"},
        "evaluate": {"association": {"target": "income"}},
        "output": {"path": str(out)},
        "execution": {"seed": 2**40 + 1},
    }


def arx(adult: Path, name: str) -> str:
    """Return the file of a hierarchy that somebody made by hand."""
    full = "_full" if name == "relationship" else ""
    return str(adult.parent / "hierarchies" / f"adult{full}_hierarchy_{name}.csv")


def frequency_groups(adult: Path, name: str, out: Path) -> str:
    """Write groups of values whose most frequent class has about the same share (Saleh)."""
    table = pyarrow.csv.read_csv(adult)
    pairs = Counter(zip(table[name].to_pylist(), table["income"].to_pylist(), strict=True))
    groups = {}
    for value in {value for value, _ in pairs}:
        own = {income: n for (of, income), n in pairs.items() if of == value}
        income = min(own, key=lambda one: (-own[one], one))
        share = Fraction(100 * own[income], sum(own.values()))
        groups[value] = [
            f"{income} {min(share // rho, 100 // rho - 1)} of {rho}" for rho in (5, 10, 20, 100)
        ]
    # Siblings beside one another.
    in_order = sorted(groups, key=lambda value: (groups[value][::-1], value))
    out.write_text("".join(";".join([one, *groups[one], "*\n"]) for one in in_order))
    return str(out)


@cases(__file__, "form", "gcp", "loss")
def test_what_is_kept(adult_path: Path, tmp_path: Path, form: Any, gcp: float, loss: float) -> None:
    engine, out = LocalEngine(), tmp_path / "release"
    document = document_of(adult_path, out)
    if form in ("ARX", "frequency groups"):
        for name in ATTRIBUTES[1:]:
            if form == "ARX" and name == "sex":
                continue
            own = document["attributes"][name]
            own["hierarchy"] = arx(adult_path, name)
            if form == "frequency groups":
                own["hierarchy"] = frequency_groups(adult_path, name, tmp_path / f"{name}.csv")
    elif form is not None:
        configuration = parse_configuration(document)
        found = arrange(engine, configuration, "income", str(tmp_path / "to"), form=form)
        for one in found.attributes:
            own = document["attributes"][one.name]
            if form == "order":
                own["order"] = list(one.values)
            else:
                own["hierarchy"] = str(tmp_path / "to" / f"{one.name}.csv")
        values = {one.name: one.values for one in found.attributes}
        assert values["education"] == EDUCATION
        occupation = values["occupation"]
        rare = occupation.index("Armed-Forces")
        assert occupation[rare - 1 : rare + 2] == ("Craft-repair", "Armed-Forces", "Sales")
    summary = run(engine, parse_configuration(document)).summary
    assert summary["gcp"] == pytest.approx(gcp, abs=1e-3)
    assert summary["association_loss"] == pytest.approx(loss, abs=5e-3)


@pytest.mark.parametrize("k", one_by_day(50, 5))
def test_a_learned_order_keeps_more_than_that_of_code_points(
    adult_path: Path, tmp_path: Path, k: int
) -> None:
    engine = LocalEngine()
    document = document_of(adult_path, tmp_path / "chance") | {"privacy": {"k": k}}
    chance = run(engine, parse_configuration(document)).summary["association_loss"]
    found = arrange(engine, parse_configuration(document), "income", str(tmp_path / "to"))
    for one in found.attributes:
        document["attributes"][one.name]["order"] = list(one.values)
    document["output"] = {"path": str(tmp_path / "learned")}
    assert run(engine, parse_configuration(document)).summary["association_loss"] <= chance


def test_sensitivities_and_scales() -> None:
    assert sensitivities() == {"two counting queries": 2, "one table": 2, "14 tables": 28}
    assert (scale_of_noise(14, "0.5"), scale_of_noise(6, "0.5")) == (56, 24)


def test_expected_counts_and_entropy() -> None:
    assert expected(EXAMPLE).round().tolist() == [[687, 813], [458, 542]]
    assert entropy(EXAMPLE.sum(axis=0)) == pytest.approx(0.994904, abs=5e-7)


def test_listwise_deletion_and_naive_bayes(data_directory: Path) -> None:
    for name in ADULT_FILES:
        require_data(data_directory / name)
    both = read_adult(data_directory)
    complete = both.complete()
    # One record more than is printed.
    assert len(both.rows) == 48_842
    assert len(both.rows) - len(complete.rows) == 3_620
    folds = Folds(complete, EXPERIMENTS["Adult"])
    errors = [folds.error("naive Bayes", fold, 3, frozenset(range(14))) for fold in range(FOLDS)]
    assert 100 * np.mean(errors) == pytest.approx(17.5, abs=0.7)


def test_curves_are_monotone(adult_path: Path) -> None:
    by_epsilon, by_records, everything = curves(adult_path, runs=25)
    for overlaps in (list(by_epsilon.values()), list(by_records.values())):
        assert overlaps == sorted(overlaps)
        assert overlaps[0] < overlaps[-1] - 0.05
    assert everything == 1


@pytest.mark.parametrize(
    ("figure", "verdict", "text"),
    [
        (Figure("accuracy", "0.857", 0.8601, spread=0.012), "spread", "0.857 ~ 0.860"),
        (Figure("error %", "17.28", 18.1, spread=0.7), "differs", "17.28 → 18.10 (+0.82)"),
        (Figure("accuracy", "0.857", 0.8601), "differs", "0.857 → 0.860 (+0.003, +0.4%)"),
        (Figure("accuracy", "0.857", 0.8572, spread=0.012), "equal", "0.857"),
    ],
)
def test_verdicts_within_the_spread(figure: Figure, verdict: str, text: str) -> None:
    assert (figure.verdict, figure.text()) == (verdict, text)


def test_printed_figures_can_be_read() -> None:
    assert len(printed_figures("var-inan-2018")) == 6
    assert sum(map(len, printed_figures("saleh").values())) == 348


def test_noise_costs_accuracy(data_directory: Path) -> None:
    require_data(data_directory / CAR)
    experiment = EXPERIMENTS["Car"]
    folds = Folds(experiment.read(data_directory), experiment)
    every = mean_errors(folds, "chi_square", 6, None)
    exact = mean_errors(folds, "chi_square", experiment.chosen, None)
    little, much = (mean_errors(folds, "chi_square", experiment.chosen, e) for e in ("1", "0.1"))
    for learner in every:
        assert every[learner] < exact[learner] < little[learner] < much[learner]
    # All six are chosen, whatever the noise.
    assert mean_errors(folds, "information_gain", 6, "0.1") == pytest.approx(every)
