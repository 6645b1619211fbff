"""Values of variables, in whose place others read the names: in manifests, and of runs that failed.

What is made of a variable is known by its place. A value that came elsewhere, as by a short form or
as a part of another one, is known by itself where it is long enough to be no common word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anonspark.config.documents import FromVariable, without_values
from anonspark.config.problems import Location
from anonspark.redaction import redact

_SHORTEST = 8

# Texts that reading a release takes: words of the configuration, names of columns, and values of
# the data, which are told of by rules of their own.
_TOLD = {
    *("role", "type", "format", "name", "style", "mode", "missing", "kind", "distance", "unit"),
    *("attribute", "missing_markers", "missing_columns", "order", "range", "pseudonyms"),
    # It stands in the tables of all runs, too, and tells there which rows are this release's.
    "job",
    # How files are written, for the table that a release is compared with.
    *("header", "sep", "delimiter", "encoding", "charset", "quote", "escape", "comment"),
    *("nullValue", "inferSchema", "enforceSchema", "multiLine", "lineSep", "dateFormat"),
    *("timestampFormat", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"),
}
# What is there to be read by others.
_TOLD_SECTIONS = {"model", "report"}


@dataclass(frozen=True)
class Variables:
    """What in a configuration was made of variables.

    Parameters
    ----------
    made : tuple of FromVariable
    names : mapping of str to str
        Value of each variable to how it is shown.
    """

    made: tuple[FromVariable, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    def in_document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a configuration, whose credentials are redacted, with names for values."""
        if not self.made:
            return dict(document)
        return {
            key: value if key in _TOLD_SECTIONS else self._shown(value, (key,))
            for key, value in document.items()
        }

    def in_text(self, text: str) -> str:
        """Return a text with names for values."""
        made = {redact(str(one.value)): one.shown for one in self.made}
        return without_values(text, {**self.names, **made})

    def _shown(self, value: Any, location: Location) -> Any:
        if location[-1] in _TOLD:
            return value
        if isinstance(value, dict):
            return {key: self._shown(one, (*location, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self._shown(one, (*location, place)) for place, one in enumerate(value)]
        return self._name(value, location) if isinstance(value, str) else value

    def _name(self, value: str, location: Location) -> str:
        same = [one for one in self.made if redact(str(one.value)) == value]
        for one in same:
            # A short form stands where more is written out.
            if _keys(location)[: len(_keys(one.location))] == _keys(one.location):
                return one.shown
        if same and len(value) >= _SHORTEST:
            return same[0].shown
        for secret in sorted(self.names, key=len, reverse=True):
            if len(secret) >= _SHORTEST:
                # As a whole part of it, such as the directory of a path.
                value = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", self._named(secret), value)
        return value

    def _named(self, secret: str) -> Callable[[re.Match[str]], str]:
        return lambda _: self.names[secret]


def _keys(location: Location) -> list[str]:
    # What is merged stands where the sign of merging does.
    return [step for step in location if isinstance(step, str) and step != "<<"]
