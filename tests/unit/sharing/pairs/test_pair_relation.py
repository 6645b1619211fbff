"""Whether the people of two releases are the same, as their manifests tell."""

from __future__ import annotations

from typing import Any

import pytest
from cases import cases

from anonspark.errors import ConfigurationError
from anonspark.release.manifest import Manifest
from anonspark.sharing.pairs.relation import People, Statement, relation_of


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


@cases(__file__, "one", "other", "expected")
def test_what_manifests_tell(
    one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]], expected: str
) -> None:
    """Of few that were withheld: of one plan the same people, of two plans nobody knows."""
    described = {"recipient": recipient, "plain": plain}
    (first, second) = (described[k](**v) for own in (one, other) for k, v in own.items())
    assert relation_of(first, second, None) == expected


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
