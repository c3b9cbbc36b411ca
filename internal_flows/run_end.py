"""How the results of stages end a run or an item, and when a run that asks for another one gets it (IF-5).

Both ways to carry runs out, in process and on workers, end them here.
"""

from __future__ import annotations

from typing import Final

from internal_flows.execution import AfterAllResult, Done, ItemResult, RedoAsked, Skipped, StageFailed
from internal_flows.stages import InternalFlow
from orchestrator.ports.runs.records import Progress
from orchestrator.ports.runs.status import ItemStatus, RedoStatus, RunStatus
from orchestrator.ports.runs.work import ItemEnd, RunEnd, RunFacts

REDO_AFTER_S: Final = 0.5
"""Seconds between the end of a run and the start of its rerun."""


def end_run(flow: InternalFlow, facts: RunFacts, result: AfterAllResult | Skipped) -> RunEnd:
    """The end to which the last stage that was entered has led."""
    match result:
        case Done(value):
            return RunEnd(RunStatus.DONE, closing=value)
        case Skipped(reason):
            return RunEnd(RunStatus.SKIPPED, reason=reason)
        case StageFailed(error):
            return RunEnd(RunStatus.FAILED, error=error)
        case RedoAsked():
            return _redo(facts.redo_count, _ceiling(facts, flow))


def fail_items(items: Progress) -> RunEnd | None:
    """The end of a run whose items failed, and whose `after_all` is not entered; None when none did."""
    if not items.failed:
        return None
    return RunEnd(RunStatus.FAILED, error=f"{items.failed} of {items.total} items failed")


def end_item(position: int, result: ItemResult) -> ItemEnd:
    """Make the record of an item."""
    match result:
        case Done(value):
            return ItemEnd(position, ItemStatus.DONE, output=value)
        case Skipped(reason):
            return ItemEnd(position, ItemStatus.SKIPPED, reason=reason)
        case StageFailed(error):
            return ItemEnd(position, ItemStatus.FAILED, error=error)


def _ceiling(facts: RunFacts, flow: InternalFlow) -> int | None:
    """The ceiling that holds for a flow: its configuration may lift (null) or move it."""
    ceiling = facts.config.get("redo_ceiling", flow.redo_ceiling)
    return ceiling if isinstance(ceiling, int) else None


def _redo(redo_count: int | None, ceiling: int | None) -> RunEnd:
    """The end of a run that succeeded and asked for another: the next one, or the ceiling."""
    following = (redo_count or 0) + 1
    if ceiling is not None and following > ceiling:
        return RunEnd(
            RunStatus.DONE,
            redo=RedoStatus.CEILING_REACHED,
            reason=f"It asked for another run, and {ceiling} reruns are its ceiling.",
        )
    return RunEnd(RunStatus.DONE, redo=RedoStatus.SCHEDULED, redo_count=following, redo_after_s=REDO_AFTER_S)
