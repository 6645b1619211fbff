"""``range`` of an attribute: two bounds, what they may be, and where they lie."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from cases import cases
from documents import validate_document

from anonspark.config import parse_configuration
from anonspark.core.grids import (
    UnfitRangeError,
    day_of,
    decimal_places,
    moment_of,
    places_of_range,
)
from anonspark.errors import ConfigurationError


def with_range(bounds: Any, **keys: Any) -> dict[str, Any]:
    return {
        "input": {"path": "a"},
        "attributes": {"x": {"role": "quasi_identifier", "range": bounds} | keys},
        "privacy": {"k": 2},
        "output": {"path": "b"},
    }


@cases(__file__, "bounds", "keys")
def test_ranges(bounds: Any, keys: dict[str, Any]) -> None:
    document = with_range(bounds, **keys)
    assert parse_configuration(document).attributes["x"].range == bounds
    validate_document(document)


@cases(__file__, "bounds", "keys", "told")
def test_wrong_ranges(bounds: Any, keys: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_configuration(with_range(bounds, **keys))
    found = [one for one in refused.value.problems if one.startswith("attributes.x.range")]
    assert len(found) == 1
    assert told in found[0]


def test_fingerprints() -> None:
    plain = with_range(None)
    del plain["attributes"]["x"]["range"]
    without = parse_configuration(plain)
    assert parse_configuration(with_range(None)).fingerprint() == without.fingerprint()
    found = {
        parse_configuration(with_range(bounds)).fingerprint() for bounds in ([0, 1], [0.0, 1.0])
    }
    assert len(found) == 1
    other = parse_configuration(with_range([0, 2]))
    for name in ("fingerprint", "input_fingerprint", "settings_fingerprint"):
        assert getattr(other, name)() != getattr(without, name)()
    assert other.public_dict()["attributes"]["x"]["range"] == [0, 2]


def test_the_published_algorithm_shares_records_where_no_grid_is_named() -> None:
    """Else a comparison could not have both: its cells share what was prepared."""
    prepared = {}
    for grid in ("none", "auto"):
        document = with_range(None, grid=grid)
        plain, published = (
            parse_configuration(document | {"model": {"name": "u-canon", **options}})
            for options in ({}, {"published": "canbay-2019"})
        )
        prepared[grid] = plain.input_fingerprint() == published.input_fingerprint()
    assert prepared == {"none": True, "auto": False}


def test_a_range_can_be_set() -> None:
    configuration = parse_configuration(with_range(None), ["attributes.x.range=[5, 10]"])
    assert configuration.attributes["x"].range == [5, 10]


def test_where_bounds_lie() -> None:
    assert day_of("1970-01-02") == 1
    assert moment_of("1970-01-02") == 86_400_000_000
    assert moment_of("1970-01-01 00:00:01.5") == moment_of("1970-01-01T02:00:01.5+02:00")
    assert moment_of("0001-01-01") < moment_of("9999-12-31 23:59:59.999999")
    for text in ("1970-1-1", "1970-02-30", "1970-01-01 10:00"):
        with pytest.raises(UnfitRangeError):
            day_of(text)
    assert places_of_range("decimal", [0.1, 1]) == [Fraction(1, 10), 1]
    assert places_of_range("float", [0.1, 1]) == [Fraction(0.1), 1]
    single = float(places_of_range("float", [0.1, 1], single=True)[0])
    assert single == pytest.approx(0.1)
    assert single != 0.1
    # What the type cannot hold is what it holds at most.
    assert places_of_range("float", [0, 1e300], single=True)[1] == 2**128 - 2**104
    assert places_of_range("float", [0, 10**400])[1] < 2**1024
    assert decimal_places([1, 0.25]) == 2
    assert decimal_places([1e-7, 1e22]) == 7
