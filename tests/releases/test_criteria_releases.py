"""Criteria beyond k: what every published class satisfies, computed again from the files."""

from __future__ import annotations

import datetime
import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import cases, data_beside
from commands import Cli
from forgeries import save_table
from helpers import (
    configuration_file,
    contents,
    metrics,
    published,
    summary,
    write_earlier_release,
    write_table,
)
from release_folders import list_files

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import GuaranteeError
from anonspark.pipeline.run import run as run_pipeline
from anonspark.verification.audit import audit_release

# The models without rounds form the groups of the first round of these.
MODELS = ("su-mondrian", "u-canon", "microaggregation")

QUASI_IDENTIFIERS = ("age", "income", "zone")

# Diseases and what kind of disease they are.
DISEASES = {
    "flu": "lungs",
    "asthma": "lungs",
    "pneumonia": "lungs",
    "gastritis": "stomach",
    "ulcer": "stomach",
    "eczema": "skin",
}
ROOTS = {"lungs": "inner", "stomach": "inner", "skin": "outer"}

SEVERITIES = ("none", "mild", "severe", "deadly")

# Sets of criteria, each for one run of each model. Every criterion is violated by classes of k
# records that know nothing of it.
CRITERIA: dict[str, dict[str, list[dict[str, Any]]]] = data_beside(__file__)["CRITERIA"]


def people(rows: int = 240) -> dict[str, Any]:
    """Return people whose diseases go with their age, so that near people are alike."""
    generator = np.random.default_rng(5)
    ages = generator.integers(18, 90, rows)
    likely = np.clip((ages - 18) * len(DISEASES) // 72, 0, len(DISEASES) - 1)
    guessed = generator.integers(0, len(DISEASES), rows)
    diseases = np.where(generator.random(rows) < 0.5, likely, guessed)
    costs = [100 * cost for cost in generator.integers(-1, 6, rows).tolist()]
    return {
        "record": list(range(rows)),
        "age": ages.tolist(),
        "income": (generator.lognormal(3, 1, rows) // 1).tolist(),
        "zone": generator.choice(["a", "b", "c"], rows).tolist(),
        "disease": [list(DISEASES)[place] for place in diseases],
        "severity": generator.choice(SEVERITIES, rows, p=[0.5, 0.3, 0.15, 0.05]).tolist(),
        # A negative one stands for a missing one: null is a value like others, the last one.
        "cost": pa.array([None if cost < 0 else cost for cost in costs], pa.int32()),
    }


def attributes(folder: Path) -> dict[str, Any]:
    hierarchy = folder / "diseases.csv"
    if not hierarchy.exists():
        lines = [f"{one};{kind};{ROOTS[kind]};*" for one, kind in DISEASES.items()]
        hierarchy.write_text("\n".join(lines) + "\n")
    return {
        "record": "insensitive",
        **dict.fromkeys(QUASI_IDENTIFIERS, "quasi_identifier"),
        "disease": {"role": "sensitive", "hierarchy": str(hierarchy)},
        "severity": {"role": "sensitive", "order": list(SEVERITIES)},
        "cost": "sensitive",
    }


class Case:
    """A folder with a table, and runs over it."""

    def __init__(self, folder: Path, table: Mapping[str, Any]) -> None:
        self.folder = folder
        write_table(folder / "input.parquet", table)

    def configure(self, name: str, privacy: Mapping[str, Any], **sections: Any) -> Path:
        """Write a configuration in a folder of its own."""
        own = self.folder / name
        own.mkdir(exist_ok=True)
        return configuration_file(
            own,
            **(
                {
                    "input": {"path": str(self.folder / "input.parquet")},
                    "attributes": attributes(self.folder),
                    "privacy": {"k": 3, **privacy},
                    "output": {"path": str(own / "release"), "style": "bounds"},
                }
                | sections
            ),
        )


Release = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("criteria"), people())


@pytest.fixture(scope="module")
def release(case: Case) -> Release:
    """Run a model once with a set of criteria, or with k alone."""

    @cache
    def run(model: str, criteria: str) -> Path:
        name = f"{model}-{criteria}"
        path = case.configure(name, CRITERIA.get(criteria, {}), model={"name": model})
        run_pipeline(LocalEngine(), load_configuration(path))
        return case.folder / name / "release"

    return run


# The criteria, slowly -----------------------------------------------------------------------------


Rows = list[dict[str, Any]]


def classes_of(data: Path) -> list[Rows]:
    """Return the classes of a release, by published tuple, read without Spark."""
    told = {"record", "disease", "severity", "cost"}
    found: dict[str, Rows] = {}
    for row in pq.read_table(data).to_pylist():
        key = str([value for name, value in row.items() if name not in told])
        found.setdefault(key, []).append(row)
    return list(found.values())


def figure_of_class(
    criterion: str, attribute: str, one: Counter[Any], everything: Counter[Any], least: float
) -> float:
    """Return what one class has of a criterion; the values of a class against all values."""
    counts = sorted(one.values(), reverse=True)
    shares = {value: number / one.total() for value, number in one.items()}
    everywhere = {value: number / everything.total() for value, number in everything.items()}
    match criterion:
        case "distinct":
            return len(counts)
        case "entropy":
            return math.exp(-sum(share * math.log(share) for share in shares.values()))
        case "recursive":
            rest = sum(counts[int(least) - 1 :])
            return counts[0] / rest if rest else math.inf
        case "alpha":
            return max(shares.values())
        case "beta":
            return max(share / everywhere[value] for value, share in shares.items()) - 1
    domain: list[Any]
    if attribute == "severity":
        domain = list(SEVERITIES)
    elif attribute == "disease":
        domain = list(DISEASES)
    else:
        # Missing values are values, and come last.
        domain = [*sorted(value for value in everything if value is not None), None]
    difference = [shares.get(value, 0.0) - everywhere.get(value, 0.0) for value in domain]
    assert abs(sum(difference)) < 1e-12
    if criterion == "equal distance":
        return sum(map(abs, difference)) / 2
    if criterion == "maximum distance":
        return max(map(abs, difference))
    if criterion == "ordered distance":
        running, moved = 0.0, 0.0
        for one_difference in difference:
            running += one_difference
            moved += abs(running)
        return moved / (len(domain) - 1)
    # On a tree all of whose leaves have one depth, two leaves are as far apart as the way between
    # them is long, and what passes an edge is what is too much below it.
    assert criterion == "hierarchical distance"
    below: dict[str, float] = dict.fromkeys([*DISEASES, *ROOTS, *ROOTS.values()], 0.0)
    for value, one_difference in zip(domain, difference, strict=True):
        kind = DISEASES[value]
        for node in (value, kind, ROOTS[kind]):
            below[node] += one_difference
    height = 3
    return sum(abs(amount) for amount in below.values()) / (2 * height)


def worst_figure(classes: list[Rows], row: Mapping[str, Any]) -> float:
    """Return the figure of the worst class for a row of the table ``privacy``."""
    attribute, criterion = row["attribute"], row["criterion"]
    counted = [Counter(one[attribute] for one in own) for own in classes]
    everything = sum(counted, Counter[Any]())
    figures = [
        figure_of_class(criterion, attribute, own, everything, row["required"]) for own in counted
    ]
    return min(figures) if criterion in ("distinct", "entropy") else max(figures)


def holds(row: Mapping[str, Any], figure: float) -> bool:
    match row["criterion"]:
        case "distinct" | "entropy":
            return figure >= row["required"] - 1e-9
        case "recursive":
            return figure < row["c"]
        case _:
            return figure <= row["required"] + 1e-9


@pytest.mark.parametrize("criteria", list(CRITERIA))
@pytest.mark.parametrize("model", MODELS)
def test_every_class_satisfies_the_criteria(
    engine: LocalEngine, release: Release, model: str, criteria: str
) -> None:
    found = release(model, criteria)
    classes = classes_of(found / "data")
    data = sorted((row for own in classes for row in own), key=lambda row: row["record"])
    assert [row["record"] for row in data] == list(range(240))
    wanted = people()
    assert [row["disease"] for row in data] == wanted["disease"]
    assert [row["severity"] for row in data] == wanted["severity"]
    assert min(map(len, classes)) == summary(found)["published_min_class_size"] >= 3
    assert len(classes) > 5

    rows = metrics(found, "privacy")
    assert {row["run_id"] for row in rows} == {summary(found)["run_id"]}
    size, *beyond = rows
    assert size["criterion"] == "k"
    assert (size["attribute"], size["required"]) == (None, 3.0)
    assert size["measured"] == min(map(len, classes))
    configured = CRITERIA[criteria]
    assert len(beyond) == sum(map(len, configured.values()))
    careless = classes_of(release(model, "k") / "data")
    for row in beyond:
        figure = worst_figure(classes, row)
        assert row["measured"] == pytest.approx(figure, abs=1e-9)
        assert holds(row, figure)
        # It was not to be had for nothing.
        assert not holds(row, worst_figure(careless, row)), row

    proven = audit_release(engine, str(found)).require()
    assert proven.published.smallest == size["measured"]
    assert [one.measured for one in proven.criteria] == [row["measured"] for row in beyond]


STRICTER: dict[str, dict[str, Any]] = data_beside(__file__)["STRICTER"]


def test_verify_with_a_configuration(
    engine: LocalEngine, release: Release, case: Case, cli: Cli
) -> None:
    found = release("su-mondrian", "distinct-and-ordered")
    same = case.configure("same", CRITERIA["distinct-and-ordered"])
    outcome = cli.ends(0, "verify", found, "--config", same, "--json")
    criteria = json.loads(outcome.out)["criteria"]
    assert [one["required"] for one in criteria] == [3.0, 0.3]
    # A release may have more than was asked of it.
    weaker = case.configure("weaker", {"l_diversity": {"attribute": "disease", "l": 2}})
    assert (
        len(audit_release(engine, str(found), load_configuration(weaker)).require().criteria) == 1
    )
    for name, privacy in STRICTER.items():
        path = case.configure(f"stricter-{name}", privacy)
        with pytest.raises(
            GuaranteeError, match=r"classes of the release, with [\d,]+ records, violate"
        ) as refused:
            audit_release(engine, str(found), load_configuration(path)).require()
        (section,) = privacy.values()
        assert f"on attribute '{section['attribute']}'" in str(refused.value)
    # The last one again as a command, with all that it violates at once.
    path = case.configure("all", STRICTER["distinct"] | STRICTER["alpha"])
    before = contents(case.folder)
    outcome = cli.ends(4, "verify", found, "--config", path)
    assert "2 of the checks failed" in outcome.out
    assert "distinct l-diversity with l = 6 on attribute 'disease'" in outcome.err
    assert "(alpha, k)-anonymity with alpha = 0.2 on attribute 'cost'" in outcome.err
    assert contents(case.folder) == before


def test_sensitive_values_of_every_type(engine: LocalEngine, tmp_path: Path, cli: Cli) -> None:
    """A missing value is a value, and so is NaN; -0.0 and 0.0 are one."""
    generator = np.random.default_rng(3)
    seconds = [0, -1, 1_600_000_000, 4_000_000_000]
    dates = [datetime.date(1969, 12, 31), datetime.date(2000, 2, 29), datetime.date(2000, 3, 1)]
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "ratio": (pa.float64(), [0.0, -0.0, 1.5, math.nan, None]),
        "share": (pa.float32(), [0.0, -0.0, 0.1, math.nan, None]),
        "small": (pa.int8(), [-128, 0, 127]),
        "price.net": (pa.decimal128(30, 2), [Decimal("-1.50"), Decimal("10") ** 27, None]),
        "day": (pa.date32(), [*dates, None]),
        "seen": (pa.timestamp("us", "UTC"), [*(1_000_000 * one + 1 for one in seconds), None]),
        "local": (pa.timestamp("us"), [1_000_000 * one + 1 for one in seconds]),
        "member": (pa.bool_(), [True, False, None]),
        "note": (pa.string(), ["", " ", "missing", "Ä", "ä", None]),
    }
    rows = 120
    table = {"age": pa.array(generator.integers(0, 90, rows))} | {
        name: pa.array([options[i] for i in generator.integers(0, len(options), rows)], own_type)
        for name, (own_type, options) in values.items()
    }
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier"} | dict.fromkeys(values, "sensitive"),
        privacy={
            "l_diversity": [{"attribute": name, "l": 2} for name in values],
            "t_closeness": [
                {"attribute": name, "t": 0.9, "distance": "ordered"}
                for name in values
                if name != "note"
            ],
        },
    )
    cli.ends(0, "run", path)
    found: dict[str, dict[str, set[Any]]] = {}
    for row in published(tmp_path / "release").to_pylist():
        own = found.setdefault(row["age"], {name: set() for name in values})
        for name in values:
            value = row[name]
            number = isinstance(value, float)
            own[name].add("NaN" if number and math.isnan(value) else value)
    assert len(found) > 3
    for figures in metrics(tmp_path / "release", "privacy")[1:]:
        if figures["criterion"] == "distinct":
            expected = min(len(own[figures["attribute"]]) for own in found.values())
            assert figures["measured"] == expected >= 2
        else:
            assert 0 < figures["measured"] <= 0.9
    assert (
        len(audit_release(engine, str(tmp_path / "release")).require().criteria)
        == 2 * len(values) - 1
    )


# Tampering ----------------------------------------------------------------------------------------


def _all_alike(data: pd.DataFrame) -> None:
    """Give everybody of one class one disease."""
    first = data.iloc[0]
    own = (data["age_min"] == first["age_min"]) & (data["income_min"] == first["income_min"])
    data.loc[own, "disease"] = "flu"


def _swapped(data: pd.DataFrame) -> None:
    """Exchange the severities of two people of different classes, which violates nothing."""
    place = int((data["severity"] != data["severity"].iloc[0]).argmax())
    column = data.columns.get_loc("severity")
    values = data.iloc[[0, place], column].tolist()
    data.iloc[[0, place], column] = values[::-1]


def _unknown(data: pd.DataFrame) -> None:
    data.loc[0, "severity"] = "Kryptonitis"


@pytest.mark.parametrize(
    ("spoil", "code", "told"),
    [
        pytest.param(_all_alike, 4, "violate distinct l-diversity", id="class-of-one-disease"),
        pytest.param(_swapped, 4, "", id="two-values-swapped"),
        pytest.param(_unknown, 4, "attributes.severity.order: lacks 1", id="value-of-no-order"),
    ],
)
def test_verify_notices_changed_sensitive_values(
    release: Release,
    tmp_path: Path,
    cli: Cli,
    spoil: Callable[[pd.DataFrame], None],
    code: int,
    told: str,
) -> None:
    copy = Path(shutil.copytree(release("u-canon", "distinct-and-ordered"), tmp_path / "release"))
    table = published(copy)
    data = table.to_pandas(integer_object_nulls=True)
    spoil(data)
    changed = pa.Table.from_pandas(data, schema=table.schema, preserve_index=False)
    assert not changed.equals(table)
    save_table(copy, "data", changed)
    list_files(copy)
    outcome = cli.ends(code, "verify", copy, says=("\nerror: ", told))
    assert "Kryptonitis" not in outcome.err + outcome.out
    assert ("of the checks failed" in outcome.out) == (spoil is not _unknown)


# Rounds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["su-mondrian", "u-canon"])
def test_records_left_over_that_violate_a_criterion(
    engine: LocalEngine, tmp_path: Path, model: str
) -> None:
    """Two places with three people each, and outliers beside them who have all the same."""
    case = Case(
        tmp_path,
        {
            "record": list(range(10)),
            "age": [0, 0, 0, 9, 12, 1000, 1000, 1000, 1009, 1012],
            "income": [1.0] * 10,
            "zone": ["a"] * 10,
            "disease": ["flu", "ulcer", *["flu"] * 4, "ulcer", *["flu"] * 3],
            "severity": ["none"] * 10,
            "cost": [1] * 10,
        },
    )
    diversity = {"attribute": "disease", "l": 2}
    found = {}
    for name, privacy in (("k", {}), ("l", {"l_diversity": diversity})):
        options = {"name": model, "separation": "always"}
        path = case.configure(name, privacy, model=options)
        run_pipeline(engine, load_configuration(path))
        found[name] = metrics(tmp_path / name / "release", "rounds")
    rounds = sorted(found["k"], key=lambda row: row["round"])
    assert [(row["normal_rows"], row["outlier_rows"]) for row in rounds] == [(6, 4), (4, 0)]
    # The four are more than k, but may not have a round of their own.
    (row,) = found["l"]
    assert (row["round"], row["normal_rows"], row["outlier_rows"]) == (1, 10, 0)
    classes = classes_of(tmp_path / "l" / "release" / "data")
    assert sorted(sorted(row["record"] for row in own) for own in classes) == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
    ]


# Delta-presence -----------------------------------------------------------------------------------


@pytest.fixture
def presence(tmp_path: Path) -> Callable[..., Path]:
    """Write a configuration with a population; classes of one attribute do not overlap."""
    rows = {"age": list(range(60)), "income": [float(age % 2) for age in range(60)]}
    write_table(tmp_path / "input.parquet", rows | {"disease": ["flu", "ulcer", "eczema"] * 20})
    write_table(tmp_path / "twice.parquet", {name: 2 * values for name, values in rows.items()})
    write_table(tmp_path / "half.parquet", {name: values[:30] for name, values in rows.items()})
    write_table(tmp_path / "ages.parquet", {"age": rows["age"]})
    more = {name: values + values for name, values in rows.items()}
    more["age"] = [*rows["age"], *(1000 + age for age in rows["age"])]
    write_table(tmp_path / "elsewhere.parquet", more)

    def configure(population: str, least: float, most: float, **sections: Any) -> Path:
        name = population if "." in population else f"{population}.parquet"
        wanted = {"population": str(tmp_path / name), "min": least, "max": most}
        return configuration_file(
            tmp_path,
            **(
                {
                    "attributes": {
                        "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5]}},
                        "disease": "sensitive",
                    },
                    "privacy": {"k": 5, "delta_presence": wanted},
                    "model": {
                        "name": "full-domain",
                        "levels": [{"age": 1}],
                        "suppression_limit": 0.0,
                    },
                }
                | sections
            ),
        )

    return configure


def test_presence_that_is_satisfied(
    presence: Callable[..., Path], tmp_path: Path, cli: Cli
) -> None:
    # Everybody of the population has somebody who is equal, and one of the two is in the release.
    path = presence("twice", 0.4, 0.6)
    cli.ends(0, "run", path)
    release = tmp_path / "release"
    figures = {row["criterion"]: row for row in metrics(release, "privacy")}
    assert list(figures) == ["k", "smallest presence", "largest presence"]
    for name, required in (("smallest presence", 0.4), ("largest presence", 0.6)):
        assert figures[name]["required"] == required
        assert figures[name]["measured"] == pytest.approx(0.5)
        assert figures[name]["attribute"] is None
    outcome = cli.ends(0, "verify", release, "--json")
    proven = json.loads(outcome.out)["presence"]
    assert proven["smallest"] == pytest.approx(0.5)
    assert (proven["population"], proven["out_of_bounds"]) == (120, 0)
    # What is required now decides, and the population as it is now.
    stricter = presence("twice", 0.0, 0.3)
    outcome = cli.ends(4, "verify", release, "--config", stricter)
    assert "for 120 of 120 records of the population" in outcome.err
    (tmp_path / "twice.parquet").write_bytes((tmp_path / "half.parquet").read_bytes())
    cli.ends(4, "verify", release, says="not a population of the released people")


def test_a_population_whose_file_tells_how_it_is_read(
    presence: Callable[..., Path], tmp_path: Path, cli: Cli
) -> None:
    ages = "".join(f"{age};x\n" for age in [*range(60), *range(60)])
    (tmp_path / "register.csv").write_text(f"age;name\n{ages}")
    cli.ends(0, "run", presence("register.csv", 0.4, 0.6))
    outcome = cli.ends(0, "verify", tmp_path / "release", "--json")
    assert json.loads(outcome.out)["presence"]["population"] == 120


@cases(__file__, "population", "least", "most", "sections", "code", "told")
def test_presence_that_is_not(
    presence: Callable[..., Path],
    tmp_path: Path,
    cli: Cli,
    population: str,
    least: float,
    most: float,
    sections: dict[str, Any],
    code: int,
    told: str,
) -> None:
    write_earlier_release(tmp_path / "release")
    output = {"mode": "overwrite", **sections.get("output", {})}
    path = presence(population, least, most, **(sections | {"output": output}))
    before = contents(tmp_path)
    cli.ends(code, "run", path, says=told)
    assert contents(tmp_path) == before


def test_listed_values_are_compared_as_texts(tmp_path: Path, cli: Cli) -> None:
    """-0.0 is 0, blanks at the ends do not count, and missing comes last."""
    generator = np.random.default_rng(5)
    (tmp_path / "diseases.csv").write_text("flu;lungs;*\nasthma;lungs;*\nulcer;stomach;*\n")
    options: dict[str, tuple[pa.DataType, list[Any]]] = {
        "ratio": (pa.float64(), [0.0, -0.0, 1.0]),
        "severity": (pa.string(), ["low", " high", None]),
        "disease": (pa.string(), ["flu ", "asthma", "ulcer"]),
    }
    table = {"age": pa.array(generator.integers(0, 90, 60))} | {
        name: pa.array([values[i] for i in generator.integers(0, 3, 60)], own_type)
        for name, (own_type, values) in options.items()
    }
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={
            "age": "quasi_identifier",
            "ratio": {"role": "sensitive", "order": ["0", "1"]},
            "severity": {"role": "sensitive", "order": ["low", "high"]},
            "disease": {"role": "sensitive", "hierarchy": str(tmp_path / "diseases.csv")},
        },
        privacy={
            "t_closeness": [
                {"attribute": "ratio", "t": 0.6, "distance": "ordered"},
                {"attribute": "severity", "t": 0.6, "distance": "ordered"},
                {"attribute": "disease", "t": 0.6, "distance": "hierarchical"},
            ]
        },
    )
    cli.ends(0, "run", path)
    cli.ends(0, "verify", tmp_path / "release")


def test_dates_beyond_what_python_knows(tmp_path: Path, cli: Cli) -> None:
    days = pa.array([3_660_000, 0, -800_000] * 10, pa.int32()).cast(pa.date32())
    write_table(tmp_path / "input.parquet", {"age": pa.array(range(30)), "day": days})
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "day": "sensitive"},
        privacy={"l_diversity": {"attribute": "day", "l": 2}},
    )
    cli.ends(0, "run", path)


@cases(__file__, "attribute", "distance", "expected")
def test_distances_that_mean_nothing(
    tmp_path: Path, cli: Cli, attribute: str, distance: str, expected: str
) -> None:
    (tmp_path / "diseases.csv").write_text("flu;*\nasthma;*\n")
    diseases = pa.array(["flu", "asthma", None, "flu", "asthma", None] + ["flu"] * 6)
    write_table(tmp_path / "input.parquet", {"age": pa.array(range(12)), "disease": diseases})
    role: object = "sensitive"
    if attribute == "hierarchy":
        role = {"role": "sensitive", "hierarchy": str(tmp_path / "diseases.csv")}
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "disease": role},
        privacy={"t_closeness": {"attribute": "disease", "t": 0.5, "distance": distance}},
    )
    outcome = cli.ends(3, "run", path, says=f"attributes.disease: {expected}")
    assert "flu" not in outcome.err
