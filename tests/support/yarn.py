"""YARN as real processes: a ResourceManager and a NodeManager beside an HDFS."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
from hadoop import Hdfs, write_site
from service_jars import locked_jars
from standalone import (
    QUICK_QUERIES,
    QUICK_START,
    SCRIPTS,
    Process,
    command_line_of,
    descendants_of,
    free_port,
    kill_first,
    spark_environment,
)

_SERVER = "org.apache.hadoop.yarn.server"

_DISKS = "yarn.nodemanager.disk-health-checker"

QUEUES = ("default", "nightly")


@dataclass
class Yarn:
    """A ResourceManager and a NodeManager, which start containers on this machine.

    Parameters
    ----------
    hdfs : Hdfs
        Runs already.
    """

    hdfs: Hdfs

    def __post_init__(self) -> None:
        ports = {
            "yarn.resourcemanager.address": free_port(),
            "yarn.resourcemanager.scheduler.address": free_port(),
            "yarn.resourcemanager.resource-tracker.address": free_port(),
            "yarn.resourcemanager.admin.address": free_port(),
            "yarn.resourcemanager.webapp.address": free_port(),
            "yarn.nodemanager.address": 0,
            "yarn.nodemanager.localizer.address": 0,
            "yarn.nodemanager.webapp.address": 0,
            "yarn.nodemanager.collector-service.address": 0,
        }
        share = 100 // len(QUEUES)
        capacities = {
            "queues": ",".join(QUEUES),
            **{f"{queue}.capacity": share for queue in QUEUES},
            **{f"{queue}.maximum-capacity": 100 for queue in QUEUES},
            # One run takes all that a queue may have.
            **{f"{queue}.user-limit-factor": len(QUEUES) for queue in QUEUES},
        }
        scheduler = {f"yarn.scheduler.capacity.root.{key}": one for key, one in capacities.items()}
        write_site(
            self.hdfs.configuration / "capacity-scheduler.xml",
            scheduler | {"yarn.scheduler.capacity.maximum-am-resource-percent": 1},
        )
        write_site(
            self.hdfs.configuration / "yarn-site.xml",
            {
                **{key: f"127.0.0.1:{port}" for key, port in ports.items()},
                "yarn.resourcemanager.hostname": "127.0.0.1",
                "yarn.nodemanager.hostname": "127.0.0.1",
                "yarn.nodemanager.local-dirs": self.hdfs.folder / "containers",
                "yarn.nodemanager.log-dirs": self.logs,
                "yarn.nodemanager.resource.memory-mb": 8192,
                "yarn.nodemanager.resource.cpu-vcores": 8,
                "yarn.scheduler.minimum-allocation-mb": 16,
                "yarn.nodemanager.vmem-check-enabled": "false",
                "yarn.nodemanager.container-monitor.interval-ms": 200,
                # By looking at processes: there are no control groups to leave it to.
                "yarn.nodemanager.resource.memory.enforced": "false",
                # The disk may be as full as it is.
                f"{_DISKS}.max-disk-utilization-per-disk-percentage": 100,
                **self.hdfs.security(),
            },
        )
        self.classes = locked_jars(
            *("bcprov-jdk18on", "bcpkix-jdk18on", "bcutil-jdk18on"),
            *("jaxb-api", "javax.activation-api"),
        )

    @property
    def logs(self) -> Path:
        """Folder of what containers write."""
        return self.hdfs.folder / "container-logs"

    def start(self) -> None:
        """Start both, and wait until the one knows the other."""
        manager = self.hdfs.start_daemon(
            "resourcemanager", f"{_SERVER}.resourcemanager.ResourceManager", self.classes
        )
        self.nodemanager = self.hdfs.start_daemon(
            "nodemanager", f"{_SERVER}.nodemanager.NodeManager", self.classes
        )
        manager.wait_for("Node Transitioned from NEW to RUNNING")
        manager.wait_for("Transitioned to active state")

    def submit(
        self,
        folder: Path,
        mode: str,
        job: Path,
        *arguments: object,
        options: Sequence[object] = (),
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Submit a job with small containers.

        Parameters
        ----------
        folder : Path
            Where it runs, and its log is.
        mode : str
            ``client`` or ``cluster``.
        job : Path
        *arguments
            Of the job.
        options : sequence
            Of spark-submit.
        settings : mapping of str to str or None
            Of Spark, over those that all jobs have.
        environment : mapping of str to str or None
            Over that of Spark's scripts.
        """
        home = Path(pyspark.__file__).parent
        chosen = {
            # Else every run uploads all of Spark.
            "spark.yarn.jars": f"local:{home}/jars/*",
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.executor.extraJavaOptions": QUICK_START,
            **QUICK_QUERIES,
            "spark.driver.memory": "512m",
            "spark.driver.memoryOverhead": "1g",
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": "1g",
            "spark.executor.instances": "2",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.yarn.report.interval": "300ms",
        } | dict(settings or {})
        command = [str(SCRIPTS / "spark-submit"), "--master", "yarn", "--deploy-mode", mode]
        for key, value in chosen.items():
            command += ["--conf", f"{key}={value}"]
        command += [str(one) for one in (*options, job, *arguments)]
        log = folder / f"submitted-{time.monotonic_ns()}.log"
        # spark-submit hands PYTHONPATH to the cluster, where packages are to come from the archive.
        plain = {
            key: one
            for key, one in spark_environment().items()
            if key not in {"PYTHONPATH", "PYSPARK_PYTHON"}
        }
        with log.open("wb") as output:
            handle = subprocess.Popen(
                command,
                env=plain
                | {"HADOOP_CONF_DIR": str(self.hdfs.configuration), "SPARK_HOME": str(home)}
                | dict(environment or {}),
                stdout=output,
                stderr=output,
                cwd=folder,
            )
        return Process(handle, log)

    def status(self, application: str) -> str:
        """Return what ``yarn application -status`` says."""
        done = self.hdfs.run(
            "org.apache.hadoop.yarn.client.cli.ApplicationCLI",
            *("application", "-status", application),
            classes=self.classes,
        )
        return done.stdout + done.stderr

    def said(self, application: str) -> str:
        """Return what all containers of an application wrote, as ``yarn logs`` would show."""
        files = sorted(self.logs.glob(f"{application}/container_*/std*"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    def kill_driver(self) -> None:
        """Kill the one container whose driver runs on the cluster, as a failing machine does."""
        kill_first(lambda: self._running(b"deploy.yarn.ApplicationMaster"))

    def kill_executor(self) -> None:
        """Kill one executor that runs, with its Python workers."""
        kill_first(self.executors)

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run now."""
        return self._running(b"YarnCoarseGrainedExecutorBackend")

    def _running(self, main: bytes) -> list[int]:
        """Return the process ids of containers' Java of a class, without the shells around them."""
        lines = {
            process: command_line_of(process)
            for process in descendants_of(self.nodemanager.handle.pid)
        }
        return [
            process
            for process, line in lines.items()
            if main in line and line.split(b"\0")[0].endswith(b"/java")
        ]


def application_of(job: Process) -> str:
    """Return the id of the application that a job became, or the last one that it names."""
    return re.findall(r"application_\d+_\d+", job.said)[-1]
