"""Variables of the environment, and the day of the run, in the texts of a configuration file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import yaml

from anonspark.config.problems import in_words, nearest
from anonspark.core.run_ids import RUN_DATE_VARIABLE

RUN_DATE = "run_date"
"""The variable for the day of the run in a file."""

_FORM = re.compile(r"\$(\$?)\{([^{}]*)\}")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
# The directives of strftime that mean the same on every system.
_DAY = re.compile(rf"{RUN_DATE}(?::((?:[^%]|%[YmdyjGVu%])+))?")
_EXPECTED = "${NAME}, ${NAME:-default}, ${run_date} or ${run_date:%Y%m%d}"


class Filled(NamedTuple):
    """A text with its variables filled in, and the problems with them.

    ``values`` maps the value of each variable, but not a default, to the variable as written.
    """

    text: str
    values: dict[str, str]
    problems: list[str]


def fill_in(text: str, environment: Mapping[str, str] = os.environ) -> Filled:
    """Fill in the variables of a text, in which ``$${`` stands for a literal ``${``.

    It is a problem if a variable is not set and has no default, or has another form.

    >>> fill_in("s3://${BUCKET:-people}/${DAY}", {"DAY": "monday"}).text
    's3://people/monday'
    >>> fill_in("${DAY}", {}).problems[0][:56]
    "found ${DAY}, but there is no environment variable 'DAY'"
    """
    values: dict[str, str] = {}
    problems: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        """Return the value for a match, or report a problem and keep the text as it was written."""
        escaped, inside = match.groups()
        written = match[0]
        if escaped:
            return written[1:]
        day = _DAY.fullmatch(inside)
        if day is not None:
            try:
                return run_date(environment).strftime(day[1] or "%Y-%m-%d")
            except ValueError as error:
                problems.append(str(error))
                return written
        named = _NAME.fullmatch(inside)
        if named is None or inside.startswith(f"{RUN_DATE}:"):
            problems.append(f"found {in_words(written)}. Expected {_EXPECTED}. Correct it")
            return written
        name, default = named.groups()
        # As in a shell, a default also replaces a variable that is empty.
        value = environment.get(name)
        if value or (value is not None and default is None):
            values[value] = f"${{{name}}}"
            return value
        if default is not None:
            return default
        near = nearest(name, environment) if name.casefold() != RUN_DATE else RUN_DATE
        hint = f"Did you mean {near!r}? " if near else ""
        problems.append(
            f"found ${{{name}}}, but there is no environment variable {name!r}. {hint}Set it, or "
            f"give a default: ${{{name}:-...}}"
        )
        return written

    filled = _FORM.sub(value_of, text)
    values.pop("", None)
    return Filled(filled, values, list(dict.fromkeys(problems)))


def escaped(value: Any) -> Any:
    """Escape texts so that :func:`fill_in` fills in nothing. Keys have no variables.

    >>> escaped({"${A}": ["cost ${B}", 3]})
    {'${A}': ['cost $${B}', 3]}
    """
    if isinstance(value, dict):
        return {key: escaped(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [*map(escaped, value)]
    return _FORM.sub(r"$\g<0>", value) if isinstance(value, str) else value


def configuration_yaml(document: dict[str, Any], width: float = 80) -> str:
    r"""Write a configuration, or a part of one, as YAML that is read back as the same.

    >>> configuration_yaml({"privacy": {"k": 5}})
    'privacy:\n  k: 5\n'
    """
    text = yaml.safe_dump(escaped(document), sort_keys=False, allow_unicode=True, width=width)
    return str(text)


def run_date(environment: Mapping[str, str] = os.environ) -> date:
    """Return the day of the run: that of the variable, or else today in UTC.

    Raises ValueError if the variable is no day.

    >>> run_date({"ANONSPARK_RUN_DATE": "2026-01-31"}).isoformat()
    '2026-01-31'
    """
    text = environment.get(RUN_DATE_VARIABLE)
    if not text:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"the day of the run (--run-date, {RUN_DATE_VARIABLE}) is {in_words(text)}. Expected a "
            "day as 2026-01-31. Correct it"
        ) from None
