"""Separate databases for tests in the Redis server of a run."""

from __future__ import annotations

from urllib.parse import urlsplit


def numbered(redis_url: str, number: int) -> str:
    """Return the URL of the server's database with this number."""
    parts = urlsplit(redis_url)
    own = (
        parts._replace(query=f"db={number}") if parts.scheme == "unix" else parts._replace(path=f"/{number}")
    )
    return own.geturl()
