"""Human handoff: requests in the operators' queue, and operators' answers (AM-5).

A request is an approval that only operators can decide. An operator answers once, in the decision's reason,
or takes over the session. The assistant serves the user until an operator takes over (see `repairs`).
"""

from orchestrator.agent.repairs import find_requests
from orchestrator.context import TurnContext
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.records import PendingApproval
from orchestrator.pex.calls.consent import request_approval
from orchestrator.res.wording import name_doing
from orchestrator.turns.approval import PERSON
from orchestrator.types import FlowId, new_id

_OF_NO_FLOW = FlowId("")
"""Flow ID of a handoff request, which doesn't belong to a task."""
_HELPLESS_AFTER = 2
"""Factor for `escalation_turns`.

The product is the number of times that a question is asked before an operator is requested (AM-4).
"""
MOST_TOLD = 6
"""Maximum number of recent messages included in a handoff request."""


def hand_over(context: TurnContext, cause: str) -> None:
    """Request an operator unless a request is pending, and tell the user. `cause`: the reason, for the operator."""
    state = context.state
    waits = bool(find_requests(state))
    if not waits:
        flow = state.stack.active
        told = [f"{one.role}: {one.text}" for one in state.history.messages[-MOST_TOLD:]]
        approval = PendingApproval(
            approval_id=new_id("approval"),
            flow_id=_OF_NO_FLOW,
            tool_id=PERSON,
            arguments={"said": context.text, "before": told, "doing": name_doing(flow) if flow else ""},
            expires_at=context.now + context.world.domain.config.approvals.expires_s,
            question="To answer the user, approve this and give the answer as the reason.",
            cause=cause,
            operator_only=True,
        )
        request_approval(context, approval)
        context.log.event("handover_requested", approval_id=approval.approval_id, cause=cause)
    context.tell(NoticeKind.HANDED_OVER, waits=waits)


def request_operator_if_stuck(context: TurnContext) -> None:
    """Request an operator if the open question was asked too many times, unless a request is already pending."""
    entry = context.state.ambiguity.current
    rounds = context.world.domain.config.ambiguity.escalation_turns * _HELPLESS_AFTER
    if entry is not None and entry.asked >= rounds and not find_requests(context.state):
        hand_over(context, f"The same question was asked {entry.asked} times.")
