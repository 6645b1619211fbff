"""A KDC of Kerberos, and an HDFS that lets only those in who have its tickets."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hadoop import Hdfs
from service_jars import locked_jars, spark_jars
from standalone import Process

from anonspark.engine.spark.java import find_java

REALM = "EXAMPLE.COM"
SERVER = "hdfs/localhost"
"""The principal of NameNode and DataNodes, which is the superuser ``hdfs``."""
SERVERS = (SERVER, "yarn/localhost", "HTTP/localhost")
SECONDS_OF_A_TOKEN = 20
"""A delegation token is good for so long, unless somebody renews it: a day as a rule."""

_MAIN = "org.apache.hadoop.minikdc.MiniKdc"
_PROPERTIES = """\
org.name=EXAMPLE
org.domain=COM
kdc.bind.address=127.0.0.1
kdc.port=0
instance=DefaultKrbServer
transport=TCP
debug=false
max.ticket.lifetime=86400000
min.ticket.lifetime=3600000
max.renewable.lifetime=604800000
"""
_KERBY = (
    *("kerb-simplekdc", "kerb-server", "kerb-admin", "kerb-client", "kerb-common", "kerb-core"),
    *("kerb-crypto", "kerb-identity", "kerb-util"),
    *("kerby-asn1", "kerby-config", "kerby-pkix", "kerby-util"),
)


@dataclass
class Kdc:
    """Hadoop's KDC for tests, on the loopback interface, with one keytab for all principals.

    Parameters
    ----------
    folder : Path
        Keytab, ``krb5.conf`` and log.
    principals : sequence of str
        Without their realm.
    """

    folder: Path
    principals: Sequence[str]

    @property
    def keytab(self) -> Path:
        """The file that proves who one is."""
        return self.folder / "all.keytab"

    @property
    def java_options(self) -> list[str]:
        """What a Java needs to find it."""
        return [f"-Djava.security.krb5.conf={self.folder / 'kdc' / 'krb5.conf'}"]

    def start(self) -> None:
        """Start it, and wait until it has written the keytab."""
        (self.folder / "kdc").mkdir(parents=True)
        properties = self.folder / "kdc.properties"
        properties.write_text(_PROPERTIES)
        classes = [
            *locked_jars("hadoop-minikdc", *_KERBY),
            *spark_jars("commons-io-*.jar", "slf4j-api-*.jar", "log4j-*.jar"),
        ]
        options = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command = [find_java().executable, *options, "-cp", ":".join(map(str, classes)), _MAIN]
        log = self.folder / "kdc.log"
        with log.open("wb") as output:
            handle = subprocess.Popen(
                [*command, self.folder / "kdc", properties, self.keytab, *self.principals],
                stdout=output,
                stderr=output,
            )
        self._process = Process(handle, log)
        self._process.wait_for("to stop it")

    def stop(self) -> None:
        """Kill it."""
        self._process.kill()


@dataclass
class SecuredHdfs(Hdfs):
    """An HDFS whose users have tickets of a KDC, and which encrypts what it sends.

    Parameters
    ----------
    folder : Path
    kdc : Kdc
        Runs already, and knows :data:`SERVERS`.
    """

    kdc: Kdc = field(kw_only=True)

    def __post_init__(self) -> None:
        self.java_options = self.kdc.java_options
        super().__post_init__()

    def security(self) -> dict[str, object]:
        """Return the settings of servers and clients, of YARN, too."""
        servers: dict[str, object] = {}
        for server in ("namenode", "datanode"):
            servers[f"dfs.{server}.kerberos.principal"] = f"{SERVER}@{REALM}"
            servers[f"dfs.{server}.keytab.file"] = self.kdc.keytab
        for server in ("resourcemanager", "nodemanager"):
            servers[f"yarn.{server}.principal"] = f"yarn/localhost@{REALM}"
            servers[f"yarn.{server}.keytab"] = self.kdc.keytab
        return {
            **servers,
            "dfs.namenode.delegation.token.renew-interval": SECONDS_OF_A_TOKEN * 1000,
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.rpc.protection": "privacy",
            "dfs.data.transfer.protection": "privacy",
            "dfs.block.access.token.enable": "true",
            "dfs.web.authentication.kerberos.principal": f"HTTP/localhost@{REALM}",
            "dfs.web.authentication.kerberos.keytab": self.kdc.keytab,
            # DataNodes else ask for ports below 1024, or for certificates.
            "ignore.secure.ports.for.testing": "true",
        }

    def identity(self, user: str | None) -> dict[str, str]:
        """Return the variables by which a tool logs in as a user, or as the superuser."""
        return {"KRB5PRINCIPAL": user or SERVER, "KRB5KEYTAB": str(self.kdc.keytab)}
