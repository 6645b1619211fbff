"""What arguments may be, and what is said of those that are something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases import cases

import anonspark
from anonspark.errors import ConfigurationError

ROWS = 60
PEOPLE = pd.DataFrame({"age": [row % 12 for row in range(ROWS)], "sex": ["f", "m"] * (ROWS // 2)})
ARGUMENTS: dict[str, Any] = {"k": 5, "progress": False}


def refused(function: Callable[..., Any], *given: Any, **named: Any) -> str:
    """Return what a call is refused with."""
    with pytest.raises(ConfigurationError) as caught:
        function(*given, **named)
    return str(caught.value)


@pytest.mark.parametrize("function", [anonspark.anonymize, anonspark.compare, anonspark.verify])
def test_names_of_columns(function: Callable[..., Any]) -> None:
    own = ARGUMENTS if function is not anonspark.verify else {"k": 5}
    expected = ". Expected a list of names of columns"
    assert refused(function, PEOPLE, quasi_identifiers={"age", "sex"}, **own) == (
        "quasi_identifiers: found a set, whose order is another one in each process" + expected
    )
    for found, told in (
        ("age", "a text"),
        (None, "NoneType"),
        ([3], "something else than texts in it"),
    ):
        text = f"quasi_identifiers: found {told}{expected}"
        assert refused(function, PEOPLE, quasi_identifiers=found, **own) == text
    text = f"sensitive: found a text{expected}"
    assert refused(function, PEOPLE, quasi_identifiers=["age"], sensitive="sex", **own) == text
    for named in ((name for name in ["age"]), pd.Index(["age"])):
        function(PEOPLE, quasi_identifiers=named, **own)


def test_numbers_of_numpy() -> None:
    arguments = {"quasi_identifiers": ["age"], "seed": np.int64(7), "progress": False}
    with (
        anonspark.anonymize(PEOPLE, k=np.int64(5), **arguments) as release,
        anonspark.anonymize(PEOPLE, k=5, **{**arguments, "seed": 7}) as same,
    ):
        assert (
            release.figures.summary["output_fingerprint"]
            == (same.figures.summary["output_fingerprint"])
        )
    found = anonspark.compare(PEOPLE, k=np.array([2, 5]), quasi_identifiers=["age"], progress=False)
    assert sorted(row["k"] for row in found.rows) == [2, 5]
    assert anonspark.verify(PEOPLE, quasi_identifiers=["age"], k=np.int32(5)).holds


def test_places(tmp_path: Path) -> None:
    with anonspark.anonymize(
        PEOPLE, quasi_identifiers=["age"], staging=tmp_path, **ARGUMENTS
    ) as release:
        assert Path(release.path).parent == tmp_path
        for given in (release, Path(release.path), release.path):
            assert anonspark.read(given).count("age >= 0").estimate == ROWS
        text = refused(anonspark.evaluate, release, None)
        assert text.startswith("original: found NoneType. Expected the table")
    text = refused(anonspark.anonymize, PEOPLE, quasi_identifiers=["age"], staging=5, **ARGUMENTS)
    assert text == "staging: found int. Expected the path of a directory"
    assert refused(anonspark.read, 5).startswith("release: found an object of the type int")


@pytest.mark.parametrize("given", ["conf.yaml", Path("conf.yaml")])
def test_files_in_place_of_what_they_hold(given: Any) -> None:
    for function in (anonspark.anonymize, anonspark.verify):
        text = refused(function, PEOPLE, given)
        assert "Expected a mapping or a Configuration" in text
        assert "anonspark.config.load_configuration(path)" in text
    for function in (anonspark.compare, anonspark.distribute, anonspark.select):
        assert "Expected a mapping, as the YAML file holds it. Read" in refused(
            function, PEOPLE, given
        )


def test_other_types() -> None:
    text = refused(anonspark.distribute, PEOPLE, None)
    assert text == "plan: found NoneType. Expected a mapping, as the YAML file holds it"
    text = refused(anonspark.anonymize, PEOPLE, quasi_identifiers=["age"], model=5, **ARGUMENTS)
    assert text.startswith("model: found int. Expected the name of a model")
    text = refused(anonspark.verify, PEOPLE, quasi_identifiers=["age"], k=2.5)
    assert text == "k: found 2.5. Expected a whole number of at least 2"


@cases(__file__, "wrong", "told")
def test_numbers_of_a_profile(wrong: dict[str, Any], told: str) -> None:
    assert refused(anonspark.profile, PEOPLE, progress=False, **wrong).startswith(told)


def test_keywords_beside_a_configuration() -> None:
    config = {"attributes": {"age": "quasi_identifier"}, "privacy": {"k": 5}}
    expected = (
        ": found together with a configuration, which says the same. Leave one of the two out"
    )
    assert refused(anonspark.anonymize, PEOPLE, config, seed=3) == f"seed{expected}"
    text = refused(anonspark.anonymize, PEOPLE, config, k=5, sensitive=["sex"])
    assert text == f"k, sensitive{expected}"
    assert refused(anonspark.verify, PEOPLE, config, k=5) == f"k{expected}"
    with anonspark.anonymize(PEOPLE, config, progress=False) as release:
        text = refused(anonspark.verify, release, k=10)
        assert text.startswith("k: found for a release with a manifest")
        text = refused(anonspark.verify, release, quasi_identifiers=["age"])
        assert text.startswith("quasi_identifiers: found for a release with a manifest")


def test_releases_together() -> None:
    ages, sexes = {"quasi_identifiers": ["age"]}, {"quasi_identifiers": ["sex"]}
    with (
        anonspark.anonymize(PEOPLE, **ages, **ARGUMENTS) as one,
        anonspark.anonymize(PEOPLE, **sexes, **ARGUMENTS) as other,
    ):
        text = refused(anonspark.verify_together, [one])
        assert text == "releases: found one release. Expected at least two"
        text = refused(anonspark.verify_together, [one, one])
        assert text.startswith(f"releases: found {one.path} twice")
        for wrong in (0, 2.5):
            text = refused(anonspark.verify_together, [one, other], joint_k=wrong)
            assert text == f"joint_k: found {wrong}. Expected a whole number of at least 2"
        found = anonspark.verify_together([one, other])
        assert "Say same_people=True or inside=True if" in " ".join(found.warnings)
        found = anonspark.verify_together([one, other], same_people=True, original=PEOPLE)
        assert found.pairs[0].original is not None
        assert found.pairs[0].original.records == ROWS
        assert found.releases[0].truthfulness is not None
        shown = repr(found)
        assert shown.startswith("Releases together: ")
        assert len(shown.splitlines()) <= 25
        assert "pairs of classes that may share a person" in found._repr_html_()
