"""A secured HDFS and YARN: who has a keytab publishes there, and who has none is told."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_run import FINGERPRINTS
from kerberos import REALM, SERVERS, Kdc, SecuredHdfs
from places import REPOSITORY
from standalone import PATIENCE, QUICK_QUERIES, QUICK_START, SCRIPTS, spark_environment
from test_hdfs import configure, fingerprints, names, require_golden
from yarn import Yarn, application_of

USER = "publisher"
JOBS = REPOSITORY / "jobs"


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """Start a KDC that knows the servers and two users."""
    running = Kdc(tmp_path_factory.mktemp("kdc"), (*SERVERS, USER, "mallory"))
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
        timeout=2 * PATIENCE,
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


@pytest.mark.parametrize(
    ("user", "code", "reason"),
    [
        (None, 6, "a file system asks for Kerberos, and Spark has no valid ticket"),
        ("mallory", 5, "cannot create the staging directory"),
    ],
)
def test_who_may_not(
    secured: SecuredHdfs, folder: str, tmp_path: Path, user: str | None, code: int, reason: str
) -> None:
    """Without a ticket nothing is read, as another user nothing is written."""
    before = names(secured, folder)
    root = f"{secured.address}{folder}"
    path = configure(tmp_path, root, output={"path": f"{root}/refused"})
    done = submit(secured, "anonymize.py", path, user=user)
    assert done.returncode == code, done.stdout
    (message,) = (line for line in done.stdout.splitlines() if line.startswith("error: "))
    assert reason in message
    assert names(secured, folder) == before


@pytest.fixture(scope="module")
def yarn(secured: SecuredHdfs) -> Yarn:
    """Start a secured YARN, whose users may stage what they submit; it ends with HDFS."""
    for arguments in (("-mkdir", "-p", f"/user/{USER}"), ("-chown", USER, f"/user/{USER}")):
        done = secured.shell(*arguments)
        assert done.returncode == 0, done.stderr
    cluster = Yarn(secured)
    cluster.start()
    return cluster


def test_executors_get_new_tokens(yarn: Yarn, folder: str, tmp_path: Path) -> None:
    """The driver logs in by the keytab; executors have its tokens, which end before the run."""
    secured = yarn.hdfs
    assert isinstance(secured, SecuredHdfs)
    root = f"{secured.address}{folder}"
    path = configure(tmp_path, root, output={"path": f"{root}/from-yarn"})
    done = secured.shell("-put", str(path), f"{folder}/configuration.yaml", user=USER)
    assert done.returncode == 0, done.stderr
    (option,) = secured.java_options
    # Executors know the realm, and no KDC that could give them a ticket.
    realm = tmp_path / "realm.conf"
    realm.write_text(f"[libdefaults]\ndefault_realm = {REALM}\n")
    job = yarn.submit(
        tmp_path,
        "cluster",
        JOBS / "anonymize.py",
        f"{root}/configuration.yaml",
        options=["--principal", f"{USER}@{REALM}", "--keytab", secured.kdc.keytab],
        settings={
            "spark.driver.extraJavaOptions": f"{QUICK_START} {option}",
            "spark.executor.extraJavaOptions": f"{QUICK_START} -Djava.security.krb5.conf={realm}",
            "spark.pyspark.python": sys.executable,
            "spark.yarn.appMasterEnv.PYTHONPATH": str(REPOSITORY),
            "spark.executorEnv.PYTHONPATH": str(REPOSITORY),
            "spark.yarn.maxAppAttempts": "1",
        },
        environment={"SPARK_SUBMIT_OPTS": option},
    )
    assert job.wait(2 * PATIENCE) == 0, job.said
    assert fingerprints(secured, f"{folder}/from-yarn") == FINGERPRINTS
    said = yarn.said(application_of(job))
    assert len(re.findall(r"Updating delegation tokens for current user", said)) > 2, said
