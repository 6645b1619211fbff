"""Names decide what numbers people or households, and plain counts ask who a person is."""

from __future__ import annotations

from cases import cases

from anonspark.core.recognition.names import may_be_unit_name, unit_of_name, weight_of_name
from anonspark.pipeline.repeats import Counts, looks_like_key, units_first


@cases(__file__, "name", "records", "values", "most", "expected")
def test_counts_of_keys(name: str, records: int, values: int, most: int, expected: bool) -> None:
    assert looks_like_key(name, Counts(records, values, most), 4360) is expected


def test_a_household_goes_before_its_people() -> None:
    counts = {
        "nr": Counts(100, 9, 12),
        "id": Counts(100, 10, 12),
        "pid": Counts(100, 50, 4),
        "hid": Counts(100, 20, 8),
    }
    assert units_first(counts) == ["hid", "pid", "id"]


@cases(__file__, "name", "unit")
def test_names_of_units(name: str, unit: str | None) -> None:
    assert unit_of_name(name) == unit


@cases(__file__, "name", "expected")
def test_names_that_are_enough_for_a_unit(name: str, expected: bool) -> None:
    assert may_be_unit_name(name) is expected


@cases(__file__, "name", "expected")
def test_names_of_sampling_weights(name: str, expected: bool | None) -> None:
    assert weight_of_name(name) is expected
