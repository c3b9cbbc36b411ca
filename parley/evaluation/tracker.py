"""Tracking a dialogue's state for one service, with System 1 and nothing but the words said.

Users' values accumulate; values that the system offered enter the state when the user takes the
offer. Annotations are never seen here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind
from orchestrator.nlu.situation import Situation
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.text import clean
from orchestrator.types import Dact
from parley.evaluation.compile import TODAY
from parley.evaluation.dataset import NO_INTENT, Service
from parley.evaluation.metrics import Prediction
from parley.evaluation.offers import Heard, SystemReader

_SENTENCE = re.compile(r"(?<=[.!?])\s+|,\s+(?=(?:and|but|then|also)\b)")
_SURE = 0.5


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
        """Take in what the system said."""
        self.heard = self.reader.read(text)
        if self.heard.act in {"OFFER", "CONFIRM"}:
            if self.heard.act == "CONFIRM":
                self.offered |= self.heard.values
            else:
                self.offered = dict(self.heard.values)
        elif self.heard.act in {"REQUEST", "OFFER_INTENT", "INFORM"}:
            self.offered |= self.heard.values
        elif self.heard.act in {"NOTIFY_SUCCESS", "REQ_MORE", "GOODBYE"}:
            self.offered = {}

    def follow(self, text: str) -> Prediction:
        """Take in what the user said; the state after it."""
        text = clean(text)
        reading = self.system1.think(text, self._situation())
        understanding = reading.understanding
        kinds = self._kinds(text)
        accepts = MessageKind.CONFIRMATION in kinds
        refuses = MessageKind.DENIAL in kinds
        new_intent = self._next_intent(understanding.kind, kinds, understanding.flows, accepts)
        moved = new_intent not in {self.intent, NO_INTENT} and self.intent != NO_INTENT
        if (accepts or (moved and not refuses)) and self.offered:
            self.state |= self.offered
            self.offered = {}
        elif refuses:
            self.offered = {}
        self.intent = new_intent
        for name, mention in self._mentions(text).items():
            value = self._value(name, mention)
            if value is not None:
                self.state[name] = value
        return Prediction(self.intent, dict(self.state))

    def _situation(self) -> Situation:
        active = self.flows.get(self.intent) or next(iter(self.flows.values()), None)
        confirming = self.heard.act in {"OFFER", "CONFIRM", "OFFER_INTENT"}
        asked = self.heard.asked if not confirming else None
        return Situation(TODAY, active, values=dict(self.state), asked=asked, confirming=confirming)

    def _kinds(self, text: str) -> set[MessageKind]:
        situation = self._situation()
        return {
            self.system1.kind_of_part(part, situation) for part in _SENTENCE.split(text) if part.strip()
        }

    def _next_intent(self, kind: MessageKind, kinds: set[MessageKind], flows: tuple, accepts: bool) -> str:
        if self.heard.intent is not None and accepts and kind is not MessageKind.TASK:
            return self.heard.intent
        best = flows[0] if flows else None
        if best is not None and (self.intent == NO_INTENT or best.score >= _SURE):
            if kind is MessageKind.TASK or best.score >= _SURE:
                return str(best.dact)
            if kind not in {MessageKind.CHITCHAT, MessageKind.DENIAL, MessageKind.CONFIRMATION}:
                return str(best.dact)
        closing = self.heard.act in {"NOTIFY_SUCCESS", "REQ_MORE", "OFFER_INTENT", "NOTIFY_FAILURE"}
        if kind is MessageKind.CHITCHAT or (closing and kind is MessageKind.DENIAL):
            return NO_INTENT
        return self.intent

    def _mentions(self, text: str) -> dict[str, Mention]:
        situation = self._situation()
        flow = situation.active
        if flow is None:
            return {}
        reading = self.system1.think(text, situation).understanding
        if reading.kind in {MessageKind.SLOT_VALUE, MessageKind.CORRECTION} and reading.slots:
            return dict(reading.slots)
        return self.system1.slots_for(text, flow, situation)

    def _value(self, name: str, mention: Mention) -> str | None:
        slot = self.service.slots.get(name)
        if slot is None or mention.invalid is not None:
            return None
        if slot.categorical:
            value = str(mention.value)
            return value if value in slot.values else None
        return mention.text or None


def first_dact(flows: dict[str, FlowSpec]) -> Dact:
    return Dact(next(iter(flows), ""))
