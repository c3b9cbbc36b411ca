"""Tracking a dialogue's state for one service, with System 1 and nothing but the words said.

Users' values accumulate; values that the system offered enter the state when the user takes the
offer. Annotations are never seen here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind, Understanding
from orchestrator.nlu.nlu_context import NluContext, OpenQuestion
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.text import clean
from parley.evaluation.dialogues.compile import TODAY
from parley.evaluation.dialogues.dataset import NO_INTENT, Service
from parley.evaluation.dialogues.metrics import Prediction
from parley.evaluation.dialogues.offers import SystemReader, SystemTurn

_SENTENCE = re.compile(r"(?<=[.!?])\s+|,\s+(?=(?:and|but|then|also)\b)")
_SURE = 0.5
_BUT = re.compile(r"\b(?:but|instead|another|other|else)\b", re.IGNORECASE)
_VERY_SURE = 0.8
_IDLE = frozenset({MessageKind.CHITCHAT, MessageKind.DENIAL, MessageKind.CONFIRMATION})


@dataclass(slots=True)
class Tracker:
    """The state of one service in one dialogue."""

    service: Service
    flows: dict[str, FlowSpec]
    system1: System1
    reader: SystemReader
    intent: str = NO_INTENT
    state: dict[str, str] = field(default_factory=dict[str, str])
    offered: dict[str, str] = field(default_factory=dict[str, str])
    system: SystemTurn = field(default_factory=SystemTurn)

    def read_system(self, text: str | None) -> None:
        """Take in what the system said to the user's last turn; None when that was about another service."""
        if text is None:
            self.system = SystemTurn()
            return
        said = self.system = self.reader.read(text)
        if said.act == "CONFIRM" and said.intent is not None:
            self.intent = said.intent
        values = {name: value for name, value in said.values.items() if name in self.reader.lasting}
        unknown = {name: value for name, value in values.items() if name not in self.state}
        match said.act:
            case "OFFER":
                self.offered = unknown
            case "CONFIRM":
                self.offered = values
            case "REQUEST" | "OFFER_INTENT":
                self.offered |= unknown
            case "NOTIFY_SUCCESS" | "REQ_MORE" | "GOODBYE":
                self.offered = {}
            case _:
                pass

    def read_user(self, text: str) -> Prediction:
        """Take in what the user said; the state after it."""
        text = clean(text)
        understanding = self.system1.think(text, self._context()).understanding
        kinds, flow, share = self._parts(text)
        if (
            understanding.kind is MessageKind.TASK
            and understanding.flows
            and understanding.flows[0].score > share
        ):
            flow, share = str(understanding.flows[0].dact), understanding.flows[0].score
        refuses = MessageKind.DENIAL in kinds
        kinds.add(understanding.kind)
        accepts = MessageKind.CONFIRMATION in kinds
        before = self.intent
        self.intent = self._next_intent(kinds, flow, share, accepts=accepts, refuses=refuses)
        moved = self.intent not in {before, NO_INTENT} and before != NO_INTENT
        elsewhere = self.system.act == "OFFER" and not moved and _BUT.search(text) is not None
        if (accepts or (moved and not refuses)) and self.offered and not elsewhere:
            self.state |= self.offered
            self.offered = {}
        elif refuses:
            self.offered = {}
        for name, mention in self._mentions(text, understanding).items():
            value = self._value(name, mention)
            if value is not None:
                self.state[name] = value
        return Prediction(self.intent, dict(self.state), self.reader.requested(text))

    def _context(self) -> NluContext:
        active = self.flows.get(self.intent) or next(iter(self.flows.values()), None)
        confirming = self.system.act in {"OFFER", "CONFIRM", "OFFER_INTENT"}
        asked = self.system.asked if not confirming else None
        question = OpenQuestion(asked, confirming)
        return NluContext(TODAY, active, dict(self.state), question)

    def _parts(self, text: str) -> tuple[set[MessageKind], str, float]:
        """The kinds of a message's sentences, and the likeliest flow of any of them."""
        context = self._context()
        kinds: set[MessageKind] = set()
        flow, best = "", 0.0
        for part in _SENTENCE.split(text):
            if not part.strip():
                continue
            kinds.add(self.system1.kind_of_part(part, context))
            for dact, share in self.system1.opinion(part, context).items():
                if share > best:
                    flow, best = str(dact), share
        return kinds, flow, best

    def _next_intent(
        self, kinds: set[MessageKind], flow: str, share: float, *, accepts: bool, refuses: bool
    ) -> str:
        proposed = self.system.intent
        if proposed is not None and accepts and not refuses and share < _VERY_SURE:
            return proposed
        if share >= _SURE:
            return flow
        closing = self.system.act in {"REQ_MORE", "OFFER_INTENT"} or proposed is not None
        if closing and (refuses or (MessageKind.CHITCHAT in kinds and not accepts)):
            return NO_INTENT
        if self.intent == NO_INTENT and flow and not kinds <= _IDLE:
            return flow
        return self.intent

    def _mentions(self, text: str, understanding: Understanding) -> dict[str, Mention]:
        context = self._context()
        flow = context.active
        if flow is None:
            return {}
        if understanding.kind in {MessageKind.SLOT_VALUE, MessageKind.CORRECTION} and understanding.slots:
            return dict(understanding.slots)
        return self.system1.slots_for(text, flow, context)

    def _value(self, name: str, mention: Mention) -> str | None:
        slot = self.service.slots.get(name)
        if slot is None or mention.invalid is not None:
            return None
        if slot.categorical:
            value = str(mention.value)
            return value if value in slot.values else None
        return mention.text or None
