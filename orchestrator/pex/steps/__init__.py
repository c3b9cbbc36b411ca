"""The steps of a policy, in their order: one file each. The last one is taken after a failure alone (PX-1)."""

from orchestrator.pex.steps.check import TOOL_CHECKS, check
from orchestrator.pex.steps.check_slots import SLOT_CHECKS, check_slots
from orchestrator.pex.steps.complete import complete
from orchestrator.pex.steps.invoke import invoke
from orchestrator.pex.steps.recover import recover
from orchestrator.pex.steps.results import results
from orchestrator.pex.steps.review import review
from orchestrator.pex.steps.verify import VERIFICATIONS, verify

STEPS = (check, review, check_slots, invoke, results, complete, verify, recover)

# The seven checks, by their names (PX-2): the first two find the flow and its policy.
CHECKS = ("active_flow", "policy_registered", *(one.__name__ for one in (*TOOL_CHECKS, *SLOT_CHECKS)))

__all__ = ["CHECKS", "STEPS", "VERIFICATIONS"]
