"""Verifying releases of this and of other tools, alone and together: faults and exit codes."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from cases import cases
from commands import Cli
from forgeries import save_table
from helpers import configuration_file, published, write_table
from pycanon import anonymity
from release_folders import list_files

import anonspark
from anonspark.cli.application import main
from anonspark.config import parse_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.errors import ConfigurationError
from anonspark.pipeline.preparing import prepare
from anonspark.pipeline.run import run
from anonspark.verification.result import Verification

# section 2 of shared/spec/linkage-fixture.md
PEOPLE = """\
sex,age,marital,disease
M,20,Single,HIV
M,24,Single,Hepatitis
M,28,Married,HIV
M,32,Married,Ulcer
M,36,Married,Asthma
F,20,Single,HIV
F,24,Single,Ulcer
F,28,Married,Hepatitis
F,32,Married,HIV
F,36,Married,Asthma
"""
ANONYMOUS = """\
sex,age,marital,disease
*,20-28,Single,HIV
*,20-28,Single,Hepatitis
M,28-36,Married,HIV
M,28-36,Married,Ulcer
M,28-36,Married,Asthma
*,20-28,Single,HIV
*,20-28,Single,Ulcer
F,28-36,Married,Hepatitis
F,28-36,Married,HIV
F,28-36,Married,Asthma
"""
ATTACKER = """\
name,sex,age,postal
Erhan Dogru,M,20,16001
Hakan Soner,M,24,47001
Necmi Yazgi,M,28,49001
Yusuf Katar,M,32,06001
Ali Durmus,M,36,32001
Eda Tok,F,20,16001
Yesim Guler,F,36,147001
Sevgi Celik,F,48,25001
"""
NOT_ANONYMOUS = """\
sex,age,postal,disease
M,28,49001,HIV
M,32,06001,Ulcer
M,36,32001,Asthma
F,20,16001,HIV
F,24,47001,Ulcer
F,28,49001,Hepatitis
"""
ROLES = ("--quasi-identifier", "sex", "--quasi-identifier", "age")
OF_PEOPLE = (*ROLES, "--quasi-identifier", "marital", "--sensitive", "disease")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write the tables of the fixture."""
    for name, text in {
        "people": PEOPLE,
        "anonymous": ANONYMOUS,
        "attacker": ATTACKER,
        "raw": NOT_ANONYMOUS,
    }.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def test_the_anonymizer_is_not_trusted() -> None:
    """Verifying loads nothing that anonymizes: no layer, no model, none of their kernels."""
    code = (
        "import sys, anonspark.verification.audit; "
        "print(*(name for name in sys.modules if name.startswith('anonspark.')))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    anonymizing = ("layers", "models", "pipeline", "staged", "kernels")
    modules = ("", ".box_tree", ".built", ".compiling")
    modules += (".region_search", ".signatures", ".xxhash")
    needed = {f"anonspark.kernels{name}" for name in modules}
    found = [name for name in loaded if name.split(".")[1] in anonymizing]
    assert set(found) <= needed


def test_a_release_of_another_tool(files: Path, cli: Cli) -> None:
    outcome = cli.ends(
        0,
        *("verify", files / "anonymous.csv", *OF_PEOPLE, "--k", "3", "--json"),
        *("--original", files / "people.csv"),
    )
    found = json.loads(outcome.out)
    assert found["holds"]
    assert found["sizes"] == [[3, 2], [4, 1]]
    assert found["truthfulness"]["matched"] == 10
    assert found["linkage"]["original"]["smallest_candidates"] == 3
    (disease,) = found["sensitive"]
    assert (disease["distinct"], disease["homogeneous_classes"]) == (3, 0)
    # The class of four: twice HIV, Hepatitis, Ulcer. In the whole table 4, 2, 2, 2 of 10.
    assert disease["largest_share"] == 0.5
    risk = {row["attacker"]: row for row in found["risk"]}
    assert risk["prosecutor"]["highest"] == pytest.approx(1 / 3)
    assert risk["marketer"]["average"] == pytest.approx(3 / 10)
    # k = 4 is more than it has.
    outcome = cli.ends(4, "verify", files / "anonymous.csv", *OF_PEOPLE, "--k", "4")
    assert "the smallest class of the release has 3 records, expected at least k = 4" in outcome.err


OF_ARX = """\
age,sex,diagnosis,cost,person
20-30,m,flu,10,a
20-30,m,cold,20,b
20-30,m,flu,30,c
*,*,gout,70,d
30-40,f,cold,30,e
30-40,f,flu,20,f
30-40,f,gout,20,f
"""


def test_options_say_what_a_configuration_says(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "arx.csv").write_text(OF_ARX)
    (tmp_path / "missing.csv").write_text(OF_ARX.replace("*,*", ","))
    sensitive = ("--sensitive", "diagnosis", "--sensitive", "cost")

    def verified(*options: object, table: str = "arx") -> tuple[int, str, dict[str, Any]]:
        outcome = cli("verify", tmp_path / f"{table}.csv", *ROLES, *sensitive, *options, "--json")
        return outcome.code, outcome.err, json.loads(outcome.out)

    code, error, found = verified("--k", "3")
    assert (code, found["rows"], found["unique_records"], found["suppressed"]) == (4, 7, 1, None)
    for table, text in (("arx", "*"), ("missing", "")):
        code, error, found = verified(
            *("--k", "3", "--l", "2", "--t", "0.3", "--suppressed", text), table=table
        )
        assert code == 0, error
        assert (found["rows"], found["suppressed"], found["sizes"]) == (6, 1, [[3, 2]])
        measured = {(one["attribute"], one["criterion"]): one for one in found["criteria"]}
        assert measured["diagnosis", "distinct"]["measured"] == 2
        # Twice flu and a cold, beside 3, 2 and 2 of 7: the suppressed record counts there.
        distance = measured["diagnosis", "equal distance"]["measured"]
        assert distance == pytest.approx(2 / 3 - 3 / 7 + 1 / 3 - 2 / 7)
        # 10, 20, 30 and 70 in steps of a third.
        steps = abs(1 / 3 - 1 / 7) + abs(2 / 3 - 4 / 7) + abs(1 - 6 / 7)
        assert measured["cost", "ordered distance"]["measured"] == pytest.approx(steps / 3)
    code, error, _ = verified("--l", "3", "--t", "0.2", "--suppressed", "*")
    assert (code, error.count("violate distinct l-diversity")) == (4, 2)
    assert "equal distance" in error
    code, error, found = verified("--k", "3", "--suppressed", "*", "--unit", "person")
    assert (code, found["units"]["fewest"]) == (4, 2)
    code, error, found = verified("--k", "3", "--suppressed", "none")
    assert (code, found["suppressed"], found["unique_records"]) == (4, 0, 1)


@cases(__file__, "options", "told")
def test_options_that_require_nothing(
    options: tuple[str, ...], told: str, files: Path, cli: Cli
) -> None:
    cli.ends(2, "verify", files / "anonymous.csv", *ROLES, *options, says=told)


def test_linkage_before_and_after(files: Path, cli: Cli) -> None:
    attacker = ("--population", files / "attacker.csv", "--json")
    of_raw = (*ROLES, "--quasi-identifier", "postal")
    outcome = cli("verify", files / "raw.csv", *of_raw, "--k", "1", *attacker)
    assert (outcome.code, "k: found 1, which every table keeps" in outcome.err) == (2, True)
    outcome = cli("verify", files / "raw.csv", *of_raw, "--k", "2", *attacker)
    before = json.loads(outcome.out)
    assert outcome.code == 4, outcome.err
    assert before["linkage"]["population"]["re_identified"] == 4
    assert before["unique_records"] == 6
    outcome = cli("verify", files / "anonymous.csv", *ROLES, "--k", "3", *attacker)
    after = json.loads(outcome.out)
    assert outcome.code == 0, outcome.err
    assert after["linkage"]["population"]["re_identified"] == 0
    assert after["linkage"]["population"]["fewer_than_k"] == 0


def test_a_homogeneous_class(files: Path, cli: Cli) -> None:
    lines = ANONYMOUS.splitlines(keepends=True)
    sick = [
        line.rsplit(",", 1)[0] + ",Hepatitis\n" if line.startswith("M,28-36") else line
        for line in lines
    ]
    (files / "homogeneous.csv").write_text("".join(sick))
    config = configuration_file(
        files,
        attributes={
            **dict.fromkeys(("sex", "age", "marital"), "quasi_identifier"),
            "disease": "sensitive",
        },
        privacy={"k": 3, "l_diversity": {"attribute": "disease", "l": 2}},
    )
    outcome = cli.ends(4, "verify", files / "homogeneous.csv", "--config", config, "--json")
    assert "1 of 3 classes of the release, with 3 records, violate distinct" in outcome.err
    assert "Hepatitis" not in outcome.err
    (disease,) = json.loads(outcome.out)["sensitive"]
    assert (disease["homogeneous_classes"], disease["homogeneous_records"]) == (1, 3)
    assert disease["recursive"] is None
    cli.ends(0, "verify", files / "anonymous.csv", "--config", config)
    # Told in words, too.
    options = (*OF_PEOPLE, "--k", "3", "--details")
    outcome = cli.ends(0, "verify", files / "homogeneous.csv", *options)
    assert "homogeneous classes" in outcome.out


def test_wrong_use(files: Path, cli: Cli) -> None:
    outcome = cli.ends(3, "verify", files / "anonymous.csv", says="no manifest.json there")
    assert "--quasi-identifier" in outcome.err
    config = configuration_file(files, attributes={"sex": "quasi_identifier"})
    outcome = cli.ends(2, "verify", files / "anonymous.csv", "--config", config, "--k", "3")
    assert "found together with --config" in outcome.err
    outcome = cli.ends(3, "verify", files / "anonymous.csv", *OF_PEOPLE, "--original", "none")
    assert "--original: none is not there" in outcome.err
    outcome = cli.ends(
        3, "verify", files / "anonymous.csv", *OF_PEOPLE, "--original", files / "attacker.csv"
    )
    assert "lacks the columns 'marital'" in outcome.err


QUASI_IDENTIFIERS = ["age", "pay", "town"]


def raw_people(count: int, seed: int) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": generator.integers(18, 90, count),
            "pay": generator.integers(10, 99, count),
            "town": generator.choice(["Ash", "Birch", "Elm"], count),
            "sickness": generator.choice(["flu", "gout", "mumps", "none"], count),
            "cost": generator.integers(0, 7, count) * 10,
        }
    )


def coarsened(raw: pd.DataFrame, age: int, pay: int, *, town: bool) -> pd.DataFrame:
    """Anonymize as a tool would that knows fixed intervals only."""

    def interval(values: pd.Series[int], width: int) -> pd.Series[str]:
        low = values // width * width
        return low.astype(str) + "-" + (low + width - 1).astype(str)

    return raw.assign(
        age=interval(raw["age"], age),
        pay=interval(raw["pay"], pay),
        town=raw["town"] if town else "*",
    )


def agree_with_pycanon(release: pd.DataFrame, found: Verification) -> None:
    """Compare k, l, t, alpha, beta. (pycanon's c of recursive diversity takes the rarest value.)"""
    keys = QUASI_IDENTIFIERS
    sickness, cost = found.sensitive
    assert found.published.smallest == anonymity.k_anonymity(release, keys)
    for figures in (sickness, cost):
        name = [figures.attribute]
        assert figures.worst["distinct"] == anonymity.l_diversity(release, keys, name)
        # It rounds down, 2.9999999 to 2, too.
        assert anonymity.entropy_l_diversity(release, keys, name) in {
            math.floor(figures.worst["entropy"] - 1e-9),
            math.floor(figures.worst["entropy"] + 1e-9),
        }
        alpha, _ = anonymity.alpha_k_anonymity(release, keys, name)
        beta = anonymity.basic_beta_likeness(release, keys, name)
        assert figures.worst["relative_gain"] == pytest.approx(beta, abs=1e-9)
        assert figures.worst["largest_share"] == pytest.approx(alpha, abs=1e-12)
    equal = anonymity.t_closeness(release, keys, ["sickness"])
    assert sickness.worst["equal_distance"] == pytest.approx(equal, abs=1e-12)
    assert "ordered_distance" not in sickness.worst
    ordered = anonymity.t_closeness(release, keys, ["cost"])
    assert cost.worst["ordered_distance"] == pytest.approx(ordered, abs=1e-12)


def verified(release: pd.DataFrame, raw: pd.DataFrame) -> Verification:
    return anonspark.verify(
        release,
        quasi_identifiers=QUASI_IDENTIFIERS,
        sensitive=["sickness", "cost"],
        k=2,
        original=raw,
    )


@cases(__file__, "age", "pay", "town", "seed")
def test_figures_agree_with_pycanon(age: int, pay: int, town: bool, seed: int) -> None:
    raw = raw_people(300, seed)
    release = coarsened(raw, age, pay, town=town)
    found = verified(release, raw)
    agree_with_pycanon(release, found)
    # Coarse as they are, they tell the truth.
    assert found.truthfulness is not None
    assert found.truthfulness.holds
    assert found.truthfulness.matched == 300


@pytest.mark.parametrize("model", ["su-mondrian", "microaggregation"])
def test_figures_of_runs_agree_with_pycanon(tmp_path: Path, model: str) -> None:
    raw = raw_people(400, 8)
    attributes: dict[str, Any] = {
        "age": "quasi_identifier",
        "pay": "quasi_identifier",
        "town": {"role": "quasi_identifier", "order": ["Ash", "Birch", "Elm"]},
        "sickness": "sensitive",
        "cost": "sensitive",
    }
    config = {"attributes": attributes, "privacy": {"k": 5}, "model": {"name": model}}
    with anonspark.anonymize(raw, config, staging=str(tmp_path / "staging")) as made:
        agree_with_pycanon(made.data, made.verify())


def test_a_manifest_knows_its_records(tmp_path: Path, cli: Cli) -> None:
    raw = raw_people(100, 10)
    write_table(tmp_path / "input.parquet", {name: raw[name].tolist() for name in raw})
    config = configuration_file(
        tmp_path,
        attributes={"age": "quasi_identifier", "pay": "quasi_identifier", "cost": "insensitive"},
        gates={"gcp": {"max": 0.9}, "attributes.age.ncp": {"max": 0.9}},
    )
    cli.ends(0, "run", config)
    release = tmp_path / "release"
    manifest = json.loads((release / "manifest.json").read_text())
    assert [gate["metric"] for gate in manifest["gates"]] == ["gcp", "attributes.age.ncp"]
    outcome = cli.ends(0, "verify", release, "--original", tmp_path / "input.parquet")
    assert "All criteria hold" in outcome.out
    assert "original   100 of 100 records found in the release" in outcome.out
    assert len(outcome.out.splitlines()) <= 10
    details = cli("verify", release, "--details")
    assert "\nClaimed by the run, not proven\n" in details.out
    assert re.search(r"^accepted average +0\.1000 ", details.out, re.M)
    assert max(map(len, details.out.splitlines())) <= 140
    # Of another table it is not known that the release was changed.
    write_table(tmp_path / "other.parquet", {name: raw[name].tolist()[:60] for name in raw})
    outcome = cli.ends(4, "verify", release, "--original", tmp_path / "other.parquet")
    assert "Check that the original is the table that the release was made of" in outcome.err
    page = tmp_path / "other.html"
    options = ("--original", tmp_path / "other.parquet", "--out", page)
    cli.ends(0, "report", release, *options)
    assert "The release was not shown to be true" in page.read_text()
    assert re.search(r"[\d,]+ published records</td>", page.read_text())
    # Outside of a gate nothing is published, and all that is wrong is said.
    gates = ("gates.gcp.max=0.001", "gates.classes.min=1000", 'gates."risk.marketer.average".max=0')
    changes = [part for gate in gates for part in ("--set", gate)]
    outcome = cli.ends(4, "run", config, "--set", f"output.path={tmp_path / 'other'}", *changes)
    assert "gates.gcp: found 0." in outcome.err
    assert "expected at least 1000" in outcome.err
    assert "gates.risk.marketer.average: found" in outcome.err
    assert not (tmp_path / "other").exists()
    # A release that says what it promises is not to be asked for less.
    cli.ends(2, "verify", release, "--k", "2", says="found for a release with a manifest")
    # A record that was changed behind the manifest's back.
    table = published(release).to_pandas()
    table.loc[0, "cost"] += 1
    changed = pa.Table.from_pandas(table, schema=published(release).schema)
    save_table(release, "data", changed)
    list_files(release)
    outcome = cli.ends(4, "verify", release, "--json")
    assert "its records are not those that were published" in outcome.err
    assert not json.loads(outcome.out)["holds"]


def test_classes_are_formed_by_what_is_written(tmp_path: Path, cli: Cli) -> None:
    """01234 and 1234 are two codes."""
    (tmp_path / "codes.csv").write_text("code,low_min,low_max,x\n01234,1,2,a\n1234,1,2,b\n")
    options = ("--quasi-identifier", "code", "--quasi-identifier", "low", "--json")
    outcome = cli.ends(4, "verify", tmp_path / "codes.csv", *options)
    assert json.loads(outcome.out)["unique_records"] == 2


def test_columns_that_must_not_be_there() -> None:
    table = pa.table({"age": [30] * 5, "sickness": ["flu"] * 5, "ssn": ["S1"] * 5})
    config: dict[str, Any] = {
        "attributes": {"age": "quasi_identifier", "sickness": "insensitive"},
        "privacy": {"k": 5},
    }
    assert anonspark.verify(table.drop_columns(["ssn"]), config).holds
    (failure,) = anonspark.verify(table, config).failures
    assert "publishes the columns 'ssn', which are identifiers or are not listed" in failure
    config["attributes"]["ssn"] = "identifier"
    assert not anonspark.verify(table, config).holds


def test_a_population_is_never_skipped(tmp_path: Path) -> None:
    write_table(tmp_path / "people.parquet", {"age": [30] * 10})
    table = pa.table({"age": [30] * 5})
    ages = {"role": "quasi_identifier", "hierarchy": {"intervals": [10]}}
    model = {"name": "full-domain", "levels": [{"age": 0}], "suppression_limit": 0.0}
    config: dict[str, Any] = {"attributes": {"age": ages}, "model": model}
    presence = {"population": str(tmp_path / "people.parquet"), "max": 0.4}
    privacy = {"k": 5, "delta_presence": presence}
    (failure,) = anonspark.verify(table, {**config, "privacy": privacy}).failures
    assert "for 10 of 10 records of the population" in failure
    presence["max"] = 0.5
    assert anonspark.verify(table, {**config, "privacy": privacy}).holds


def test_one_value_written_in_two_ways() -> None:
    table = pa.table(
        {"age": [30, 30, 30, 40, 40], "severity": ["low", "low ", " low", "low", "high"]}
    )
    config = {
        "attributes": {
            "age": "quasi_identifier",
            "severity": {"role": "sensitive", "order": ["low", "high"]},
        },
        "privacy": {"k": 2, "l_diversity": {"attribute": "severity", "l": 2}},
    }
    found = anonspark.verify(table, config)
    assert found.criteria[0].violating_records == 3
    assert found.sensitive[0].homogeneous_classes == 1


def test_a_snapshot_of_something_else(engine: LocalEngine, tmp_path: Path) -> None:
    path = write_table(tmp_path / "in.parquet", {"age": [1, 1, 2, 2]})
    document = {
        "input": {"path": str(path)},
        "attributes": {"age": "quasi_identifier"},
        "privacy": {"k": 2},
        "output": {"path": str(tmp_path / "out")},
    }
    snapshot = prepare(engine, parse_configuration(document), str(tmp_path / "staging"))
    other = parse_configuration({**document, "missing": "category"})
    with pytest.raises(ConfigurationError, match="found others than those that the records were"):
        run(engine, other, snapshot=snapshot)
    same = parse_configuration({**document, "model": {"name": "canon"}})
    assert run(engine, same, snapshot=snapshot).summary["classes"] == 2


# Nobody else has these values.
PLANTED = "planted disease"


def people(count: int = 80) -> pa.Table:
    random = np.random.default_rng(11)
    diseases = random.choice(["flu", "gout", "mumps"], count).tolist()
    diseases[0] = PLANTED
    return pa.table(
        {
            "age": random.integers(20, 60, count),
            "size": random.integers(150, 200, count),
            "town": random.choice(["Adana", "Bursa"], count),
            "disease": diseases,
        }
    )


ROLES_OF_BOTH = {
    "first": {"age": "quasi_identifier", "size": "quasi_identifier", "disease": "sensitive"},
    "second": {"age": "quasi_identifier", "town": "quasi_identifier", "disease": "sensitive"},
}


def run_release(folder: Path, name: str, table: pa.Table, **sections: Any) -> Path:
    """Make a release of a table of its own."""
    own = folder / name
    source = write_table(own / "input.parquet", table)
    defaults: dict[str, Any] = {
        "attributes": ROLES_OF_BOTH.get(name, ROLES_OF_BOTH["first"]),
        "privacy": {"k": 4},
    }
    config = configuration_file(own, input={"path": str(source)}, **(defaults | sections))
    assert main(["run", str(config), "--no-progress"]) == 0
    return own / "release"


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("together")
    table = people()
    made = {name: run_release(folder, name, table) for name in ROLES_OF_BOTH}
    made["part"] = run_release(folder, "part", table.slice(5))
    made["other types"] = run_release(
        folder,
        "other-types",
        table.set_column(3, "disease", pa.array(range(len(table)))),
        attributes=ROLES_OF_BOTH["second"],
    )
    made["means"] = run_release(folder, "means", table, output={"style": "mean"})
    made["bounds"] = run_release(
        folder, "bounds", table, output={"style": "bounds"}, attributes=ROLES_OF_BOTH["second"]
    )
    made["original"] = folder / "first" / "input.parquet"
    return made


def test_two_releases(releases: dict[str, Path], cli: Cli) -> None:
    first, second = releases["first"], releases["second"]
    arguments = ("verify", first, "--with", second, "--same-people", "--joint-k", 4, "--json")
    outcome = cli(*arguments)
    found = json.loads(outcome.out)
    (pair,) = found["pairs"]
    assert [one["holds"] for one in found["releases"]] == [True, True]
    assert (pair["relation"], pair["k"]) == ("same people", 4)
    assert (pair["common"], pair["payload"]) == (["age"], ["disease"])
    assert pair["breaches"] > 0
    assert (outcome.code, found["holds"]) == (4, False)
    assert f"{pair['breaches']:,} pairs of classes certainly hold" in outcome.err
    outcome = cli.ends(4, *arguments, "--original", releases["original"])
    told = json.loads(outcome.out)["pairs"][0]["original"]
    assert told["records"] == told["matched"] == 80
    assert 0 < told["persons_below_k"] <= 80
    assert PLANTED not in outcome.out + outcome.err
    outcome = cli.ends(0, *arguments[:-2], 2)
    assert "All criteria hold, of each release and of every two together" in outcome.out
    assert PLANTED not in outcome.out + outcome.err


def test_the_style_is_of_no_account(releases: dict[str, Path], cli: Cli) -> None:
    told = []
    for second in ("second", "bounds"):
        outcome = cli("verify", releases["first"], "--with", releases[second], "--same-people",
            "--json",
        )  # fmt: skip
        (pair,) = json.loads(outcome.out)["pairs"]
        told.append({name: one for name, one in pair.items() if isinstance(one, int)})
    assert told[0] == told[1]


def test_nobody_says_who_is_there(releases: dict[str, Path], cli: Cli) -> None:
    outcome = cli.ends(0, "verify", releases["first"], "--with", releases["second"])
    assert "it is unknown whether their people are the same" in outcome.err
    assert "The files do not decide it: --original or the ledger does" in outcome.err


def test_the_same_input_and_attributes_are_the_same_people(
    releases: dict[str, Path], tmp_path: Path, cli: Cli
) -> None:
    config = configuration_file(
        tmp_path,
        input={"path": str(releases["original"])},
        attributes=ROLES_OF_BOTH["first"],
        privacy={"k": 7},
    )
    assert main(["run", str(config), "--no-progress"]) == 0
    outcome = cli("verify", releases["first"], "--with", tmp_path / "release", "--json")
    (pair,) = json.loads(outcome.out)["pairs"]
    assert (pair["relation"], pair["k"]) == ("same people", 4)


def test_three_releases(releases: dict[str, Path], cli: Cli) -> None:
    outcome = cli("verify", releases["first"], "--with", releases["second"], "--with",
        releases["part"], "--inside", "--original", releases["original"], "--json",
    )  # fmt: skip
    found = json.loads(outcome.out)
    relations = [pair["relation"] for pair in found["pairs"]]
    assert relations == ["second inside first"] * 3
    # What holds a part of the people only is not compared with all of them.
    assert found["releases"][2]["truthfulness"] is None
    assert len(found["releases"]) == len(found["pairs"]) == 3


def test_verify_with_refuses_contradicting_options(
    releases: dict[str, Path], tmp_path: Path, cli: Cli
) -> None:
    first, second = releases["first"], releases["second"]

    def refused(code: int, text: str, *arguments: object) -> None:
        outcome = cli.ends(code, "verify", first, *arguments, says=text)
        assert PLANTED not in outcome.err

    refused(2, "twice", "--with", f"{first}/")
    refused(2, "found both", "--with", second, "--same-people", "--inside")
    refused(2, "found without --with", "--same-people")
    refused(2, "found without --with", "--joint-k", 3)
    refused(2, "--joint-k: found 0", "--with", second, "--joint-k", 0)
    refused(2, "output.style: 'mean'", "--with", releases["means"], "--same-people")
    refused(3, "column 'disease' has type", "--with", releases["other types"], "--same-people")
    refused(3, "do not hold the same people", "--with", releases["part"], "--same-people")
    table = tmp_path / "table.csv"
    pyarrow.csv.write_csv(people().select(["age", "town", "disease"]), table)
    roles = ("--quasi-identifier", "age", "--quasi-identifier", "town")
    refused(2, "without a manifest", "--with", table, *roles)
    refused(3, "none of the quasi-identifiers", "--with", table, "--quasi-identifier", "pay")


def test_a_copy_is_the_same_release(releases: dict[str, Path], tmp_path: Path, cli: Cli) -> None:
    shutil.copytree(releases["first"], tmp_path / "copy")
    cli.ends(2, "verify", releases["first"], "--with", tmp_path / "copy", says="is a copy of")


def test_tables_of_other_tools(tmp_path: Path, cli: Cli) -> None:
    """The ten people of the thesis: labels alone show what the values are."""
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    of_men = ["HIV", "Hepatitis", "HIV", "Ulcer", "Asthma"]
    diseases = [*of_men, "HIV", "Ulcer", "Hepatitis", "HIV", "Asthma"]
    lines = [
        ("*,20-28,Single" if i % 5 < 2 else f"{sex},28-36,Married") + f",{diseases[i]}"
        for i, sex in enumerate("MMMMMFFFFF")
    ]
    first.write_text("\n".join(["sex,age,marital,disease", *lines]) + "\n")
    lines = [f"{sex},{diseases[i]}" for i, sex in enumerate("MMMMMFFFFF")]
    second.write_text("\n".join(["sex,disease", *lines]) + "\n")
    roles = [f"--quasi-identifier={name}" for name in ("sex", "age", "marital")]
    words = ("--same-people", "--json")
    outcome = cli.ends(
        4, "verify", first, "--with", second, *roles, "--sensitive", "disease", "--k", 3, *words
    )
    (pair,) = json.loads(outcome.out)["pairs"]
    told = {name: pair[name] for name in ("pairs", "proven", "breaches", "persons_in_breaches")}
    assert told == {"pairs": 4, "proven": 4, "breaches": 2, "persons_in_breaches": 4}


def test_verify_together_takes_paths_and_open_releases(releases: dict[str, Path]) -> None:
    paths = [str(releases["first"]), str(releases["second"])]
    found = anonspark.verify_together(paths, same_people=True, joint_k=4)
    assert not found.holds
    assert found.pairs[0].figures.breaches > 0
    table = people().to_pandas()
    config = {"attributes": ROLES_OF_BOTH["first"], "privacy": {"k": 4}}
    other = {"attributes": ROLES_OF_BOTH["second"], "privacy": {"k": 4}}
    with anonspark.anonymize(table, config) as one, anonspark.anonymize(table, other) as two:
        again = anonspark.verify_together([one, two], same_people=True)
    assert again.pairs[0].figures == found.pairs[0].figures
    with pytest.raises(ConfigurationError, match="found both"):
        anonspark.verify_together(paths, same_people=True, inside=True)
