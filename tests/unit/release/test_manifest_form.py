"""The form of a manifest: whatever is missing or of another type is found, and its place named."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from cases import cases, data_beside

from anonspark import __version__
from anonspark.config import parse_configuration
from anonspark.core.figures import SUMMARY
from anonspark.release.manifest_form import manifest_problems

Place = tuple[str | int, ...]

CONFIGURATION: dict[str, Any] = data_beside(__file__)["CONFIGURATION"]


SOMETIMES = (
    *("rule_", "baseline_", "entropy", "kl_", "association_"),
    *("units", "smallest_units", "rows_requested", "rows_withheld"),
)
"""How the names of figures begin that not every release has."""


def manifest() -> dict[str, Any]:
    """Return a manifest with every kind of key."""
    texts = {"model": "su-mondrian", "version": __version__}
    names = [figure.name for figure in SUMMARY]
    summary = {
        name: texts.get(name, 5)
        for name in names
        if not name.endswith("_fingerprint") and name not in ("run_id", "started")
    }
    programs = ("python", "spark", "pyspark", "pyarrow", "numpy", "numba", "pandas")
    described = {"kind": "category", "type": "string"}
    return {
        "form": 2,
        "run_id": "night",
        "started": "2026-11-22T11:05:21+00:00",
        "seconds": {"prepare": 1.5, "evaluate": 1, "publish": 1.0, "verify": 2.5},
        "versions": {"anonspark": __version__, **dict.fromkeys(programs, "1.0")},
        "configuration": parse_configuration(CONFIGURATION).public_dict(),
        "fingerprints": {"configuration": "a", "input": "b", "output": "c"},
        "published": {
            "rows": 10,
            "rows_left_out": None,
            "left_out_values": "withheld",
            "sensitive_values": {"diagnosis": 2},
            "columns": ["age", "level", "town", "income", "diagnosis", "note"],
            "quasi_identifier_columns": ["age", "level", "town", "income"],
            "quasi_identifiers": [
                {"name": "age", "kind": "integer", "type": "int64"},
                {"name": "level", **described},
                {"name": "town", **described, "hierarchy": {"height": 2, "leaves": 9}},
                {"name": "income", **described, "hierarchy": {"height": 2, "leaves": 9}},
            ],
        },
        "summary": summary,
        "gates": [{"metric": "gcp", "found": 0.2, "min": None, "max": 0.5, "withheld": False}],
        "drift": [{"metric": "gcp", "found": 0.2, "before": None, "max": 0.2, "run_id": None}],
        "attempt": 1,
        "warnings": [
            {"code": "guessable_seed", "attribute": None, "text": "it is 0", "figures": {}},
            {"code": "rare_values", "attribute": "note", "text": "few", "figures": {"share": 0.5}},
        ],
        "files": [{"path": "data/part-0", "bytes": 10, "rows": 10, "sha256": "0" * 64}],
    }


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
    # by Spark.
    assert passed == [
        ("versions", "spark"),
        ("versions", "pyspark"),
        ("versions", "pandas"),
        ("published", "quasi_identifiers", 2, "hierarchy"),
        ("published", "quasi_identifiers", 3, "hierarchy"),
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
    nullable = [
        place
        for place in passed
        if value is None
        and place[0] in ("summary", "configuration", "files", "gates", "drift", "warnings")
    ]
    # A hierarchy or a path may be a text or not, and a path several.
    free = ("hierarchy", "path", "type", "order", "share")
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


def test_releases_of_earlier_versions_say_less() -> None:
    earlier = copy.deepcopy(manifest())
    for key in ("form", "files", "attempt", "drift", "gates", "seconds", "warnings"):
        del earlier[key]
    del earlier["published"]["sensitive_values"]
    del earlier["configuration"]["evaluate"]
    assert manifest_problems(earlier) == []
    earlier["published"]["rows"] = "10"
    assert manifest_problems(earlier) == ["published.rows: expected a whole number"]
