"""What a zone is ahead of UTC at a local time, by the names that Java and Spark know."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

# Java's ``ZoneId.SHORT_IDS``.
_SHORT_NAMES = {
    "EST": "-05:00",
    "MST": "-07:00",
    "HST": "-10:00",
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
# Files beside those of the zones, on some systems.
_NO_ZONES = re.compile(r"localtime|posixrules|Factory|(?:posix|right)/.*")

_FIXED = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(?:([0-9]{1,2})|([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?"
    r"|([0-9]{2})([0-9]{2})([0-9]{2})?)"
)
_LARGEST_OFFSET = 18 * 3600

# Of 400 years, in seconds.
_CYCLE = 146_097 * 86_400


def seconds_ahead(zone: str, local: int) -> int | None:
    """Return what a zone is ahead of UTC, in seconds.

    Parameters
    ----------
    zone : str
        A region (``Europe/Paris``), one of Java's short names, or an offset (``+01:30``).
    local : int
        Seconds since 1970 on the clocks of the zone. An hour that they leave out is taken as if
        they had not been put forward yet, and of one that they have twice the first counts.

    Returns
    -------
    int or None
        None if there is no such zone.
    """
    # As Spark does, which once took these.
    zone = re.sub(r"([+-])([0-9]):", r"\g<1>0\2:", zone, count=1)
    zone = re.sub(r"([+-][0-9]{2}):([0-9])$", r"\1:0\2", zone, count=1)
    zone = _SHORT_NAMES.get(zone, zone)
    if zone in ("Z", "UTC", "GMT", "UT"):
        return 0
    match = _FIXED.fullmatch(zone)
    if match is not None:
        sign, hours_alone, *parts = match.groups()
        hours, minutes, seconds = (int(one or 0) for one in _parts(hours_alone, parts))
        ahead = (hours * 60 + minutes) * 60 + seconds
        if minutes > 59 or seconds > 59 or ahead > _LARGEST_OFFSET:
            return None
        return ahead if sign == "+" else -ahead
    region = _region(zone)
    return None if region is None else _ahead(region, local)


def _parts(hours: str | None, parts: list[str | None]) -> tuple[str | None, str | None, str | None]:
    if hours is not None:
        return hours, None, None
    first = 0 if parts[0] is not None else 3
    return parts[first], parts[first + 1], parts[first + 2]


@lru_cache(maxsize=1024)
def _region(zone: str) -> ZoneInfo | None:
    if _NO_ZONES.fullmatch(zone):
        return None
    try:
        return ZoneInfo(zone)
    except (ValueError, OSError, LookupError):
        return None


def _ahead(region: ZoneInfo, local: int) -> int:
    # Python knows the years 1 to 9999. Zones had one offset before 1800, and the rules of today go
    # on for ever in a calendar that repeats itself.
    earliest, latest = -62_135_596_800, 253_402_300_799
    if local < earliest:
        local += -((local - earliest) // _CYCLE) * _CYCLE
    elif local > latest:
        local -= -((latest - local) // _CYCLE) * _CYCLE
    ahead = (datetime(1970, 1, 1) + timedelta(seconds=local)).replace(tzinfo=region).utcoffset()
    return 0 if ahead is None else int(ahead.total_seconds())
