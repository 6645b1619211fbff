"""The schedules, as far as they go without a scheduler; `make check-schedules` does more."""

from __future__ import annotations

import ast
import fcntl
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from places import REPOSITORY

from anonspark.cli.application import application

SCHEDULES = REPOSITORY / "schedules"
NIGHTLY = SCHEDULES / "cron" / "anonspark-nightly"

PATIENCE = 120
"""Seconds after which the script is given up, on a machine that is busy."""


class Nightly:
    """The script with something in place of `anonspark run`.

    Parameters
    ----------
    folder : Path
        Where lock, log and what was called are kept.
    """

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self.log = folder / "people.log"
        self.lock = folder / "people.lock"
        self.first = ":"
        self._command = folder / "command"
        self._environment = {
            "PATH": "/usr/bin:/bin",
            "ANONSPARK_COMMAND": f"bash {self._command}",
            "ANONSPARK_DATE": "2026-11-20",
            "ANONSPARK_STATE": str(folder),
            "ANONSPARK_LOGS": str(folder),
            "ANONSPARK_PAUSE": "0",
        }

    def end_before(self, step: str) -> None:
        """Send SIGTERM right before the script takes a step of its text."""
        environment = self._command.with_name("environment")
        ends = f"[[ $BASH_COMMAND == {shlex.quote(step)} ]] && kill -TERM $$"
        environment.write_text(f"trap {shlex.quote(ends)} DEBUG\n")
        self._environment["BASH_ENV"] = str(environment)

    @contextmanager
    def started(self, body: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Start the script, and leave nothing of it behind."""
        self._command.write_text(
            f'{self.first}\nprintf "%s|" "$@" >>{self.calls}; echo >>{self.calls}\n{body}\n'
        )
        with subprocess.Popen(
            [NIGHTLY, "people", "people.yaml", *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def run(self, body: str, *arguments: str) -> int:
        with self.started(body, *arguments) as process:
            said, _ = process.communicate(timeout=PATIENCE)
        assert said == "", "cron would mail this"
        return process.returncode

    def called(self) -> list[list[str]]:
        if not self.calls.exists():
            return []
        return [line.split("|")[:-1] for line in self.calls.read_text().splitlines()]


@pytest.fixture
def nightly(tmp_path: Path) -> Nightly:
    return Nightly(tmp_path)


def test_run_id_and_arguments_come_from_the_date(nightly: Nightly) -> None:
    assert nightly.run("echo said", "--set", "output.path=out/{date} of {date}") == 0
    output = "output.path=out/2026-11-20 of 2026-11-20"
    assert nightly.called() == [
        ["people.yaml", "--run-id", "people-2026-11-20", "--resume", "--set", output]
    ]
    assert "said" in nightly.log.read_text()
    assert nightly.log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("code", "tries"), [(0, 1), (1, 3), (2, 1), (3, 1), (4, 1), (5, 3), (6, 3), (137, 3), (143, 1)]
)
def test_only_what_another_try_can_change_is_tried_again(
    nightly: Nightly, code: int, tries: int
) -> None:
    assert nightly.run(f"exit {code}") == code
    assert len(nightly.called()) == tries


def test_what_succeeds_in_the_second_try_is_a_success(nightly: Nightly) -> None:
    assert nightly.run(f"(($(wc -l <{nightly.calls}) == 2)) || exit 6") == 0
    assert len(nightly.called()) == 2


def test_cron_mails_nothing_about_a_killed_run(nightly: Nightly) -> None:
    assert nightly.run("kill -KILL $$") == 137
    assert "Killed" in nightly.log.read_text()


def test_two_never_run_at_once(nightly: Nightly) -> None:
    with nightly.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert nightly.run("exit 0") == 75
    assert nightly.called() == []
    assert nightly.run("exit 0") == 0


def test_a_request_to_end_reaches_the_run_and_is_waited_for(nightly: Nightly) -> None:
    nightly.first = "trap 'sleep 0.2; echo cleaned up; exit 143' TERM"
    with nightly.started("sleep 60 & wait") as process:
        deadline = time.monotonic() + PATIENCE
        while not nightly.called():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE)
    assert process.returncode == 143
    assert "cleaned up" in nightly.log.read_text()
    assert len(nightly.called()) == 1


@pytest.mark.parametrize("step", ["child=$!", 'say "try $attempt of $attempts"'])
def test_a_request_to_end_is_not_lost_while_a_run_begins(nightly: Nightly, step: str) -> None:
    nightly.end_before(step)
    assert nightly.run("exec sleep 25") == 143
    assert len(nightly.called()) <= 1


def test_a_request_to_end_before_a_run_begins_starts_none(nightly: Nightly) -> None:
    nightly.end_before('mkdir -m 700 "$TMPDIR"')
    assert nightly.run("exec sleep 25") == 143
    assert nightly.called() == []
    assert "ended before try 1" in nightly.log.read_text()


def manifests() -> Iterator[dict[str, Any]]:
    for path in sorted((SCHEDULES / "kubernetes").glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text(encoding="utf-8"))


def pod_of(cron_job: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return pod


def submitted() -> Iterator[tuple[str, list[str]]]:
    """Yield what each schedule hands to `anonspark run`, behind the configuration."""
    for document in manifests():
        if document["kind"] == "CronJob":
            arguments = pod_of(document)["containers"][0]["args"]
            yield "CronJob", arguments[arguments.index("/etc/anonspark/people.yaml") :]
        elif document["kind"] == "SparkApplication":
            yield document["kind"], document["spec"]["arguments"]
        elif document["kind"] == "ScheduledSparkApplication":
            yield document["kind"], document["spec"]["template"]["arguments"]
    tree = ast.parse((SCHEDULES / "airflow" / "anonspark_people.py").read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "application_args":
            yield "Airflow", ast.literal_eval(node.value)
    for path in (SCHEDULES / "cron" / "crontab", SCHEDULES / "systemd" / "anonspark@.service"):
        (line,) = re.findall(r"^.*anonspark-nightly.*$", path.read_text(encoding="utf-8"), re.M)
        words = shlex.split(line.partition("anonspark-nightly ")[2])
        yield path.name, [*words[1:], "--run-id=of the script", "--resume"]


@pytest.mark.parametrize(
    ("name", "arguments"), list(submitted()), ids=lambda value: str(value)[:25]
)
def test_anonspark_takes_the_arguments(name: str, arguments: list[str]) -> None:
    assert arguments[0].startswith("/etc/anonspark/"), name
    command = typer.main.get_command(application).commands["run"]  # type: ignore[attr-defined]
    known = {option for parameter in command.params for option in parameter.opts}
    given = {argument.partition("=")[0] for argument in arguments if argument.startswith("--")}
    assert given <= known
    assert {"--run-id", "--resume"} <= given


def test_every_schedule_was_looked_at() -> None:
    assert [name for name, _ in submitted()] == [
        "CronJob",
        "ScheduledSparkApplication",
        "SparkApplication",
        "Airflow",
        "crontab",
        "anonspark@.service",
    ]


def test_no_seed_stands_in_a_schedule() -> None:
    for path in SCHEDULES.rglob("*"):
        if path.is_file():
            assert "execution.seed=" not in path.read_text(encoding="utf-8"), path


def test_the_configuration_of_a_cron_job_is_a_secret_and_its_pod_is_locked_up() -> None:
    (cron_job,) = (document for document in manifests() if document["kind"] == "CronJob")
    pod = pod_of(cron_job)
    (configuration,) = (v for v in pod["volumes"] if v["name"] == "configuration")
    assert "secret" in configuration
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert cron_job["spec"]["concurrencyPolicy"] == "Forbid"
