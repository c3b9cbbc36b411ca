"""Checks a flow's slots once they have been reviewed (PX-2)."""

from __future__ import annotations

from orchestrator.dialogue.specification import Priority
from orchestrator.pex.execution import Execution, Failed
from orchestrator.pex.steps.check import Check, first_failure


def check_slots(run: Execution) -> Failed | None:
    return first_failure(run, SLOT_CHECKS)


def required_slots(run: Execution) -> str | None:
    missing = [slot.name for slot in run.flow.missing() if slot.priority is Priority.REQUIRED]
    return f"Slots are missing: {', '.join(missing)}." if missing else None


def elective_slots(run: Execution) -> str | None:
    return None if run.flow.is_filled() else "No slot of an elective group is filled."


SLOT_CHECKS: tuple[Check, ...] = (required_slots, elective_slots)
