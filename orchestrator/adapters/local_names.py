"""Protection against DNS rebinding: reject requests whose `Host` header contains a public DNS name."""

from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

PRIVATE_DOMAINS: Final = (".localhost", ".local", ".internal", ".svc", ".home.arpa")
"""Domains that public DNS never delegates (RFC 6761, RFC 6762, RFC 8375, ICANN), and Kubernetes' ``.svc``."""


def host_of(header: str) -> str:
    """Return the host in a `Host` header without the port, or an empty string if the header is malformed."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def is_private_name(header: str) -> bool:
    """Return whether a `Host` header is an IP address, a name without a dot, or a name in a private domain."""
    host = host_of(header)
    try:
        ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(PRIVATE_DOMAINS))
    return True


def refuse_public_names(app: WSGIApplication) -> WSGIApplication:
    """Wrap an unauthenticated WSGI application so that requests for public names get status 403."""

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_private_name(environ.get("HTTP_HOST", "")):
            return app(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "text/plain; charset=utf-8")])
        return [b"This server answers requests for IP addresses and private names only.\n"]

    return guarded
