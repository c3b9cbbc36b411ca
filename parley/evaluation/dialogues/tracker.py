"""Tracking the state of a dialogue's services with System 1 and nothing but the words said.

Users' values accumulate; values that the system offered enter the state when the user takes the
offer, and a task that begins takes over what was said to others. Annotations are never seen here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind
from orchestrator.nlu.nlu_context import NluContext, OpenQuestion
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.text import clean
from parley.evaluation.dialogues.carrying import CarryModel, Heard
from parley.evaluation.dialogues.compile import TODAY
from parley.evaluation.dialogues.dataset import NO_INTENT, Service
from parley.evaluation.dialogues.decisions import (
    AcceptanceModel,
    IntentModel,
    Moment,
    WishModel,
)
from parley.evaluation.dialogues.metrics import Prediction
from parley.evaluation.dialogues.offers import SystemReader, SystemTurn

_SENTENCE = re.compile(r"(?<=[.!?])\s+|,\s+(?=(?:and|but|then|also)\b)")


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was learnt of all services; `flows` by service and intent."""

    services: Mapping[str, Service]
    flows: Mapping[str, Mapping[str, FlowSpec]]
    system1: System1
    reader: SystemReader
    intents: IntentModel
    wishes: WishModel
    acceptance: AcceptanceModel
    carrying: CarryModel


@dataclass(slots=True)
class Tracker:
    """The state of one service in one dialogue. `sure`: how likely the intent is held to be."""

    learnt: Learnt
    service: Service
    intent: str = NO_INTENT
    sure: float = 1.0
    state: dict[str, str] = field(default_factory=dict[str, str])
    offered: dict[str, str] = field(default_factory=dict[str, str])
    system: SystemTurn = field(default_factory=SystemTurn)

    def read_system(self, text: str | None) -> None:
        """Take in what the system said to the user's last turn; None when that was about another service."""
        if text is None:
            self.system = SystemTurn()
            return
        said = self.system = self.learnt.reader.read(self.service, text)
        tracked = {slot.name for slot in self.service.tracked}
        lasting = {one for one in tracked if (self.service.name, one) in self.learnt.reader.lasting}
        values = {name: value for name, value in said.values.items() if name in lasting}
        unknown = {name: value for name, value in values.items() if name not in self.state}
        match said.act:
            case "OFFER" if self._changing:  # instead of what could not be done
                self.offered = values
            case "OFFER":
                self.offered = unknown
            case "CONFIRM" | "NOTIFY_FAILURE":
                self.offered = {name: value for name, value in said.values.items() if name in tracked}
            case "REQUEST" | "PROPOSE" | "OFFER_INTENT":
                self.offered |= unknown
            case "NOTIFY_SUCCESS" | "REQ_MORE" | "GOODBYE":
                self.offered = {}
            case _:
                self.offered |= {} if self.offered else unknown

    def read_user(self, text: str, heard: Heard, *, alone: bool) -> Prediction:
        """Take in what the user said, and give the state after it.

        `heard`: what was said to other services. `alone`: the turn is about no other service.
        """
        text, before = clean(text), self.intent
        moment = Moment(self.service, before, self.system)
        values = self._values(text)
        self.intent, self.sure = self.learnt.intents.decide(moment, text, values)
        begins = self.intent not in {before, NO_INTENT}
        if self.offered and self.learnt.acceptance.accepts(moment, text, self.intent, alone=alone):
            self.state |= self.offered
            self.offered = {}
        elif MessageKind.DENIAL in self._kinds(text):
            self.offered = {}
        if alone or before == NO_INTENT or begins:
            self.state |= values
        if begins:
            self.state |= self.learnt.carrying.carry(self.service, text, heard, self.state)
        return Prediction(
            self.intent, dict(self.state), self.learnt.reader.requested(self.service, text), self.sure
        )

    @property
    def _changing(self) -> bool:
        intent = self.service.intents.get(self.intent)
        return intent is not None and intent.is_transactional

    def _values(self, text: str) -> dict[str, str]:
        """The values that a message gives for this service."""
        values = self.learnt.wishes.find(self.service, text, self.system.asked)
        for name, mention in self._mentions(text).items():
            value = self._value(name, mention)
            if value is not None:
                values[name] = value
        return values

    def _context(self) -> NluContext:
        flows = self.learnt.flows[self.service.name]
        active = flows.get(self.intent) or next(iter(flows.values()), None)
        confirming = self.system.act in {"OFFER", "CONFIRM", "PROPOSE", "OFFER_INTENT"}
        asked = self.system.asked if not confirming else None
        return NluContext(TODAY, active, dict(self.state), OpenQuestion(asked, confirming))

    def _kinds(self, text: str) -> set[MessageKind]:
        """The kinds of a message's sentences, and of the whole."""
        context, system1 = self._context(), self.learnt.system1
        parts = [part for part in _SENTENCE.split(text) if part.strip()]
        return {system1.kind_of_part(part, context) for part in {*parts, text}}

    def _mentions(self, text: str) -> dict[str, Mention]:
        context, system1 = self._context(), self.learnt.system1
        if context.active is None:
            return {}
        understanding = system1.think(text, context).understanding
        if understanding.kind in {MessageKind.SLOT_VALUE, MessageKind.CORRECTION} and understanding.slots:
            return dict(understanding.slots)
        return system1.slots_for(text, context.active, context)

    def _value(self, name: str, mention: Mention) -> str | None:
        slot = self.service.slots.get(name)
        if slot is None or mention.invalid is not None:
            return None
        if slot.categorical:
            value = str(mention.value)
            return value if value in slot.values else None
        return mention.text or None


@dataclass(slots=True)
class DialogueTracker:
    """The state of all services of one dialogue."""

    learnt: Learnt
    trackers: dict[str, Tracker] = field(default_factory=dict[str, Tracker])
    heard: Heard = field(default_factory=Heard)
    current: str = ""

    def read_system(self, text: str) -> None:
        """Take in what the system said, which is about the service that the user spoke of last."""
        for name, tracker in self.trackers.items():
            tracker.read_system(text if name == self.current else None)
        if self.current in self.trackers:
            self.heard.note(self.current, self.trackers[self.current].system.values)

    def read_user(self, text: str, services: Collection[str]) -> dict[str, Prediction]:
        """Take in what the user said to some services: their states after it."""
        known = [name for name in services if name in self.learnt.services and self.learnt.flows.get(name)]
        predictions: dict[str, Prediction] = {}
        for name in known:
            tracker = self.trackers.setdefault(name, Tracker(self.learnt, self.learnt.services[name]))
            predictions[name] = tracker.read_user(text, self.heard, alone=len(known) == 1)
        for name, prediction in predictions.items():
            self.heard.note(name, prediction.state)
        self.current = known[-1] if known else self.current
        return predictions
