"""Keywords instead of a configuration, tables of other libraries, and paths beside tables."""

from __future__ import annotations

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
