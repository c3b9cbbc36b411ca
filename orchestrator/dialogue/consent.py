"""Confirmations and approvals of calls (AM-3, PX-17, PX-18).

Only this module writes `BaseFlow.consent`. A candidate is a displayed call; a grant is an unused approval.
Both are bound to one call: tool, arguments, flow and the plan's revision.
"""

from dataclasses import replace

from orchestrator.dialogue.base_flow import BaseFlow
from orchestrator.dialogue.flow import FlowTypes
from orchestrator.dialogue.progress import Candidate, Grant
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import Epoch, JsonObject, SessionId, ToolId, hash_json


def open_state(body: JsonObject, session_id: SessionId, flow_types: FlowTypes, epoch: Epoch) -> DialogueState:
    """Create a session's state from its stored form, which is empty for a new session. `epoch`: of the next commit.

    After a failed or stopped turn, drop pending calls, so that offers are repeated before a “yes” confirms
    them (AM-3).
    """
    state = DialogueState.from_dict(body, flow_types) if body else DialogueState.new(session_id)
    if not state.follow(epoch):
        for flow in state.stack.flows:
            drop_candidate(flow)
    return state


def fingerprint(
    state: DialogueState, flow: BaseFlow, tool_id: ToolId, arguments: JsonObject, *, again: bool = False
) -> str:
    """Return the digest of a pending call: tool, arguments, flow with its values, and the plan's revision.

    `again`: True for a repeated call, which a confirmation of the first call does not cover.
    """
    plan = state.stack.plan_of(flow)
    revision = plan.revision if plan is not None else 0
    return hash_json([tool_id, arguments, flow.flow_id, revision, flow.values(), *([again] if again else [])])


def read_candidate(state: DialogueState, flow: BaseFlow) -> Candidate | None:
    """Return the candidate, or None. Drop a candidate that no longer matches the flow's values and plan."""
    candidate = flow.consent.candidate
    if candidate is None:
        return None
    call = candidate.tool_id, candidate.arguments
    if candidate.fingerprint != fingerprint(state, flow, *call, again=candidate.again):
        drop_candidate(flow)
        return None
    return candidate


def read_confirmed(state: DialogueState, flow: BaseFlow) -> Candidate | None:
    """Return the candidate if the user has confirmed it, or None."""
    candidate = read_candidate(state, flow)
    return candidate if candidate is not None and candidate.agreed else None


def propose(flow: BaseFlow, candidate: Candidate) -> None:
    flow.consent = replace(flow.consent, candidate=candidate)


def agree(state: DialogueState, flow: BaseFlow) -> bool:
    """Record the user's confirmation of the pending call. Return False if no valid call is pending."""
    candidate = read_candidate(state, flow)
    if candidate is None:
        return False
    propose(flow, replace(candidate, agreed=True))
    return True


def drop_candidate(flow: BaseFlow) -> None:
    flow.consent = replace(flow.consent, candidate=None)


def grant(flow: BaseFlow, approval_id: str, call: str) -> None:
    """Store an approval of one call. `call`: the call's fingerprint."""
    flow.consent = replace(flow.consent, grant=Grant(approval_id, call))


def take_grant(flow: BaseFlow) -> Grant | None:
    granted = flow.consent.grant
    if granted is not None:
        flow.consent = replace(flow.consent, grant=None)
    return granted
