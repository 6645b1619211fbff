"""Remove credentials from everything that leaves the program: messages, logs, files.

A path may carry credentials (``s3a://KEY:SECRET@bucket``, ``jdbc:...?password=...``), and so may an
option of a data source. Errors, the log and the terminal pass every text through :func:`redact`,
and so does what is written about a run. Authors of messages need not remember it. What reads and
writes tables gets paths as they are.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import traceback
from collections.abc import Mapping
from typing import Any

from anonspark.foreign_text import visible, visible_lines

REDACTED = "(redacted)"
"""The text in place of credentials."""

# Parts of names, of options and in query strings, that go with secrets.
_TELLING_NAMES = (
    r"(?:secret|passw|passphrase|passcode|pwd|token|credential|signature|jaas|authorization"
    r"|(?:access|account|api|private|shared|auth|encryption|master|sas)[._-]?key"
    r"|(?<![a-z])(?:sig|sas|pass|auth)(?![a-z]))"
)
_SECRET_OPTION = re.compile(_TELLING_NAMES, re.IGNORECASE)

# ``name=value``; of a value in quotes all, of others what stands before the next parameter.
_SECRET_VALUE = re.compile(
    rf"(?<![\w.%-])((?=[\w.%-]{{0,80}}?{_TELLING_NAMES})[\w.%-]+?)(\s?=\s?|%3D)"
    r"""("[^"]*"|'[^']*'|[^\s&;"'<>]+)""",
    re.IGNORECASE,
)

# What begins an authority, perhaps percent-encoded as a whole; and what may stand before a path.
_BEGINNING = re.compile(r"(?::|%3A)((?:/|%2F)+)", re.IGNORECASE)
_AT = re.compile(r"@|%40", re.IGNORECASE)
_SLASH = re.compile(r"/|%2F|[?#]", re.IGNORECASE)
_COLON = re.compile(r":|%3A", re.IGNORECASE)
_SCHEME = re.compile(r"[a-z0-9+.-]+\Z", re.IGNORECASE)
_GAP = re.compile(r"[\s<>]")
_LONGEST_SCHEME, _LONGEST_USER = 20, 200
# Beginnings of addresses that one secret may hold: a bound for texts of nothing else.
_MOST_PASSED = 8
# What is no secret though it has a colon: a host and its port, perhaps several, and in a sentence
# what follows them.
_PORT = r"(?:[^:%]|%(?!3A))*(?:(?::|%3A)(?:\d+|PORT)"
_HOSTS = re.compile(rf"{_PORT}(?:,[^:,]+:\d+)*)?|\[.*", re.IGNORECASE)
_HOSTS_AND_MORE = re.compile(rf"{_PORT}?(?:(?![\w%+/=-]).*)?)?|\[.*", re.IGNORECASE)

# Their authorities have no port: ``KEY:1/x@bucket`` is no host.
_WITHOUT_PORTS = ("s3", "s3a", "s3n")

# Oracle's user/password@, without the slashes of an address.
_ORACLE = re.compile(r"(jdbc:oracle:\w+:)[^\s@/]+/[^\s@]*@", re.IGNORECASE)


_SHORTEST_HIDDEN, _SHORTEST_NUMBER = 4, 9
_hidden: dict[str, str] = {}


def hide(secret: str, shown: str) -> None:
    """Replace a known secret in all messages from now on, wherever it stands.

    A secret of fewer than four characters, or a number of fewer than nine digits, is not replaced:
    that would take letters and figures out of messages.
    """
    if len(secret) >= (_SHORTEST_NUMBER if secret.lstrip("+-").isdigit() else _SHORTEST_HIDDEN):
        _hidden[secret] = shown


def is_secret_option(name: str) -> bool:
    """Return whether an option of a data source holds a secret, by its name.

    >>> [is_secret_option(name) for name in ("fs.s3a.secret.key", "header")]
    [True, False]
    """
    return _SECRET_OPTION.search(name) is not None


def redact(text: str) -> str:
    """Replace credentials in a path, a message or a stack trace by ``(redacted)``.

    These are user and password of addresses (a user alone is no secret), and the values of
    parameters such as ``password``, ``sig`` and ``fs.s3a.secret.key``.

    >>> redact("jdbc:postgresql://db:5432/people?user=ada&password=abc")
    'jdbc:postgresql://db:5432/people?user=ada&password=(redacted)'
    """
    # The longest first: another one may be a part of it.
    for secret in sorted(_hidden, key=len, reverse=True):
        text = text.replace(secret, _hidden[secret])
    folded = text.lower()
    if ":/" in folded or "%3a%2f" in folded:
        text = _without_user_information(text)
    if "jdbc:oracle:" in folded:
        text = _ORACLE.sub(rf"\g<1>{REDACTED}@", text)
    if "=" in folded or "%3d" in folded:
        text = _SECRET_VALUE.sub(_without_value, text)
    return text


def _without_value(match: re.Match[str]) -> str:
    value = match[3]
    quote = value[0] if value[0] in "\"'" and len(value) > 1 else ""
    return f"{match[1]}{match[2]}{quote}{REDACTED}{quote}"


def _without_user_information(text: str) -> str:
    """Redact the part of each address of a text before its sign @."""
    parts = []
    done = 0
    beginnings = list(_BEGINNING.finditer(text))
    stop = len(text)
    stops = []
    before, passed = [None, *beginnings], 0
    for previous, beginning in zip(reversed(before[:-1]), reversed(beginnings), strict=True):
        stops.append(stop)
        # A single slash may be the first sign of a secret.
        if _slashes(beginning) < 2:
            continue
        passed += 1
        if passed > _MOST_PASSED or not _is_in_secret(text, previous, beginning):
            stop, passed = beginning.start(), 0
    for beginning, stop in zip(beginnings, reversed(stops), strict=True):
        start = beginning.end()
        if start < done:
            continue
        gap = _GAP.search(text, start, stop)
        scheme = _SCHEME.search(
            text, max(0, beginning.start() - _LONGEST_SCHEME), beginning.start()
        )
        secret = _secret_part(
            text[start : gap.start() if gap else stop],
            text[start:stop],
            slashes=_slashes(beginning),
            has_ports=scheme is None or scheme[0].lower() not in _WITHOUT_PORTS,
        )
        if secret:
            parts += [text[done:start], REDACTED]
            done = start + secret
    return "".join([*parts, text[done:]])


def _is_in_secret(text: str, previous: re.Match[str] | None, beginning: re.Match[str]) -> bool:
    """Return whether two slashes may be the first characters of a secret, and begin no address."""
    if previous is None or _GAP.search(text, previous.end(), beginning.start()):
        return False
    start = max(previous.end(), beginning.start() - _LONGEST_SCHEME)
    if not _SCHEME.search(text, start, beginning.start()):
        return True
    most = min(beginning.end() + _LONGEST_USER, len(text))
    gap = _GAP.search(text, beginning.end(), most)
    return _AT.search(text, beginning.end(), gap.start() if gap else most) is not None


def _slashes(beginning: re.Match[str]) -> int:
    return len(_SLASH.findall(beginning[1]))


def _secret_part(address: str, rest: str, *, slashes: int, has_ports: bool) -> int:
    """Return how many characters at the beginning of an address, after its slashes, are secret.

    ``rest`` is the text up to the next address, for a secret with a blank in it.

    >>> _secret_part("KEY:SECRET@bucket/x", "", slashes=2, has_ports=False)
    10
    >>> _secret_part("host:8020/people", "", slashes=2, has_ports=True)
    0
    """
    first_slash = _SLASH.search(address)
    authority = address[: first_slash.start()] if first_slash else address
    last_at = authority.rfind("@")
    if last_at < 0:
        last_at = max((sign.start() for sign in _AT.finditer(authority)), default=-1)
    if last_at >= 0:
        # A user alone is no secret. A secret may hold the sign @ and a slash.
        has_password = _COLON.search(authority, 0, last_at)
        return max(address.rfind("@"), last_at) if has_password else 0
    if slashes != 2 or not _COLON.search(authority):
        return 0
    hosts = _HOSTS if "@" in address else _HOSTS_AND_MORE
    if hosts.fullmatch(authority) and (has_ports or "@" not in address):
        return 0
    # No host, no port: a secret with a slash or a blank in it, or one that was cut off.
    line = rest.partition("\n")[0]
    return max(address.rfind("@"), line.rfind("@")) if "@" in line else len(address)


def redact_values(value: Any) -> Any:
    """Redact all texts of a JSON value. Keys stay.

    >>> redact_values({"path": "s3a://K:S@bucket/x", "rows": [3]})
    {'path': 's3a://(redacted)@bucket/x', 'rows': [3]}
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_values(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [redact_values(inner) for inner in value]
    return value


def redact_options(options: Mapping[str, str]) -> dict[str, str]:
    """Redact options of a data source, by their names and by their values.

    >>> redact_options({"header": "true", "password": "abc"})
    {'header': 'true', 'password': '(redacted)'}
    """
    return {
        name: REDACTED if is_secret_option(name) else redact(value)
        for name, value in options.items()
    }


class Redacted:
    """Base of dataclasses that hold paths: their text form has no credentials."""

    def __repr__(self) -> str:
        """Return the text form of dataclasses, redacted."""
        shown = ", ".join(
            f"{field.name}={getattr(self, field.name)!r}"
            for field in dataclasses.fields(self)  # type: ignore[arg-type]
            if field.repr
        )
        return redact(f"{type(self).__qualname__}({shown})")


class _RedactingFilter(logging.Filter):
    """Redacts log records before any handler sees them, and keeps each message on one line."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if (shown := visible(redact(message))) != message:
            record.msg, record.args = shown, None
        if record.exc_info and not record.exc_text:
            # A formatter uses this text instead of the exception.
            trace = "".join(traceback.format_exception(*record.exc_info))
            record.exc_text = visible_lines(redact(trace)).rstrip()
        return True


logging.getLogger("anonspark").addFilter(_RedactingFilter())
