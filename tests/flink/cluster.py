"""A standalone cluster of Apache Flink on loopback, from the Python package: a JobManager and some TaskManagers.

It lives in an environment of its own (`.ci/install-flink`), since PyFlink pins numpy and others.
"""

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.processes import free_ports, wait_until

HOME = Path(os.environ.get("SHIFTWATCH_FLINK", "/opt/shiftwatch-flink"))
"""What `.ci/install-flink` has made."""
READY_SECONDS = 120.0

_RECOMMENDED = Path(__file__).parents[2] / "deploy" / "flink" / "config.yaml"
_SETTINGS = {
    "jobmanager.memory.process.size": "1g",
    "taskmanager.memory.process.size": "1280m",
    "taskmanager.memory.managed.size": "256m",
    "taskmanager.numberOfTaskSlots": "2",
    "parallelism.default": "4",
    "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1",
    "taskmanager.host": "127.0.0.1",
    "rest.bind-address": "127.0.0.1",
    # Nobody waits for defaults made for a data centre: a TaskManager that is killed is missed after seconds.
    "heartbeat.interval": "1000",
    "heartbeat.timeout": "8000",
}
# The second compiler never pays back in a cluster that lives for minutes.
_JAVA = "-XX:TieredStopAtLevel=1 -Xshare:auto"


def python() -> Path:
    """The interpreter of the environment."""
    return HOME / "venv" / "bin" / "python"


def unavailable() -> str | None:
    """Why there can be no cluster here."""
    return None if python().exists() else f"no PyFlink in {HOME}: .ci/install-flink FOLDER, and SHIFTWATCH_FLINK=FOLDER"


def _distribution() -> Path:
    return next(python().parent.parent.glob("lib/python3.*/site-packages/pyflink"))


class FlinkCluster:
    """One JobManager, and as many TaskManagers as were started; each is a process that may be killed.

    A TaskManager that ends by itself is started again (`tend`), as whatever runs it in production does.
    """

    def __init__(self, folder: Path, managers: int = 2) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        rest, rpc = free_ports(2)
        self.address = f"127.0.0.1:{rest}"
        own = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": rpc,
            "rest.address": "127.0.0.1",
            "rest.port": rest,
            "execution.checkpointing.dir": f"file://{folder}/checkpoints",
            "execution.checkpointing.savepoint-dir": f"file://{folder}/savepoints",
            "io.tmp.dirs": str(folder / "tmp"),
            "python.executable": str(python()),
        }
        conf = folder / "conf"
        conf.mkdir()
        (folder / "tmp").mkdir()
        shipped = (_distribution() / "conf" / "config.yaml").read_text()
        opens = re.findall(r"^ +all: (--add-.*)$", shipped, re.MULTILINE)  # Java 17 wants them
        settings = {"env.java.opts.all": f"{opens[0]} {_JAVA}"} | _SETTINGS | own
        ours = "".join(f"{name}: {value}\n" for name, value in settings.items())
        (conf / "config.yaml").write_text(_RECOMMENDED.read_text() + ours)
        for file in (_distribution() / "conf").glob("log4j*"):
            (conf / file.name).write_bytes(file.read_bytes())
        self._started = 0
        self.manager = self._start("jobmanager")
        self.workers = [self._start("taskmanager") for _ in range(managers)]

    def ready(self) -> None:
        """Wait until all TaskManagers have come. One may have ended with the task of a job that was cancelled."""

        def there() -> bool:
            self.tend()
            return self._slots() == 2 * len(self.workers)

        wait_until(there, "a Flink cluster", READY_SECONDS, pause=0.5)

    def _start(self, role: str) -> "subprocess.Popen[bytes]":
        self._started += 1
        log = self.folder / f"{role}-{self._started}.log"
        with log.open("wb") as output:
            return subprocess.Popen(
                ["bash", str(_distribution() / "bin" / f"{role}.sh"), "start-foreground"],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )

    @property
    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "FLINK_CONF_DIR": str(self.folder / "conf"),
            "FLINK_LOG_DIR": str(self.folder),
            "FLINK_PID_DIR": str(self.folder / "tmp"),
            "PATH": f"{python().parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }

    def submit(self, config: Path, *options: str) -> str:
        """The id of a job for a configuration."""
        command = [str(python()), "-m", "monitor", "flink", "submit", str(config), "--jobmanager", self.address]
        return self._submitted([*command, *options])

    def run_program(self, config: Path, parallelism: int, savepoint: str) -> str:
        """The same by Flink's own client, which is how its operator for Kubernetes starts a job."""
        command = ["bash", str(_distribution() / "bin" / "flink"), "run", "-m", self.address]
        command += ["-p", str(parallelism), "-s", savepoint, "-pyclientexec", str(python())]
        return self._submitted([*command, "-py", str(_RECOMMENDED.with_name("job.py")), str(config)])

    def _submitted(self, command: list[str]) -> str:
        self.ready()
        command += ["--jars", str(HOME / "jars"), "--python", str(python())]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._environment)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return re.findall(r"\b[0-9a-f]{32}\b", done.stdout)[-1]

    def ask(self, path: str) -> Any:
        """An answer of the REST interface."""
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.load(answer)

    def state(self, job: str) -> str:
        return str(self.ask(f"/jobs/{job}")["state"])

    def checkpoints(self, job: str, what: str = "completed") -> int:
        """How many a job has completed, or has been restored from. What is said is up to three seconds old."""
        return int(self.ask(f"/jobs/{job}/checkpoints")["counts"][what])

    def tend(self) -> None:
        """Start again what has ended by itself."""
        for worker in [each for each in self.workers if each.poll() is not None]:
            _end(worker)
            self.workers[self.workers.index(worker)] = self._start("taskmanager")

    def account(self, job: str) -> str:
        """What Flink says of a job that does not get on: its tasks, checkpoints and failures, and where they stand."""
        asked = ("/overview", f"/jobs/{job}", f"/jobs/{job}/checkpoints", f"/jobs/{job}/exceptions?maxExceptions=3")
        said = [f"{path}\n{json.dumps(self.ask(path))[:6_000]}" for path in asked]
        tasks = [vertex["name"] for vertex in self.ask(f"/jobs/{job}")["vertices"]]
        for manager in self.ask("/taskmanagers")["taskmanagers"]:
            with suppress(OSError):  # one that was killed and is not yet missed does not answer
                threads = self.ask(f"/taskmanagers/{manager['id']}/thread-dump")["threadInfos"]
                stand = (each for each in threads if each["threadName"].startswith((*tasks, "pool-")))
                said += [each["stringifiedThreadInfo"] for each in stand]
        return "\n".join(said)

    def stop(self, job: str) -> str:
        """Stop a job with a savepoint; says where it is. Asked again where a task was just being restarted."""
        for _ in range(30):
            done = self._stopped(job)
            if "location" in done:
                return str(done["location"])
            time.sleep(2.0)
        raise AssertionError(f"{done}\n{self.account(job)}")

    def _stopped(self, job: str) -> Any:
        """What became of one attempt."""
        request = urllib.request.Request(
            f"http://{self.address}/jobs/{job}/stop", data=b'{"drain": false}', method="POST"
        )
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own
            trigger = json.load(answer)["request-id"]
        done: dict[str, Any] = {}

        def completed() -> bool:
            done.update(self.ask(f"/jobs/{job}/savepoints/{trigger}"))
            return bool(done["status"]["id"] == "COMPLETED")

        wait_until(completed, "a savepoint", READY_SECONDS, pause=0.5)
        return done["operation"]

    def cancel(self, job: str) -> None:
        """Without a savepoint; returns when all of it is gone."""
        request = urllib.request.Request(f"http://{self.address}/jobs/{job}?mode=cancel", method="PATCH")
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - our own
        wait_until(lambda: self.state(job) == "CANCELED", "a job that is cancelled", READY_SECONDS, pause=0.5)
        wait_until(lambda: not self._python(), "workers that are gone", READY_SECONDS)

    def processor_seconds(self) -> float:
        """Of the TaskManagers and all that they have started, and of what has ended and was waited for."""
        ticks = sum(_ticks(pid) for worker in self.workers for pid in _session(worker.pid))
        return ticks / os.sysconf("SC_CLK_TCK")

    def kill_python(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Kill or stop the first of the workers' Python processes; says how many there were."""
        found = self._python()
        if found:
            os.kill(found[0], how)
        return len(found)

    def kill_worker(self, which: int = 0) -> None:
        """SIGKILL a TaskManager with all its processes, as a container would go, and start another."""
        gone = self.workers.pop(which)
        _end(gone)
        self.workers.append(self._start("taskmanager"))

    def close(self) -> None:
        for process in [*self.workers, self.manager]:
            _end(process)

    def _python(self) -> list[int]:
        return [pid for worker in self.workers for pid in _session(worker.pid) if _runs_python(pid)]

    def _slots(self) -> int:
        try:
            return int(self.ask("/overview")["slots-total"])
        except OSError:
            return 0


def _end(process: "subprocess.Popen[bytes]") -> None:
    """With all that it has started, as when a container goes."""
    for pid in {*_session(process.pid), process.pid}:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _session(leader: int) -> list[int]:
    """The processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def _ticks(pid: int) -> int:
    """Of a process and of its children that have ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15]))
    return 0


def _runs_python(pid: int) -> bool:
    """Whether it is a worker that runs our functions."""
    with suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"python" in command[0] and any(b"pyflink.fn_execution" in word for word in command)
    return False
