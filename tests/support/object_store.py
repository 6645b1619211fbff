"""Object stores that speak S3, as real processes on the loopback interface."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from service_jars import locked_jars
from standalone import Process, free_port

from anonspark.engine.spark.java import find_java

IDENTITY, SECRET = "tester", "Kryptonite-Secret-7"
"""What clients have to know; the secret is one that tests look for where it must not be."""

BUCKET = "anon"

REGION = "eu-central-1"


@dataclass
class ObjectStore(ABC):
    """A server over a folder.

    Parameters
    ----------
    folder : Path
        Buckets, configuration and log.
    """

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def address(self) -> str:
        """Address of the bucket for Hadoop."""
        return f"s3a://{BUCKET}"

    @property
    def settings(self) -> dict[str, str]:
        """Settings of Hadoop's client, without credentials."""
        return {
            "fs.s3a.endpoint": f"http://127.0.0.1:{self.port}",
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
        }

    def start(self) -> None:
        """Start it and wait until it listens; buckets are kept when it starts again."""
        self.process = self._start()

    def stop(self) -> None:
        """Kill it."""
        self.process.kill()

    @abstractmethod
    def _start(self) -> Process: ...

    def _run(self, *command: object, environment: dict[str, str] | None = None) -> Process:
        log = self.folder / "server.log"
        with log.open("ab") as output:
            handle = subprocess.Popen(
                [str(one) for one in command],
                stdout=output,
                stderr=output,
                cwd=self.folder,
                env=os.environ | (environment or {}),
            )
        return Process(handle, log)


class S3Proxy(ObjectStore):
    """S3Proxy, whose jar ``make systems`` fetches."""

    def _start(self) -> Process:
        (self.folder / "buckets" / BUCKET).mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "s3proxy.conf"
        lines = {
            "s3proxy.endpoint": f"http://127.0.0.1:{self.port}",
            "s3proxy.authorization": "aws-v4",
            "s3proxy.identity": IDENTITY,
            "s3proxy.credential": SECRET,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": self.folder / "buckets",
        }
        configuration.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        (jar,) = locked_jars("s3proxy")
        java = find_java().executable
        process = self._run(
            *(java, "-Xmx512m", "-XX:TieredStopAtLevel=1", "-jar", jar),
            *("--properties", configuration),
        )
        process.wait_for("Started")
        return process


class VersityGateway(ObjectStore):
    """versitygw, where somebody installed it: nobody has to have Go for the tests."""

    def _start(self) -> Process:
        program = shutil.which("versitygw")
        if program is None:
            pytest.skip(
                "versitygw is not on the PATH: "
                "go install github.com/versity/versitygw/cmd/versitygw@v1.8.0"
            )
        (self.folder / "buckets" / BUCKET).mkdir(parents=True, exist_ok=True)
        process = self._run(
            *(program, "--port", f"127.0.0.1:{self.port}", "--region", REGION),
            *("--health", "/health", "posix", self.folder / "buckets"),
            environment={"ROOT_ACCESS_KEY": IDENTITY, "ROOT_SECRET_KEY": SECRET},
        )
        for _ in range(300):
            try:
                with urlopen(f"http://127.0.0.1:{self.port}/health"):
                    return process
            except URLError:
                assert process.handle.poll() is None, process.said
                time.sleep(0.1)
        raise TimeoutError(process.said)
