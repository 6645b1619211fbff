"""A secured HDFS: who has a keytab reads and publishes there, and who has none is told."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kerberos import REALM, SERVER, Kdc, SecuredHdfs
from places import REPOSITORY
from standalone import PATIENCE, QUICK_QUERIES, QUICK_START, SCRIPTS, spark_environment
from test_hdfs import configure, names, require_golden

USER = "publisher"
JOBS = REPOSITORY / "jobs"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """Start a KDC that knows the servers and two users."""
    running = Kdc(tmp_path_factory.mktemp("kdc"), (SERVER, "HTTP/localhost", USER, "mallory"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def secured(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredHdfs]:
    """Start a NameNode and a DataNode that trust it."""
    cluster = SecuredHdfs(tmp_path_factory.mktemp("secured"), kdc=kdc)
    try:
        cluster.start(datanodes=1)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def folder(secured: SecuredHdfs, golden_people: Path) -> str:
    """Put the people into a folder that belongs to the user."""
    for arguments in (
        ("-mkdir", "/releases"),
        ("-put", str(golden_people), "/releases/people"),
        ("-chown", "-R", USER, "/releases"),
    ):
        done = secured.shell(*arguments)
        assert done.returncode == 0, done.stderr
    return "/releases"


def submit(
    secured: SecuredHdfs, job: str, *arguments: object, user: str | None = USER
) -> subprocess.CompletedProcess[str]:
    """Submit a job to a Spark in one process, as a user with a keytab or without one."""
    settings = {
        "spark.driver.extraJavaOptions": " ".join([QUICK_START, *secured.java_options]),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        **QUICK_QUERIES,
    }
    if user is not None:
        settings["spark.kerberos.principal"] = f"{user}@{REALM}"
        settings["spark.kerberos.keytab"] = str(secured.kdc.keytab)
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    return subprocess.run(
        [
            *(SCRIPTS / "spark-submit", "--master", "local[2]", "--driver-memory", "512m"),
            *(*options, JOBS / job, *map(str, arguments)),
        ],
        env=spark_environment() | {"HADOOP_CONF_DIR": str(secured.configuration)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_with_a_keytab(secured: SecuredHdfs, folder: str, tmp_path: Path) -> None:
    """The release is the golden one, belongs to the user, and is proven."""
    root = f"{secured.address}{folder}"
    done = submit(secured, "anonymize.py", configure(tmp_path, root))
    assert done.returncode == 0, done.stdout
    require_golden(secured, folder)
    owners = secured.shell("-stat", "%u", f"{folder}/release").stdout.split()
    assert owners == [USER]
    done = submit(secured, "command.py", "verify", f"{root}/release")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("user", "reason"), [(None, "Kerberos"), ("mallory", "Permission denied")])
def test_who_may_not(
    secured: SecuredHdfs, folder: str, tmp_path: Path, user: str | None, reason: str
) -> None:
    """Without a ticket nothing is read, as another user nothing is written."""
    before = names(secured, folder)
    path = configure(tmp_path, f"{secured.address}{folder}", output={"mode": "overwrite"})
    done = submit(secured, "anonymize.py", path, user=user)
    assert done.returncode in (5, 6), done.stdout
    (message,) = (line for line in done.stdout.splitlines() if line.startswith("error: "))
    assert reason in message
    assert names(secured, folder) == before
