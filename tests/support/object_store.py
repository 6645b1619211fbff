"""An object store that speaks S3, S3Proxy, as a real process on the loopback interface."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from service_jars import locked_jars
from standalone import Process, free_port

from anonspark.engine.spark.java import find_java

IDENTITY, SECRET = "tester", "Kryptonite-Secret-7"
"""What clients have to know; the secret is one that tests look for where it must not be."""

BUCKET = "anon"


@dataclass
class ObjectStore:
    """S3Proxy over a folder.

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
            "fs.s3a.endpoint.region": "eu-central-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
        }

    def start(self) -> None:
        """Start it and wait until it listens; buckets are kept when it starts again."""
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
        log = self.folder / "s3proxy.log"
        with log.open("ab") as output:
            handle = subprocess.Popen(
                [
                    *(str(find_java().executable), "-Xmx512m", "-XX:TieredStopAtLevel=1"),
                    *("-jar", str(jar), "--properties", str(configuration)),
                ],
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )
        self.process = Process(handle, log)
        self.process.wait_for("Started")

    def stop(self) -> None:
        """Kill it."""
        self.process.kill()
