"""Short forms of a configuration, written out before it is checked: both mean the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from anonspark.config.attributes import Role
from anonspark.config.input import CATALOG_TABLE
from anonspark.config.problems import in_words, key_path
from anonspark.config.yaml_reading import Positions
from anonspark.core.criterion import CRITERIA, foreign_criterion

ROLE_LISTS: dict[str, Role] = {
    "identifiers": "identifier",
    "quasi_identifiers": "quasi_identifier",
    "sensitive": "sensitive",
    "insensitive": "insensitive",
}
"""Keys that list the columns of a role, beside ``attributes``."""

BOUNDS = {"l_diversity": "l", "t_closeness": "t"} | {
    criterion.key: criterion.option.key
    for criterion in CRITERIA.values()
    if criterion.option is not None
}
"""Criteria of sensitive attributes, and the key of their bound."""

# Keys that are no criteria.
# Models that recode every quasi-identifier to a level of its hierarchy.
_LEVELLED = ("full-domain", "rho-gain")
_OTHER_KEYS = ("k", "unit", "delta_presence", "allow_k_1", "allow_alone")

# What a criterion may say beside its attribute and its bound.
_OTHERS = {"l_diversity": {"kind", "c"}, "t_closeness": {"distance"}}


def listed_attribute(role: str) -> str | dict[str, object]:
    """Return the settings of an attribute that is only listed under its role.

    >>> listed_attribute("quasi_identifier"), listed_attribute("sensitive")
    ({'role': 'quasi_identifier', 'grid': 'auto'}, 'sensitive')
    """
    return {"role": role, "grid": "auto"} if role == "quasi_identifier" else role


def bound_of(key: Any) -> str | None:
    """Return the key of a criterion's bound, or None for keys that are no criterion with a bound.

    Criteria of other packages count, too.

    >>> bound_of("l_diversity"), bound_of("k")
    ('l', None)
    """
    if key in BOUNDS or key in _OTHER_KEYS or not isinstance(key, str):
        return BOUNDS.get(key)
    criterion = foreign_criterion(key)
    return None if criterion is None or criterion.option is None else criterion.option.key


def write_out(document: dict[str, object], problems: list[str], *, with_tops: bool = True) -> None:
    """Replace the short forms of a configuration by the long ones, in place.

    Lists of columns become ``attributes``, in the order of the document. A number, or attributes
    with numbers, become criteria, and ``input: {table: NAME}`` becomes a path and a format. With
    ``with_tops`` quasi-identifiers without a hierarchy get, for models with levels, one that only
    has ``*`` above the values. Numbers and dates are refused later, when their type is known.
    Problems are appended.

    >>> document = {"quasi_identifiers": ["age"], "model": "canon"}
    >>> write_out(document, [])
    >>> document["model"], document["attributes"]
    ({'name': 'canon'}, {'age': {'role': 'quasi_identifier', 'grid': 'auto'}})
    """
    _write_out_attributes(document, problems)
    source = document.get("input")
    if isinstance(source, dict) and "table" in source:
        for key in source.keys() & {"path", "format"}:
            problems.append(
                f"input.{key}: found it together with input.table, which is the name of a table in "
                "a catalog. Expected one of them. Remove the other"
            )
        others = {key: value for key, value in source.items() if key != "table"}
        document["input"] = {"path": source["table"], "format": CATALOG_TABLE} | others
    if isinstance(document.get("model"), str):
        document["model"] = {"name": document["model"]}
    model, attributes = document.get("model"), cast(Any, document.get("attributes"))
    is_levelled = isinstance(model, dict) and model.get("name") in _LEVELLED and with_tops
    for name, value in attributes.items() if is_levelled and isinstance(attributes, dict) else ():
        entry = value if isinstance(value, dict) else {"role": value}
        rules = [key for key in ("order", "hierarchy") if entry.get(key) is not None]
        is_text = entry.get("type") in (None, "text") and not rules
        if entry.get("role") == "quasi_identifier" and is_text:
            attributes[name] = {**entry, "hierarchy": {"keep": []}}
    privacy = document.get("privacy")
    if isinstance(privacy, dict):
        # The attributes of a coding are not known here.
        sensitive = None if document.get("coding") is not None else _sensitive_of(document)
        for key in privacy:
            bound = bound_of(key)
            if bound is not None:
                privacy[key] = _criterion(key, bound, privacy[key], sensitive, problems)


def take_out_of_lists(document: dict[str, object], name: str) -> None:
    """Move an attribute from the list of its role to ``attributes``, so that it can be overridden.

    Nothing changes unless exactly one list names it and ``attributes`` does not.

    >>> document = {"sensitive": ["income", "illness"]}
    >>> take_out_of_lists(document, "illness")
    >>> document
    {'sensitive': ['income'], 'attributes': {'illness': 'sensitive'}}
    """
    holding = [key for key in ROLE_LISTS if name in _entries(document.get(key))]
    attributes = document.get("attributes")
    attributes = {} if attributes is None else attributes
    if len(holding) != 1 or not isinstance(attributes, dict) or name in attributes:
        return
    (key,) = holding
    document[key] = [entry for entry in _entries(document[key]) if entry != name]
    document["attributes"] = {**attributes, name: listed_attribute(ROLE_LISTS[key])}


def _entries(listed: Any) -> list[Any]:
    if isinstance(listed, str):
        return [listed]
    return listed if isinstance(listed, list) else []


def positions_of_listed(document: Mapping[str, Any], positions: Positions) -> Positions:
    """Return the positions of attributes whose names are listed under a role."""
    found_at: dict[str, tuple[int, int]] = {}
    for key in ROLE_LISTS:
        for path, name in _names(key, document.get(key), []):
            if path in positions:
                found_at.setdefault(key_path(("attributes", name)), positions[path])
    return found_at


def _write_out_attributes(document: dict[str, object], problems: list[str]) -> None:
    """Replace the lists of roles by ``attributes``, in the order in which columns are listed."""
    lists = [key for key in document if key in ROLE_LISTS]
    if not lists:
        return
    attributes = document.get("attributes")
    if attributes is not None and not isinstance(attributes, dict):
        for key in lists:
            del document[key]
        return  # reported with everything else
    written = attributes or {}
    merged: dict[str, object] = {}
    list_of: dict[str, str] = {}
    for key in list(document):
        if key == "attributes":
            merged |= {name: attribute for name, attribute in written.items() if name not in merged}
        elif key in ROLE_LISTS:
            for path, name in _names(key, document.pop(key), problems):
                other = "attributes" if name in written else list_of.get(name)
                if other is not None:
                    problems.append(
                        f"{path}: found {in_words(name)}, which stands under {other!r}, too. "
                        "Expected each attribute once. Remove one of them"
                    )
                    continue
                list_of[name] = key
                merged[name] = listed_attribute(ROLE_LISTS[key])
    document["attributes"] = merged


def _names(key: str, listed: Any, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the names in the list of a role with their paths, and report what is no name."""
    if listed is None:
        return
    entries = [listed] if isinstance(listed, str) else listed
    if not isinstance(entries, list):
        problems.append(
            f"{key}: found {in_words(listed)}. Expected a list of names of columns. Write other "
            "settings of an attribute under attributes"
        )
        return
    for index, name in enumerate(entries):
        where = key_path((key,) if isinstance(listed, str) else (key, index))
        if isinstance(name, str) and name:
            yield where, name
        else:
            problems.append(
                f"{where}: found {in_words(name)}. Expected the name of a column. Correct it"
            )


def _sensitive_of(document: Mapping[str, Any]) -> list[str]:
    attributes = document.get("attributes")
    if not isinstance(attributes, Mapping):
        return []
    return [
        name
        for name, attribute in attributes.items()
        if (attribute.get("role") if isinstance(attribute, Mapping) else attribute) == "sensitive"
    ]


def _criterion(
    key: str, bound: str, value: Any, sensitive: list[str] | None, problems: list[str]
) -> Any:
    """Return a criterion in its long form. A value that is no short form stays unchanged."""
    if isinstance(value, list):
        return [
            _criterion(key, bound, entry, sensitive, problems) if isinstance(entry, dict) else entry
            for entry in value
        ]
    if isinstance(value, dict):
        keys = {"attribute", bound, *_OTHERS.get(key, ())}
        if "attribute" in value or not value:
            return value
        if keys.isdisjoint(value):
            if not all(_is_number(number) for number in value.values()):
                return value
            of_each = [{"attribute": name, bound: number} for name, number in value.items()]
            return of_each[0] if len(of_each) == 1 else of_each
        if not keys.issuperset(value):
            return value
        rest = value
    elif _is_number(value):
        rest = {bound: value}
    else:
        return value
    if sensitive is None:
        return value
    if len(sensitive) == 1:
        return {"attribute": sensitive[0], **rest}
    which = ", ".join(map(repr, sensitive))
    several = f"{len(sensitive)} sensitive attributes ({which})" if sensitive else "none"
    if bound in rest:
        problems.append(
            f"privacy.{key}: found {in_words(value)}, which is about the one sensitive attribute, "
            f"and found {several}. Expected it together with the attribute, as in "
            f"{{attribute: NAME, {bound}: {_as_written(rest[bound])}}}. Add it"
        )
        return []
    return value


def _as_written(value: Any) -> str:
    return f"{value:g}" if _is_number(value) and abs(value) < 1e30 else "..."


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
