"""What numbers people or households is recognized by what stays the same within it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from helpers import local_table

from anonspark.core.recognition.names import unit_of_name
from anonspark.engine.raw_columns import Reading
from anonspark.pipeline.repeats import (
    KeyCounts,
    UnitKey,
    best_first,
    find_unit_keys,
    hashed_values,
)


def keys_of(columns: Mapping[str, Any], tasks: int = 1) -> dict[str, UnitKey]:
    """Return the keys of a table."""
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    readings = [Reading(name, f"v{place}", None) for place, name in enumerate(table.schema.names)]
    counts = {}
    for name in table.schema.names:
        sizes = table[name].value_counts().field("counts").to_numpy()
        counts[name] = KeyCounts(len(table), len(sizes), int(sizes.max()))
    hashed = hashed_values(local_table(table, tasks), readings)
    names = {one.column: one.name for one in readings}
    return {one.column: one for one in find_unit_keys(hashed, names, counts, len(table))}


def panel(people: int = 200, years: int = 8) -> dict[str, Any]:
    """Return people of several years: who they are stays, what they earn does not."""
    random = np.random.default_rng(7)
    number = random.choice(np.arange(10_000), people, replace=False)
    person = np.repeat(np.arange(people), years)
    rows = len(person)
    return {
        "nr": number[person],
        "year": np.tile(np.arange(1980, 1980 + years), people),
        "educ": random.integers(8, 18, people)[person],
        "black": random.integers(0, 2, people)[person],
        "hours": random.integers(0, 400, rows) * 10,
        "wage": np.round(random.gamma(2, 10, rows), 2),
        "union": random.integers(0, 2, rows),
    }


@pytest.mark.parametrize("name", ["nr", "x7", "wert", "_c0"])
def test_a_panel_of_people_under_any_name(name: str) -> None:
    columns = {name if own == "nr" else own: values for own, values in panel().items()}
    keys = keys_of(columns)
    assert list(keys) == [name]
    assert keys[name].is_sure
    assert keys[name].stable == ("educ", "black")
    # Whatever the order of the rows, and in how many tasks they are.
    order = np.random.default_rng(1).permutation(len(columns["educ"]))
    shuffled = {own: values[order] for own, values in columns.items()}
    assert keys_of(shuffled, tasks=3) == keys


def test_a_large_panel_is_drawn_by_whole_people() -> None:
    keys = keys_of({f"x{own}": values for own, values in panel(people=8_000).items()}, tasks=4)
    assert list(keys) == ["xnr"]
    assert keys["xnr"].stable == ("xeduc", "xblack")


def test_keys_that_are_texts_or_floats() -> None:
    columns = panel()
    codes = [f"P-{number}" for number in columns["nr"]]
    assert keys_of({**columns, "nr": codes})["nr"].is_sure
    assert keys_of({**columns, "nr": columns["nr"].astype(float)})["nr"].is_sure


def test_a_name_of_people_is_enough() -> None:
    columns = panel()
    for name in ("hhid", "caseid", "persnr", "household_id", "pid"):
        bare = {name: columns["nr"], "hours": columns["hours"]}
        assert keys_of(bare)[name].is_sure, name
    # An "id" of few values may be anything.
    assert not keys_of({"id": columns["nr"], "hours": columns["hours"]})["id"].is_sure


def test_a_bare_name_of_households_needs_more() -> None:
    columns = panel()
    for name in ("haushalt", "foyer", "hogar", "dwelling"):
        assert keys_of({name: columns["nr"], "educ": columns["educ"]})[name].is_sure, name
        bare = {name: columns["nr"], "hours": columns["hours"]}
        assert not keys_of(bare)[name].is_sure, name
    # What was spent in 1992 is the same in a whole district.
    assert "expp92" not in keys_of({**columns, "expp92": columns["nr"]})


def test_measurements_are_no_people() -> None:
    random = np.random.default_rng(3)
    rows = 2_000
    dose = random.integers(0, 400, rows)
    town = random.integers(0, 100, rows)
    columns = {
        "dose": dose,
        # What is computed of a measurement stays the same within it, too.
        "log_dose": np.log1p(dose),
        "high": dose > 200,
        "rooms": random.integers(1, 9, rows),
        "longitude": np.round(random.uniform(5, 15, rows), 1),
        "zip": town + 10_000,
        "area": town,
        "region": town // 10,
        "country": town // 50,
        "sex": random.integers(0, 2, rows),
    }
    assert not [one for one in keys_of(columns).values() if one.is_sure]


def test_towns_keep_other_things_than_people_do() -> None:
    random = np.random.default_rng(3)
    area = np.repeat(np.arange(200), 10)
    columns = {
        "area": area,
        "urban": random.integers(0, 2, 200)[area],
        "index": random.integers(0, 9, 200)[area],
    }
    # Of the two alone nobody can know, but people keep their sex.
    assert keys_of(columns)["area"].is_sure
    of_people = {**columns, "sex": random.integers(0, 2, len(area))}
    assert not keys_of(of_people)["area"].is_sure
    of_people["sex"] = random.integers(0, 2, 200)[area]
    assert keys_of(of_people)["area"].is_sure


def test_a_household_goes_before_its_people() -> None:
    person = UnitKey("pid", KeyCounts(100, 50, 4), "person", ("hid",), is_sure=True)
    home = UnitKey("hid", KeyCounts(100, 20, 8), "household", (), is_sure=True)
    doubtful = UnitKey("nr", KeyCounts(100, 9, 12), None, (), is_sure=False)
    assert best_first([person, home, doubtful]) == [home, person]
    # Of people who move, k households may be one person.
    moving = UnitKey("pid", KeyCounts(100, 50, 4), "person", (), is_sure=True)
    assert best_first([moving, home]) == [moving, home]
    assert best_first([home]) == [home]


@cases(__file__, "name", "unit")
def test_names_of_units(name: str, unit: str | None) -> None:
    assert unit_of_name(name) == unit
