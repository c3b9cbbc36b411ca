"""System 1 as the author of a model's answers: its interpretation is sent as JSON.

The pipeline uses that answer. System 1's own interpretation remains the second opinion, as usual.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orchestrator.dialogue.understanding import Mention, Understanding
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reading
from orchestrator.nlu.restraint import Restraint
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.unused import UnusedWords
from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule, Script


class Author(System1):
    """A trained System 1 that writes its interpretation.

    It keeps choices, refusals, and everything that the protocol can't express.
    """

    def __init__(self, trained: System1) -> None:
        for name, value in vars(trained).items():
            setattr(self, name, value)
        self._restraint = Restraint(self.flows)
        self._unused = UnusedWords(self.flows, self.answers, self.extractor)
        self.understood: dict[str, Understanding] = {}
        self.chose = False

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        reading = self.think(message.text, context)
        understood, text = reading.understanding, message.english
        allowed = self._restraint.judge(
            understood, text, context, lambda rest: self.think(rest, context).understanding
        )
        self.understood[message.text] = self._unused.judge(understood, text, context)
        can_be_written = allowed is understood and all(map(has_value, understood.slots.values()))
        reading = replace(reading, confidence=0.0, is_final=reading.is_final or not can_be_written)
        self.chose = self.chose or reading.is_final
        return reading

    def answer(self, request: Request) -> Reply:
        """Return a model's reply with System 1's interpretation."""
        understood = self.understood.get(request.said)
        return Answer(text="I was not asked this." if understood is None else "", json=write(understood))

    def script(self) -> Script:
        understand = Rule(prompt="nlu_think", replies=(Computed(self.answer),))
        replan = Rule(prompt="plan_replan", replies=(Answer(json={"decision": "keep"}),))
        met = {"complete": True, "missing": [], "summary": ""}
        complete = Rule(prompt="plan_complete", replies=(Answer(json=met),))
        no_more = Rule(prompt="plan_decompose", replies=(Answer(json={"steps": []}),))
        words = Rule(
            prompt="res_naturalize", replies=(Computed(lambda asked: Answer(text=asked.data["draft"])),)
        )
        nothing_more = Rule(prompt="slot_fill", replies=(Answer(json={"slots": {}}),))
        return Script(rules=(understand, replan, complete, no_more, words, nothing_more))


def write(understood: Understanding | None) -> Any:
    """Return an interpretation in the form of the model protocol."""
    if understood is None:
        return None
    return {
        "kind": understood.kind.value,
        "intent": understood.intent,
        "flows": [{"dact": flow.dact, "score": flow.score} for flow in understood.flows],
        "slots": {name: write_value(mention) for name, mention in understood.slots.items()},
        "target": understood.target,
        "digression": None if understood.digression is None else understood.digression.value,
        "not_understood": list(understood.not_understood),
    }


def has_value(mention: Mention) -> bool:
    """Return whether the value can be written. Open or doubtful values and ranges of days can't."""
    return not mention.is_open and len(mention.candidates) in {0, 2}


def write_value(mention: Mention) -> Any:
    """Return the value, or the user's words if there is no single valid value."""
    return mention.text if mention.value is None else mention.value
