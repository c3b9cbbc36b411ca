"""Container probes that start fast, such as ``python -m parley.probe turns --live``. See also `parley health`.

Servers are probed over HTTP. Workers and the scheduler are probed by their heartbeat file
(`workers.heartbeat`).
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from orchestrator.errors import InvalidInput, ParleyError, Unavailable
from parley.roles import PORTS, Role

# Processes rewrite their heartbeat file every second. Training a domain can delay this.
STALE_AFTER_S = 20.0
_TIMEOUT_S = 3.0
_PATHS = {Role.GATEWAY: ("/health/ready", "/health/live"), Role.FLOWER: ("/healthcheck", "/healthcheck")}


def probe(role: Role, *, live: bool, port: int | None = None) -> str:
    """Return a message about the condition of this container's role.

    `live`: True to accept a role that is not ready. `port`: port of the gateway or Flower. Default: PARLEY_PORT,
    or the role's standard port.

    Raises Unavailable if the probe fails, or InvalidInput if PARLEY_HEARTBEAT_FILE is required but not set.
    """
    if role in _PATHS:
        given = port or int(os.environ.get("PARLEY_PORT") or PORTS[role])
        return ask_server(f"http://127.0.0.1:{given}{_PATHS[role][live]}")
    named = os.environ.get("PARLEY_HEARTBEAT_FILE")
    if not named:
        raise InvalidInput(
            "Set PARLEY_HEARTBEAT_FILE to the same path for the role and this command.",
            field="heartbeat_file",
        )
    return read_heartbeat(Path(named), live=live, now=time.time())


def ask_server(url: str) -> str:
    """Return a message if the server responds successfully. Raises Unavailable on errors and timeouts."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S):  # noqa: S310  # our own address
            return f"{url} is healthy"
    except urllib.error.HTTPError as error:
        raise Unavailable(f"{url} returned {error.code}: {error.read().decode(errors='replace')}") from error
    except OSError as error:
        raise Unavailable(f"{url} is not responding: {error}") from error


def read_heartbeat(path: Path, *, live: bool, now: float) -> str:
    """Return the condition from a heartbeat file, and the file's age. `live`: True to accept an unready process.

    `now`: Unix time in seconds.

    Raises Unavailable if the process is not ready, or if the file is missing, invalid or stale.
    """
    try:
        condition = str(json.loads(path.read_bytes())["condition"])
        age_s = max(0.0, now - path.stat().st_mtime)
    except FileNotFoundError:
        raise Unavailable(f"{path} does not exist: the process has not started, or has ended.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"{path} cannot be read: {error}") from error
    if age_s > STALE_AFTER_S:
        raise Unavailable(f"The process has not responded for {age_s:.0f} s; check the log.")
    if condition != "ready" and not live:
        raise Unavailable(f"The process is {condition}: a store is not responding; check the process's log.")
    return f"{condition}, {age_s:.0f} s ago"


def main() -> int:
    parser = argparse.ArgumentParser(prog="parley.probe", description="Probe the role in this container.")
    parser.add_argument("role", type=Role, choices=list(Role))
    parser.add_argument("--live", action="store_true", help="check only liveness")
    given = parser.parse_args()
    try:
        print(probe(given.role, live=given.live))
    except ParleyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
