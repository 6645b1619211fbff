"""Delta-presence of small releases: by hand, and against looking at every pair of class and person.

Every figure is taken from published labels, never from what made them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import Cli
from helpers import (
    attribute,
    configuration_file,
    divided_classes,
    local_table,
    published,
    write_table,
)

from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError, DataError, GuaranteeError
from anonspark.labels import region_matching
from anonspark.labels.region_matching import LabelledTable
from anonspark.labels.regions import PublishedAttribute
from anonspark.pipeline.run import run
from anonspark.verification.attacks import presence
from anonspark.verification.attacks.presence import Presence


def measure_presence(
    release: pa.Table,
    attributes: Sequence[PublishedAttribute],
    table: pa.Table,
    leaves: Mapping[str, Any] | None = None,
    missing_markers: Sequence[str] = (),
    **options: Any,
) -> Presence:
    """Measure in more than one task each, and with classes shared out: they are the same."""
    release, table = local_table(release, 2), local_table(table, 2)
    labels = LabelledTable(release, attributes, leaves or {}, missing_markers)
    found = presence.measure_presence(labels, table, **options)
    with divided_classes():
        labels = LabelledTable(release, attributes, leaves or {}, missing_markers)
        divided = presence.measure_presence(labels, table, **options)
    assert divided == found
    assert class_counts(divided) == class_counts(found)
    return found


def class_counts(found: Presence) -> list[list[int]]:
    """Return the records of each class and those of the population in its region, sorted."""
    counts = found.counts
    return sorted(map(list, zip(counts.released.tolist(), counts.population.tolist(), strict=True)))


def records_in_regions(found: Presence) -> list[int]:
    """Return how many of the population are in the region of each class, sorted."""
    return sorted(found.counts.population.tolist())


def test_presence_by_hand() -> None:
    # Two classes that overlap at 30, f: of 4 people in the region of the first 2 are in it, of 5 in
    # the region of the second 3 are.
    release = {
        "age": ["[20-30]"] * 2 + ["[30-40]"] * 3,
        "sex": ["{f, m}"] * 2 + ["f"] * 3,
    }
    population = {
        "age": [20, 25, 29, 30, 31, 35, 38, 40, 50, 35],
        "sex": ["f", "m", "m", "f", "f", "f", "f", "f", "f", "m"],
    }
    attributes = [attribute("age", "integer"), attribute("sex", "category")]
    found = measure_presence(pa.table(release), attributes, pa.table(population))
    # Fixed labels do not overlap: this proves that they depend on the records.
    assert (records_in_regions(found), found.out_of_bounds, found.holds) == ([4, 5], 1, False)
    # Bounds that are met exactly are kept.
    without = {name: values[:3] + values[4:8] for name, values in population.items()}
    without["age"].append(32)
    without["sex"].append("f")
    found = measure_presence(
        pa.table(release), attributes, pa.table(without), lower=0.6, upper=2 / 3
    )
    assert found == Presence(0.6, 2 / 3, 8, 0, 2, 0, found.counts)
    assert found.holds


def test_a_population_that_lacks_people_is_no_superset() -> None:
    release = {"age": ["[20-30]"] * 3 + ["40"] + ["[50-60]"]}
    found = measure_presence(
        pa.table(release), [attribute("age", "integer")], pa.table({"age": [20, 30, 55]})
    )
    assert found == Presence(1.0, 1.0, 3, 0, 3, 2, found.counts)
    assert not found.holds


def test_an_empty_population() -> None:
    release = pa.table({"age": ["[20-30]"] * 3})
    nobody = pa.table({"age": [1]}).slice(1)
    found = measure_presence(release, [attribute("age", "integer")], nobody)
    assert found == Presence(0.0, 0.0, 0, 0, 1, 1, found.counts)
    somebody = pa.table({"age": [20, 21]})
    found = measure_presence(release.slice(3), [attribute("age", "integer")], somebody, lower=0.1)
    assert found == Presence(0.0, 0.0, 2, 2, 0, 0, found.counts)


@pytest.mark.parametrize("seed", range(3))
def test_presence_by_brute_force(seed: int) -> None:
    generator = np.random.default_rng(seed)
    people = 400
    ages = generator.integers(-20, 20, people).tolist()
    heights = (generator.integers(-8, 8, people) / 4).tolist()
    towns = generator.choice(["a", "b, c", "d]", "é", "missing"], people).tolist()
    lacking = generator.random(people) < 0.1
    population = {
        "age": pa.array(ages, mask=lacking),
        "height": heights,
        "town": pa.array(towns, mask=generator.random(people) < 0.1),
    }
    rows = pa.table(population).to_pylist()
    # Classes of arbitrary people overlap as they like.
    published = []
    held = []
    for _ in range(25):
        own = [rows[i] for i in generator.integers(0, people, generator.integers(1, 6))]
        present = [row["age"] for row in own if row["age"] is not None]
        low, high = (min(present), max(present)) if present else (1, 0)
        with_missing = len(present) < len(own)
        label = f"[{low}-{high}]" if low < high else str(low)
        if with_missing:
            label = f"{label} or missing" if present else "missing"
        shortest, tallest = (f(row["height"] for row in own) for f in (min, max))
        own_towns = sorted({row["town"] for row in own if row["town"] is not None})
        no_town = any(row["town"] is None for row in own)
        quoted = {"b, c": '"b, c"', "d]": '"d]"', "missing": '"missing"'}
        members = [quoted.get(town, town) for town in own_towns] + ["missing"] * no_town
        town_label = "{" + ", ".join(members) + "}"
        if len(members) == 1:
            town_label = '"missing"' if own_towns == ["missing"] else (*own_towns, "missing")[0]
        row = {"age": label, "height": f"[{shortest}-{tallest}]", "town": town_label}
        if shortest == tallest:
            row["height"] = str(shortest)
        published += [row] * len(own)
        held.append((tuple(row.values()), low, high, with_missing, shortest, tallest, own_towns))
    shares: Counter[int] = Counter()
    counts = []
    uncovered = 0
    sizes = Counter(tuple(row.values()) for row in published)
    for labels, low, high, with_missing, shortest, tallest, own_towns in {
        one[0]: one for one in held
    }.values():
        inside = [
            place
            for place, row in enumerate(rows)
            if (with_missing if row["age"] is None else low <= row["age"] <= high)
            and shortest <= row["height"] <= tallest
            and (
                "missing" in _unquoted(labels[2])
                if row["town"] is None
                else row["town"] in own_towns
            )
        ]
        uncovered += len(inside) < sizes[labels]
        counts.append(len(inside))
        shares.update(inside)
    assert max(shares.values()) > 3
    attributes = [
        attribute("age", "integer"),
        attribute("height", "float", type="double"),
        attribute("town", "category"),
    ]
    release = {name: [row[name] for row in published] for name in ("age", "height", "town")}
    found = measure_presence(pa.table(release), attributes, pa.table(population))
    assert (records_in_regions(found), found.population) == (sorted(counts), people)
    assert found.out_of_bounds == sum(several > 1 for several in shares.values())
    assert found.classes == len(sizes)
    assert found.classes_not_covered == uncovered


def _unquoted(label: str) -> list[str]:
    """Return the members of a set without quotes: the mark of missing values stands alone."""
    return label.replace('"missing"', "").strip("{}").split(", ")


@pytest.mark.parametrize(
    ("kind", "labels", "values", "expected"),
    [
        # Of each type: the share of the one class in the population, by what is inside.
        ("integer", ["[17-25]"], pa.array(["17", " 25 ", "25.5", "1e1"]), 2),
        ("integer", ["[17-25]"], pa.array([17.0, 25.0, 25.5, -1.0]), 2),
        ("integer", ["[17-25]"], pa.array([Decimal("17.0"), Decimal("25.1")]), 1),
        ("integer", ["[17-25["], pa.array([17, 24, 25]), 2),
        ("integer", [str(2**62)], pa.array([2**62, 2**62 - 1, 2**62 + 1]), 1),
        ("integer", [str(2**62)], pa.array([str(2**62), str(2**62 - 1)]), 1),
        ("float", ["[0.1-0.3]"], pa.array([0.1, 0.3, 0.30000000000000004]), 2),
        ("float", ["[0.1-0.3]"], pa.array(["0.1", " 0.3", "0.4", "NaN"]), 2),
        ("float", ["[-0.5-0]"], pa.array([-0.0, 0.0, -0.5, 1e-300]), 3),
        ("decimal", ["[-0.10-0.30]"], pa.array([Decimal("-0.1"), Decimal("0.301")]), 1),
        ("decimal", ["[-0.10-0.30]"], pa.array([-0.1, 0.3, -0.2]), 2),
        ("decimal", ["[-0.10-0.30]"], pa.array(["-.1", "0.30", "0.3000001"]), 2),
        ("decimal", ["[-0.10-0.30]"], pa.array([0, 1, -1]), 1),
        ("date", ["[2020-01-31/2020-03-01]"], pa.array([" 2020-02-29", "2020-03-02"]), 1),
        ("date", ["2020-01-31"], pa.array([date(2020, 1, 31), date(1969, 1, 1)]), 1),
        ("date", ["2020-01-31"], pa.array([datetime(2020, 1, 31, 23), datetime(2020, 2, 1)]), 1),
        (
            "timestamp",
            ["[1969-12-31 23:59:59.999999/1970-01-01 00:00:01]"],
            pa.array(
                [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1, 0, 0, 1, 1)],
                pa.timestamp("us"),
            ),
            1,
        ),
        (
            "timestamp",
            ["[1969-12-31 23:59:59/1970-01-01 00:00:01]"],
            pa.array([datetime(1970, 1, 1, tzinfo=UTC), datetime(1971, 1, 1, tzinfo=UTC)]),
            1,
        ),
        ("timestamp", ["1970-01-01 00:00:00"], pa.array(["1970-01-01", "1970-01-01T00:00:01"]), 1),
        ("boolean", ["true"], pa.array([True, False, True]), 2),
        ("boolean", ["{false, true}"], pa.array(["true", " F ", "1"]), 3),
        ("category", ["{é, a b}"], pa.array([" a b", "é ", "a  b", "A b"]), 2),
        ("category", ["{1, 2}"], pa.array([1, 2, 3]), 2),
    ],
)  # fmt: skip
def test_population_is_matched_by_value(
    kind: Any, labels: list[str], values: pa.Array, expected: int
) -> None:
    found = measure_presence(
        pa.table({"x": labels}), [attribute("x", kind)], pa.table({"x": values}), lower=1 / expected
    )
    assert found.largest == 1 / expected
    assert found.population == len(values)
    assert found.out_of_bounds == len(values) - expected


def test_floats_of_32_bits() -> None:
    tenths = pa.array([0.1, 0.2, 0.3], pa.float32())
    release = pa.table({"x": ["[0.1-0.2]"]})
    own = [attribute("x", "float", type="float")]
    for values in (tenths, pa.array([0.1, 0.2, 0.3]), pa.array(["0.1", "0.2", "0.3"])):
        assert measure_presence(release, own, pa.table({"x": values})).largest == 0.5


def test_missing_values() -> None:
    release = {"x": ["[1-2] or missing", "missing", "3", "*"]}
    population = {"x": ["1", "2", None, " ? ", "3", "4"]}
    texts = {"x": ["{1, 2, missing}", "missing", "3", "*"]}
    floats = {"x": pa.array([1.0, 2.0, None, float("nan"), 3.0, 4.0])}
    cases: list[tuple[dict[str, Any], Any, dict[str, Any]]] = [
        (release, "integer", population),
        (release, "float", floats),
        (texts, "category", population),
    ]
    for labels, kind, people in cases:
        found = measure_presence(
            pa.table(labels), [attribute("x", kind)], pa.table(people), missing_markers=["?"]
        )
        # 1, 2 and both that are missing; those; 3; and all.
        assert (records_in_regions(found), found.out_of_bounds) == ([1, 2, 4, 6], 5)


def test_bounds_and_sets() -> None:
    release = {
        "a.b_min": pa.array([date(2020, 1, 1), None, date(2020, 1, 1)]),
        "a.b_max": pa.array([date(2020, 1, 3), None, date(2020, 1, 3)]),
        "a.b_missing": [False, True, True],
        "sex": pa.array([["f"], ["f", None], ["m", "f"]], pa.list_(pa.string())),
    }
    population = {
        "a.b": pa.array([date(2020, 1, 1), date(2020, 1, 3), None, None, date(2020, 1, 4)]),
        "sex": ["f", "m", "f", None, "f"],
    }
    attributes = [
        attribute("a.b", "date", "a.b_min", "a.b_max", "a.b_missing"),
        attribute("sex", "category", style="bounds"),
    ]
    found = measure_presence(pa.table(release), attributes, pa.table(population))
    # Regions hold {1}, {3, 4} and {1, 2, 3} of the people.
    assert (records_in_regions(found), found.out_of_bounds) == ([1, 2, 3], 2)


def test_labels_of_hierarchies() -> None:
    release = {
        "country": ["Europe or missing", '"missing"', "*"],
        "age": ["[20-25[", "31.5", "*"],
        "code": ["061**", "06123", "*"],
        "day": ["2020-Q1", "2020-02", "2020"],
    }
    population = {
        "country": ["France", "missing", None, "Peru", "Italy"],
        "age": [22.5, 31.5, 20.0, 25.0, 24.9],
        "code": ["06199", "06123", "06100", "0612", "06200"],
        "day": ["2020-03-31", "2020-02-29", "2020-01-01", "2020-12-31", "2020-01-01"],
    }
    attributes = [
        attribute("country", "category"),
        attribute("age", "decimal", rule="intervals"),
        attribute("code", "category", rule="prefix"),
        attribute("day", "date", rule="calendar"),
    ]
    meanings = {"Europe": ("France", "Italy"), "missing": ("missing",)}
    meanings |= {leaf: (leaf,) for leaf in ("France", "Italy")}
    # The first class holds France and the one without country; not Italy, for its code. The last
    # class holds all but the one without country: with a hierarchy * is a value.
    hierarchies: dict[str, Any] = {"country": meanings, "age": {"[20-25[": ("22.5",)}}
    for ages in (population["age"], [Decimal(str(age)) for age in population["age"]]):
        table = pa.table(population | {"age": ages})
        found = measure_presence(pa.table(release), attributes, table, hierarchies)
        assert (records_in_regions(found), found.out_of_bounds) == ([1, 2, 4], 2)


def test_what_cannot_be_read_is_counted_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    ages = [attribute("age", "integer")]
    release = pa.table({"age": ["[20-30]", "Quentin"]})
    people = pa.table({"age": ["20", "Ottokar", "Ottokar", "30"]})
    with pytest.raises(DataError, match=r"1 of 2 different entries .* 'age'") as refused:
        measure_presence(release, ages, people)
    assert "Quentin" not in str(refused.value)
    fine = pa.table({"age": ["[20-30]", "17"]})
    with pytest.raises(DataError, match="2 values of column 'age'") as refused:
        measure_presence(fine, ages, people)
    assert "Ottokar" not in str(refused.value)
    measure_presence(fine, ages, people, missing_markers=["Ottokar"])
    with pytest.raises(DataError, match="population: lacks the columns 'age'"):
        measure_presence(fine, ages, pa.table({"Age ": [1]}))
    with pytest.raises(DataError, match="release: lacks the published column 'age'"):
        measure_presence(pa.table({"ages": ["1"]}), ages, people)
    with pytest.raises(DataError, match="column 'age' has type date"):
        measure_presence(fine, ages, pa.table({"age": [date(2020, 1, 1)]}))
    with pytest.raises(ConfigurationError, match="mean"):
        measure_presence(fine, [attribute("age", "integer", style="mean")], people)
    overlapping = pa.table({"age": ["[20-30]", "[20-31]", "[20-32]"]})
    monkeypatch.setattr(region_matching, "_MOST_IN_LEAF", 2)
    with pytest.raises(DataError, match="3 classes, whose regions overlap too much"):
        measure_presence(overlapping, ages, pa.table({"age": [20]}))
    measure_presence(fine, ages, pa.table({"age": [20]}))


FIXED = {"name": "full-domain", "suppression_limit": 0.0}


@pytest.mark.parametrize(
    ("model", "ages", "rows", "known"),
    [
        (FIXED | {"levels": [{"age": 2}]}, [20, 21, 22, 25, 26, 27], 4, None),
        (FIXED, [20, 21, 21, 21], 2, 1.0),
        ({"name": "smondrian"}, [20, 21, 21, 21], 2, 1.0),
    ],
    ids=["given levels", "searched levels", "local recoding"],
)
def test_every_possible_release(
    tmp_path: Path, model: dict[str, Any], ages: list[int], rows: int, known: float | None
) -> None:
    """An attacker who knows the population and the method knows which tables a release may be of.

    With labels that depend on no record the figure is what the attacker knows. With others it is
    0.5 where the one person of 20 is in all possible tables.
    """
    tables: dict[Any, list[tuple[int, ...]]] = {}
    figures = {}
    for chosen in combinations(range(len(ages)), rows):
        own = {"age": [ages[one] for one in chosen]}
        path = configuration_file(
            tmp_path,
            input={"path": str(write_table(tmp_path / "input.parquet", own))},
            attributes={"age": {"role": "quasi_identifier", "hierarchy": {"intervals": [2, 4]}}},
            privacy={"k": 2},
            model=model,
            output={"path": str(tmp_path / "release"), "mode": "overwrite"},
        )
        try:
            run(LocalEngine(), load_configuration(path), purpose="comparison")
        except GuaranteeError:  # a class of fewer than k
            continue
        release = published(tmp_path / "release").select(["age"])
        key = tuple(sorted(map(str, release["age"].to_pylist())))
        tables.setdefault(key, []).append(chosen)
        labels = [attribute("age", "integer", rule="intervals")]
        figures[key] = measure_presence(release, labels, pa.table({"age": ages}))
    shares = {
        key: [sum(one in own for own in possible) / len(possible) for one in range(len(ages))]
        for key, possible in tables.items()
    }
    for key, found in figures.items():
        if known is None:
            assert (found.smallest, found.largest) == (min(shares[key]), max(shares[key]))
    if known is not None:
        assert (0.5, known) in [(one.largest, max(shares[key])) for key, one in figures.items()]


def require_what_a_journalist_knows(folder: Path, cli: Cli, population: pa.Table) -> None:
    """Compare the journalist's risk with people who alone have the value of an end."""
    ages, sexes = population["age_days"].to_numpy(), np.array(population["sex"].to_pylist())
    attributes = {"age_days": {"role": "quasi_identifier", "grid": None}, "sex": "quasi_identifier"}
    path = configuration_file(
        folder,
        attributes=attributes,
        model={"name": "smondrian"},
        output={"path": str(folder / "local"), "style": "bounds"},
        privacy={"k": 5},
    )
    cli.ends(0, "run", path)
    release = published(folder / "local")
    names = ("age_days_min", "age_days_max", "sex")
    classes = Counter(
        (low, high, tuple(own))
        for low, high, own in zip(*(release[name].to_pylist() for name in names), strict=True)
    )
    proven, risks = 0, []
    for (low, high, own), size in classes.items():
        same = np.isin(sexes, own)
        held = int((same & (ages >= low) & (ages <= high)).sum())
        alone = [int((same & (ages == end)).sum()) == 1 for end in (low, high)]
        proven += sum(alone)
        risks.append(1 / (size if any(alone) else held))
    assert proven > 30
    found = ("verify", folder / "local", "--population", folder / "population.parquet", "--json")
    rows = json.loads(cli(*found).out)["risk"]
    journalist = next(row for row in rows if row["attacker"] == "journalist")
    assert (journalist["highest"], journalist["lowest"]) == (max(risks), min(risks))
    assert journalist["highest"] > 0.15


def test_what_ends_of_ranges_prove(tmp_path: Path, cli: Cli) -> None:
    """100 of 400 people, k = 5: at the ends of ranges 32 and more of them were proven to be in."""
    generator = np.random.default_rng(1)
    columns = {
        "age_days": np.sort(generator.permutation(20_000)[:400]),
        "sex": generator.choice(["f", "m"], 400),
    }
    population = pa.table(columns)
    write_table(tmp_path / "population.parquet", population)
    own = population.take(np.sort(generator.permutation(400)[:100]))
    write_table(tmp_path / "input.parquet", own)
    bound = {"population": str(tmp_path / "population.parquet"), "max": 0.5}
    rules = {"age_days": {"intervals": [5_000]}, "sex": {"keep": []}}
    attributes = {n: {"role": "quasi_identifier", "hierarchy": one} for n, one in rules.items()}
    more = {"attributes": attributes, "privacy": {"k": 5, "delta_presence": bound}}
    refused = cli("run", configuration_file(tmp_path, **more))
    assert (refused.code, "at the end of a range is in the release for sure" in refused.err) == (
        2,
        True,
    )
    require_what_a_journalist_knows(tmp_path, cli, population)
    model = FIXED | {"levels": [{"age_days": 1, "sex": 0}]}
    path = configuration_file(tmp_path, **more, model=model)
    cli.ends(0, "run", path)
    shown = json.loads(cli("verify", tmp_path / "release", "--json").out)["presence"]
    regions = Counter(zip(columns["age_days"] // 5_000, columns["sex"], strict=True))
    members = Counter(zip(own["age_days"].to_numpy() // 5_000, own["sex"].to_pylist(), strict=True))
    known = [members[one] / size for one, size in regions.items()]
    assert (shown["smallest"], shown["largest"]) == (min(known), max(known))
    assert 0.1 < min(known) < max(known) < 0.5
