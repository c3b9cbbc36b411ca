"""Free ports for concurrent servers."""

from __future__ import annotations

from parley.embedded.ports import free_port


def free_ports(count: int) -> list[int]:
    """Find this number of different free ports. Single requests could return the same port twice."""
    found = set[int]()
    while len(found) < count:
        found.add(free_port())
    return list(found)
