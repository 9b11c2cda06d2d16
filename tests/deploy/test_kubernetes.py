"""The manifests fit their schemas, agree with each other, and their configurations open."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from monitor.commands.flink_plan import JobPlan
from monitor.settings import ServerSettings
from monitor.web.server import serving
from tests.deploy.parts import DEPLOY, need, opened, prometheus, tool, until
from tests.web.made_up import Story, reference

FOLDER = DEPLOY / "kubernetes"
KINDS = ("deployment.yaml", "statefulset.yaml")
WATCHER = "flinkwatch.yaml"
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}


def closed(**properties: Any) -> dict[str, Any]:
    """An object with these properties, all of them, and no other."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


SERVICE_MONITOR = closed(
    apiVersion={"const": "monitoring.coreos.com/v1"},
    kind={"const": "ServiceMonitor"},
    metadata=closed(name=NAME, namespace=NAME, labels=LABELS),
    spec=closed(
        jobLabel={"type": "string"},
        selector=closed(matchLabels=LABELS),
        endpoints={
            "type": "array",
            "items": closed(
                port=NAME,
                path={"type": "string"},
                interval={"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
                authorization=closed(type={"enum": ["Bearer"]}, credentials=closed(name=NAME, key={"type": "string"})),
            ),
        },
    ),
)
"""Of the operator's API those fields that are used here."""

RESOURCES = closed(cpu={"type": "number"}, memory={"type": "string", "pattern": "^[0-9]+m$"})
MOUNT = closed(name=NAME, mountPath={"type": "string"})
FLINK_DEPLOYMENT = closed(
    apiVersion={"const": "flink.apache.org/v1beta1"},
    kind={"const": "FlinkDeployment"},
    metadata=closed(name=NAME, namespace=NAME, labels=LABELS),
    spec=closed(
        image={"type": "string"},
        flinkVersion={"type": "string", "pattern": "^v[0-9]_[0-9]+$"},
        serviceAccount=NAME,
        flinkConfiguration=LABELS,
        podTemplate=closed(
            spec=closed(
                containers={
                    "type": "array",
                    "items": closed(
                        name={"const": "flink-main-container"},
                        env={"type": "array"},
                        volumeMounts={"type": "array", "items": MOUNT},
                    ),
                },
                volumes={"type": "array"},
            )
        ),
        jobManager=closed(resource=RESOURCES),
        taskManager=closed(replicas={"type": "integer"}, resource=RESOURCES),
        job=closed(
            jarURI={"type": "string", "pattern": "^local://"},
            entryClass={"type": "string"},
            args={"type": "array", "items": {"type": "string"}},
            parallelism={"type": "integer"},
            upgradeMode={"enum": ["last-state", "savepoint", "stateless"]},
            state={"enum": ["running", "suspended"]},
        ),
    ),
)
"""Of the API of Flink's operator those fields that are used here."""


def manifests(*files: str) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from yaml.safe_load_all((FOLDER / file).read_text(encoding="utf-8"))


def the(kind: str, *files: str, name: str = "") -> dict[str, Any]:
    (found,) = (one for one in manifests(*files) if one["kind"] == kind and name in ("", one["metadata"]["name"]))
    return found


def workload(file: str) -> dict[str, Any]:
    (found,) = (one for one in manifests(file) if one["kind"] in ("Deployment", "StatefulSet"))
    return found


def test_the_manifests_fit_the_schemas_of_kubernetes() -> None:
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("kubernetes-validate is not installed: pip install '.[deploy]'")
    files = [str(FOLDER / file) for file in ("shiftwatch.yaml", *KINDS, WATCHER)]
    tool(sys.executable, "-m", "kubernetes_validate", "--strict", *files)


@pytest.mark.parametrize("file", [*KINDS, WATCHER])
def test_what_a_pod_refers_to_is_there_or_is_made_by_hand(file: str) -> None:
    pod = workload(file)["spec"]["template"]["spec"]
    named = {(one["kind"], one["metadata"]["name"]) for one in manifests("shiftwatch.yaml", file)}
    (container,) = pod["containers"]
    sources = [env["valueFrom"] for env in container["env"]]
    secrets = {source["secretKeyRef"]["name"] for source in sources if "secretKeyRef" in source}
    assert secrets == {"shiftwatch"}, "the one that the guide says how to make"
    assert ("ServiceAccount", pod["serviceAccountName"]) in named
    claims = {one["metadata"]["name"] for one in workload(file)["spec"].get("volumeClaimTemplates", [])}
    volumes = {volume["name"] for volume in pod["volumes"]} | claims
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    for volume in pod["volumes"]:
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in named
        if "persistentVolumeClaim" in volume:
            assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in named


@pytest.mark.parametrize("file", [*KINDS, WATCHER])
def test_services_budget_and_policy_mean_its_pods(file: str) -> None:
    spec = workload(file)["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    for one in manifests("shiftwatch.yaml"):
        selector = one.get("spec", {}).get("selector") or one.get("spec", {}).get("podSelector")
        if selector:
            assert selector.get("matchLabels", selector).items() <= labels.items(), one["metadata"]
    (container,) = spec["template"]["spec"]["containers"]
    assert [port["name"] for port in container["ports"]] == ["http"]


def test_one_pod_is_the_rule_and_the_one_with_state_has_a_disk_and_a_name() -> None:
    assert [workload(file)["kind"] for file in KINDS] == ["Deployment", "StatefulSet"]
    assert [workload(file)["spec"]["replicas"] for file in KINDS] == [1, 1]
    spec = workload("statefulset.yaml")["spec"]
    service = the("Service", "shiftwatch.yaml", name=spec["serviceName"])
    assert service["spec"]["clusterIP"] == "None"
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "state"


@pytest.mark.parametrize("file", [*KINDS, WATCHER])
def test_the_configuration_of_the_first_pod_opens_and_keeps_state_where_the_disk_is(file: str, tmp_path: Path) -> None:
    spec = workload(file)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    path = Path(container["args"][-1].replace("$(POD_NAME)", "shiftwatch-0"))
    loaded = opened(the("ConfigMap", file)["data"][path.name], tmp_path)
    stores = [str(stream.labels.store.parent) for stream in loaded.streams.values() if stream.labels]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert path.parent == Path(mounts["configuration"])
    assert stores == ([mounts["state"]] if "state" in mounts else [])
    assert loaded.server is not None
    assert loaded.server.port == container["ports"][0]["containerPort"]


def test_the_feed_is_open_to_scoring_services_and_to_prometheus_and_to_nobody_else() -> None:
    (rule,) = the("NetworkPolicy", "shiftwatch.yaml")["spec"]["ingress"]
    prometheus_there, scoring = rule["from"]
    assert prometheus_there["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "monitoring"}
    assert scoring["podSelector"]["matchLabels"] == {"shiftwatch/reads-feed": "true"}
    assert [port["port"] for port in rule["ports"]] == ["http"]


def test_the_service_monitor_reaches_every_pod_with_the_token_as_the_job_of_the_alerts() -> None:
    monitor = the("ServiceMonitor", "servicemonitor.yaml")
    jsonschema.validate(monitor, SERVICE_MONITOR)
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    (service,) = (
        one
        for one in manifests("shiftwatch.yaml")
        if one["kind"] == "Service" and wanted <= one["metadata"]["labels"].items()
    )
    assert service["spec"]["publishNotReadyAddresses"], "a pod that is not ready is one to hear of"
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "shiftwatch"
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert endpoint["authorization"]["credentials"] == {"name": "shiftwatch", "key": "token"}


def test_a_prometheus_without_the_operator_scrapes_with_the_token(tmp_path: Path) -> None:
    need("prometheus", "promtool")
    tool("promtool", "check", "config", "--syntax-only", str(FOLDER / "prometheus.yml"))
    (scrape,) = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    (found,) = scrape.pop("dns_sd_configs")
    service = the("Service", "shiftwatch.yaml", name="shiftwatch-members")
    (port,) = (port["port"] for port in service["spec"]["ports"])
    assert (found["port"], found["names"]) == (port, ["shiftwatch-members.shiftwatch.svc.cluster.local"])
    token = tmp_path / "token"
    token.write_text("a-long-enough-token", encoding="utf-8")
    scrape["authorization"]["credentials_file"] = str(token)
    settings = ServerSettings(port=0, token=token.read_text(encoding="utf-8"))
    with serving(settings, Story().history) as address, prometheus(tmp_path, [address], scrape=scrape) as server:
        until(lambda: server.query('up{job="shiftwatch"} == 1'), 90, "a scrape with the token")


def test_the_job_on_flink_fits_the_operator_and_its_cluster_is_told_what_the_tested_one_is() -> None:
    job = the("FlinkDeployment", "flinkdeployment.yaml")
    jsonschema.validate(job, FLINK_DEPLOYMENT)
    spec, said = job["spec"], job["spec"]["flinkConfiguration"]
    recommended = yaml.safe_load((DEPLOY / "flink" / "config.yaml").read_text(encoding="utf-8"))
    assert {name: str(value) for name, value in recommended.items()}.items() <= said.items()
    assert spec["taskManager"]["replicas"] * int(said["taskmanager.numberOfTaskSlots"]) == spec["job"]["parallelism"]
    pod = spec["podTemplate"]["spec"]
    assert {each["name"] for each in pod["containers"][0]["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    image = (DEPLOY / "flink" / "Containerfile").read_text(encoding="utf-8")
    version = spec["flinkVersion"].removeprefix("v").replace("_", ".")
    assert f"flink:{version}" in image
    assert f"flink-python-{version}." in spec["job"]["jarURI"]
    assert f"apache-flink=={version}." in (DEPLOY / "locks" / "flink.txt").read_text(encoding="utf-8")
    program, configuration = spec["job"]["args"][1:]
    assert f"COPY deploy/flink/{Path(program).name} {program}" in image
    assert Path(configuration).parent.as_posix() in [each["mountPath"] for each in pod["containers"][0]["volumeMounts"]]


def test_job_and_watcher_have_one_configuration_and_all_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = the("FlinkDeployment", "flinkdeployment.yaml")["spec"]
    pods = job["podTemplate"]["spec"], workload(WATCHER)["spec"]["template"]["spec"]
    (name, path), *others = {
        (volume["configMap"]["name"], args[-1])
        for pod, args in zip(pods, (job["job"]["args"], pods[1]["containers"][0]["args"]), strict=True)
        for volume in pod["volumes"]
        if "configMap" in volume
    }
    assert others == []
    text = the("ConfigMap", WATCHER, name=name)["data"][Path(path).name]
    used = set(re.findall(r"\$\{(\w+)\}", text))
    for pod in pods:
        (container,) = pod["containers"]
        assert used <= {each["name"] for each in container["env"]}
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts["configuration"] == str(Path(path).parent)
        assert f'reference = "{mounts["references"]}/' in text
    for variable in used:
        monkeypatch.setenv(variable, "a-long-enough-secret")
    reference(2).save(tmp_path / "fraud-v3.ref")
    (tmp_path / "job.toml").write_text(text.replace(mounts["references"], str(tmp_path)), encoding="utf-8")
    plan = JobPlan(tmp_path / "job.toml")
    assert plan.sink.states is not None
    assert plan.config.server is not None
