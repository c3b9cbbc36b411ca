"""Classify IP addresses as public or special, based on IANA's special-purpose registries (RFC 6890 and later).

The lists are here because the lists in Python's standard library differ between versions.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# Addresses that are not globally reachable or not useful for tools: this network, private use, shared,
# loopback, link-local, protocol assignments, documentation, 6to4 relays, benchmarks, multicast, reserved,
# broadcast.
_SPECIAL_IPV4 = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
    203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
"""
# Only 2000::/3 is assigned. Excluded: protocol assignments, documentation, AS112, segment routing.
_SPECIAL_IPV6 = "2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20 5f00::/16"
# Azure's public address for internal platform services.
_OF_CLOUDS = "168.63.129.16/32"

SPECIAL: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(network) for network in f"{_SPECIAL_IPV4} {_SPECIAL_IPV6} {_OF_CLOUDS}".split()
)
_ASSIGNED = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


class AddressGuard:
    """A guard that allows public addresses and addresses in `private_networks`."""

    def __init__(self, private_networks: Iterable[str]) -> None:
        self._private = [ipaddress.ip_network(network) for network in private_networks]

    def allows(self, text: str) -> bool:
        """Return whether tools can connect to the IP address `text`.

        The check covers IPv4 addresses that an IPv6 address embeds.
        """
        address = ipaddress.ip_address(text.partition("%")[0])
        if self._is_ours(address):
            return True
        return all(self._is_ours(one) or is_public(one) for one in [*_embedded(address)] or [address])

    def _is_ours(self, address: Address) -> bool:
        return any(address in network for network in self._private)


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _ASSIGNED:
        return False
    return not any(address in network for network in SPECIAL)


def _embedded(address: Address) -> Iterator[Address]:
    """Yield the IPv4 addresses embedded in an IPv6 address. For ISATAP, also yield the IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.ipv4_mapped is not None or address in _NAT64 or address in _IPV4_COMPATIBLE:
        yield low
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        yield from (address, low)
