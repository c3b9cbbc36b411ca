"""Tells from outside whether a process without a port moves: a small file that it keeps rewriting.

Probes read it with `parley health`; `waiting` says that the stores do not answer yet, which no restart
would mend.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import orjson

from orchestrator.telemetry import get_logger

BEAT_EVERY_S = 1.0

_log = get_logger(__name__)


class Condition(StrEnum):
    """What a process that moves says of itself."""

    WAITING = "waiting"
    READY = "ready"


class Pulse:
    """Args: `path`: the file; None for a process that nobody probes."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._told = False

    def beat(self, condition: Condition) -> None:
        """Rewrite the file, whole at any moment. A file that cannot be written is told once."""
        if self._path is None:
            return
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(orjson.dumps({"condition": condition.value, "pid": os.getpid()}))
            unfinished.replace(self._path)
        except OSError as error:
            if not self._told:
                _log.error("The file for probes cannot be written.", path=str(self._path), error=error)
            self._told = True

    def end(self) -> None:
        """Leave nothing behind."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
