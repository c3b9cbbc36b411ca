"""Show from outside whether a process without a port moves: a small file that it keeps rewriting.

Probes read it with `parley health`; `waiting` says that the stores do not answer yet, which no restart
would mend.
"""

import os
from enum import StrEnum
from pathlib import Path

import orjson

from orchestrator.telemetry import get_logger

BEAT_EVERY_S = 1.0

_log = get_logger(__name__)


class Condition(StrEnum):
    """The condition of a process that moves."""

    WAITING = "waiting"
    READY = "ready"


class Heartbeat:
    """Args: `path`: the file; None for a process that nobody probes."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._condition = Condition.READY
        self._failed = False

    def note(self, condition: Condition, why: object = None) -> None:
        """Remember the condition for the beats to come; a change is logged."""
        if condition is not self._condition:
            _log.warning("This process has become ready, or waits.", condition=condition.value, why=why)
        self._condition = condition

    def beat(self) -> None:
        """Rewrite the file, whole at any moment. A file that cannot be written is logged once."""
        if self._path is None:
            return
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            body = {"condition": self._condition.value, "pid": os.getpid()}
            unfinished.write_bytes(orjson.dumps(body))
            unfinished.replace(self._path)
        except OSError as error:
            if not self._failed:
                _log.error("The file for probes cannot be written.", path=str(self._path), error=error)
            self._failed = True

    def end(self) -> None:
        """Leave nothing behind."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
