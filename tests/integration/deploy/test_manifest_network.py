"""k8s/ network policies: all required connections are allowed, and no others."""

from __future__ import annotations

from itertools import product

import pytest

from tests.integration.deploy.fixtures.manifests import OVERLAYS, of_kind, pods
from tests.integration.deploy.fixtures.reach import Network, Peer

PORTS = (22, 53, 80, 443, 4369, 5432, 5555, 5671, 5672, 6379, 6380, 6432, 8080, 8600, 9464, 10250)
STORES = {5432, 5671, 5672, 6379, 6380, 6432}
RUN_TURNS = ("parley-turns", "parley-internal")
OURS = ("gateway", "turns", "submissions", "internal", "beat", "flower", "migrate", "console")
METADATA = Peer("a cloud's metadata", None, address="169.254.169.254")
PUBLIC = Peer("a model", None, address="203.0.113.7")
PRIVATE = Peer("a machine of the same network", None, address="10.20.30.40")

each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


def namespace(overlay: str) -> str:
    (found,) = of_kind(overlay, "Namespace")
    return found["metadata"]["name"]


def everybody(overlay: str) -> dict[str, Peer]:
    """Return the pods of the overlay, other pods, and external addresses."""
    own = namespace(overlay)
    peers = [Peer(name, pod["metadata"]["labels"], own) for name, pod in pods(overlay).items()]
    peers += [
        Peer(name, {}, name) for name in ("kube-system", "keda", "monitoring", "ingress-nginx", "elsewhere")
    ]
    peers += [METADATA, PUBLIC, PRIVATE]
    return {peer.name: peer for peer in peers}


def allowed(overlay: str) -> set[tuple[str, str, int]]:
    """Return all allowed connections to or from a pod of the overlay."""
    network, peers = Network(namespace(overlay), of_kind(overlay, "NetworkPolicy")), everybody(overlay)
    return {
        (source.name, target.name, port)
        for source, target in product(peers.values(), repeat=2)
        for port in PORTS
        if source is not target
        and network.namespace in {source.namespace, target.namespace}
        and network.lets(source, target, port)
    }


def wanted(overlay: str) -> set[tuple[str, str, int]]:
    ours = [f"parley-{name}" for name in OURS]
    found = {(name, "kube-system", 53) for name in ours}
    found |= {(name, PUBLIC.name, 443) for name in RUN_TURNS}
    found |= {(name, "parley-gateway", 8600) for name in ("ingress-nginx", "monitoring")}
    found |= {("monitoring", name, 9464) for name in (*RUN_TURNS, "parley-submissions")}
    if overlay == "dev":
        stores = {("postgres", 5432), ("redis", 6379)}
        return found | {(name, store, port) for name in [*ours, "keda"] for store, port in stores}
    # With an unknown location: somewhere in private networks.
    return found | {(name, PRIVATE.name, port) for name in ours for port in STORES}


def others_inside(overlay: str) -> set[str]:
    """Return pods of other namespaces, whose addresses are also private."""
    return {
        name
        for name, peer in everybody(overlay).items()
        if peer.labels is not None and peer.namespace == name
    }


@each_overlay
def test_what_is_needed_is_let_through_and_nothing_else(overlay: str) -> None:
    to_stores = {
        (source, target, port)
        for source, target, port in allowed(overlay)
        if overlay != "dev" and target in others_inside(overlay) and port in STORES
    }
    assert allowed(overlay) - to_stores == wanted(overlay)


@each_overlay
def test_names_are_asked_for_by_both_protocols(overlay: str) -> None:
    network, peers = Network(namespace(overlay), of_kind(overlay, "NetworkPolicy")), everybody(overlay)
    for protocol in ("TCP", "UDP"):
        assert network.lets(peers["parley-turns"], peers["kube-system"], 53, protocol)


def test_an_open_namespace_would_be_seen() -> None:
    """Precondition of the test above: without the policies, every connection is allowed."""
    peers = everybody("prod")
    assert Network("parley").lets(peers["parley-beat"], PUBLIC, 22)
    nothing = [
        policy
        for policy in of_kind("prod", "NetworkPolicy")
        if policy["metadata"]["name"] != "parley-nothing"
    ]
    assert Network("parley", nothing).lets(PRIVATE, peers["parley-flower"], 5555)
