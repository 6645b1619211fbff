"""What arguments and keywords may be, and what is said of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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
    expected = ": found together with a configuration, which sets them. Leave one of the two out"
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


ROLES: dict[str, Any] = {"quasi_identifiers": ["age"], "insensitive": ["visits"]}


def people() -> pd.DataFrame:
    return pd.DataFrame({"age": [20 + n % 8 for n in range(40)], "visits": [1, 2] * 20})


def test_keywords_say_what_a_configuration_says() -> None:
    config = {
        "attributes": {
            "age": {"role": "quasi_identifier", "grid": "auto"},
            "visits": "insensitive",
        },
        "privacy": {"k": 5},
        "model": {"name": "mondrian"},
        "execution": {"seed": 7},
    }
    with (
        anonspark.anonymize(people(), config) as said,
        anonspark.anonymize(people(), k=5, model="mondrian", seed=7, **ROLES) as given,
    ):
        assert given.data.equals(said.data)
        configurations = [dict(one.manifest["configuration"]) for one in (said, given)]
        assert [one.pop("output")["path"] for one in configurations] == [said.path, given.path]
        assert configurations[0] == configurations[1]


def test_keywords_of_other_tools(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("".join(f"{age};all\n" for age in range(20, 28)))
    config = {
        "attributes": {
            "age": {"role": "quasi_identifier", "hierarchy": str(tmp_path / "age.csv")},
            "visits": "sensitive",
        },
        "privacy": {"k": 5, "t_closeness": [{"attribute": "visits", "t": 0.25}]},
        "model": {"name": "full-domain", "suppression_limit": 0.5},
        "execution": {"seed": 7},
    }
    with (
        anonspark.anonymize(people(), config) as said,
        anonspark.anonymize(
            people(),
            k=5,
            quasi_identifiers=["age"],
            sensitive=["visits"],
            l=None,
            t=np.float32(0.25),
            suppression_limit=0.5,
            hierarchies={"age": tmp_path / "age.csv"},
            model="full-domain",
            seed=7,
        ) as given,
    ):
        assert given.manifest["fingerprints"] == said.manifest["fingerprints"]
        assert given.data.equals(said.data)


@cases(__file__, "name", "remedy")
def test_unknown_keywords(name: str, remedy: str) -> None:
    """It is an error of ours, and the one that Python has for it."""
    with pytest.raises(ConfigurationError) as caught:
        anonspark.anonymize(people(), k=5, **{name: 3})  # type: ignore[arg-type]
    assert isinstance(caught.value, TypeError)
    assert str(caught.value).startswith(f"anonymize: found the unknown keyword '{name}'. {remedy}")


def test_head_shows_different_classes() -> None:
    with anonspark.anonymize(pl.from_pandas(people()), k=5, **ROLES) as release:
        classes = set(release.data["age"])
        assert len(classes) > 2
        assert release.head(1000)["age"].sort().to_list() == sorted(classes)
        assert release.head(2).equals(release.head(1000).head(2))
        with pytest.raises(TypeError, match=r"Release\.verify: .* Did you mean 'original'\?$"):
            release.verify(orignal=people())


def test_no_seed_is_one_that_nobody_knows() -> None:
    with anonspark.anonymize(people(), k=5, **ROLES) as release:
        assert "seed" not in " ".join(one["code"] for one in release.manifest["warnings"])


@cases(__file__, "given", "message")
def test_wrong_keywords(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        anonspark.anonymize(people(), **given)


def test_a_grid_and_keywords() -> None:
    grid = {
        "base": {"attributes": {"age": "quasi_identifier"}, "privacy": {"k": 2}},
        "axes": {"privacy.k": [2, 4]},
    }
    found = anonspark.compare(people(), grid)
    assert [row["k"] for row in found.rows] == [2, 4]
    assert [row["k"] for row in found.best] == [2, 4]
    tried = anonspark.compare(people(), grid["base"])
    assert tried.advice is not None
    assert {row["k"] for row in tried.rows} == {2, 4, 10}
    assert tried.advice.sentence.split()[0] in repr(tried)
    with pytest.raises(ConfigurationError, match="found together with a grid"):
        anonspark.compare(people(), grid, k=[2])
    with pytest.raises(ConfigurationError, match=r"^k: it is missing"):
        anonspark.compare(people(), quasi_identifiers=["age"])


def test_tables_of_other_libraries() -> None:
    table = pl.from_pandas(people())
    with anonspark.anonymize(table.lazy(), k=5, seed=7, **ROLES) as release:
        expected = release.to_arrow()
        assert isinstance(release.data, pl.DataFrame)
        assert release.verify(original=table.lazy()).holds
        assert release.to_polars().equals(release.data)
        assert pa.Table.from_pandas(release.to_pandas(), preserve_index=False).equals(
            expected.replace_schema_metadata(release.to_arrow().schema.metadata)
        )
    # Of a connection of its own: the default one is shared with all tests of the process.
    relation = duckdb.connect().from_arrow(table.to_arrow())
    with anonspark.anonymize(relation, k=5, seed=7, **ROLES) as release:
        assert isinstance(release.data, pa.Table)
        assert release.data.equals(expected)


def test_paths_do_as_well(tmp_path: Path) -> None:
    people().to_parquet(tmp_path / "people.parquet")
    path = tmp_path / "people.parquet"
    with anonspark.anonymize(people(), k=5, **ROLES) as release:
        proof = anonspark.verify(release.path, original=str(path))
        assert proof.holds
        assert proof.truthfulness is not None
        assert anonspark.verify(release, original=path).truthfulness == proof.truthfulness
        assert anonspark.verify(release, original=people()).truthfulness == proof.truthfulness
        from_path = anonspark.evaluate(release.path, path)
        assert from_path.workload == anonspark.evaluate(release, people()).workload
        page = anonspark.report(release, tmp_path / "report.html", original=path)
        assert (tmp_path / "report.html").read_text() == page.html
        with pytest.raises(ConfigurationError, match="found a table together with the directory"):
            anonspark.verify(release.path, original=people())
        with pytest.raises(ConfigurationError, match="found a path together with a table"):
            anonspark.verify(people(), quasi_identifiers=["age"], original=str(path))


def test_messages_name_arguments(tmp_path: Path) -> None:
    with anonspark.anonymize(people(), k=5, **ROLES) as release:
        with pytest.raises(ConfigurationError, match=r"^target: 'age' is not published as it is"):
            anonspark.evaluate(release, people(), target="age")
        with pytest.raises(ConfigurationError, match=r"^holdout: .*what to learn: target$"):
            anonspark.evaluate(release, people(), holdout=people())
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(ConfigurationError, match=r"^path: what is at .* is not a report"):
            anonspark.report(release, str(tmp_path / "notes.txt"))
        with pytest.raises(ConfigurationError, match=r"^target: found no original. "):
            anonspark.report(release, target="visits")


@pytest.mark.parametrize("one", [5, None, pd.DataFrame({"age": [20]})])
def test_what_is_no_release_is_told_with_its_type(one: Any) -> None:
    message = rf"^release: found an object of the type {type(one).__name__}. Expected what anonspar"
    for function in (anonspark.report, lambda given: anonspark.evaluate(given, people())):
        with pytest.raises(ConfigurationError, match=message):
            function(one)


def test_equal_calls_have_equal_fingerprints() -> None:
    """Where a release is kept was drawn, and is no part of what was asked for."""
    table = people()
    asked: dict[str, Any] = {"k": 5, "quasi_identifiers": ["age"], "seed": 7}
    with (
        anonspark.anonymize(table, **asked) as first,
        anonspark.anonymize(table, **asked) as second,
    ):
        assert first.path != second.path
        assert first.manifest["fingerprints"] == second.manifest["fingerprints"]
    with anonspark.anonymize(table, **{**asked, "k": 6}) as other:
        told = "configuration"
        assert first.manifest["fingerprints"][told] != other.manifest["fingerprints"][told]
