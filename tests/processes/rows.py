"""Looks at a database again and again by one connection: to make another takes as much as fifty looks."""

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
    """Give the rows as they are now; also from several threads. The connection ends when another database is read."""
    with _keeping:
        if database_url not in _kept or not _is_usable(_kept[database_url]):
            _forget()
            _kept[database_url] = psycopg.connect(database_url, autocommit=True)
        return _kept[database_url].execute(query, parameters).fetchall()


def _is_usable(connection: psycopg.Connection[Any]) -> bool:
    """Say whether it is: a test may have replaced the database."""
    try:
        connection.execute("")
    except psycopg.OperationalError:
        return False
    return True


@atexit.register
def _forget() -> None:
    while _kept:
        _kept.popitem()[1].close()
