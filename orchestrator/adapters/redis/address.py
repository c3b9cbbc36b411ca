"""Redis URLs of a server, a Unix socket, or sentinels that know the current master.

Sockets: ``unix://user:password@/path?db=0``. Sentinels:
``redis+sentinel://user:password@host:26379,host:26379/master/0``, with the user and password of the Redis
servers, not of the sentinels. Celery uses different URLs; see `for_celery`.
"""

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from orchestrator.types import JsonObject

SCHEME: Final = "redis+sentinel"
SOCKET_SCHEME: Final = "unix"
SENTINEL_PORT: Final = 26379


@dataclass(frozen=True, slots=True)
class Watched:
    """A parsed sentinel URL: the sentinels, and the master's name, database and credentials."""

    sentinels: tuple[tuple[str, int], ...]
    master: str
    database: int
    user: str | None
    password: str | None
    userinfo: str
    """User and password as in the URL, followed by ``@``, or an empty string."""


def read_watched(url: str) -> Watched | None:
    """Parse a sentinel URL. Return None for other URLs."""
    parts = urlsplit(url)
    if parts.scheme != SCHEME:
        return None
    userinfo, at, places = parts.netloc.rpartition("@")
    user, _, password = userinfo.partition(":")
    master, _, database = parts.path.strip("/").partition("/")
    return Watched(
        sentinels=tuple(map(_read_place, places.split(","))),
        master=master,
        database=int(database or 0),
        user=unquote(user) or None,
        password=unquote(password) or None,
        userinfo=f"{userinfo}{at}",
    )


def _read_place(written: str) -> tuple[str, int]:
    host, _, port = written.rpartition(":")
    return (host, int(port)) if host else (port, SENTINEL_PORT)


def is_socket(url: str) -> bool:
    return urlsplit(url).scheme == SOCKET_SCHEME


def for_celery(url: str) -> str:
    """Return the URL in Celery's format, which differs only for sockets and sentinels."""
    if is_socket(url):
        return urlunsplit(urlsplit(url)._replace(scheme="redis+socket")).replace("?db=", "?virtual_host=")
    watched = read_watched(url)
    if watched is None:
        return url
    return ";".join(
        f"sentinel://{watched.userinfo}{host}:{port}/{watched.database}" for host, port in watched.sentinels
    )


def tls_options(url: str) -> JsonObject:
    """Return Celery's options for verifying a ``rediss://`` server.

    Without these options, Celery's broker skips verification and its result backend rejects the URL. Return
    an empty dict for other URLs, or if the URL sets `ssl_cert_reqs`.
    """
    parts = urlsplit(url)
    if parts.scheme != "rediss" or "ssl_cert_reqs=" in parts.query:
        return {}
    return {"ssl_cert_reqs": ssl.CERT_REQUIRED}


def sentinel_options(url: str) -> JsonObject:
    """Return the options that Celery needs for a sentinel URL, or an empty dict for other URLs."""
    watched = read_watched(url)
    return {} if watched is None else {"master_name": watched.master}
