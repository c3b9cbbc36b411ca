"""When a run that asks for another one gets it (IF-5). The only place that counts redos."""

from __future__ import annotations

from typing import Final

from orchestrator.ports.runs.status import RedoStatus, RunStatus
from orchestrator.ports.runs.work import RunEnd
from orchestrator.types import JsonObject

PACE_S: Final = 0.5
"""Seconds between the end of a run and the start of its rerun."""


def ceiling_of(config: JsonObject, declared: int | None) -> int | None:
    """The ceiling that holds for a flow: its configuration may lift (null) or move it."""
    ceiling = config.get("redo_ceiling", declared)
    return ceiling if isinstance(ceiling, int) else None


def end_with_redo(redo_count: int | None, ceiling: int | None) -> RunEnd:
    """The end of a run that succeeded and asked for another: the next one, or the ceiling."""
    following = (redo_count or 0) + 1
    if ceiling is not None and following > ceiling:
        return RunEnd(
            RunStatus.DONE,
            redo=RedoStatus.CEILING_REACHED,
            reason=f"It asked for another run, and {ceiling} reruns are its ceiling.",
        )
    return RunEnd(RunStatus.DONE, redo=RedoStatus.SCHEDULED, redo_count=following, redo_after_s=PACE_S)
