"""Tracking a dialogue's state for one service, with System 1 and nothing but the words said.

Users' values accumulate; values that the system offered enter the state when the user takes the
offer. Annotations are never seen here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind, Understanding
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.text import clean
from parley.evaluation.compile import TODAY
from parley.evaluation.dataset import NO_INTENT, Service
from parley.evaluation.metrics import Prediction
from parley.evaluation.offers import Heard, SystemReader

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
    heard: Heard = field(default_factory=Heard)

    def hear(self, text: str) -> None:
        """Take in what the system said to the user's last turn with this service."""
        heard = self.heard = self.reader.read(text)
        if heard.act == "CONFIRM" and heard.intent is not None:
            self.intent = heard.intent
        values = {name: value for name, value in heard.values.items() if name in self.reader.lasting}
        match heard.act:
            case "OFFER":
                self.offered = {name: value for name, value in values.items() if name not in self.state}
            case "CONFIRM":
                self.offered = values
            case "REQUEST" | "OFFER_INTENT":
                self.offered |= {name: value for name, value in values.items() if name not in self.state}
            case "NOTIFY_SUCCESS" | "REQ_MORE" | "GOODBYE":
                self.offered = {}
            case _:
                pass

    def miss(self) -> None:
        """Note that the system's turn was about another service."""
        self.heard = Heard()

    def follow(self, text: str) -> Prediction:
        """Take in what the user said; the state after it."""
        text = clean(text)
        understanding = self.system1.think(text, self._situation()).understanding
        kinds, flow, share = self._parts(text)
        if (
            understanding.kind is MessageKind.TASK
            and understanding.flows
            and understanding.flows[0].score > share
        ):
            flow, share = str(understanding.flows[0].dact), understanding.flows[0].score
        accepts = MessageKind.CONFIRMATION in kinds or understanding.kind is MessageKind.CONFIRMATION
        refuses = MessageKind.DENIAL in kinds
        before = self.intent
        self.intent = self._next_intent(
            kinds | {understanding.kind}, flow, share, accepts=accepts, refuses=refuses
        )
        moved = self.intent not in {before, NO_INTENT} and before != NO_INTENT
        elsewhere = self.heard.act == "OFFER" and not moved and _BUT.search(text) is not None
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

    def _situation(self) -> Situation:
        active = self.flows.get(self.intent) or next(iter(self.flows.values()), None)
        confirming = self.heard.act in {"OFFER", "CONFIRM", "OFFER_INTENT"}
        asked = self.heard.asked if not confirming else None
        return Situation(TODAY, active, values=dict(self.state), asked=asked, confirming=confirming)

    def _parts(self, text: str) -> tuple[set[MessageKind], str, float]:
        """The kinds of a message's sentences, and the likeliest flow of any of them."""
        situation = self._situation()
        kinds: set[MessageKind] = set()
        flow, best = "", 0.0
        for part in _SENTENCE.split(text):
            if not part.strip():
                continue
            kinds.add(self.system1.kind_of_part(part, situation))
            for dact, share in self.system1.opinion(part, situation).items():
                if share > best:
                    flow, best = str(dact), share
        return kinds, flow, best

    def _next_intent(
        self, kinds: set[MessageKind], flow: str, share: float, *, accepts: bool, refuses: bool
    ) -> str:
        proposed = self.heard.intent
        if proposed is not None and accepts and not refuses and share < _VERY_SURE:
            return proposed
        if share >= _SURE:
            return flow
        closing = self.heard.act in {"REQ_MORE", "OFFER_INTENT"} or proposed is not None
        if closing and (refuses or (MessageKind.CHITCHAT in kinds and not accepts)):
            return NO_INTENT
        if self.intent == NO_INTENT and flow and not kinds <= _IDLE:
            return flow
        return self.intent

    def _mentions(self, text: str, understanding: Understanding) -> dict[str, Mention]:
        situation = self._situation()
        flow = situation.active
        if flow is None:
            return {}
        if understanding.kind in {MessageKind.SLOT_VALUE, MessageKind.CORRECTION} and understanding.slots:
            return dict(understanding.slots)
        return self.system1.slots_for(text, flow, situation)

    def _value(self, name: str, mention: Mention) -> str | None:
        slot = self.service.slots.get(name)
        if slot is None or mention.invalid is not None:
            return None
        if slot.categorical:
            value = str(mention.value)
            return value if value in slot.values else None
        return mention.text or None
