"""Repeated database reads with one connection, because a new connection costs as much as fifty reads."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Any, LiteralString

import psycopg

_kept: dict[str, psycopg.Connection[Any]] = {}
_keeping = threading.Lock()


def read_rows(
    database_url: str, query: LiteralString, parameters: Sequence[object] | None = None
) -> list[tuple[Any, ...]]:
    """Return the current rows; thread-safe. The connection closes when another database is read."""
    with _keeping:
        if database_url not in _kept or not _is_usable(_kept[database_url]):
            _forget()
            _kept[database_url] = psycopg.connect(database_url, autocommit=True)
        return _kept[database_url].execute(query, parameters).fetchall()


def _is_usable(connection: psycopg.Connection[Any]) -> bool:
    """Return whether the connection is usable, because a test may have replaced the database."""
    try:
        connection.execute("")
    except psycopg.OperationalError:
        return False
    return True


@atexit.register
def _forget() -> None:
    while _kept:
        _kept.popitem()[1].close()
