"""Files for developers' programs name what is there: hooks, workflows, the container."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from cases import cases
from places import REPOSITORY

from anonspark import __version__

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
    assert "permissions" not in jobs["build"] | jobs["wheels"] | jobs["cluster"]
    assert "secrets." not in text


def test_what_a_tag_builds_is_signed() -> None:
    text = (REPOSITORY / ".github" / "workflows" / "release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    attest = jobs["attest"]
    assert attest["needs"] == ["build", "wheels", "cluster"]
    assert attest["permissions"]["attestations"] == "write"
    runs = " ".join(str(step.get("run")) for step in attest["steps"])
    assert "sha256sum --check --strict SHA256SUMS" in runs
    assert "make" not in runs
    signed = [step["with"] for step in attest["steps"] if "actions/attest@" in str(step)]
    assert signed[0] == {"subject-path": "built/*/*"}
    assert signed[1]["sbom-path"] == "bill.cdx.json"
    # The index gets its own files only.
    (download, _) = jobs["publish"]["steps"]
    names = [
        step["with"]["name"]
        for job in jobs.values()
        for step in job["steps"]
        if "upload" in str(step)
    ]
    taken = [name for name in names if name.startswith(download["with"]["pattern"].rstrip("*"))]
    assert taken == ["index-source", "index-wheels-${{ matrix.runner }}"]


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


JOBS = Path(__file__).parents[2] / "jobs"


def test_an_entry_is_started(tmp_path: Path) -> None:
    command = [sys.executable, JOBS / "command.py", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0
    assert __version__ in done.stdout + done.stderr


@cases(__file__, "arguments", "code", "told")
def test_an_entry_is_its_command(
    arguments: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(JOBS / arguments[0]), run_name="__main__")
    assert ended.value.code == code
    captured = capsys.readouterr()
    assert told in captured.out + captured.err


QUICK: dict[str, Any] = runpy.run_path(str(REPOSITORY / "tools" / "quick.py"))


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--initial-branch", "main")
    for name in ("kept.py", "edited.py", "removed.py"):
        (tmp_path / name).write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "first")
    return tmp_path


def test_changed_are_committed_edited_and_new_files(repository: Path) -> None:
    git(repository, "switch", "--create", "branch")
    (repository / "committed.py").write_text("2\n")
    git(repository, "add", ".")
    git(repository, "commit", "--message", "second")
    (repository / "edited.py").write_text("2\n")
    (repository / "new.py").write_text("2\n")
    (repository / "removed.py").unlink()
    changed = [str(path) for path in QUICK["changed_files"](repository, "main")]
    assert changed == ["committed.py", "edited.py", "new.py"]
    # Where there is no such branch, what is not committed counts.
    changed = [str(path) for path in QUICK["changed_files"](repository, "no-such-branch")]
    assert changed == ["edited.py", "new.py"]


def test_the_tests_of_a_changed_module_come_before_those_of_its_room() -> None:
    changed = [
        Path("anonspark/cli/engine_runner.py"),
        Path("anonspark/errors.py"),
        Path("docs/architecture.md"),
        Path("tests/releases/test_union.py"),
        Path("tests/unit/core/test_encoding.py"),
        Path("tests/unit/core/test_hierarchies.yaml"),
    ]
    tests, left = QUICK["tests_of"](changed, REPOSITORY)
    assert tests == [
        "tests/unit/cli/test_engine_runner.py",
        "tests/unit/core/test_encoding.py",
        "tests/unit/core/test_hierarchies.py",
        "tests/unit/cli",
    ]
    assert left == ["anonspark/errors.py", "tests/releases/test_union.py"]


def test_checks_end_or_are_stopped() -> None:
    programs = {
        "pass": 0,
        "raise SystemExit(3)": 3,
        "import time; time.sleep(60)": None,
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); signal.pause()": None,
    }
    checks = [QUICK["_start"]("one", [sys.executable, "-c", program]) for program in programs]
    assert QUICK["_wait"](checks, time.monotonic() + 2) == list(programs.values())
    for check in checks:
        assert check.process.poll() is not None
        check.output.close()
