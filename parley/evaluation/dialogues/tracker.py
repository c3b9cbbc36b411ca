"""Tracking the state of a dialogue's services with System 1 and nothing but the words said.

Users' values accumulate; values that the system offered enter the state when the user takes the
offer, and a task that begins takes over what was said to others ("I need a hotel there"): which values
do is learnt from annotated dialogues. Annotations are never seen while tracking.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.nlu.classifier import Features, LinearModel, add_up, pick_best
from orchestrator.nlu.linear import Examples, fit
from orchestrator.nlu.nlu_context import NluContext, OpenQuestion
from orchestrator.nlu.readers.readings import Case
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.text import clean, fold
from parley.evaluation.dialogues.compile import TODAY, Words
from parley.evaluation.dialogues.dataset import NO_INTENT, Dialogue, Frame, SchemaSlot, Service, Turn
from parley.evaluation.dialogues.decisions import (
    TAKEN,
    AnswerModel,
    IntentModel,
    Moment,
    WishModel,
)
from parley.evaluation.dialogues.metrics import Prediction
from parley.evaluation.dialogues.offers import NOTHING, SystemReader, SystemTurn

_STRENGTH = 10.0
_SURE = 0.5
_GIVEN = frozenset({"OFFER", "INFORM", "CONFIRM"})
_CARRIED = "carried"
_TOLD = 0.35
"""The weight of a word for what is carried over."""

Place = tuple[str, str]
"""A service and one of its slots."""


@dataclass(slots=True)
class Heard:
    """The values that were last said of each service's slots, by either side, in one dialogue."""

    values: dict[Place, str] = field(default_factory=dict[Place, str])

    def note(self, service: str, values: Mapping[str, str]) -> None:
        for slot, value in values.items():
            self.values.pop((service, slot), None)
            self.values[service, slot] = value

    def elsewhere(self, service: Service, slot: SchemaSlot) -> dict[Place, str]:
        """What was said of other services that may be a value of this slot."""
        return {
            place: value
            for place, value in self.values.items()
            if place[0] != service.name and (not slot.categorical or value in slot.values)
        }


@dataclass(frozen=True, slots=True)
class CarryModel:
    """Which values of other services a task that begins takes over: "I need a hotel there"."""

    model: LinearModel
    words: Words

    @classmethod
    def learn(
        cls, services: Mapping[str, Service], dialogues: Sequence[Dialogue], words: Words
    ) -> CarryModel:
        rows: list[Features] = []
        labels: list[str] = []
        for dialogue in dialogues:
            heard, before = Heard(), dict[str, Frame]()
            for turn in dialogue.turns:
                for frame in turn.frames:
                    service = services.get(frame.service)
                    if service is None:
                        continue
                    if frame.state is None:
                        given = {
                            act.slot: act.values[0] for act in frame.acts if act.name in _GIVEN and act.values
                        }
                        heard.note(service.name, given)
                        continue
                    if _begins(frame, before.get(service.name)):
                        for row, carried in _carried(
                            service, turn, frame, before.get(service.name), heard, words
                        ):
                            rows.append(row)
                            labels.append(_CARRIED if carried else NOTHING)
                    before[service.name] = frame
                for frame in turn.frames:
                    if frame.state is not None:
                        heard.note(
                            frame.service, {s: values[0] for s, values in frame.state.slot_values.items()}
                        )
        return cls(fit(Examples(rows, labels), _STRENGTH), words)

    def carry(self, service: Service, text: str, heard: Heard, state: Mapping[str, str]) -> dict[str, str]:
        """Values for slots that have none, from what was said of other services."""
        found: dict[str, str] = {}
        by_words = add_up(self.model, _told(self.words.tokens(text)))
        for slot in service.tracked:
            places = {} if slot.name in state else heard.elsewhere(service, slot)
            best = _SURE
            for place, value in places.items():
                added = add_up(self.model, _between(service.name, slot.name, place), by_words).tolist()
                label, share = pick_best(self.model, dict(zip(self.model.labels, added, strict=True)))
                if label == _CARRIED and share > best:
                    found[slot.name], best = value, share
        return found


def _begins(frame: Frame, before: Frame | None) -> bool:
    if frame.state is None or frame.state.active_intent == NO_INTENT:
        return False
    return before is None or before.state is None or before.state.active_intent != frame.state.active_intent


def _carried(
    service: Service, turn: Turn, frame: Frame, before: Frame | None, heard: Heard, words: Words
) -> Iterator[tuple[Features, bool]]:
    """Each value that might be taken over, and whether it is."""
    assert frame.state is not None
    known = before.state.slot_values if before is not None and before.state is not None else {}
    named = {act.slot for act in frame.acts if act.name == "INFORM"}
    said = _told(words.tokens(turn.text))
    for slot in service.tracked:
        if slot.name in known or slot.name in named:
            continue
        wanted = {fold(value) for value in frame.state.slot_values.get(slot.name, ())}
        for place, value in heard.elsewhere(service, slot).items():
            yield _between(service.name, slot.name, place) | said, fold(value) in wanted


def _told(tokens: Sequence[str]) -> dict[str, float]:
    return dict.fromkeys((f"w:{token}" for token in tokens[1:-1]), _TOLD / math.sqrt(len(tokens)))


@lru_cache(maxsize=4096)
def _between(service: str, slot: str, place: Place) -> dict[str, float]:
    """Describe a slot and the place that its value may come from."""
    return {
        f"to:{service} {slot}": 1.0,
        f"to:{slot}": 1.0,
        f"pair:{service} {slot} {place[0]} {place[1]}": 1.0,
        f"pair:{slot} {place[1]}": 1.0,
        f"from:{place[1]}": 1.0,
        "same name": float(slot == place[1]),
        "common": float(len(set(slot.split("_")) & set(place[1].split("_")))),
    }


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was learnt of all services; `flows` by service and intent."""

    services: Mapping[str, Service]
    flows: Mapping[str, Mapping[str, FlowSpec]]
    system1: System1
    reader: SystemReader
    intents: IntentModel
    wishes: WishModel
    answers: AnswerModel
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
                self.offered = self.offered or unknown

    def read_user(self, text: str, heard: Heard, *, alone: bool) -> Prediction:
        """Take in what the user said, and give the state after it.

        `heard`: what was said to other services. `alone`: the turn is about no other service.
        """
        text, before = clean(text), self.intent
        moment = Moment(self.service, before, self.system)
        values = self._values(text)
        self.intent, self.sure = self.learnt.intents.decide(moment, text, values)
        begins = self.intent not in {before, NO_INTENT}
        answer = (
            self.learnt.answers.decide(moment, text, self.intent, alone=alone) if self.offered else NOTHING
        )
        if answer == TAKEN:
            self.state |= self.offered
        if answer != NOTHING:
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

    def _mentions(self, text: str) -> dict[str, Mention]:
        context, system1 = self._context(), self.learnt.system1
        if context.active is None:
            return {}
        case = Case(system1, text, context)
        mentions = case.find_slots(context.active)
        if context.question.slot is None or context.question.slot in mentions:
            return mentions
        system1.decider.decide(case.evidence, context)  # adds what answers the question
        return case.evidence.mentions

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
