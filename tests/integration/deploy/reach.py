"""Says who may open a connection to whom by the NetworkPolicies of a namespace, as a cluster's network decides it.

A connection passes when the side that leaves a pod and the side that enters one both allow it; a pod that no policy
of a direction selects is open in that direction; what several policies allow adds up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

Labels = Mapping[str, str]
NAMESPACE = "kubernetes.io/metadata.name"


@dataclass(frozen=True)
class Peer:
    """A pod by its labels and its namespace's, or an address outside (`labels` None)."""

    name: str
    labels: Labels | None
    namespace: str = ""
    address: str = "10.1.2.3"

    @property
    def of_namespace(self) -> Labels:
        return {NAMESPACE: self.namespace}


@dataclass(frozen=True)
class Network:
    """The policies of one namespace."""

    namespace: str
    policies: Iterable[Mapping[str, Any]] = field(default_factory=tuple)

    def lets(self, source: Peer, target: Peer, port: int, protocol: str = "TCP") -> bool:
        """Whether `source` may open a connection to `target`."""
        leaves = self._allows("Egress", source, target, port, protocol)
        enters = self._allows("Ingress", target, source, port, protocol)
        return leaves and enters

    def _allows(self, direction: str, pod: Peer, other: Peer, port: int, protocol: str) -> bool:
        if pod.labels is None or pod.namespace != self.namespace:
            return True  # not for these policies to say
        chosen = [
            policy["spec"]
            for policy in self.policies
            if direction in policy["spec"]["policyTypes"]
            and selects(policy["spec"]["podSelector"], pod.labels)
        ]
        rules = [rule for spec in chosen for rule in spec.get(direction.lower(), [])]
        side = "to" if direction == "Egress" else "from"
        return not chosen or any(
            _covers_port(rule, port, protocol) and self._covers_peer(rule.get(side), other) for rule in rules
        )

    def _covers_peer(self, peers: list[dict[str, Any]] | None, other: Peer) -> bool:
        return not peers or any(self._is(peer, other) for peer in peers)

    def _is(self, peer: dict[str, Any], other: Peer) -> bool:
        if block := peer.get("ipBlock"):
            address = ip_address(other.address)
            kept_out = any(address in ip_network(entry) for entry in block.get("except", []))
            return address in ip_network(block["cidr"]) and not kept_out
        if other.labels is None:
            return False
        if "namespaceSelector" in peer:
            inside = selects(peer["namespaceSelector"], other.of_namespace)
        else:
            inside = other.namespace == self.namespace
        return inside and selects(peer.get("podSelector", {}), other.labels)


def selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Whether a label selector chooses something with these labels."""
    plain = selector.get("matchLabels", {}).items() <= labels.items()
    return plain and all(_holds(expression, labels) for expression in selector.get("matchExpressions", []))


def _holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    assert expression["operator"] == "In", expression
    return labels.get(expression["key"]) in expression["values"]


def _covers_port(rule: Mapping[str, Any], port: int, protocol: str) -> bool:
    ports = rule.get("ports")
    return not ports or any(entry["port"] == port and entry["protocol"] == protocol for entry in ports)
