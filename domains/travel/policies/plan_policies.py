"""Policies of Plan flows: a trip is planned as its recipe in the ontology says."""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Level
from orchestrator.pex.ending import Ending, NeedsInput
from orchestrator.pex.execution import Execution
from orchestrator.pex.plan_policy import PlanPolicy
from orchestrator.world.remark import RemarkKind


class PlanTripPolicy(PlanPolicy):
    dact = "plan_trip"

    async def review(self, run: Execution) -> Ending | None:
        """Ask again for what cannot be together, before anything is planned with it."""
        ending = await super().review(run)
        if ending is not None:
            return ending
        if run.value("origin") == run.value("destination"):
            return _ask_again(run, "destination", "You are there already.")
        if run.value("return_date") < run.value("date"):
            return _ask_again(run, "return_date", "That is before you leave.")
        return None


def _ask_again(run: Execution, slot: str, why: str) -> NeedsInput:
    run.world.remark(RemarkKind.INVALID_VALUE, why=why, slot=slot.replace("_", " "))
    run.flow.clear(slot)
    run.world.state.ambiguity.declare(
        Level.SPECIFIC, flow_id=run.flow.flow_id, slot=slot, turn_id=run.world.turn_id
    )
    return NeedsInput()
