"""k8s/: valid for two Kubernetes releases, restricted pods, and existing references."""

from __future__ import annotations

from itertools import product
from typing import Any

import kubernetes_validate
import pytest
from kombu.transport.redis import PRIORITY_STEPS, Channel

from orchestrator.adapters.redis.wakeup import READY
from orchestrator.ports.tasks import QUEUES
from tests.integration.deploy.fixtures.compose import mounts, read_compose
from tests.integration.deploy.fixtures.manifests import (
    OVERLAYS,
    allowances,
    build,
    containers,
    environment,
    named,
    of_kind,
    pods,
    selects,
)
from tests.processes.forked import ROOT

RELEASES = ("1.30", "1.35")
LISTS = tuple(f"{queue}{Channel.sep}{step}" if step else queue for queue in QUEUES for step in PRIORITY_STEPS)
"""Lists in which Redis stores waiting messages, one for each priority."""
RUN_BY_READY = "turns"
"""Queue whose messages only wake workers: waiting turns are counted as ready sessions."""
ROLES = ("gateway", "turns", "submissions", "internal", "beat", "flower")

PLAIN = ("dev",)
"""Overlays that work in any cluster: all kinds are Kubernetes' own."""
OF_OPERATORS = {"ScaledObject", "TriggerAuthentication", "ServiceMonitor", "PodMonitor", "PrometheusRule"}
WITH_OPERATORS = tuple(overlay for overlay in OVERLAYS if overlay not in PLAIN)

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


@each_overlay
@pytest.mark.parametrize("release", RELEASES)
def test_they_follow_the_schemas_of_kubernetes(overlay: str, release: str) -> None:
    for manifest in build(overlay):
        if overlay in PLAIN or manifest["kind"] not in OF_OPERATORS:
            kubernetes_validate.validate(manifest, release, strict=True)


@each_overlay
def test_pods_are_closed(overlay: str) -> None:
    for name, pod in pods(overlay).items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec), name
        for container in containers(pod):
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True, name
            assert security["allowPrivilegeEscalation"] is False, name
            assert security["capabilities"] == {"drop": ["ALL"]}, name
            assert "memory" in container["resources"]["limits"], name
            assert {"cpu", "memory"} <= set(container["resources"]["requests"]), name
            tag = container["image"].rpartition(":")[2]
            assert tag[:1].isdigit(), container["image"]
        for volume in spec["volumes"]:
            assert set(volume) & {"emptyDir", "secret", "configMap"}, f"{name}: {volume}"


@each_overlay
def test_nobody_here_has_rights_in_the_cluster(overlay: str) -> None:
    assert not of_kind(overlay, "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    assert named(overlay, "ServiceAccount", "parley")["automountServiceAccountToken"] is False


@each_overlay
def test_a_worker_that_is_ended_has_longer_than_a_turn_may_take(overlay: str) -> None:
    for role in ("turns", "internal"):
        pod = pods(overlay)[f"parley-{role}"]
        (container,) = pod["spec"]["containers"]
        told = environment(overlay, container)
        grace_s = float(told["PARLEY_SHUTDOWN_GRACE_S"])
        assert float(told["PARLEY_TURN_DEADLINE_S"]) < grace_s
        assert grace_s + 10 < pod["spec"]["terminationGracePeriodSeconds"]


@each_overlay
def test_every_role_is_probed_and_waits_for_the_schema(overlay: str) -> None:
    for role in ROLES:
        pod = pods(overlay)[f"parley-{role}"]
        (container,) = pod["spec"]["containers"]
        assert container["args"] == ["serve", role]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if role in {"gateway", "flower"}:
                assert container[probe]["httpGet"]["port"] == "http"
            else:
                assert container[probe]["exec"]["command"][:4] == ["python", "-m", "parley.probe", role]
        assert ("--live" in container["livenessProbe"].get("exec", {}).get("command", "--live")) is True
        (waiting,) = pod["spec"]["initContainers"]
        assert waiting["args"][:2] == ["migrate", "--check"]


@each_overlay
def test_commands_and_variables_are_those_that_compose_gives(overlay: str) -> None:
    """So that Compose and Kubernetes run the same commands."""
    services = read_compose()["services"]
    # Flower has no public URL there, and Prometheus presents a key.
    own = {"OPENAI_BASE_URL", "PARLEY_MODEL", "PARLEY_FLOWER_URL", "PARLEY_OPEN_METRICS"}
    for role in (*ROLES, "migrate"):
        (container,) = pods(overlay)[f"parley-{role}"]["spec"]["containers"]
        assert container["args"] == services[role]["command"]
        assert set(environment(overlay, container)) == set(services[role]["environment"]) - own, role


@each_overlay
def test_secrets_are_mounted_as_compose_mounts_them(overlay: str) -> None:
    """Each process logs in to PostgreSQL with its role's rights; only the migration logs in as the owner."""
    services = read_compose()["services"]
    for role in (*ROLES, "migrate"):
        (items,) = [
            volume["secret"]["items"]
            for volume in pods(overlay)[f"parley-{role}"]["spec"]["volumes"]
            if "secret" in volume
        ]
        assert {item["path"]: item["key"] for item in items} == mounts(services[role]), role


@each_overlay
def test_selectors_and_targets_refer_to_pods_that_are_there(overlay: str) -> None:
    labels = [pod["metadata"]["labels"] for pod in pods(overlay).values()]

    def finds(selector: dict[str, Any]) -> bool:
        return any(selector.items() <= entry.items() for entry in labels)

    for manifest in of_kind(overlay, "Service"):
        assert finds(manifest["spec"]["selector"]), manifest["metadata"]["name"]
    for manifest in of_kind(overlay, "PodDisruptionBudget"):
        assert finds(manifest["spec"]["selector"]["matchLabels"]), manifest["metadata"]["name"]
        assert manifest["spec"]["maxUnavailable"] == 1
    for manifest in of_kind(overlay, "HorizontalPodAutoscaler", "ScaledObject"):
        target = named(overlay, "Deployment", manifest["spec"]["scaleTargetRef"]["name"])
        assert "replicas" not in target["spec"], "applying it again would undo what the scaler decided"
    (ingress,) = of_kind(overlay, "Ingress")
    (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
    assert named(overlay, "Service", path["backend"]["service"]["name"])


@each_overlay
def test_nothing_comes_in_or_goes_out_unless_it_is_named(overlay: str) -> None:
    everything = named(overlay, "NetworkPolicy", "parley-nothing")["spec"]
    assert everything == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    (outside,) = named(overlay, "NetworkPolicy", "parley-models")["spec"]["egress"]
    assert "169.254.0.0/16" in outside["to"][0]["ipBlock"]["except"]
    assert outside["ports"] == [{"port": 443, "protocol": "TCP"}]


STORE_PORTS = ("5432", "5671", "5672", "6379", "6380", "6432")
PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16")
OUTSIDE = {("0.0.0.0/0 without private", "443")}
NAMES = {("all in kube-system", "53"), ("all in kube-system", "53/UDP")}
COMING_IN = {
    "gateway": {("all in ingress-nginx", "8600"), ("all in monitoring", "8600")},
    "internal,submissions,turns": {("all in monitoring", "9464")},
}
GOING_OUT = {"internal,turns": OUTSIDE, "parley": NAMES | {*product(PRIVATE, STORE_PORTS)}}
"""Stores can have any address in a private network."""


@each_overlay
def test_what_is_needed_is_let_through_and_nothing_else(overlay: str) -> None:
    coming_in, going_out = COMING_IN, GOING_OUT
    if overlay == "dev":
        stores = {"postgres": "5432", "redis": "6379"}
        coming_in = COMING_IN | {
            name: {("all in keda", port), ("parley in here", port)} for name, port in stores.items()
        }
        going_out = {
            "internal,turns": OUTSIDE,
            "parley": NAMES | {(f"{name} in here", port) for name, port in stores.items()},
        }

    assert allowances(build(overlay), "ingress") == coming_in
    assert allowances(build(overlay), "egress") == going_out


@each_overlay
def test_secrets_are_referred_to_and_stand_nowhere(overlay: str) -> None:
    needed = {
        item["key"]
        for pod in pods(overlay).values()
        for volume in pod["spec"]["volumes"]
        if "secret" in volume
        for item in volume["secret"]["items"]
    }
    for manifest in of_kind(overlay, "TriggerAuthentication"):
        for reference in manifest["spec"]["secretTargetRef"]:
            assert reference["name"] == "parley"
            needed.add(reference["key"])
    if overlay not in PLAIN:
        assert not of_kind(overlay, "Secret")
        places = {ROOT / "k8s" / "overlays" / name / "kustomization.yaml" for name in ("prod", overlay)}
        text = "".join(place.read_text() for place in places)
        assert all(key in text for key in needed), "the file names every key that is needed"
    else:
        (secret,) = of_kind(overlay, "Secret")
        assert secret["metadata"]["name"] == "parley"
        assert needed <= set(secret["data"])


@each_overlay
def test_scalers_are_as_keda_reads_them(overlay: str) -> None:
    authentications = {manifest["metadata"]["name"] for manifest in of_kind(overlay, "TriggerAuthentication")}
    for manifest in of_kind(overlay, "ScaledObject"):
        assert manifest["apiVersion"] == "keda.sh/v1alpha1"
        spec = manifest["spec"]
        assert 1 <= spec["minReplicaCount"] < spec["maxReplicaCount"]
        names = [trigger["name"] for trigger in spec["triggers"]]
        assert len(set(names)) == len(names)
        for trigger in spec["triggers"]:
            assert all(isinstance(value, str) for value in trigger["metadata"].values())
            match trigger["type"]:
                case "redis":
                    assert set(trigger["metadata"]) == {"listName", "listLength"}
                    assert trigger["metadata"]["listName"] in {READY, *LISTS}
                case "postgresql":
                    assert {"query", "targetQueryValue"} <= set(trigger["metadata"])
                case "rabbitmq":
                    assert set(trigger["metadata"]) == {"protocol", "queueName", "mode", "value"}
                    assert trigger["metadata"]["queueName"] == trigger["name"]
                    assert trigger["name"] in QUEUES
                case kind:
                    assert kind == "cpu"
                    continue
            assert trigger["authenticationRef"]["name"] in authentications


def test_what_waits_is_counted_at_every_priority() -> None:
    counted = {
        trigger["metadata"]["listName"]
        for scaled in of_kind("prod", "ScaledObject")
        for trigger in scaled["spec"]["triggers"]
        if trigger["type"] == "redis"
    }
    assert counted == {READY, *LISTS} - {name for name in LISTS if name.startswith(RUN_BY_READY)}


@pytest.mark.parametrize("overlay", WITH_OPERATORS)
def test_workers_are_scraped_where_they_tell_their_metrics(overlay: str) -> None:
    (monitor,) = of_kind(overlay, "PodMonitor")
    chosen = {
        name: pod
        for name, pod in pods(overlay).items()
        if selects(monitor["spec"]["selector"], pod["metadata"]["labels"])
    }
    assert set(chosen) == {"parley-turns", "parley-submissions", "parley-internal"}
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    for pod in chosen.values():
        (container,) = pod["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        told = environment(overlay, container)
        assert ports[endpoint["port"]] == int(told["PARLEY_METRICS_PORT"])
        assert told["PARLEY_METRICS_HOST"] == "0.0.0.0"


@each_overlay
def test_what_comes_in_reaches_a_port_on_which_somebody_listens(overlay: str) -> None:
    """From the Ingress over the Service to the container, by name."""
    (ingress,) = of_kind(overlay, "Ingress")
    backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    for service in of_kind(overlay, "Service"):
        (pod,) = [
            pod
            for pod in pods(overlay).values()
            if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        ]
        listening = {port["name"] for port in pod["spec"]["containers"][0]["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= listening
    ports = named(overlay, "Service", backend["name"])["spec"]["ports"]
    assert backend["port"]["name"] in {port["name"] for port in ports}


@each_overlay
def test_each_budget_protects_one_role_and_leaves_one_pod_to_move(overlay: str) -> None:
    guarded = [
        sorted(
            name
            for name, pod in pods(overlay).items()
            if selects(budget["spec"]["selector"], pod["metadata"]["labels"])
        )
        for budget in of_kind(overlay, "PodDisruptionBudget")
    ]
    roles = ("beat", "gateway", "internal", "submissions", "turns")
    assert sorted(guarded) == [[f"parley-{role}"] for role in roles]


def test_the_console_logs_in_as_the_owner_and_does_not_run_until_asked() -> None:
    for overlay in OVERLAYS:
        assert named(overlay, "Deployment", "parley-console")["spec"]["replicas"] == 0
        (volume,) = [
            entry for entry in pods(overlay)["parley-console"]["spec"]["volumes"] if "secret" in entry
        ]
        assert {"key": "owner_database_url", "path": "database_url"} in volume["secret"]["items"]


def test_redis_of_the_small_cluster_is_configured_as_that_of_compose() -> None:
    """Kustomize accepts no files from outside its folder, so a copy exists."""
    assert (ROOT / "k8s/overlays/dev/redis.conf").read_bytes() == (ROOT / "deploy/redis.conf").read_bytes()
