"""What zones are ahead of UTC: offsets, Java's names, hours that are left out or come twice."""

from __future__ import annotations

from calendar import timegm

import pytest

from anonspark.engine.values.time_zones import seconds_ahead

_HOUR = 3600
_CYCLE = 146_097 * 86_400


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("Z", 0),
        ("UTC", 0),
        ("+1", _HOUR),
        ("-01:30", -5400),
        ("+0130", 5400),
        ("+01:30:15", 5415),
        ("+013015", 5415),
        ("UTC+1", _HOUR),
        ("GMT-1:30", -5400),
        ("+1:5", 3900),
        ("EST", -5 * _HOUR),
        ("JST", 9 * _HOUR),
        ("GMT0", 0),
        ("+18:00", 18 * _HOUR),
        ("+18:01", None),
        ("+01:60", None),
        ("+130", None),
        ("+01:3015", None),
        ("z", None),
        ("UTC0", None),
        ("Europe/Nowhere", None),
        ("europe/paris", None),
        ("localtime", None),
        ("../zone", None),
        ("", None),
    ],
)
def test_names_and_offsets(zone: str, expected: int | None) -> None:
    assert seconds_ahead(zone, 0) == expected


def test_hours_that_are_left_out_and_hours_that_come_twice() -> None:
    left_out = timegm((2024, 3, 31, 2, 30, 0))
    twice = timegm((2024, 10, 27, 2, 30, 0))
    assert seconds_ahead("Europe/Berlin", left_out) == _HOUR
    assert seconds_ahead("Europe/Berlin", twice) == 2 * _HOUR


def test_years_that_python_does_not_know() -> None:
    summer = timegm((2024, 7, 1, 0, 0, 0))
    assert seconds_ahead("Europe/Berlin", summer + 600 * _CYCLE) == 2 * _HOUR
    # The mean time of the place, as it was before there were zones.
    assert seconds_ahead("Europe/Berlin", summer - 600 * _CYCLE) == 53 * 60 + 28
