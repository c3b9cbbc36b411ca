"""Tools, MCP servers and webhooks access only public addresses, in any notation (PX-10)."""

from __future__ import annotations

import ipaddress

from orchestrator.adapters.tools.addresses import SPECIAL, AddressGuard
from tests.cases import for_each

NOBODY = AddressGuard([])
NEAR = [
    *("127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "100::1"),
    *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
]
METADATA = [
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    "100.100.100.200",
    "fd20:ce::254",
    "169.254.170.2",
]
PUBLIC = ["1.1.1.1", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:400f:80d::200e", "64:ff9b::101:101"]


def forms(address: ipaddress.IPv4Address) -> list[str]:
    """Return all notations of an IPv4 address within an IPv6 address."""
    number = int(address)
    return [
        str(address),
        f"::ffff:{address}",
        str(ipaddress.IPv6Address(number)),
        str(ipaddress.IPv6Address((0x64FF9B << 96) + number)),
        str(ipaddress.IPv6Address((0x2002 << 112) + (number << 80) + 1)),
        str(ipaddress.IPv6Address((0x20014860 << 96) + (0x5EFE << 32) + number)),
        str(ipaddress.IPv6Address((0x20014860 << 96) + (0x2005EFE << 32) + number)),
    ]


def written(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> list[str]:
    """Return three addresses of a block, IPv4 addresses in all notations."""
    addresses = (network[0], network[network.num_addresses // 2], network[-1])
    return [
        form
        for address in addresses
        for form in (forms(address) if isinstance(address, ipaddress.IPv4Address) else [str(address)])
    ]


OF_BLOCKS = {str(network): written(network) for network in SPECIAL}


@for_each("network", OF_BLOCKS)
def test_no_address_of_a_special_block_is_public(network: str) -> None:
    assert [one for one in OF_BLOCKS[network] if NOBODY.allows(one)] == []


@for_each("address", [*NEAR, *METADATA])
def test_addresses_of_this_machine_its_network_and_its_cloud_are_refused(address: str) -> None:
    assert not NOBODY.allows(address)


@for_each("address", PUBLIC)
def test_public_addresses_are_reached(address: str) -> None:
    assert NOBODY.allows(address)


@for_each(
    ("network", "address"),
    [
        ("127.0.0.0/8", "127.0.0.1"),
        ("127.0.0.0/8", "::ffff:127.0.0.1"),
        ("::1/128", "::1"),
        ("fc00::/7", "fd00::5"),
    ],
)
def test_named_private_networks_are_reached(network: str, address: str) -> None:
    assert AddressGuard([network]).allows(address)
    assert not AddressGuard(["10.0.0.0/8"]).allows(address)
