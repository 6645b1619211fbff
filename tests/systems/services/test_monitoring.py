"""The file for Prometheus, given to Prometheus' own programs as docs/operations.md says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from places import REPOSITORY
from planted_values import ATTRIBUTES, Planted, document, planted_table, write_inputs
from standalone import PATIENCE, Process, free_port

PACKAGES = {
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "prometheus-node-exporter": "prometheus-node-exporter",
    "prometheus-pushgateway": "prometheus-pushgateway",
}
"""Programs, and the packages of Debian that have them."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def program(name: str) -> str:
    """Return where a program is, or skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(
            f"{name} is not on PATH: it comes with Debian's package {PACKAGES[name]}, which make "
            "systems does not fetch, so it may be missing where SYSTEMS=required, too"
        )
    return found


def answer(url: str, *, put: str | None = None) -> str:
    """Ask a server that may not listen yet, or give it something."""
    data, method = (None, "GET") if put is None else (put.encode(), "PUT")
    request = urllib.request.Request(url, data=data, method=method)  # noqa: S310
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
                return str(reply.read().decode())
        except OSError as error:
            # 503: Prometheus listens before it is ready.
            refused = isinstance(error, urllib.error.HTTPError) and error.code != 503
            if refused or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@contextmanager
def served(folder: Path, name: str, *options: str) -> Iterator[str]:
    """Start a server of Prometheus' family, give its address, and stop it."""
    address = f"127.0.0.1:{free_port()}"
    log = folder / f"{name}.log"
    command = [program(name), f"--web.listen-address={address}", *options]
    with log.open("wb") as output:
        handle = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
    try:
        yield f"http://{address}"
    finally:
        Process(handle, log).kill()


def samples(text: str) -> Samples:
    """Return our metrics by name and labels, without the labels of who served them."""
    found = {}
    for name, labels, value in re.findall(r"^(anonspark_\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)
        kept = frozenset(pair for pair in pairs if pair[0] not in ("instance", "job"))
        found[name, kept] = float(value)
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the files of a run that published, and of the same job on the night when it failed."""
    folder = tmp_path_factory.mktemp("monitored")
    write_inputs(folder, planted_table())
    number = {**ATTRIBUTES, "salary": {"role": "quasi_identifier", "type": "number"}}
    for name, attributes, code in (("sound", ATTRIBUTES, 0), ("failed", number, 3)):
        textfile = folder / f"{name}.prom"
        metrics = {"job": "visits", "prometheus_textfile": str(textfile)}
        configuration = document(folder, name, attributes=attributes, metrics=metrics)
        done = subprocess.run(
            [sys.executable, REPOSITORY / "jobs" / "anonymize.py", configuration],
            env={key: value for key, value in os.environ.items() if "SPARK" not in key}
            | {"PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr[-3000:]
    return folder


def test_a_push_gateway_tells_what_the_manifest_says(files: Path, tmp_path: Path) -> None:
    sound, failed = [(files / f"{name}.prom").read_text() for name in ("sound", "failed")]
    with served(tmp_path, "prometheus-pushgateway", "--persistence.file=") as address:
        group = f"{address}/metrics/job/visits"
        answer(f"{address}/-/ready")
        answer(group, put=sound)
        told = answer(f"{address}/metrics")
        answer(group, put=failed)
        told_later = answer(f"{address}/metrics")
    assert samples(told) == samples(sound)
    summary = json.loads((files / "sound" / "manifest.json").read_text())["summary"]
    figures = {
        name.removeprefix("anonspark_release_"): value
        for (name, _), value in samples(told).items()
        if name.startswith("anonspark_release_")
    }
    assert len(figures) > 10
    assert figures == {name: summary[name] for name in figures}
    assert Planted(planted_table()).found_in(told + told_later) == []
    # Nothing of the release of the night before.
    assert samples(told_later) == samples(failed)
    assert samples(told_later)["anonspark_run_exit_code", frozenset({("job_name", "visits")})] == 3


def test_the_node_exporter_tells_the_same(files: Path, tmp_path: Path) -> None:
    (tmp_path / "textfile").mkdir()
    shutil.copy(files / "sound.prom", tmp_path / "textfile")
    options = ("--collector.disable-defaults", "--collector.textfile")
    place = f"--collector.textfile.directory={tmp_path / 'textfile'}"
    with served(tmp_path, "prometheus-node-exporter", *options, place) as address:
        told = answer(f"{address}/metrics")
    assert "node_textfile_scrape_error 0" in told
    assert samples(told) == samples((files / "sound.prom").read_text())


def test_the_names_are_sound_but_for_one(files: Path) -> None:
    with (files / "sound.prom").open() as file:
        done = subprocess.run(
            [program("promtool"), "check", "metrics"],
            stdin=file,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stdout + done.stderr).splitlines() == [
        'anonspark_release_gcp_total non-counter metrics should not have "_total" suffix'
    ]


def test_alerts_fire(files: Path, tmp_path: Path) -> None:
    """The rules of the documentation, and its scraping of a push gateway, in Prometheus."""
    blocks = re.findall(
        r"```yaml\n(.*?)```", (REPOSITORY / "docs" / "operations.md").read_text(), re.DOTALL
    )
    (rules,) = [block for block in blocks if "groups:" in block]
    (scraped,) = [block for block in blocks if "scrape_configs:" in block]
    (tmp_path / "rules.yml").write_text(rules)
    fires = {}
    with served(tmp_path, "prometheus-pushgateway", "--persistence.file=") as gateway:
        target = gateway.removeprefix("http://")
        often = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
        configuration = yaml.safe_load(scraped.replace("pushgateway.example:9091", target))
        configuration |= {"global": often, "rule_files": ["rules.yml"]}
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        options = ("--config.file=prometheus.yml", f"--storage.tsdb.path={tmp_path / 'tsdb'}")
        with served(tmp_path, "prometheus", *options) as address:
            for name, expected in (
                ("sound", "ReleaseLosesMore"),
                ("failed", "AnonymizationFailed"),
            ):
                pushed = (files / f"{name}.prom").read_text()
                answer(f"{gateway}/metrics/job/visits", put=pushed)
                fires[name] = alerts(address, expected)
    assert fires == {"sound": {"ReleaseLosesMore"}, "failed": {"AnonymizationFailed"}}


def alerts(address: str, expected: str) -> set[str]:
    """Return what fires, once an alert does and no older one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        told = json.loads(answer(f"{address}/api/v1/alerts"))["data"]["alerts"]
        names = {alert["labels"]["alertname"] for alert in told}
        if names == {expected} or time.monotonic() > deadline:
            return names
        time.sleep(0.1)
