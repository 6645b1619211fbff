"""Files for developers' programs name what is there: hooks, workflows, the container."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from places import REPOSITORY

WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):.*##", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def test_hooks_are_programs_of_the_environment() -> None:
    document = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())
    hooks = [hook for entry in document["repos"] for hook in entry["hooks"]]
    lint = (REPOSITORY / "Makefile").read_text()
    assert {entry["repo"] for entry in document["repos"]} == {"local"}
    for hook in hooks:
        program = Path(hook["entry"].split()[0])
        assert (REPOSITORY / program).is_file()
        assert f"$(RUN)/{program.name}" in lint
        assert hook["language"] == "system"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_developers_run(path: Path) -> None:
    # YAML reads the key `on` as true.
    document: dict[Any, Any] = yaml.safe_load(path.read_text())
    assert {"name", True, "jobs", "permissions"} <= set(document)
    commands = [
        step["run"] for job in document["jobs"].values() for step in job["steps"] if "run" in step
    ]
    assert commands
    for script in re.findall(r"\.ci/\w+", " ".join(commands)):
        assert (REPOSITORY / script).stat().st_mode & 0o100
    assert set(re.findall(r"make ([a-z-]+)", " ".join(commands))) <= TARGETS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_names_actions_by_commit(path: Path) -> None:
    # Whoever owns an action can move its tags and branches, but no commit.
    uses = re.findall(r"^\s*(?:- )?uses:(.*)$", path.read_text(), re.MULTILINE)
    assert uses
    for action in uses:
        assert re.fullmatch(r" [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_a_tag_is_published_without_a_token() -> None:
    text = (REPOSITORY / ".github" / "workflows" / "release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    # Only the job that builds nothing may ask for an identity.
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == ["build", "wheels"]
    assert "permissions" not in jobs["build"] | jobs["wheels"]
    assert "secrets." not in text


def test_the_container_sets_itself_up() -> None:
    container = json.loads((REPOSITORY / ".devcontainer" / "devcontainer.json").read_text())
    assert ":3.11" in container["image"]
    (java,) = container["features"].values()
    assert java["version"] == "17"
    assert container["postCreateCommand"].removeprefix("make ") in TARGETS


def test_the_last_line_says_what_was_not_checked(tmp_path: Path) -> None:
    environment = {**os.environ, "ANONSPARK_DATA": str(tmp_path / "none"), "CI": "false"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, REPOSITORY / "tests" / "golden" / "test_entropy_loss.py"],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(
        r"\d+ tests were skipped because .*: the printed figures were NOT checked",
        done.stdout.splitlines()[-1],
    )
