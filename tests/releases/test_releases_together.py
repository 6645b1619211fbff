"""verify --with on the command line: what is told, exit codes, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from helpers import command, configuration_file, write_table

import anonspark
from anonspark.cli.application import main
from anonspark.errors import ConfigurationError

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


ROLES = {
    "first": {"age": "quasi_identifier", "size": "quasi_identifier", "disease": "sensitive"},
    "second": {"age": "quasi_identifier", "town": "quasi_identifier", "disease": "sensitive"},
}


def run(folder: Path, name: str, table: pa.Table, **sections: Any) -> Path:
    """Make a release of a table of its own."""
    own = folder / name
    source = write_table(own / "input.parquet", table)
    defaults: dict[str, Any] = {"attributes": ROLES.get(name, ROLES["first"]), "privacy": {"k": 4}}
    config = configuration_file(own, input={"path": str(source)}, **(defaults | sections))
    assert main(["run", str(config), "--no-progress"]) == 0
    return own / "release"


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("together")
    table = people()
    made = {name: run(folder, name, table) for name in ROLES}
    made["part"] = run(folder, "part", table.slice(5))
    made["other types"] = run(
        folder,
        "other-types",
        table.set_column(3, "disease", pa.array(range(len(table)))),
        attributes=ROLES["second"],
    )
    made["means"] = run(folder, "means", table, output={"style": "mean"})
    made["bounds"] = run(
        folder, "bounds", table, output={"style": "bounds"}, attributes=ROLES["second"]
    )
    made["original"] = folder / "first" / "input.parquet"
    return made


def test_two_releases(releases: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    first, second = releases["first"], releases["second"]
    arguments = ("verify", first, "--with", second, "--same-people", "--joint-k", 4, "--json")
    outcome = command(capsys, *arguments)
    found = json.loads(outcome.out)
    (pair,) = found["pairs"]
    assert [one["holds"] for one in found["releases"]] == [True, True]
    assert (pair["relation"], pair["k"]) == ("same people", 4)
    assert (pair["common"], pair["payload"]) == (["age"], ["disease"])
    assert pair["breaches"] > 0
    assert (outcome.code, found["holds"]) == (4, False)
    assert f"{pair['breaches']:,} pairs of classes certainly hold" in outcome.err
    outcome = command(capsys, *arguments, "--original", releases["original"])
    assert outcome.code == 4
    told = json.loads(outcome.out)["pairs"][0]["original"]
    assert told["records"] == told["matched"] == 80
    assert 0 < told["persons_below_k"] <= 80
    assert PLANTED not in outcome.out + outcome.err
    outcome = command(capsys, *arguments[:-2], 2)
    assert outcome.code == 0
    assert "All criteria hold, of each release and of every two together" in outcome.out
    assert PLANTED not in outcome.out + outcome.err


def test_the_style_is_of_no_account(
    releases: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    told = []
    for second in ("second", "bounds"):
        outcome = command(
            capsys, "verify", releases["first"], "--with", releases[second], "--same-people",
            "--json",
        )  # fmt: skip
        (pair,) = json.loads(outcome.out)["pairs"]
        told.append({name: one for name, one in pair.items() if isinstance(one, int)})
    assert told[0] == told[1]


def test_nobody_says_who_is_there(
    releases: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = command(capsys, "verify", releases["first"], "--with", releases["second"])
    assert outcome.code == 0
    assert "it is unknown whether their people are the same" in outcome.err
    assert "The files do not decide it: --original or the ledger does" in outcome.err


def test_the_same_input_and_attributes_are_the_same_people(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configuration_file(
        tmp_path,
        input={"path": str(releases["original"])},
        attributes=ROLES["first"],
        privacy={"k": 7},
    )
    assert main(["run", str(config), "--no-progress"]) == 0
    outcome = command(capsys, "verify", releases["first"], "--with", tmp_path / "release", "--json")
    (pair,) = json.loads(outcome.out)["pairs"]
    assert (pair["relation"], pair["k"]) == ("same people", 4)


def test_three_releases(releases: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    outcome = command(
        capsys, "verify", releases["first"], "--with", releases["second"], "--with",
        releases["part"], "--inside", "--original", releases["original"], "--json",
    )  # fmt: skip
    found = json.loads(outcome.out)
    relations = [pair["relation"] for pair in found["pairs"]]
    assert relations == ["second inside first"] * 3
    # What holds a part of the people only is not compared with all of them.
    assert found["releases"][2]["truthfulness"] is None
    assert len(found["releases"]) == len(found["pairs"]) == 3


def test_bad_input(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = releases["first"], releases["second"]

    def refused(code: int, text: str, *arguments: object) -> None:
        outcome = command(capsys, "verify", first, *arguments)
        assert (outcome.code, text in outcome.err) == (code, True), outcome.err
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


def test_a_copy_is_the_same_release(
    releases: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(releases["first"], tmp_path / "copy")
    outcome = command(capsys, "verify", releases["first"], "--with", tmp_path / "copy")
    assert outcome.code == 2
    assert "is a copy of" in outcome.err


def test_tables_of_other_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    outcome = command(
        capsys, "verify", first, "--with", second, *roles, "--sensitive", "disease", "--k", 3,
        "--same-people", "--json",
    )  # fmt: skip
    assert outcome.code == 4
    (pair,) = json.loads(outcome.out)["pairs"]
    told = {name: pair[name] for name in ("pairs", "proven", "breaches", "persons_in_breaches")}
    assert told == {"pairs": 4, "proven": 4, "breaches": 2, "persons_in_breaches": 4}


def test_in_python(releases: dict[str, Path]) -> None:
    paths = [str(releases["first"]), str(releases["second"])]
    found = anonspark.verify_together(paths, same_people=True, joint_k=4)
    assert not found.holds
    assert found.pairs[0].figures.breaches > 0
    table = people().to_pandas()
    config = {"attributes": ROLES["first"], "privacy": {"k": 4}}
    other = {"attributes": ROLES["second"], "privacy": {"k": 4}}
    with anonspark.anonymize(table, config) as one, anonspark.anonymize(table, other) as two:
        again = anonspark.verify_together([one, two], same_people=True)
    assert again.pairs[0].figures == found.pairs[0].figures
    with pytest.raises(ConfigurationError, match="found both"):
        anonspark.verify_together(paths, same_people=True, inside=True)
