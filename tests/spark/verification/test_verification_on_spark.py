"""Releases by Spark: checked, forged, warned of and weighed as this process does."""

from __future__ import annotations

import random
import runpy
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from cases import one_by_day
from commands import Cli
from forgeries import Nothing, check_release, forge, try_forgery, verified
from helpers import configuration_file, metrics, write_files, write_table
from pyspark.sql import SparkSession
from release_folders import list_files, release_of_several_files, write_checksum
from sound_releases import make_release

from anonspark.config import load_configuration, parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.engine.protocol import Engine
from anonspark.engine.spark.engine import SparkEngine
from anonspark.errors import GuaranteeError
from anonspark.pipeline.plan import check_input
from anonspark.pipeline.run import run
from anonspark.release.manifest import read_manifest
from anonspark.verification.audit import audit_release
from anonspark.verification.proof.release_files import audit_release_files
from anonspark.verifier import VERIFIER


@pytest.mark.parametrize("output_format", one_by_day("orc", "parquet"))
def test_it_agrees(
    output_format: str, engine: SparkEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hadoop's checksums lie beside the files: what they hold is computed again."""
    draw = np.random.default_rng(3)
    table = {
        "age": draw.integers(0, 99, 300),
        "town": draw.choice(["a", "b"], 300),
        "illness": draw.choice(["flu", "gout", "mumps"], 300),
    }
    write_table(tmp_path / "input.parquet", table)
    path = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "town": "quasi_identifier", "illness": "sensitive"},
        model={"name": "su-mondrian"},
        privacy={"k": 5, "l_diversity": {"attribute": "illness", "l": 2}},
        output={"format": output_format, "style": "bounds"},
    )
    run(engine, load_configuration(path))
    release = tmp_path / "release"
    assert audit_release(engine, str(release)).failures == []
    paths = [path for path in release.rglob("*") if path.is_file()]
    checksums = {path.name: write_checksum(path) for path in paths}
    check = runpy.run_path(str(release / VERIFIER), run_name="check_release")["main"]
    assert check([str(release)]) == 0, capsys.readouterr().out
    assert "0 classes break" in capsys.readouterr().out
    checksum = checksums[VERIFIER]
    content = checksum.read_bytes()
    checksum.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert check([str(release)]) == 1


def test_a_checksum_that_does_not_fit(engine: SparkEngine, tmp_path: Path) -> None:
    """Hadoop looks, as long as a checksum has the form of one; so nothing can hide in it."""
    release = release_of_several_files(LocalEngine(), tmp_path)
    list_files(release)
    manifest = read_manifest(engine.files, str(release))
    assert audit_release_files(engine, str(release), manifest) == []
    path = release / "data" / "part-10001.parquet"
    chunks = -(-path.stat().st_size // 512)
    wrong = b"crc\0\0\0\2\0" + b"Zebe" * chunks
    path.with_name(f".{path.name}.crc").write_bytes(wrong)
    text = "cannot be read, or not as Hadoop's checksums say: data/part-10001.parquet"
    with pytest.raises(GuaranteeError, match=text):
        audit_release_files(engine, str(release), manifest)


SEEDS = (1, 2, 15, 70)


@pytest.mark.night
def test_forgeries(engine: SparkEngine, tmp_path: Path) -> None:
    sound = [make_release(seed, tmp_path / f"{seed}", engine=engine) for seed in SEEDS]
    for release in sound:
        assert not isinstance(verified(release.path, release.original, engine), str)
        assert not isinstance(verified(release.path, release.original), str)
        assert check_release(release.path) == 0
    holes = []
    for seed in range(200):
        draw = random.Random(seed)  # noqa: S311
        source = draw.choice(sound)
        forged = Path(shutil.copytree(source.path, tmp_path / "forged", symlinks=True))
        try:
            forgery = forge(draw, forged)
            by_spark = seed % 8 == 0
            judge = engine if by_spark else LocalEngine()
            outcome = try_forgery(forgery, forged, source.original, judge)
            if outcome.verdict == "accepted" or not outcome.agrees:
                holes.append(f"{seed}: {source.title}, by Spark: {by_spark}: {outcome}")
        except Nothing:
            continue
        finally:
            shutil.rmtree(forged)
    assert not holes


def test_both_engines_say_the_same(spark: SparkSession, tmp_path: Path, cli: Cli) -> None:
    draw = np.random.default_rng(7)
    town, age = draw.integers(0, 30, 400), draw.integers(18, 90, 400)
    columns = {
        "age": age,
        "town": [f"t{own:02d}" for own in town],
        "group": [("0-4", "5-9", "10-14", "85+")[own % 4] for own in age],
        "seen": [f"{own % 28 + 1:02d}.01.{2000 + own % 9}" for own in age],
        "district": [None if own == 0 else f"d{own * 7 % 30}" for own in town],
        "months": age * 12 + draw.integers(0, 12, 400),
        "illness": draw.choice(["flu", "cold", "none"], 400),
    }
    write_table(tmp_path / "input.parquet", columns)
    roles = dict.fromkeys(("age", "town", "group", "seen"), "quasi_identifier")
    roles |= dict.fromkeys(("district", "months"), "insensitive") | {"illness": "sensitive"}
    path = configuration_file(tmp_path, attributes=roles)
    configuration = load_configuration(path)
    engines = LocalEngine(), SparkEngine(spark)
    said = [
        [one.as_dict() for one in check_input(engine, configuration).warnings] for engine in engines
    ]
    assert said[0] == said[1]
    codes = {(one["code"], one["attribute"]) for one in said[0]}
    assert codes >= {
        *(("gives_away", "district"), ("gives_away", "months")),
        *(("order_of_letters", "group"), ("text_days", "seen")),
    }
    cli.ends(0, "run", path, "--no-progress", "--set", "execution.engine=local")
    found = [
        audit_release(
            engine, str(tmp_path / "release"), original=str(tmp_path / "input.parquet")
        ).linkage_with_values
        for engine in engines
    ]
    assert found[0] == found[1]
    assert found[0]["insensitive"] is not None
    assert found[0]["insensitive"].fewer_than_k > 0


@pytest.mark.parametrize("role", one_by_day("identifier", "insensitive"))
def test_figures_are_those_of_one_process(engine: SparkEngine, tmp_path: Path, role: str) -> None:
    random = np.random.default_rng(3)
    people = {"age": random.integers(18, 80, 600), "w": random.lognormal(3, 1, 600)}
    document = {
        "input": {"path": str(write_files(pa.table(people), tmp_path / "people", 3))},
        "attributes": {"age": "quasi_identifier", "w": role},
        "privacy": {"k": 5},
        "evaluate": {"risk": {"weights": "w"}},
        "execution": {"seed": 2**40 + 1},
    }
    engines: dict[str, Engine] = {"local": LocalEngine(), "spark": engine}
    found = {}
    for name, own in engines.items():
        run(own, parse_configuration(document | {"output": {"path": str(tmp_path / name)}}))
        found[name] = [row | {"run_id": ""} for row in metrics(tmp_path / name, "risk")]
    assert found["spark"] == found["local"]
    assert found["local"][-1]["expected"] > 0
    assert audit_release(engine, str(tmp_path / "local")).failures == []
