"""`shiftwatch flink`: the same streams on Apache Flink, where one process cannot hold them."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from monitor.errors import ConfigurationError, ShiftwatchError


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """`shiftwatch flink check`, `shiftwatch flink submit` and `shiftwatch flink watch`."""
    parser = commands.add_parser("flink", help="run the streams of a configuration on Apache Flink")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    checking = actions.add_parser("check", help="whether a job can do what a configuration says; needs no Flink")
    checking.add_argument("config", type=Path, help="a TOML file")
    checking.set_defaults(run=_check)
    submitting = actions.add_parser("submit", help="submit the job; wants PyFlink (deploy/flink)")
    submitting.add_argument("config", type=Path, help="a TOML file")
    submitting.add_argument("--jobmanager", default="", help="its REST address, as host:port (default: Flink's own)")
    submitting.add_argument("--parallelism", type=int, default=0, help="tasks side by side (default: Flink's own)")
    submitting.add_argument("--jars", type=Path, help="what deploy/flink/build has built, if not in Flink's `lib`")
    submitting.add_argument("--python", default="", help="the interpreter on the workers (default: python)")
    submitting.add_argument("--savepoint", default="", help="go on from a savepoint or a checkpoint")
    submitting.set_defaults(run=_submit)
    watching = actions.add_parser("watch", help="status page, metrics and API of a job; needs no Flink")
    watching.add_argument("config", type=Path, help="the job's TOML file, with a [server]")
    watching.set_defaults(run=_watch)


def _check(given: argparse.Namespace) -> int:
    from monitor.commands.flink_plan import JobPlan

    plan = JobPlan(given.config)
    print(f"{given.config}: fine. A job would read {', '.join(plan.source.topics)} and write to {plan.sink.results}")
    return 0


def _watch(given: argparse.Namespace) -> int:
    from monitor.commands.flink_watch import watch

    return watch(given.config)


def _submit(given: argparse.Namespace) -> int:
    from monitor.commands.flink_plan import JobPlan

    problems = list(_problems(given))
    if problems:
        raise ConfigurationError(problems)
    plan = JobPlan(given.config)
    try:
        from connectors.flink.job import Cluster, submit
    except ImportError as error:
        raise ShiftwatchError(
            f"{error}: submit from an environment of its own (pip install 'shiftwatch[flink]')"
        ) from error
    from connectors.flink.stages import Stages

    cluster = Cluster(given.jobmanager, given.parallelism, given.jars, given.python, given.savepoint)
    stages = Stages(plan.maker, plan.merger, sorted(plan.watched), plan.topics, plan.sink.max_message_bytes)
    job = submit(
        stages,
        plan.source.topics,
        plan.reading,
        plan.writing,
        name=plan.name,
        checkpoint=plan.config.pace.commit,
        cluster=cluster,
    )
    print(f"{given.config}: submitted as job {job}")
    return 0


def _problems(given: argparse.Namespace) -> Iterator[str]:
    """Arguments of which Flink would say no more than where it stumbled."""
    if given.jobmanager and re.fullmatch(r"[^:/]+:\d+", given.jobmanager) is None:
        yield f"--jobmanager: want host:port, such as flink:8081, got {given.jobmanager!r}"
    if given.parallelism < 0:
        yield f"--parallelism: want 1 or more, got {given.parallelism}"
    if given.jars is not None and not any(given.jars.glob("*.jar")):
        yield f"--jars: there are no jars in {given.jars}: build them with deploy/flink/build"
