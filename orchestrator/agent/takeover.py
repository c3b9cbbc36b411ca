"""Operator takeover: an operator answers the user until handing back the session (AM-5).

The gateway previews these changes, so this module does not import modules that run turns.
"""

from orchestrator.dialogue.state import DialogueState
from orchestrator.errors import Refused
from orchestrator.turns.approval import PERSON, ApprovalStatus, ClosedApproval


def waits_for_person(state: DialogueState) -> bool:
    """Return whether the session has a pending request for an operator."""
    return any(approval.tool_id == PERSON for approval in state.approvals)


def take_over(state: DialogueState, operator: str) -> list[ClosedApproval]:
    """Route a session to an operator. Return the closed requests for an operator.

    Raises Refused if an operator, even this one, has already taken over.
    """
    if state.person is not None:
        raise Refused(f"{state.person} has already taken over.")
    state.leave_to(operator)
    answered = [one for one in state.approvals if one.tool_id == PERSON]
    for request in answered:
        state.close_approval(request)
    return [ClosedApproval(request.approval_id, ApprovalStatus.VOID) for request in answered]


def require_taken_over(state: DialogueState, operator: str) -> None:
    """Raise Refused unless this operator has taken over."""
    if state.person != operator:
        raise Refused("Only the operator who has taken over can send messages to the user.")


def hand_back(state: DialogueState) -> str:
    """Hand a session back to the assistant. Return the operator who had taken over.

    Raises Refused if no operator has taken over.
    """
    operator = state.person
    if operator is None:
        raise Refused("No operator has taken over.")
    state.leave_to(None)
    return operator
