"""Four checks on a response before it leaves (RS-6)."""

from __future__ import annotations

from orchestrator.res.answer import Response

CUT = " …"


async def finish(response: Response) -> None:
    """Make the answer present and bounded; record what should not have happened."""
    context, answer = response.context, response.answer
    if not answer.message:
        answer.add(response.templates.render("anything_else"))
    longest = context.world.domain.config.guardrails.max_answer_characters
    message = answer.message
    if not message:
        context.log.failed_check("res", "answer_present", "There was nothing to say.")
    if len(message) > longest:
        context.log.failed_check("res", "answer_bounded", f"The answer had {len(message)} characters.")
        answer.parts = [message[: longest - len(CUT)] + CUT]
    unfinished = [flow.dact for flow in context.changes.state.stack.flows if flow.is_finished]
    if unfinished:
        context.log.failed_check(
            "res", "lifecycle_complete", f"Finished flows stayed: {', '.join(unfinished)}."
        )
    for fault in context.changes.state.stack.check():
        context.log.failed_check("res", "state_consistent", fault)
