"""`parley health ROLE`: the probe of a container; one line, and a non-zero exit code when it is not well."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import httpx
import orjson
import typer

from orchestrator.errors import InvalidInput, Unavailable
from parley.roles import PORTS, Role

STALE_AFTER_S = 20.0
"""A process rewrites its file every second; one that trains a domain may take some."""
_TIMEOUT_S = 3.0
_PATHS = {Role.GATEWAY: ("/health/live", "/health/ready"), Role.FLOWER: ("/healthcheck", "/healthcheck")}


def health(
    role: Annotated[Role, typer.Argument(help="Which role runs beside this command.")],
    live: Annotated[
        bool, typer.Option("--live", help="Only whether it moves, not whether it is ready.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(envvar="PARLEY_PORT", min=1, max=65535, help="Where a server listens.")
    ] = None,
) -> None:
    """Ask the role that runs beside this command, in the same container, how it is."""
    if role in _PATHS:
        print(ask_server(port or PORTS[role], _PATHS[role][0 if live else 1]))
    else:
        print(read_pulse(_pulse_file(), live=live, now=time.time()))


def ask_server(port: int, path: str) -> str:
    """What a server on this machine answers. Raises Unavailable."""
    url = f"http://127.0.0.1:{port}{path}"
    try:
        reply = httpx.get(url, timeout=_TIMEOUT_S)
    except httpx.HTTPError as error:
        raise Unavailable(f"{url} does not answer: {error}") from error
    if not reply.is_success:
        raise Unavailable(f"{url} answers {reply.status_code}: {reply.text}")
    return f"{url} is well"


def read_pulse(path: Path, *, live: bool, now: float) -> str:
    """What the file says. Raises Unavailable for one that is missing, old, or of a process not ready."""
    try:
        condition = str(orjson.loads(path.read_bytes())["condition"])
        age_s = max(0.0, now - path.stat().st_mtime)
    except FileNotFoundError:
        raise Unavailable(f"{path} is not there: the process has not begun, or has ended.") from None
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Unavailable(f"{path} cannot be read: {error}") from error
    if age_s > STALE_AFTER_S:
        raise Unavailable(f"The process has not moved for {age_s:.0f} s; see its log.")
    if condition != "ready" and not live:
        raise Unavailable(f"The process is {condition}: a store does not answer; see its log.")
    return f"{condition}, {age_s:.0f} s ago"


def _pulse_file() -> Path:
    named = os.environ.get("PARLEY_PULSE_FILE")
    if not named:
        raise InvalidInput(
            "Set PARLEY_PULSE_FILE to the same path for the role and for this command.", field="pulse_file"
        )
    return Path(named)
