"""Apache Kafka itself, from its jars on Maven Central: KRaft, loopback, one process per broker, in a folder of its own.

The jars are resolved once into a cache. `unavailable()` says in words why it cannot run here, if it cannot.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.processes import BROKERS, free_ports

VERSION = "4.1.1"
READY_SECONDS = 240.0
_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>shiftwatch.tests</groupId><artifactId>kafka-jars</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version>
  </dependency><dependency>
    <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
  </dependency></dependencies>
</project>
"""
# One node has to be enough for every internal topic, and nobody waits for defaults made for a data centre.
_SETTINGS = {
    "offsets.topic.num.partitions": 2,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "log.retention.check.interval.ms": 500,
    "log.initial.task.delay.ms": 500,
    "log.segment.delete.delay.ms": 100,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "auto.create.topics.enable": "false",
    "controlled.shutdown.enable": "true",
}


def cache_folder() -> Path:
    """Where the jars stay between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "shiftwatch-tests" / f"kafka-{VERSION}"


def unavailable() -> str | None:
    """Why Apache Kafka cannot be run here; None if it can. Resolves the jars if they are not there yet."""
    if shutil.which("java") is None:
        return "no java on the path"
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', version)
    if found is None or int(found[1]) < 17:
        return f"Apache Kafka {VERSION} needs Java 17, found {version.splitlines()[0] if version else 'none'}"
    if (cache_folder() / "complete").exists():
        return None
    if shutil.which("mvn") is None:
        return "no mvn on the path, and the jars are not in the cache"
    return _resolve(cache_folder())


def _resolve(folder: Path) -> str | None:
    """Ask Maven for the server and all that it needs; the marker comes last, so half a folder never counts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(_POM.format(version=VERSION))
    command = [
        "mvn",
        "-q",
        "-B",
        "dependency:copy-dependencies",
        f"-DoutputDirectory={folder}",
        "-DincludeScope=runtime",
    ]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    except subprocess.TimeoutExpired:
        return "Maven did not bring the jars within 240 s"
    if done.returncode != 0:
        return f"Maven could not bring the jars: {done.stdout[-500:]}"
    (folder / "complete").touch()
    return None


@dataclass(frozen=True)
class Security:
    """What a broker's further listeners ask of their clients: a password, in the open and over TLS."""

    users: Mapping[str, str]
    """Names and passwords, for PLAIN and for SCRAM-SHA-256 and -512."""
    certificate: Path
    """PEM with key and certificate."""
    trusted: Path
    """PEM of the authority that signs what clients show over TLS; they need not show anything."""
    superusers: Sequence[str] = ("ANONYMOUS",)
    """Who may do everything; everybody else needs a permission, which nobody gives."""

    def settings(self) -> dict[str, object]:
        accounts = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
        module = "org.apache.kafka.common.security"
        found: dict[str, object] = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificate),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            "listener.name.tls.ssl.client.auth": "requested",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": ";".join(f"User:{name}" for name in self.superusers),
        }
        for listener in ("secure", "tls"):
            login = f"listener.name.{listener}"
            found[f"{login}.plain.sasl.jaas.config"] = f"{module}.plain.PlainLoginModule required {accounts};"
            for mechanism in ("scram-sha-256", "scram-sha-512"):
                found[f"{login}.{mechanism}.sasl.jaas.config"] = f"{module}.scram.ScramLoginModule required;"
        return found

    def format_arguments(self) -> list[str]:
        return [
            argument
            for name, password in self.users.items()
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            for argument in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]


class Broker:
    """One Kafka process with its own folder and ports; stopped and started again it keeps both."""

    def __init__(self, node: int, folder: Path, settings: Mapping[str, object], port: int) -> None:
        self.node = node
        self.address = f"127.0.0.1:{port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True)
        lines = [f"{name}={value}" for name, value in settings.items()]
        (folder / "server.properties").write_text("\n".join([*lines, f"log.dirs={folder / 'data'}", ""]))

    def _java(self, *arguments: str) -> list[str]:
        simple = "-Dorg.slf4j.simpleLogger"
        logging = [f"{simple}.defaultLogLevel=warn", f"{simple}.log.kafka.server.KafkaRaftServer=info"]
        # The second compiler never pays back in a broker that lives for seconds.
        options = ["-Xmx768m", "-Xms128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", *logging]
        return ["java", *options, "-cp", f"{cache_folder()}/*", *arguments]

    def format(self, cluster: str, *arguments: str) -> None:
        command = self._java(
            "kafka.tools.StorageTool", "format", "-t", cluster, "-c", f"{self._folder}/server.properties"
        )
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Start and wait until it says that it serves."""
        log = self._folder / "broker.log"
        begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            command = self._java("kafka.Kafka", str(self._folder / "server.properties"))
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + READY_SECONDS
        while b"Kafka Server started" not in log.read_bytes()[begin:]:
            assert self._process.poll() is None, f"Kafka ended:\n{log.read_text()[-3000:]}"
            assert time.monotonic() < deadline, (
                f"Kafka is not ready after {READY_SECONDS} s:\n{log.read_text()[-3000:]}"
            )
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """SIGTERM hands its leaderships over first, SIGKILL does not."""
        if self._process is None:
            return
        self._process.send_signal(how)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


class Cluster:
    """One or more brokers; the first is also the controller."""

    def __init__(
        self,
        folder: Path,
        brokers: int = 1,
        settings: Mapping[str, object] | None = None,
        security: Security | None = None,
    ) -> None:
        controller, *ports = free_ports(1 + 3 * brokers, BROKERS)
        self.brokers = []
        for node in range(1, brokers + 1):
            port, secure_port, tls_port = ports[3 * (node - 1) : 3 * node]
            listeners = [f"PLAINTEXT://127.0.0.1:{port}"]
            protocols = ["PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT"]
            if security is not None:
                listeners += [f"SECURE://127.0.0.1:{secure_port}", f"TLS://127.0.0.1:{tls_port}"]
                protocols += ["SECURE:SASL_PLAINTEXT", "TLS:SASL_SSL"]
            advertised = ",".join(listeners)
            own: dict[str, object] = {
                "node.id": node,
                "process.roles": "broker,controller" if node == 1 else "broker",
                "listeners": ",".join([*listeners, *([f"CONTROLLER://127.0.0.1:{controller}"] if node == 1 else [])]),
                "advertised.listeners": advertised,
                "listener.security.protocol.map": ",".join(protocols),
                "controller.listener.names": "CONTROLLER",
                "inter.broker.listener.name": "PLAINTEXT",
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            }
            merged = _SETTINGS | own | (security.settings() if security else {}) | dict(settings or {})
            self.brokers.append(Broker(node, folder / f"node-{node}", merged, port))
        self.bootstrap = ",".join(broker.address for broker in self.brokers)
        self.secure_bootstrap, self.tls_bootstrap = f"127.0.0.1:{ports[1]}", f"127.0.0.1:{ports[2]}"
        for broker in self.brokers:
            broker.format("c2hpZnR3YXRjaC10ZXN0cw", *(security.format_arguments() if security else []))
        for broker in self.brokers:
            broker.start()

    def close(self) -> None:
        for broker in reversed(self.brokers):
            broker.stop(signal.SIGKILL)
