"""Require that a gateway without authentication listens only on loopback addresses (RT-22)."""

import ipaddress

from orchestrator.errors import ConfigurationError, Problem
from orchestrator.settings import Settings


def requires_callers(settings: Settings) -> bool:
    """Return True if the settings require authentication. Token settings imply authentication."""
    return settings.auth == "required" or settings.jwt_key is not None or settings.jwt_jwks is not None


def require_safe_host(host: str, *, authenticated: bool) -> None:
    """Raise ConfigurationError if other machines could reach the address without authentication."""
    if authenticated or is_loopback(host):
        return
    raise ConfigurationError(
        [
            Problem(
                "PARLEY_AUTH",
                f"is not `required`, so the gateway will not listen on {host}, where other machines can reach it:"
                " set PARLEY_AUTH=required and create a key with `parley keys create`, or listen on 127.0.0.1",
            )
        ]
    )


def is_loopback(host: str) -> bool:
    """Return True if the host is a loopback address or ``localhost``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
