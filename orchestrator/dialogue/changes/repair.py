"""Mending a stored state in which something is not as it has to be."""

from __future__ import annotations

from orchestrator.dialogue.lifecycle import ACTIVE, INTERRUPTED
from orchestrator.dialogue.state import DialogueState


def repair(state: DialogueState, now: float) -> list[str]:
    """Interrupt what is Active below the top, take the top up, drop approvals of flows that are gone."""
    done: list[str] = []
    stack = state.stack
    for flow in stack.flows[:-1]:
        if flow.status == ACTIVE:
            flow.become(INTERRUPTED)
            flow.interrupted_at = now
            done.append(f"{flow.dact} was Active below the top and is interrupted now.")
    top = stack.top
    if top is not None and top.status == INTERRUPTED:
        stack.reactivate()
        done.append(f"{top.dact} on top is Active again.")
    there = {flow.flow_id for flow in stack.flows}
    orphans = [approval for approval in state.approvals if approval.flow_id not in there]
    if orphans:
        state.approvals = [approval for approval in state.approvals if approval.flow_id in there]
        done.append(f"{len(orphans)} approvals of flows that are gone were dropped.")
    return done
