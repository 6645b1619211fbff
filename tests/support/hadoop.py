"""HDFS as real processes on the loopback interface, so that one of them can be killed."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

from service_jars import locked_jars, spark_jars
from standalone import ClusterError, Process, free_port

from anonspark.engine.spark.java import find_java

_HDFS = "org.apache.hadoop.hdfs.server"
_LOG4J = """\
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


def write_site(path: Path, properties: Mapping[str, object]) -> None:
    """Write a configuration file of Hadoop."""
    lines = [
        f"<property><name>{name}</name><value>{escape(str(value))}</value></property>"
        for name, value in properties.items()
    ]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>\n"]))


@dataclass
class Hdfs:
    """A NameNode and its DataNodes.

    Parameters
    ----------
    folder : Path
        Configuration, logs and blocks.
    java_options : sequence of str
        Of its processes, beside those that keep them small.
    """

    folder: Path
    java_options: Sequence[str] = ()
    datanodes: list[Process] = field(default_factory=list)
    _started: list[Process] = field(default_factory=list)
    _classes: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._classes = [
            *spark_jars("hadoop-client-*.jar", "log4j-*.jar", "slf4j-api-*.jar"),
            *locked_jars("hadoop-client-minicluster", "junit", "hamcrest-core"),
            *locked_jars("commons-logging"),
        ]
        self.port, self.web_port = free_port(), free_port()
        self.configuration.mkdir(parents=True)
        (self.configuration / "log4j2.properties").write_text(_LOG4J)
        write_site(
            self.configuration / "core-site.xml",
            {
                "fs.defaultFS": self.address,
                "hadoop.tmp.dir": self.folder / "temporary",
                **self.security(),
            },
        )
        write_site(
            self.configuration / "hdfs-site.xml",
            {
                "dfs.replication": 2,
                "dfs.namenode.name.dir": self.folder / "name",
                "dfs.namenode.http-address": f"127.0.0.1:{self.web_port}",
                "dfs.namenode.fs-limits.min-block-size": 1024,
                # Seconds until a dead DataNode is noticed, not ten minutes.
                "dfs.heartbeat.interval": 1,
                "dfs.namenode.heartbeat.recheck-interval": 2000,
                "dfs.namenode.safemode.extension": 0,
                "dfs.permissions.superusergroup": "supergroup",
                "dfs.client.block.write.replace-datanode-on-failure.best-effort": "true",
                **{f"dfs.datanode.{kind}address": "127.0.0.1:0" for kind in ("", "http.", "ipc.")},
                # Here, too: HDFS reads its defaults after core-site.xml.
                **self.security(),
            },
        )

    @property
    def configuration(self) -> Path:
        """The folder for ``HADOOP_CONF_DIR``."""
        return self.folder / "conf"

    @property
    def address(self) -> str:
        """Address of the root, without a slash at the end."""
        return f"hdfs://127.0.0.1:{self.port}"

    def start(self, datanodes: int = 2) -> None:
        """Format the NameNode, start it and some DataNodes, and wait until all are there."""
        formatted = self.run(f"{_HDFS}.namenode.NameNode", "-format", "-nonInteractive")
        if formatted.returncode:
            raise ClusterError(f"the NameNode cannot be formatted: {formatted.stderr}")
        self.start_namenode()
        for _ in range(datanodes):
            self.add_datanode()

    def start_namenode(self) -> Process:
        """Start the NameNode, which knows what it knew when it was killed."""
        self.namenode = self._start("namenode", f"{_HDFS}.namenode.NameNode")
        self.namenode.wait_for("NameNode RPC up at")
        return self.namenode

    def add_datanode(self) -> Process:
        """Start a DataNode and wait until the NameNode knows it."""
        number = len([one for one in self._started if "datanode" in one.log.name])
        data = f"-Ddfs.datanode.data.dir={self.folder / f'data-{number}'}"
        process = self._start(f"datanode-{number}", f"{_HDFS}.datanode.DataNode", data)
        process.wait_for("Successfully sent block report")
        self.datanodes.append(process)
        return process

    def kill_datanode(self) -> None:
        """Kill the oldest DataNode."""
        self.datanodes.pop(0).kill()

    def run(
        self, main: str, *arguments: str, user: str | None = None, classes: Sequence[Path] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Hadoop's tools, as another user if one is named."""
        return subprocess.run(
            [*self._java("256m", classes), main, *arguments],
            env=self.environment | self.identity(user),
            capture_output=True,
            text=True,
            check=False,
        )

    def shell(self, *arguments: str, user: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run ``hadoop fs``."""
        return self.run("org.apache.hadoop.fs.FsShell", *arguments, user=user)

    def admin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``hdfs dfsadmin``."""
        return self.run("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def security(self) -> dict[str, object]:
        """Return the settings by which its users are authenticated: none."""
        return {}

    def identity(self, user: str | None) -> dict[str, str]:
        """Return the variables by which a tool is another user, or the one of this process."""
        return {"HADOOP_USER_NAME": user} if user else {}

    @property
    def environment(self) -> dict[str, str]:
        """Variables of who uses it."""
        # Java reads names with other letters than ASCII in the locale of the process.
        locale = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
        return {"HADOOP_CONF_DIR": str(self.configuration), **locale}

    def start_daemon(self, name: str, main: str, classes: Sequence[Path] = ()) -> Process:
        """Start another server of Hadoop, which ends with the others."""
        return self._start(name, main, classes=classes)

    def _java(self, memory: str, more: Sequence[Path] = ()) -> list[str]:
        classes = ":".join(map(str, [self.configuration, *self._classes, *more]))
        options = [f"-Xmx{memory}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options += self.java_options
        # HADOOP-19310: without it Java 17 forbids what NameNode and NodeManager look into.
        options += ["--add-opens=java.base/java.lang=ALL-UNNAMED"]
        return [str(find_java().executable), *options, "-cp", classes]

    def _start(self, name: str, main: str, *options: str, classes: Sequence[Path] = ()) -> Process:
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            handle = subprocess.Popen(
                [*self._java("256m", classes), *_properties_first(main, options)],
                env=self.environment,
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )
        self._started.append(Process(handle, log))
        return self._started[-1]

    def stop(self) -> None:
        """Kill everything: nothing of it is kept."""
        for process in reversed(self._started):
            process.kill()


def _properties_first(main: str, options: Sequence[str]) -> list[str]:
    """Return arguments of a daemon: Hadoop reads its settings from -D behind the class."""
    settings = [word for one in options for word in ("-D", one.removeprefix("-D"))]
    return [main, *settings]
