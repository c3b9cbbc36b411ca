"""Addresses of Redis: a server's, its socket's, or sentinels', who know which server is the master at the moment.

A socket is written ``unix://user:password@/path?db=0``; sentinels
``redis+sentinel://user:password@host:26379,host:26379/master/0``, where user and password are the servers'. Celery has
forms of its own for both.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

from orchestrator.types import JsonObject

SCHEME: Final = "redis+sentinel"
SOCKET_SCHEME: Final = "unix"
SENTINEL_PORT: Final = 26379


@dataclass(frozen=True, slots=True)
class Watched:
    """Servers of which one is the master, and who to ask which."""

    sentinels: tuple[tuple[str, int], ...]
    master: str
    database: int
    user: str | None
    password: str | None
    userinfo: str
    """User and password as they are written in addresses, with the ``@``; or nothing."""


def read_watched(url: str) -> Watched | None:
    """Read what an address says about sentinels; None for the address of a server."""
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
    """Recognise the address of a Unix socket."""
    return urlsplit(url).scheme == SOCKET_SCHEME


def for_celery(url: str) -> str:
    """The address in the form that Celery knows, as broker and for results; all others stay as they are."""
    if is_socket(url):
        return urlunsplit(urlsplit(url)._replace(scheme="redis+socket")).replace("?db=", "?virtual_host=")
    watched = read_watched(url)
    if watched is None:
        return url
    return ";".join(
        f"sentinel://{watched.userinfo}{host}:{port}/{watched.database}" for host, port in watched.sentinels
    )


def sentinel_options(url: str) -> JsonObject:
    """The options that Celery needs beside the address."""
    watched = read_watched(url)
    return {} if watched is None else {"master_name": watched.master}
