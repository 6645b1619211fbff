"""The form of a manifest: whatever is missing or of another type is found, and its place named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cases import cases, data_beside
from manifests import manifest_of

from anonspark.release.manifest import versions
from anonspark.release.manifest_form import in_order, manifest_problems

Place = tuple[str | int, ...]

CONFIGURATION: dict[str, Any] = data_beside(__file__)["CONFIGURATION"]


SOMETIMES = (
    *("rule_", "baseline_", "entropy", "kl_", "association_", "isolating_ends"),
    *("units", "smallest_units", "alone", "rows_requested", "rows_withheld"),
)
"""How the names of figures begin that not every release has."""


def manifest() -> dict[str, Any]:
    """Return a manifest with every kind of key."""
    category = ("category", "string")
    kinds = {"age": ("integer", "int64"), "level": category, "town": category, "income": category}
    whole = manifest_of(CONFIGURATION, kinds)
    for described in whole["published"]["quasi_identifiers"][2:]:
        described["hierarchy"] = {"height": 2, "leaves": 9}
    whole["published"]["sensitive_values"] = {"diagnosis": 2}
    gate = {"metric": "gcp", "found": 0.2, "min": None, "max": 0.5, "withheld": False}
    drift = {"metric": "gcp", "found": 0.2, "before": None, "max": 0.2, "run_id": None}
    few = {"code": "rare_values", "attribute": "note", "text": "few", "figures": {"share": 0.5}}
    seed = {"code": "guessable_seed", "attribute": None, "text": "it is 0", "figures": {}}
    file = {"path": "data/part-0", "bytes": 10, "rows": 10, "sha256": "0" * 64}
    lists = {"gates": [gate], "drift": [drift], "warnings": [seed, few], "files": [file]}
    return whole | lists | {"input_version": {"header": "true"}}


def places(found: object, before: Place = ()) -> Iterator[Place]:
    """Find every key and list position at any depth."""
    inside: Any = ()
    if isinstance(found, dict):
        inside = found.items()
    elif isinstance(found, list):
        inside = enumerate(found)
    for key, value in inside:
        yield (*before, key)
        yield from places(value, (*before, key))


def changed(place: Place, value: object = ...) -> dict[str, Any]:
    """Return a manifest without a key, or with another value there."""
    whole = manifest()
    part: Any = whole
    for key in place[:-1]:
        part = part[key]
    if value is ...:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    return whole


def is_named(place: Place, problems: list[str]) -> bool:
    """Return whether a problem begins with a key path at the place, or what it contradicts."""
    last = next(part for part in reversed(place) if isinstance(part, str))
    paths = [problem.split(": ")[0] for problem in problems]
    if place[0] == "configuration":
        return any(path.startswith(".".join(map(str, place[:2]))) for path in paths)
    return any(last in path for path in paths)


def test_a_sound_manifest() -> None:
    assert manifest_problems(manifest()) == []


def test_a_missing_key_is_named() -> None:
    # Of lists and of what is named by attributes, figures or stages any number is sound.
    free = ("sensitive_values", "attributes", "gates", "drift", "options", "figures")
    passed = []
    for place in places(manifest()):
        by_name = len(place) > 1 and (place[-2] in free or isinstance(place[-1], int))
        sometimes = str(place[-1]).startswith(SOMETIMES)
        if by_name or sometimes:
            continue
        problems = manifest_problems(changed(place))
        if not is_named(place, problems):
            passed.append(place)
    # What a hierarchy was is compared with the configuration by verify. Not every release was made
    # by Spark, or of files that told how they are read.
    assert passed == [
        ("versions", "spark"),
        ("versions", "pyspark"),
        ("versions", "pandas"),
        ("published", "quasi_identifiers", 2, "hierarchy"),
        ("published", "quasi_identifiers", 3, "hierarchy"),
        ("input_version",),
        ("input_version", "header"),
    ]


@pytest.mark.parametrize("value", [None, [], {}, "text", 1.5, -1, True, [None], {"a": None}])
def test_a_key_of_another_type_is_named(value: object) -> None:
    passed = []
    for place in places(manifest()):
        found: Any = manifest()
        for key in place:
            found = found[key]
        kinds = {type(found), type(value)}
        if len(kinds) == 1 or found is None or kinds <= {int, float}:
            continue
        problems = manifest_problems(changed(place, value))
        if not is_named(place, problems):
            passed.append(place)
    may_be_null = ("summary", "configuration", "files", "gates", "drift", "warnings")
    nullable = [place for place in passed if value is None and place[0] in may_be_null]
    # A hierarchy or a path may be a text or not, and a path several. Null are few records.
    free = ("hierarchy", "path", "type", "order", "share", *["rows_left_out"] * (value is None))
    others = [place for place in passed if place not in nullable and place[-1] not in free]
    assert others == []


@cases(__file__, "path", "told")
def test_paths_that_are_no_part_of_a_release(path: str, told: str) -> None:
    whole = manifest()
    (file,) = whole["files"]
    whole["files"] = [file | {"path": "data/part-1"}, file | {"path": path}]
    (problem,) = manifest_problems(whole)
    assert problem.startswith("files[1].path: ")
    assert told in problem


UNKNOWN: dict[str, tuple[Place, object]] = {
    "people": (("people",), [{"name": "Zebediah"}]),
    "warnings[0].code": (("warnings", 0, "code"), "zebediah"),
    "warnings[0].figures.people": (("warnings", 0, "figures", "people"), 3),
    "warnings[0]": (("warnings", 0, "attribute"), "Zebediah"),
    "warnings[0].text": (("warnings", 0, "text"), "it is 0\nZebediah"),
    "published.sensitive_values.Zebediah": (("published", "sensitive_values", "Zebediah"), 7),
    "published.quasi_identifiers[0].type": (
        ("published", "quasi_identifiers", 0, "type"),
        "Zebediah",
    ),
    "input_version.header": (("input_version", "header"), "Zebediah has the flu"),
    "input_version.name": (("input_version", "name"), "Zebediah"),
    "seconds.Zebediah": (("seconds", "Zebediah"), 1.0),
    "summary.zebediah": (("summary", "zebediah"), 7),
    "summary.model": (("summary", "model"), "Zebediah has the flu"),
    "versions.python": (("versions", "python"), "Zebediah has the flu"),
    "started": (("started",), "on a day in June"),
    "run_id": (("run_id",), "Zebediah has the flu"),
    "configuration.execution.seed_fingerprint": (
        ("configuration", "execution", "seed_fingerprint"),
        "Zebediah",
    ),
    "configuration.attributes.note.name": (
        ("configuration", "attributes", "note", "name"),
        "Zebediah",
    ),
    "fingerprints.input": (("fingerprints", "input"), "Zebediah"),
}


@pytest.mark.parametrize("path", UNKNOWN)
def test_what_no_version_writes_is_refused(path: str) -> None:
    place, value = UNKNOWN[path]
    problems = manifest_problems(changed(place, value))
    assert [problem.split(": ")[0] for problem in problems] == [path]
    assert "Zebediah" not in problems[0].split(": ")[1]


def test_a_longer_text_is_refused() -> None:
    problems = manifest_problems(changed(("warnings", 0, "text"), "x" * 20_001))
    assert problems == ["warnings[0].text: expected a shorter text"]


def test_manifests_of_another_form() -> None:
    for whole in ({}, manifest() | {"form": 1}):
        assert manifest_problems(whole) == ["form: expected 2"]


def test_another_version_may_say_less_of_its_configuration() -> None:
    other = manifest()
    other["versions"]["anonspark"] = "0.2.0"
    del other["configuration"]["metrics"]["job"]
    assert manifest_problems(other) == []
    other["configuration"]["output"]["colour"] = "blue"
    (problem,) = manifest_problems(other)
    assert problem.startswith("configuration.output.colour: ")


def test_versions_are_in_the_order_in_which_each_engine_writes_them() -> None:
    of_spark = {"spark": "4.1.4", "pyspark": "4.1.4", "pandas": "2.3.3"}
    for of_engine in ({}, of_spark):
        written = versions(of_engine, CONFIGURATION)
        ordered = in_order(manifest() | {"versions": written})["versions"]
        assert list(ordered) == list(written)
