"""A heartbeat file, rewritten every second, for processes without a port.

`parley health` reads the file. The condition `waiting` means that the stores don't respond, which a restart
would not fix.
"""

import os
from enum import StrEnum
from pathlib import Path

import orjson

from orchestrator.telemetry import get_logger

BEAT_EVERY_S = 1.0

_log = get_logger(__name__)


class Condition(StrEnum):
    WAITING = "waiting"
    READY = "ready"


class Heartbeat:
    """The writer of a heartbeat file. `path`: the file, or None to write nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._condition = Condition.READY
        self._failed = False

    def note(self, condition: Condition, why: object = None) -> None:
        """Set the condition for later beats, and log any change."""
        if condition is not self._condition:
            _log.warning("The readiness of this process changed.", condition=condition.value, why=why)
        self._condition = condition

    def beat(self) -> None:
        """Rewrite the file atomically. Log only the first write failure."""
        if self._path is None:
            return
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            body = {"condition": self._condition.value, "pid": os.getpid()}
            unfinished.write_bytes(orjson.dumps(body))
            unfinished.replace(self._path)
        except OSError as error:
            if not self._failed:
                _log.error("Could not write the heartbeat file.", path=str(self._path), error=error)
            self._failed = True

    def end(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
