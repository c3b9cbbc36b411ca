"""``python -m gateway``: serve the gateway until SIGTERM."""

# ruff: noqa: E402
from __future__ import annotations

import gc

# With the default threshold, garbage collection takes a sixth of the startup time.
gc.set_threshold(50_000)

import sys
from typing import Annotated, Any

import typer
import uvicorn

from gateway.app import production_app
from gateway.auth.binding import require_safe_host, requires_callers
from gateway.protocol import BoundedProtocol, OwnersProtocol
from orchestrator.errors import ConfigurationError
from orchestrator.redaction import hide_secrets
from orchestrator.settings import Settings, known_secrets, load_settings
from orchestrator.telemetry.logs import set_up_logging
from orchestrator.turns.submission import MAX_INPUT_BYTES

LOOPBACK = "127.0.0.1"
# Twice the input limit, so that a message slightly over the input limit gets an error. A message over this
# maximum closes its socket before it is buffered.
MAX_SOCKET_MESSAGE_BYTES = 2 * MAX_INPUT_BYTES


def serve(
    host: Annotated[str, typer.Option(envvar="PARLEY_HOST")] = LOOPBACK,
    port: Annotated[int, typer.Option(envvar="PARLEY_PORT")] = 8600,
) -> None:
    """Serve the gateway."""
    try:
        settings = load_settings()
        set_up_logging(secrets=known_secrets(settings))
        require_safe_host(host, authenticated=requires_callers(settings))
        app = production_app(host)
    except ConfigurationError as error:
        print(f"parley gateway: {hide_secrets('; '.join(str(error).splitlines()))}", file=sys.stderr)  # noqa: T201
        raise typer.Exit(2) from error
    uvicorn.run(app, host=host, port=port, **server_options(settings))


def server_options(settings: Settings) -> dict[str, Any]:
    owners_only = settings.owner_only and not requires_callers(settings)
    return {
        "http": OwnersProtocol if owners_only else BoundedProtocol,
        # X-Forwarded-For from untrusted hosts proves nothing about the client.
        "proxy_headers": bool(settings.trusted_proxies),
        "forwarded_allow_ips": [*settings.trusted_proxies],
        "log_config": None,
        "access_log": False,
        "ws_max_size": MAX_SOCKET_MESSAGE_BYTES,
    }


if __name__ == "__main__":
    typer.run(serve)
