"""The words for what is wrong with a configuration.

Every problem is one line: where, what was found, what is expected, what to do. What is expected
is read from the JSON Schema of the configuration, so that a new option, or a new model with
options of its own, gets good messages without a word written here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from anonspark.foreign_text import visible
from anonspark.redaction import is_secret_option, redact

_DEEPEST = 5
_MOST_LISTED = 3

# The key that the name of a section stands for.
_OF_SECTIONS = {
    "input": "input.path",
    "model": "model.name",
    "output": "output.path",
    "out": "output.path",
}


def places_of(name: str, schema: Mapping[str, Any], section: Sequence[str] = ()) -> list[str]:
    """Return the key paths at which a key may stand: the nearest ones, at most three.

    ``section`` is where it was written, and paths below it come first. A key inside the entries of
    a list counts as one of the list: ``l`` for ``privacy.l_diversity``.

    >>> schema = {"properties": {"privacy": {"properties": {"k": {}}}}}
    >>> places_of("k", schema)
    ['privacy.k']
    """
    spelled = name.replace("-", "_")
    if not section and spelled in _OF_SECTIONS:
        return [_OF_SECTIONS[spelled]]
    depth = {
        path: steps
        for key, path, steps in _keys(schema, schema, (), None, 0)
        if key == spelled and path != (*section, name)
    }
    below = {path: steps for path, steps in depth.items() if path[: len(section)] == (*section,)}
    best = (below if section and below else depth) or {}
    if not best:
        return []
    nearest = min(best.values())
    paths = [".".join(path) for path, steps in best.items() if steps == nearest]
    return paths if len(paths) <= _MOST_LISTED else []


def _keys(
    node: Mapping[str, Any],
    schema: Mapping[str, Any],
    path: tuple[str, ...],
    of_list: tuple[str, ...] | None,
    depth: int,
) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """Yield each key below a node, the key path that messages name for it, and its depth.

    ``path`` leads to the node. Inside the entries of a list, messages name the list, ``of_list``.
    """
    node = _resolve(node, schema)
    if depth > _DEEPEST:
        return
    for branch in node.get("anyOf", []):
        yield from _keys(branch, schema, path, of_list, depth)
    if isinstance(node.get("items"), Mapping):
        yield from _keys(node["items"], schema, path, of_list or path, depth)
    is_entry = "attribute" in node.get("properties", {})
    for key, inner in node.get("properties", {}).items():
        target = of_list or (path if is_entry else (*path, key))
        yield key, target, depth
        yield from _keys(inner, schema, (*path, key), of_list, depth + 1)


Location = tuple[str | int, ...]
_Section = TypeVar("_Section", bound=BaseModel)

_FINDINGS = "findings"

# Whose values no message quotes.
_SECRETS: AbstractSet[Location] = frozenset({("execution", "seed")})
# The words for a missing key that has a short form.
_SHORT_FORMS: Mapping[Location, str] = {
    ("attributes",): "a mapping of columns to roles, or the short form quasi_identifiers: [a, b]"
}
_LONGEST_TEXT = 60
_SHORTEST_BEGINNING = 3
# Share of equal letters: above that of 'zipcode' and 'income', which is 0.62.
_NEAR = 0.65
_LONGEST_NUMBER = 10**30
_SIGNS = frozenset(".=\"'[]")
_WHOLE_NUMBER = re.compile(r"[-+]?\d[\d_]*")


class Finding(NamedTuple):
    """A problem, and its location: the keys and list positions that lead to it.

    >>> Finding(("privacy", "k"), "found 1. Expected at least 2").line()
    'privacy.k: found 1. Expected at least 2'
    """

    location: Location
    text: str

    def line(self) -> str:
        """Return the message as one line."""
        return f"{key_path(self.location)}: {self.text}" if self.location else self.text


def impossible(findings: Sequence[Finding]) -> PydanticCustomError:
    """Make the error with which a validator reports one or more findings at once.

    Their locations are relative to the section that is validated.
    """
    return PydanticCustomError(
        _FINDINGS,
        "{summary}",
        {"summary": " | ".join(finding.line() for finding in findings), _FINDINGS: tuple(findings)},
    )


def key_path(location: Location) -> str:
    """Write a location as the path that ``--set`` understands.

    >>> key_path(("attributes", "capital.gain", "order", 2))
    'attributes."capital.gain".order[2]'
    """
    written = ""
    for step in location:
        if isinstance(step, int):
            written += f"[{step}]"
            continue
        bare = step.strip() == step != "" and step.isprintable() and _SIGNS.isdisjoint(step)
        if not bare:
            # The line of a problem must stay one line, whatever the key.
            shown = visible(step)
            quote = "'" if '"' in shown else '"'
            step = f"{quote}{shown}{quote}"  # noqa: PLW2901
        written += f".{step}" if written else step
    return written


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that a misspelt name most likely means, or None if none is near.

    A candidate that alone begins with the name may be much longer.

    >>> nearest("supression_limit", ["suppression_limit", "rho"]), nearest("abc", ["rho"])
    ('suppression_limit', None)
    """
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    folded = name.casefold()
    close = difflib.get_close_matches(folded, by_folded, n=1, cutoff=_NEAR)
    if not close and len(folded) >= _SHORTEST_BEGINNING:
        begun = [candidate for candidate in by_folded if candidate.startswith(folded)]
        close = begun if len(begun) == 1 else []
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str = "") -> str:
    """Ask whether the nearest candidate is meant, or return another hint if none is near.

    >>> did_you_mean("inpt", ["input", "output"])
    "Did you mean 'input'?"
    """
    near = nearest(name, candidates)
    return otherwise if near is None else f"Did you mean {near!r}?"


def one_of(names: Sequence[object]) -> str:
    """Write one or more alternatives in words.

    >>> one_of(["a", "b", "c"])
    "'a', 'b' or 'c'"
    """
    return _alternatives([repr(name) for name in names])


def _alternatives(texts: Sequence[str]) -> str:
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def in_words(value: object) -> str:
    """Describe a value of a configuration in one line, which is never long.

    >>> in_words("five"), in_words(5), in_words({})
    ("the text 'five'", 'the whole number 5', 'an empty mapping')
    """
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, int):
        # Python refuses to write numbers of thousands of digits.
        huge = abs(value) >= _LONGEST_NUMBER
        return "a whole number of more than 30 digits" if huge else f"the whole number {value}"
    if isinstance(value, float):
        return f"the number {value}"
    if isinstance(value, str):
        if value == "":
            return "an empty text"
        # Before it is cut off, because half a secret looks like a host.
        value = redact(value)
        shown = value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + "..."
        return f"the text {shown!r}"
    if isinstance(value, Mapping):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return f"a value of type {type(value).__name__}"


def is_secret_place(location: Location) -> bool:
    """Return whether a location holds a secret: the seed or a password.

    >>> is_secret_place(("execution", "seed")), is_secret_place(("privacy", "k"))
    (True, False)
    """
    return location in _SECRETS or ("options" in location and is_secret_option(str(location[-1])))


def in_words_at(location: Location, value: object) -> str:
    """Describe the value at a location of the configuration, but only the kind of a secret.

    >>> in_words_at(("execution", "seed"), 7), in_words_at(("privacy", "k"), 7)
    ('a number', 'the whole number 7')
    """
    if not is_secret_place(location) or not isinstance(value, (int, float, str)) or value == "":
        return in_words(value)
    kind = "a boolean" if isinstance(value, bool) else "a number"
    return "a text" if isinstance(value, str) else kind


def explain(
    error: ValidationError,
    document: Mapping[str, Any],
    schema: Mapping[str, Any],
) -> list[Finding]:
    """Translate the errors of pydantic about a whole configuration into findings, in order.

    What is expected is read from the JSON Schema of the configuration.
    """
    findings: list[Finding] = []
    meant: set[Location] = set()
    missing: set[Location] = set()
    for detail in error.errors(include_url=False):
        location = _as_written(detail["loc"], document)
        match detail["type"]:
            case "extra_forbidden":
                text, name = _unknown_key(location, document, schema)
                meant.add((*location[:-1], name))
            case "missing":
                missing.add(location)
                expected = _SHORT_FORMS.get(location) or _expectation(
                    _node_at(schema, location, document)[0], schema
                )
                text = f"missing. Expected {expected}. Add it"
            case "findings":
                findings.extend(
                    Finding(_as_written((*location, *finding.location), document), finding.text)
                    for finding in detail["ctx"][_FINDINGS]
                )
                continue
            case "value_error" | "assertion_error":
                # Raised by a validator of a model's own options; the words are the model's.
                text = " ".join(str(detail["ctx"]["error"]).split())
            case _:
                node, _ = _node_at(schema, location, document)
                shown = in_words_at(location, detail["input"])
                text = _misfit(detail["input"], shown, node, schema)
        findings.append(Finding(location, text))
    # A misspelt required key is one mistake, not two.
    return [finding for finding in findings if finding.location not in meant & missing]


def _unknown_key(
    location: Location, document: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[str, str]:
    """Write what is wrong with an unknown key. Also return the key that is meant, or ""."""
    *section, name = map(str, location)
    keys = _keys_at(schema, location[:-1], document)
    remedy = f"Expected {one_of(keys)}. Remove it" if keys else "Remove it"
    if elsewhere := places_of(name, schema, section):
        remedy = f"Did you mean {one_of(elsewhere)}?"
    return f"unknown key. {did_you_mean(name, keys, remedy)}", nearest(name, keys) or ""


def validated(
    model: type[_Section],
    document: Mapping[str, Any],
    problems: list[str],
    schema: Callable[[], Mapping[str, Any]] | None = None,
) -> _Section | None:
    """Validate a document as a section, or return None after its problems are appended.

    ``schema`` returns the JSON Schema for messages. None takes the one that pydantic makes.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        fields = (schema or model.model_json_schema)()
        problems += [finding.line() for finding in explain(error, document, fields)]
        return None


def _as_written(location: Location, document: Any) -> Location:
    """Leave out list positions if the document has a single entry instead of the list.

    >>> _as_written(("input", 0, "path"), {"input": {"path": 3}})
    ('input', 'path')
    """
    written: list[str | int] = []
    value = document
    for step in location:
        if isinstance(step, int) and isinstance(value, Mapping):
            continue
        written.append(step)
        try:
            value = value[step]
        except (LookupError, TypeError):
            value = None
    return tuple(written)


def _misfit(value: object, shown: str, node: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Describe the value, what the schema expects, and a remedy."""
    parts = [f"found {shown}", f"Expected {_expectation(node, schema)}"]
    branches = _branches(node, schema)
    kinds = {branch.get("type") for branch in branches}
    names = [name for branch in branches for name in _names(branch)]
    if isinstance(value, str):
        near = nearest(value, names)
        if near is not None:
            parts.append(f"Did you mean {near!r}?")
        elif "integer" in kinds and _WHOLE_NUMBER.fullmatch(value):
            parts.append("Remove the quotes")
    elif value is None:
        parts.append("Give it a value or remove the key")
    elif (
        isinstance(value, int | float) and not names and kinds & {"string", "number"} == {"string"}
    ):
        parts.append("Put it in quotes")
    return ". ".join(parts)


def _resolve(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def _branches(node: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternatives that a node of the schema allows, one or more."""
    node = _resolve(node, schema)
    if "anyOf" not in node:
        return [node]
    return [branch for inner in node["anyOf"] for branch in _branches(inner, schema)]


def _names(node: Mapping[str, Any]) -> list[Any]:
    if "const" in node:
        return [node["const"]]
    return list(node.get("enum", []))


def _node_at(
    schema: Mapping[str, Any], location: Location, document: Any
) -> tuple[Mapping[str, Any], Any]:
    """Return the node of the schema for a location, and its value in the document."""
    node: Mapping[str, Any] = schema
    value = document
    for step in location:
        children = [
            child
            for branch in _best_first(_branches(node, schema), value)
            if isinstance(child := _child(branch, step), Mapping)
        ]
        node = children[0] if children else {}
        try:
            value = value[step]
        except (LookupError, TypeError):
            value = None
    # The schema also allows the 1 that only allow_k_1 allows.
    return ({**node, "minimum": 2} if location == ("privacy", "k") else node), value


def _keys_at(schema: Mapping[str, Any], location: Location, document: Any) -> list[str]:
    """Return the keys that the mapping at a location may have."""
    node, value = _node_at(schema, location, document)
    return list(_best_first(_branches(node, schema), value)[0].get("properties", {}))


def _child(node: Mapping[str, Any], step: str | int) -> Any:
    if isinstance(step, int):
        return node.get("items")
    return node.get("properties", {}).get(step, node.get("additionalProperties"))


def _best_first(branches: Sequence[Mapping[str, Any]], value: object) -> list[Mapping[str, Any]]:
    """Sort the alternatives that a mapping can mean to the front.

    If several alternatives have keys, as the ``model`` section has one for each options class, the
    name in the mapping decides, or the default name if the mapping has none.
    """

    def rank(branch: Mapping[str, Any]) -> tuple[bool, bool]:
        name = branch.get("properties", {}).get("name", {})
        chosen = value.get("name", name.get("default")) if isinstance(value, Mapping) else None
        return chosen not in _names(name), "properties" not in branch

    return sorted(branches, key=rank)


def _expectation(node: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Describe what a node of the schema allows."""
    texts = [_single_expectation(branch) for branch in _branches(node, schema)]
    return _alternatives(list(dict.fromkeys(texts)))


def _entries(node: Mapping[str, Any]) -> str:
    """Describe what the entries of a list must be."""
    if _names(node):
        return f" of {one_of(_names(node))}"
    texts = "non-empty texts" if node.get("minLength") else "texts"
    words = {"string": texts, "integer": "whole numbers", "number": "numbers"}
    kind = node.get("type")
    return f" of {words[kind]}" if kind in words else ""


def _number(node: Mapping[str, Any]) -> str:
    """Describe what a number must be."""
    low, above, high = (node.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if low is not None and high is not None:
        return f"a number from {low:g} to {high:g}"
    if above is not None:
        text = f"a finite number greater than {above:g}"
        return text if high is None else f"a number greater than {above:g}, at most {high:g}"
    return "a finite number"


def _single_expectation(node: Mapping[str, Any]) -> str:
    """Describe in words the values that a schema without alternatives accepts."""
    names = _names(node)
    if names:
        return one_of(names)
    kind = node.get("type")
    if kind == "integer":
        low, high = node.get("minimum"), node.get("maximum")
        if low is not None and high is not None:
            return f"a whole number from {low} to {high}"
        return "a whole number" if low is None else f"a whole number of at least {low}"
    if kind == "array":
        entries = _entries(node["items"])
        return f"a non-empty list{entries}" if node.get("minItems") else f"a list{entries}"
    if kind == "object":
        keys = [repr(key) for key in node.get("properties", {})]
        if not keys:
            return "a mapping"
        return f"a mapping with the key{'s' if len(keys) > 1 else ''} {', '.join(keys)}"
    words = {"boolean": "true or false", "null": "null"}
    if kind == "string":
        if "examples" in node:
            return f"a fraction as {one_of(node['examples'])}"
        return "a non-empty text" if node.get("minLength") else "a text"
    if kind == "number":
        return _number(node)
    return words.get(str(kind), "another value")
