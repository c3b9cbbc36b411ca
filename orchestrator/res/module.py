"""The response generator (RES), which creates a turn's answer from its results and messages (RS-1 … RS-7)."""

from collections.abc import Sequence

from orchestrator.context import Answer, TurnContext
from orchestrator.models.engineer import PromptEngineer
from orchestrator.res.response import Response
from orchestrator.res.steps import STEPS
from orchestrator.res.steps.naturalize import naturalize
from orchestrator.res.templates import Templates
from orchestrator.saying import Told
from orchestrator.telemetry import SignalType

CUT = " …"


class RES:
    def __init__(self, templates: Templates, writer: PromptEngineer | None = None) -> None:
        """Create the generator. `writer`: rephrases answers with a model, or None."""
        self._templates = templates
        self._writer = writer
        self._steps = STEPS if writer is not None else tuple(one for one in STEPS if one is not naturalize)

    async def respond(self, context: TurnContext) -> Answer:
        """Generate the answer: frames, then text for results and messages, the open question, and suggestions."""
        response = Response(context, Answer(), self._templates, self._writer)
        for step in self._steps:
            await step(response)
        _finish(response)
        context.log.signal("res", SignalType.TEMPLATE, templates=response.answer.templates)
        return response.answer

    def apologise(self, context: TurnContext, done: Sequence[Told]) -> Answer:
        """Return a safe message for an unexpected error (AG-4).

        `done`: summaries of committed side effects.
        """
        text = self._templates.render("breakdown", done=done)
        context.log.signal("res", SignalType.TEMPLATE, templates=["breakdown"])
        return Answer(parts=[text], templates=["breakdown"])


def _finish(response: Response) -> None:
    """Ensure that the answer is neither empty nor too long. Log such answers and stack faults as failed checks."""
    context, answer = response.context, response.answer
    message = answer.message
    if not message:
        answer.add(response.templates.render("anything_else"))
        message = answer.message
    longest = context.world.domain.config.guardrails.max_answer_characters
    if not message:
        context.log.failed_check("res", "answer_present", "There was nothing to report.")
    if len(message) > longest:
        context.log.failed_check("res", "answer_bounded", f"The answer had {len(message)} characters.")
        answer.parts = [message[: longest - len(CUT)] + CUT]
    unfinished = [flow.dact for flow in context.state.stack.flows if flow.is_finished]
    if unfinished:
        context.log.failed_check(
            "res", "lifecycle_complete", f"Finished flows are still on the stack: {', '.join(unfinished)}."
        )
    for fault in context.state.stack.check():
        context.log.failed_check("res", "state_consistent", fault)
