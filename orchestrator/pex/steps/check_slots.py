"""Checks a flow's slots, once they have been reviewed (PX-2)."""

from orchestrator.pex.execution import Execution, Failed
from orchestrator.pex.steps.check import SLOT_CHECKS, first_failure


def check_slots(run: Execution) -> Failed | None:
    return first_failure(run, SLOT_CHECKS)
