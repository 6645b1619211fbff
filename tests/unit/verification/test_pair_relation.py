"""Whether the people of two releases are the same, as their manifests tell."""

from __future__ import annotations

from typing import Any

import pytest

from anonspark.errors import ConfigurationError
from anonspark.release.manifest import Manifest
from anonspark.verification.pair_relation import People, Statement, relation_of

ADULTS = {"age": {"min": 18}}


def recipient(**told: Any) -> People:
    """Describe a release of a plan."""
    entry = {
        "run_id": "may",
        "where": {},
        "rows_requested": 100,
        "rows_withheld": 0,
        "source_fingerprint": "people of may",
        **told,
    }
    return People(Manifest({"recipient": entry}), 100)


def plain(fingerprint: str = "seen", path: str = "people.csv", names: str = "ab") -> People:
    """Describe a release of a run."""
    configuration = {"input": {"path": path}, "attributes": {name: {} for name in names}}
    document = {"fingerprints": {"input": fingerprint}, "configuration": configuration}
    return People(Manifest(document), 90)


FEW = {"rows_requested": None, "rows_withheld": None}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (recipient(), recipient(), "same people"),
        (recipient(where=ADULTS), recipient(where=ADULTS), "same people"),
        (recipient(), recipient(source_fingerprint="people of june"), "unknown"),
        (recipient(), recipient(rows_requested=99), "unknown"),
        (recipient(), recipient(where=ADULTS), "second inside first"),
        (recipient(where=ADULTS), recipient(), "first inside second"),
        (recipient(where=ADULTS), recipient(where={"age": {"min": 30}}), "unknown"),
        # Few withheld: of one plan the same people, of two plans nobody knows.
        (recipient(**FEW), recipient(**FEW), "same people"),
        (recipient(**FEW), recipient(**FEW, run_id="june"), "unknown"),
        (recipient(**FEW), recipient(where=ADULTS, run_id="june"), "unknown"),
        (recipient(), recipient(where=ADULTS, run_id="june", **FEW), "second inside first"),
        (plain(), plain(), "same people"),
        (plain(), plain(fingerprint="other"), "unknown"),
        (plain(), plain(path="other.csv"), "unknown"),
        (plain(), plain(names="ac"), "unknown"),
        (plain(fingerprint=""), plain(fingerprint=""), "unknown"),
        (plain(), recipient(), "unknown"),
    ],
)
def test_what_manifests_tell(one: People, other: People, expected: str) -> None:
    assert relation_of(one, other, None) == expected


@pytest.mark.parametrize("said", ["same people", "inside", None])
def test_what_is_said(said: Statement | None) -> None:
    assert relation_of(recipient(), recipient(), said) == "same people"
    smaller, larger = People(None, 10), People(None, 11)
    if said is None:
        with pytest.raises(ConfigurationError, match="without a manifest"):
            relation_of(smaller, larger, said)
        return
    inside = said == "inside"
    assert relation_of(smaller, larger, said) == ("first inside second" if inside else said)
    assert relation_of(plain("other"), smaller, said) == ("second inside first" if inside else said)
