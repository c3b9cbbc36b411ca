"""Four checks on a response before it leaves (RS-6)."""

from __future__ import annotations

from orchestrator.context import World
from orchestrator.res.answer import Answer

CUT = " …"


def finish(world: World, answer: Answer) -> None:
    """Make the answer present and bounded; record what should not have happened."""
    longest = world.domain.config.guardrails.max_answer_characters
    message = answer.message
    if not message:
        world.failed_check("res", "answer_present", "There was nothing to say.")
    if len(message) > longest:
        world.failed_check("res", "answer_bounded", f"The answer had {len(message)} characters.")
        answer.parts = [message[: longest - len(CUT)] + CUT]
    unfinished = [flow.dact for flow in world.state.stack.flows if flow.is_finished]
    if unfinished:
        world.failed_check("res", "lifecycle_complete", f"Finished flows stayed: {', '.join(unfinished)}.")
    for fault in world.state.stack.check():
        world.failed_check("res", "state_consistent", fault)
