"""Check which account owns the client's end of a loopback connection."""

import os
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

_IPV4, _IPV6 = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
_UID = 4  # the field after both addresses, state, queues, timer and retransmissions


def is_stranger(client: tuple[Any, ...], server: tuple[Any, ...]) -> bool:
    """Return whether the client's socket belongs to an account other than root and this process's account.

    An unknown owner counts as a stranger. Only Linux exposes socket owners; on other systems, return False.
    """
    if sys.platform != "linux":
        return False
    return _account_of(client, server) not in {0, os.geteuid()}


def _account_of(client: tuple[Any, ...], server: tuple[Any, ...]) -> int | None:
    ends = ip_address(client[0]), ip_address(server[0])
    # An IPv6 socket can also connect to an IPv4 address.
    mapped = tuple(IPv6Address(f"::ffff:{end}") if end.version == 4 else end for end in ends)
    for table, (near, far) in ((_IPV4, ends), (_IPV6, mapped)):
        row = f" {_written(near, client[1])} {_written(far, server[1])} ".encode()
        _, found, rest = table.read_bytes().partition(row) if table.exists() else (b"", b"", b"")
        if found:
            return int(rest.split(None, _UID + 1)[_UID])
    return None


def _written(address: IPv4Address | IPv6Address, port: int) -> str:
    """Format an address and port as in /proc/net, with four-byte words in host byte order."""
    packed = address.packed
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
