"""RES: answers from what happened in the turn, whichever policy ran (RS-1 … RS-7)."""

from __future__ import annotations

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.res.answer import Answer
from orchestrator.res.clarify import clarify
from orchestrator.res.display import display
from orchestrator.res.finish import finish
from orchestrator.res.generate import tell_completed, tell_remark
from orchestrator.res.start import start
from orchestrator.res.templates import Templates
from orchestrator.telemetry import SignalType
from orchestrator.world.world import World


class RES:
    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    def start(self, world: World) -> None:
        """Take finished flows off the stack; sets `keep_going`."""
        start(world)

    async def respond(self, world: World) -> Answer:
        """What is done, what there is to say, and the open question last."""
        answer = Answer()
        self._generate(world, answer)
        clarify(world, answer, self._templates)
        answer.frame = display(world)
        if not answer.message:
            answer.parts.append(self._templates.render("anything_else"))
        finish(world, answer)
        world.signal("res", SignalType.TEMPLATE, templates=answer.templates)
        return answer

    def _generate(self, world: World, answer: Answer) -> None:
        for part in world.story:
            teller = tell_completed if isinstance(part, BaseFlow) else tell_remark
            name, text = teller(world, part, self._templates)  # pyright: ignore[reportArgumentType]
            answer.templates.append(name)
            if text and text not in answer.parts:
                answer.parts.append(text)

    def apologise(self, world: World, done: list[str]) -> Answer:
        """The safe message for an unexpected error (AG-4); `done`: what tools have done for good."""
        text = self._templates.render("breakdown", done=done)
        world.signal("res", SignalType.TEMPLATE, templates=["breakdown"])
        return Answer(parts=[text], templates=["breakdown"])
