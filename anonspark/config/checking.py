"""All mistakes of a configuration at once, also those behind others."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from copy import deepcopy
from itertools import takewhile
from typing import Any

from pydantic import ValidationError

from anonspark.config.configuration import Configuration
from anonspark.config.json_schema import known_schema
from anonspark.config.models import options_classes
from anonspark.config.problems import Finding, Location, explain, nearest

# Each pass over a wrong document goes one step further; a correct options class needs four.
_MOST_PASSES = 10

# What stands in for a value that is missing or wrong, while the rest is looked at: for required
# values, and for those that may be in the wrong place besides.
_STAND_INS: dict[Location, Any] = {
    ("input",): {"path": "-"},
    ("input", "path"): "-",
    ("attributes",): {"-": {"role": "quasi_identifier"}},
    ("attributes", "*", "type"): "text",
    ("attributes", "*", "order"): ["-"],
    ("attributes", "*", "hierarchy", "intervals"): [1],
    ("attributes", "*", "hierarchy", "prefix"): [1],
    ("attributes", "*", "hierarchy", "calendar"): ["year"],
    ("privacy",): {"k": 2},
    ("privacy", "k"): 2,
    ("output",): {"path": "-"},
    ("output", "path"): "-",
}


def check_document(document: dict[str, Any]) -> tuple[Configuration | None, list[Finding]]:
    """Validate a document, and look on behind the first problems.

    Validation stops early: what two keys mean together is checked only where each of them is
    right. So whatever is wrong is taken out, with a harmless value in its place where one is
    required, and the rest is validated again, until nothing new is found.

    Parameters
    ----------
    document : dict
        With text keys; it is changed.

    Returns
    -------
    tuple
        The configuration, if there is nothing wrong with it, and the findings.
    """
    findings: list[Finding] = []
    taken_out: set[Location] = set()
    for _ in range(_MOST_PASSES):
        try:
            configuration = Configuration.model_validate(document)
        except ValidationError as error:
            new = explain(error, document, known_schema(), taken_out)
            details = error.errors(include_url=False, include_input=False)
        else:
            return (None if findings else configuration), findings
        # An attribute whose role cannot be read may be the quasi-identifier.
        unsure = any(_is_role(place) for place in taken_out)
        inside = [one for one in taken_out if one[:1] == ("attributes",) and len(one) > 2]
        findings += [
            f
            for f in new
            if not (unsure and (f.location == ("attributes",) or f.location[-1] == "attribute"))
            # What an attribute lacks as a whole may be what was wrong in it.
            and not (len(f.location) == 2 and any(f.location == one[:2] for one in inside))
        ]
        if any(detail["loc"] == () for detail in details):
            # The check of the whole document, which is the last one, has run.
            break
        missing = {detail["loc"] for detail in details if detail["type"] == "missing"}
        # Roles last: they replace the whole attribute.
        places = sorted(missing.union(finding.location for finding in new), key=_is_role)
        taken_out |= {_take_out(document, place, frozenset(taken_out)) for place in places}
    return None, findings


def _is_role(place: Location) -> bool:
    """Tell whether a place is an attribute as a whole or its role."""
    return place[:1] == ("attributes",) and (len(place) == 2 or place[2:] == ("role",))


def _take_out(
    document: dict[str, Any], place: Location, taken_out: AbstractSet[Location]
) -> Location:
    """Take a wrong or missing value out of a document.

    Parameters
    ----------
    document : dict
        It is changed.
    place : tuple of str and int
        Where the value is, or should be.
    taken_out : set of tuple
        What was taken out in earlier passes; its stand-in is taken out now.

    Returns
    -------
    tuple of str
        What was taken out: the place, or the list that it is in.
    """
    # A list goes as a whole: the positions of its entries must not move.
    keys = [str(step) for step in takewhile(lambda step: isinstance(step, str), place)]
    place = tuple(keys)
    if _is_role(place):
        # An identifier takes part in no check but those of its name.
        document["attributes"][keys[1]] = {"role": "identifier"}
        return place
    if place == ("model", "name"):
        # With the model that was probably meant, the other options can be checked.
        name = document["model"]["name"]
        meant = nearest(name, options_classes()) if isinstance(name, str) else None
        if meant is None:
            del document["model"]
        else:
            document["model"]["name"] = meant
        return place
    if place[0] == "model" and place in taken_out:
        # A required option, for which nobody but its model knows a stand-in.
        document.pop("model", None)
        return place
    section: Any = document
    for key in keys[:-1]:
        section = section.get(key) if isinstance(section, dict) else None
    if isinstance(section, dict):
        section.pop(keys[-1], None)
        pattern = (place[0], "*", *place[2:]) if place[0] == "attributes" and place[2:] else place
        if pattern in _STAND_INS and place not in taken_out:
            section[keys[-1]] = deepcopy(_STAND_INS[pattern])
        elif section == {} and pattern[2:-1] == ("hierarchy",):
            # Nobody knows which rule was meant.
            del document["attributes"][keys[1]]["hierarchy"]
    return place
