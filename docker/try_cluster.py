"""Run docker-compose.yml's Spark services without Docker, inside the image, for docker/prove.sh.

Commands, environments and health checks are those of the compose file. The services are processes
of one container instead of a container each, so they share one network and one file system.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import yaml

SERVERS = ("spark-master", "spark-worker", "spark-worker", "spark-history-server")
PATIENCE_SECONDS = 300


def command(service: dict[str, Any]) -> list[str]:
    """Return what the container of a service runs."""
    entrypoint = service.get("entrypoint", ["tini", "--", "/opt/entrypoint.sh"])
    return [*entrypoint, *service["command"]]


def environment(service: dict[str, Any]) -> dict[str, str]:
    """Return the variables of a service, with the defaults that the compose file gives them."""
    given = service.get("environment", {})
    return {name: value.split(":-")[-1].rstrip("}") for name, value in given.items()}


def wait_until_healthy(service: dict[str, Any], process: subprocess.Popen[bytes]) -> bool:
    """Repeat a service's health check until it succeeds; False if it never does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    test = service["healthcheck"]["test"][1:]
    while subprocess.run(test, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(1)
    return True


def get(url: str) -> Any:
    """Fetch a JSON document."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own servers
        return json.load(answer)


def main() -> None:
    """Start the cluster, submit the job, look at its release and its history."""
    services = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))["services"]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number, name in enumerate(SERVERS):
            service = services[name]
            began = time.monotonic()
            path = Path(f"/var/lib/anonspark/scratch/{number}.log")
            with path.open("wb") as log:
                process = subprocess.Popen(
                    command(service),
                    env=os.environ | environment(service),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            started.append(process)
            if not wait_until_healthy(service, process):
                sys.exit(f"{name} does not become healthy:\n{path.read_text(errors='replace')}")
            print(f"{name} is healthy after {time.monotonic() - began:.0f} s", flush=True)
        while get("http://localhost:8080/json/")["aliveworkers"] < SERVERS.count("spark-worker"):
            time.sleep(1)  # the second shares the first one's network, and so its health check
        began = time.monotonic()
        subprocess.run(command(services["submit"]), check=True)
        print(f"submit: done after {time.monotonic() - began:.0f} s", flush=True)
        manifest = json.loads(Path("out/people/manifest.json").read_text(encoding="utf-8"))
        subprocess.run(["anonspark", "verify", "out/people"], check=True)
        applications = get("http://localhost:18080/api/v1/applications")
        finished = {each["name"] for each in applications if each["attempts"][0]["completed"]}
        if Path(services["submit"]["entrypoint"][-1]).name not in finished:
            sys.exit(f"the history server knows {finished}, and not the finished run")
        print(f"history server: knows {finished}; the release is of run {manifest['run_id']}")
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait()


if __name__ == "__main__":
    main()
