"""A phase of a turn: timed for the metrics, and a span of the turn's trace."""

from __future__ import annotations

import time
from types import TracebackType

from orchestrator.telemetry.metrics import PHASE_SECONDS, labelled
from orchestrator.telemetry.traces import span


class Phase:
    """``with Phase("think"): …`` Names are few and fixed: they are labels of a metric."""

    __slots__ = ("_began", "_name", "_span")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._span = span(self._name)
        self._span.__enter__()
        self._began = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        labelled(PHASE_SECONDS, self._name).observe(time.perf_counter() - self._began)
        self._span.__exit__(kind, error, traceback)
