"""The verifier that lies in each release: it needs nothing of ours, and agrees with ``verify``."""

from __future__ import annotations

import ast
import hashlib
import json
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest
from cases import data_beside
from commands import Cli, command
from forgeries import read_table, save_table
from helpers import configuration_file, write_table
from holders import anonymize, write_coding
from places import REPOSITORY
from read_releases import RELEASES
from release_folders import (
    damage,
    list_files,
    read_manifest,
    rewrite,
    save_manifest,
    write_checksum,
)

import anonspark.verifier
from anonspark.config import load_configuration
from anonspark.engine.local.engine import LocalEngine
from anonspark.pipeline.run import run
from anonspark.sharing.holders.union import unite
from anonspark.verification.audit import audit_release
from anonspark.verification.result import Verification
from anonspark.verifier import VERIFIER, verifier_text

SOURCE = Path(anonspark.verifier.__file__).parent / VERIFIER
CHECK: dict[str, Any] = runpy.run_path(str(SOURCE), run_name="check_release")

ILLNESSES = ["flu", "asthma", "gout", "ulcer", "none"]
SEVERITIES = ["none", "mild", "severe", "deadly"]

VALUES: dict[str, Any] = {
    "l_diversity": [
        {"attribute": "illness", "l": 3},
        {"attribute": "severity", "kind": "entropy", "l": 1.8},
        {"attribute": "cost", "kind": "recursive", "l": 2, "c": 2.5},
    ],
    "alpha_k_anonymity": {"attribute": "illness", "alpha": 0.6},
}
DISTANCES: dict[str, Any] = data_beside(__file__)["DISTANCES"]
MODELS: dict[str, dict[str, Any]] = {
    "smondrian": {"name": "smondrian"},
    "su-mondrian": {"name": "su-mondrian"},
    "u-canon": {"name": "u-canon"},
    "microaggregation": {"name": "microaggregation"},
    "full-domain": {"name": "full-domain", "suppression_limit": 0.2},
    "rho-gain": {"name": "rho-gain", "rho": 2},
}


def people(rows: int = 300) -> dict[str, Any]:
    draw = np.random.default_rng(5)
    costs = draw.integers(-1, 6, rows).tolist()
    return {
        "age": draw.integers(18, 90, rows),
        "zone": draw.choice(["a", "b", "c"], rows),
        "person": draw.integers(0, rows * 2 // 3, rows),
        "patient": np.arange(rows) % (rows - 20),
        "visit": np.arange(rows),
        "illness": draw.choice(ILLNESSES, rows, p=[0.4, 0.2, 0.2, 0.1, 0.1]),
        "severity": draw.choice(SEVERITIES, rows, p=[0.5, 0.3, 0.15, 0.05]),
        # Missing is a value like others, the last one; -0.0 and 0.0 are one.
        "cost": pa.array([None if one < 0 else one for one in costs], pa.int32()),
        "score": draw.choice([-0.0, 0.0, 1.5, float("nan")], rows),
    }


def configured(folder: Path, **sections: Any) -> Path:
    folder.mkdir()
    write_table(folder / "input.parquet", people())
    (folder / "zones.csv").write_text("a,north,*\nb,north,*\nc,south,*\n")
    return configuration_file(
        folder,
        **{
            "attributes": {
                "age": {"role": "quasi_identifier", "hierarchy": {"intervals": [5, 20]}},
                "zone": {"role": "quasi_identifier", "hierarchy": str(folder / "zones.csv")},
                "person": "identifier",
                "visit": "insensitive",
                "illness": "sensitive",
                "severity": {"role": "sensitive", "order": SEVERITIES},
                "cost": "sensitive",
                "score": "sensitive",
            },
            "privacy": {"k": 4},
        }
        | sections,
    )


Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Make a release under a name, once."""
    folder = tmp_path_factory.mktemp("releases")

    def release(name: str, **sections: Any) -> Path:
        own = folder / name
        if not own.exists():
            run(LocalEngine(), load_configuration(configured(own, **sections)))
        return own / "release"

    return release


@cache
def verified(release: Path) -> Verification:
    return audit_release(LocalEngine(), str(release))


def check(capsys: pytest.CaptureFixture[str], *arguments: Path | str) -> tuple[int, str]:
    """Return the exit code of the file, and what it prints."""
    capsys.readouterr()
    code = CHECK["main"](list(map(str, arguments)))
    return code, capsys.readouterr().out


def require_agreement(capsys: pytest.CaptureFixture[str], release: Path) -> str:
    """Require that a sound release is sound for both, and that both count the same."""
    expected = verified(release)
    assert expected.failures == []
    code, text = check(capsys, release)
    assert code == 0, text
    counted = expected.published
    assert f"\n  {counted.rows:,} records\n" in text
    assert f": {counted.classes:,} classes of {counted.smallest:,} at least" in text
    return text


@pytest.mark.parametrize("name", RELEASES)
def test_every_style(name: str, read_releases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With missing values of every type."""
    require_agreement(capsys, read_releases / name)


@pytest.mark.parametrize(
    ("model", "style", "criteria"),
    [
        # Levels have labels alone. By day one model in all styles, and all models in one.
        *(
            pytest.param(
                *(model, style, VALUES | DISTANCES),
                id=f"{model} {style}",
                marks=() if style == "interval" or model == "su-mondrian" else pytest.mark.night,
            )
            for model in sorted(MODELS.keys() - {"rho-gain"})
            for style in ("interval", "bounds", "mean")[: 1 if model == "full-domain" else 3]
        ),
        # For values it leaves records out that nobody is told of: no distance is known then.
        pytest.param("rho-gain", "interval", VALUES, id="rho-gain values"),
        pytest.param("rho-gain", "interval", DISTANCES, id="rho-gain distances"),
    ],
)
def test_every_criterion_at_the_figure_that_verify_measures(
    model: str, style: str, criteria: dict[str, Any], make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a release has of a criterion is kept, and anything stricter is broken."""
    release = make(
        f"{model} {style} {len(criteria)}",
        model=MODELS[model],
        privacy={"k": 4, **criteria},
        output={"style": style},
    )
    assert verified(release).published.classes > 10
    text = require_agreement(capsys, release)
    opened = CHECK["Release"](str(release), "")
    measured = verified(release).criteria
    assert len(measured) == text.count("0 classes break")
    asked_for = [
        (asked["attribute"], asked.get("kind") or asked.get("distance") or key.split("_")[0], asked)
        for key in ("l_diversity", "t_closeness", "alpha_k_anonymity", "beta_likeness")
        for asked in opened.privacy[key]
    ]
    for one in measured:
        kind = one.criterion.kind.split()[0]
        (asked,) = [own for *about, own in asked_for if about == [one.criterion.attribute, kind]]
        key = next(key for key in ("c", "l", "t", "alpha", "beta") if asked.get(key) is not None)
        if one.measured == float("inf"):
            continue
        is_least = one.criterion.kind in ("distinct", "entropy")
        for step, breaks in ((1e-6, False), (-1e-6, True)):
            asked[key] = one.measured + (-step if is_least else step)
            opened.proven, opened.refused = [], []
            CHECK["check_values"](opened, asked["attribute"], [asked])
            assert bool(opened.refused) == breaks, (asked, one.measured)


ALONE = {"k": 4, "unit": "person", "allow_alone": True}
UNITS: dict[str, dict[str, Any]] = {
    "pseudonyms": {"output": {"pseudonyms": {"person": "who"}}},
    "published": {"attributes": {"person": "insensitive"}},
    "hidden": {"attributes": {"person": "identifier"}},
}


@pytest.mark.parametrize("case", UNITS)
def test_people(case: str, make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """They are counted where columns tell them apart; criteria that count them are not checked."""
    changed = dict(UNITS[case])
    attributes = {"age": "quasi_identifier", "person": "identifier", "illness": "sensitive"}
    release = make(
        f"people {case}",
        attributes=attributes | changed.pop("attributes", {}),
        model={"name": "smondrian"},
        privacy=ALONE | {"l_diversity": {"attribute": "illness", "l": 2}},
        **changed,
    )
    text = require_agreement(capsys, release)
    units = verified(release).units
    assert units is not None
    assert (f"k = 4 people: {units.fewest} at least in each class" in text) == (case != "hidden")
    assert ("people, who are not published" in text) == (case == "hidden")
    assert "l_diversity: {'attribute': 'illness'" in text.partition("not checked")[2]


def test_pseudonyms_that_are_none(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attributes = {"age": "quasi_identifier", "person": "identifier", "illness": "sensitive"}
    sound = make("named", attributes=attributes, privacy=ALONE, **UNITS["pseudonyms"])
    assert "pseudonyms: 32 hexadecimal digits" in require_agreement(capsys, sound)
    for number, change in enumerate((lambda one: f"{one}, Jane Doe", lambda _: None)):
        release = Path(shutil.copytree(sound, tmp_path / f"{number}"))
        table = read_table(release, "data")
        names = pa.array([change(one) for one in table["who"].to_pylist()], pa.string())
        index = table.schema.get_field_index("who")
        save_table(release, "data", table.set_column(index, "who", names))
        list_files(release)
        code, text = check(capsys, release)
        assert (code, "refused:\n  pseudonyms" in text) == (1, True)
        assert "holds other values than pseudonyms" in str(verified(release).failures)


def test_people_of_one_record_each(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    release = make(
        "one record each",
        attributes={"age": "quasi_identifier", "visit": "insensitive", "illness": "sensitive"},
        model={"name": "smondrian"},
        privacy={"k": 4, "unit": "visit", "l_diversity": {"attribute": "illness", "l": 2}},
    )
    text = require_agreement(capsys, release)
    assert "0 classes break {'attribute': 'illness'" in text


def test_records_that_were_left_out_and_are_not_told(
    make: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then a distance from the whole input is not known."""
    release = make(
        "withheld",
        model={"name": "full-domain", "suppression_limit": 0.02},
        privacy={"k": 4, "t_closeness": {"attribute": "illness", "t": 0.9}},
    )
    published = json.loads((release / "manifest.json").read_text())["published"]
    text = require_agreement(capsys, release)
    is_known = published["rows_left_out"] == 0 or (release / "left_out").exists()
    assert ("t_closeness: {'attribute'" in text) == (not is_known)


@pytest.mark.parametrize("holder", [None, "clinic"])
def test_unions(holder: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Distances are those from the records of each holder."""
    privacy = {
        "k": 3,
        "l_diversity": {"attribute": "illness", "l": 2},
        "t_closeness": {"attribute": "illness", "t": 0.8, "distance": "equal"},
    }
    coding = write_coding(tmp_path, privacy)
    for seed, name in enumerate(("north", "south")):
        draw = np.random.default_rng(seed)
        table = {
            "age": draw.integers(20, 30, 60),
            "sex": draw.choice(["female", "male"], 60),
            "illness": draw.choice(ILLNESSES[:3], 60, p=[0.7, 0.2, 0.1] if seed else None),
        }
        anonymize(tmp_path, name, table, coding)
    paths = [str(tmp_path / name) for name in ("north", "south")]
    out = tmp_path / "union"
    unite(LocalEngine(), paths, str(out), holder_column=holder)
    text = require_agreement(capsys, out)
    opened = CHECK["Release"](str(out), "")
    for one in verified(out).criteria:
        if one.criterion.kind == "equal distance":
            for step, breaks in ((1e-6, False), (-1e-6, True)):
                asked = {"attribute": "illness", "t": one.measured + step, "distance": "equal"}
                opened.refused = []
                CHECK["check_values"](opened, "illness", [asked])
                assert bool(opened.refused) == breaks
    assert (" 'clinic'" in text) == (holder is not None)


def test_orc(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    release = make(
        "orc",
        model={"name": "su-mondrian"},
        privacy={"k": 4, "l_diversity": {"attribute": "illness", "l": 2}},
        output={"format": "orc"},
    )
    assert "0 classes break" in require_agreement(capsys, release)


# What is forged ----------------------------------------------------------------------------------


@pytest.fixture
def release(make: Make, tmp_path: Path) -> Path:
    """Copy a release to where it may be changed."""
    privacy = {
        "k": 4,
        "l_diversity": {"attribute": "illness", "l": 2},
        "t_closeness": {"attribute": "illness", "t": 0.8},
    }
    sound = make("sound", model={"name": "su-mondrian"}, privacy=privacy)
    return Path(shutil.copytree(sound, tmp_path / "release"))


def change_records(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def spoil(release: Path) -> None:
        save_table(release, "data", change(read_table(release, "data")))

    return spoil


def classes(table: pa.Table) -> Iterator[np.ndarray[Any, Any]]:
    """Yield which records are of each class."""
    labels = list(zip(table["age"].to_pylist(), table["zone"].to_pylist(), strict=True))
    for label in sorted(set(labels)):
        yield np.array([one == label for one in labels])


def small_class(table: pa.Table) -> pa.Table:
    """Let one class be of one record."""
    chosen = next(classes(table))
    chosen[np.flatnonzero(chosen)[0]] = False
    return table.filter(pa.array(~chosen))


def one_illness(table: pa.Table) -> pa.Table:
    chosen = next(classes(table))
    column = np.where(chosen, "flu", table["illness"].to_pylist())
    return table.set_column(table.schema.get_field_index("illness"), "illness", pa.array(column))


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def spoil(release: Path) -> None:
        document = read_manifest(release)
        change(document)
        save_manifest(release, document)

    return spoil


def publish_person(release: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        return table.append_column("person", pa.array([f"P{n}" for n in range(len(table))]))

    change_records(change)(release)
    edit(lambda document: document["published"]["columns"].append("person"))(release)


def forget_zone(document: dict[str, Any]) -> None:
    document["published"]["quasi_identifier_columns"].remove("zone")


def link_data(release: Path) -> None:
    (path,) = (release / "data").glob("*.parquet")
    shutil.move(path, release.parent / "elsewhere.parquet")
    path.symlink_to(release.parent / "elsewhere.parquet")


# How it is spoiled, whether the manifest lists it as it is then, and what the file says.
FORGED: dict[str, tuple[Callable[[Path], object], bool, str]] = {
    "raw.csv": (
        lambda one: rewrite(one / "raw.csv", b"Zebediah"),
        False,
        "'raw.csv' is not listed",
    ),
    "raw.csv, listed": (
        lambda one: rewrite(one / "raw.csv", b"Zebediah"),
        True,
        "'raw.csv' is no file that a release has",
    ),
    "table of people, listed": (
        lambda one: rewrite(one / "metrics/people/part-00000.parquet", b"Zebediah"),
        True,
        "'metrics/people/part-00000.parquet' is no file",
    ),
    "changed record": (change_records(one_illness), False, "has other bytes"),
    "record removed": (change_records(lambda table: table.slice(1)), False, "has other bytes"),
    "records removed, listed": (change_records(lambda table: table.slice(4)), True, "records"),
    "class below k, listed": (change_records(small_class), True, "classes of 1 at least"),
    "l broken, listed": (change_records(one_illness), True, "1 classes break {'attribute': 'ill"),
    "link": (lambda one: (one / "l").symlink_to("/nowhere"), False, "is a link"),
    "link to a file": (link_data, False, "is a link"),
    "empty folder": (lambda one: (one / "Zebediah is ill").mkdir(), False, "is an empty folder"),
    "column, listed": (publish_person, True, "the column 'person' has no role"),
    "column of another name": (
        change_records(lambda table: table.append_column("ü\x1b[2J", table["illness"])),
        True,
        "records have other columns",
    ),
    "classes of fewer columns": (edit(forget_zone), False, "classes are formed by ['age', 'zone']"),
    "file that is gone": (lambda one: (one / "README.md").unlink(), False, "is not there"),
    "unsound checksum": (
        lambda one: rewrite(one / ".README.md.crc", b"crc\0\0\0\2\0Zebediah"),
        False,
        "'.README.md.crc' is not listed",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_what_is_forged(case: str, release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both refuse it, and neither prints what is in there."""
    spoil, is_listed, expected = FORGED[case]
    spoil(release)
    if is_listed:
        list_files(release)
    code, text = check(capsys, release)
    assert code == 1
    refused = text.partition("refused:")[2].partition("not checked:")[0]
    assert expected in refused
    assert "Zebediah i" in text or "Zebediah" not in text
    assert text.isascii()
    assert "\x1b" not in text
    assert text.splitlines()[-1] == "THE RELEASE DOES NOT HOLD"
    outcome = command(capsys, "verify", release, "--no-progress")
    if case not in OPEN:
        assert outcome.code == 4


# Listed files of any name are still accepted by verify.
OPEN = {"raw.csv, listed", "table of people, listed"}


# The file itself ---------------------------------------------------------------------------------


def test_it_is_short_and_needs_nothing_of_ours() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 336
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported - sys.stdlib_module_names == {"pyarrow"}


def test_the_copy_in_a_release_runs_alone(release: Path) -> None:
    """As the README of the release says, with a Python that does not see this package."""
    copy = release / VERIFIER
    assert copy.read_bytes() == verifier_text() == SOURCE.read_bytes()
    assert f"`python {VERIFIER} .`" in (release / "README.md").read_text()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _ALONE, str(Path(pa.__file__).parents[1]), VERIFIER],
        cwd=release,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "0 classes break" in done.stdout
    assert "refused:" not in done.stdout
    assert not any(line.endswith("as:") for line in done.stdout.splitlines())
    assert done.stdout.splitlines()[-1] == "all that was checked holds"


def test_it_helps_and_says_what_it_needs(release: Path) -> None:
    command = [sys.executable, "-I", "-S", VERIFIER]
    without = subprocess.run(command, cwd=release, capture_output=True, text=True)
    assert (without.returncode, without.stderr) == (2, "")
    assert without.stdout.splitlines() == [
        "cannot be read: Python has no pyarrow here. Call: python -m pip install pyarrow"
    ]
    helped = subprocess.run(
        [sys.executable, VERIFIER, "--help"], cwd=release, capture_output=True, text=True
    )
    assert helped.returncode == 0
    for words in ("what a release of anonspark promises", "a file of allowed signers"):
        assert words in " ".join(helped.stdout.split())


# Without the paths of the environment, in which this package lies, but with that of pyarrow.
_ALONE = """
import runpy, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("anonspark", "numpy", "pandas"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
sys.path.append(sys.argv[1])
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_command_prints_it(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    from anonspark.cli.application import main

    assert main(["verifier"]) == 0
    assert capfdbinary.readouterr().out == verifier_text()


def test_the_page_has_its_fingerprint() -> None:
    page = (REPOSITORY / "docs" / "verification.md").read_text(encoding="utf-8")
    assert hashlib.sha256(verifier_text()).hexdigest() in page


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"form": 1}', b"\xff"])
def test_what_is_no_release(
    content: bytes, release: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(release / "manifest.json", content)
    assert check(capsys, release)[0] == 2
    assert check(capsys, release / "data")[0] == 2


def test_formats_that_it_cannot_read(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(lambda document: document["configuration"]["output"].update(format="delta"))(release)
    code, text = check(capsys, release)
    assert code == 2
    assert "cannot be read: only manifests of form 2, and records as parquet or orc, can" in text


def test_checksums_of_hadoop(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A CRC of every 512 bytes, and nothing that is none."""
    path = write_checksum(release / "README.md")
    assert check(capsys, release)[0] == 0
    path.write_bytes(path.read_bytes()[:-4] + b"Zebe")
    assert check(capsys, release)[0] == 1


def test_verify_refuses_another_file_in_its_place(release: Path, cli: Cli) -> None:
    """It would be run; of another version it is not known."""
    rewrite(release / VERIFIER, verifier_text().replace(b"return 1", b"return 0"))
    list_files(release, explained=False)
    cli.ends(
        4, "verify", release, "--no-progress", says="check_release.py: not what this version writes"
    )
