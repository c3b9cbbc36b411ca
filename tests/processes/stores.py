"""Store processes that a test has started."""

from __future__ import annotations

from typing import Any

import psutil

SERVERS = {"postgres", "valkey-server", "redis-server"}


def connections_of_stores() -> list[Any]:
    """Return all network connections of stores below this process. Fail if there are none."""
    servers = {
        process.pid for process in psutil.Process().children(recursive=True) if process.name() in SERVERS
    }
    assert len(servers) >= 2
    return [each for each in psutil.net_connections("inet") if each.pid in servers]
