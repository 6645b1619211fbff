"""``range`` of an attribute: two bounds, what they may be, and where they lie."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import jsonschema
import pytest

from anonspark.config import json_schema, parse_configuration
from anonspark.core.ranges import (
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


@pytest.mark.parametrize(
    ("bounds", "keys"),
    [
        ([0, 1], {}),
        ([-1.5, 2**60], {"type": "number"}),
        (["1900-01-01", "1900-01-02"], {"type": "date"}),
        (["1900-01-01 00:00", "1900-01-01T00:00:00.000001"], {"type": "timestamp"}),
        (["1900-01-01", "2030-12-31"], {"type": "timestamp"}),
        (["2026-01-01 01:00+02:00", "2026-01-01"], {}),
        ([1900, 2030], {"hierarchy": {"intervals": [5, 10]}}),
        (["1900-01-01", "2030-12-31"], {"hierarchy": {"calendar": ["year"]}}),
        (None, {"type": "text"}),
    ],
)
def test_ranges(bounds: Any, keys: dict[str, Any]) -> None:
    document = with_range(bounds, **keys)
    assert parse_configuration(document).attributes["x"].range == bounds
    jsonschema.validate(document, json_schema())


@pytest.mark.parametrize(
    ("bounds", "keys", "told"),
    [
        ([1, 0], {}, "found the whole number 1 before the whole number 0; expected a list of two"),
        ([1, 1.0], {}, "found the whole number 1 before the number 1.0"),
        (["2026-01-02", "2026-01-01"], {}, "before the text '2026-01-01'"),
        ([0], {}, "found a list of 1; expected a list of two bounds"),
        (5, {}, "found the whole number 5; expected a list of two bounds"),
        ([0, "2026-01-01"], {}, "found a number and a text"),
        ([0, math.inf], {}, "found the number inf; expected a finite number"),
        ([0, True], {}, "found the boolean true; expected a number or a text"),
        (["2026-02-30", "2026-03-01"], {}, "found the text '2026-02-30'; expected a number, a day"),
        (["yesterday", "2026-03-01"], {}, "found the text 'yesterday'"),
        ([0, 1], {"type": "text"}, "found a range of a text"),
        ([0, 1], {"type": "boolean"}, "found a range of a boolean"),
        ([0, 1], {"type": "date"}, "found numbers as bounds of a date"),
        (["2026-01-01", "2026-01-02"], {"type": "number"}, "found texts as bounds of a number"),
        (["2026-01-01 10:00", "2026-01-02"], {"type": "date"}, "found moments; expected days"),
        ([0, 1], {"order": ["a"]}, "found a range together with an order"),
        ([0, 1], {"hierarchy": "x.csv"}, "found a range together with a hierarchy of the kind"),
        ([0, 1], {"hierarchy": {"prefix": [1]}}, "a hierarchy of the kind 'prefix'"),
        ([0, 1], {"hierarchy": {"calendar": ["year"]}}, "found numbers as bounds of a date"),
        ([0, 1], {"role": "insensitive"}, "found 'range' on an attribute with the role"),
    ],
)
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
