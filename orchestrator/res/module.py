"""RES: answers from what happened in the turn, whichever policy ran (RS-1 … RS-7)."""

from __future__ import annotations

from orchestrator.context import TurnContext
from orchestrator.res.answer import Answer, Response, Writer
from orchestrator.res.steps import STEPS
from orchestrator.res.steps.start import start
from orchestrator.res.templates import Templates
from orchestrator.telemetry import SignalType


class RES:
    def __init__(self, templates: Templates, writer: Writer | None = None) -> None:
        """`writer`: a model that puts templates' words into speech; None leaves them as they are."""
        self._templates = templates
        self._writer = writer

    def start(self, context: TurnContext) -> None:
        """Take finished flows off the stack; sets `keep_going`."""
        start(context)

    async def respond(self, context: TurnContext) -> Answer:
        """Make the answer: what is done, what there is to say, and the open question last."""
        response = Response(context, Answer(), self._templates, self._writer)
        for step in STEPS:
            await step(response)
        context.log.signal("res", SignalType.TEMPLATE, templates=response.answer.templates)
        return response.answer

    def apologise(self, context: TurnContext, done: list[str]) -> Answer:
        """Make the safe message for an unexpected error (AG-4); `done`: what tools have done for good."""
        text = self._templates.render("breakdown", done=done)
        context.log.signal("res", SignalType.TEMPLATE, templates=["breakdown"])
        return Answer(parts=[text], templates=["breakdown"])
