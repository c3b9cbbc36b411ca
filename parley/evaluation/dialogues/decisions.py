"""What a tracker decides by what it has learnt: the intent after a turn, whether an offer is taken, and values that
are meant without being named.

Learnt from annotated dialogues; at measure time only what was understood of the words said goes in.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from orchestrator.nlu.classifier import Classifier, Features, LinearModel, pick_best
from orchestrator.nlu.linear import Examples, fit
from orchestrator.nlu.text import fold
from parley.evaluation.dialogues.compile import Words
from parley.evaluation.dialogues.dataset import NO_INTENT, Act, Dialogue, Frame, Service
from parley.evaluation.dialogues.offers import NOTHING, TAKING, SystemTurn, annotated_turn

_STRENGTH = 10.0
_STAYING = 1.0
_NAMED = 2.0
"""What speaks for the intent that there is, whatever is said, and for one that the message names."""
_LEAST_WISHES = 3
_SURE = 0.5
TAKEN, REFUSED = "taken", "refused"
_REFUSING = frozenset({"NEGATE", "NEGATE_INTENT", "REQUEST_ALTS"})


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known when a user speaks to a service: its intent so far, and what its assistant said last."""

    service: Service
    intent: str
    system: SystemTurn

    def features(self, named: Collection[str]) -> dict[str, float]:
        """Describe it. `named`: the slots that the user gives values for."""
        now, proposed = self._family(self.intent), self._family(self.system.intent or NO_INTENT)
        act, asked = self.system.act, self.system.asked
        features = {
            f"now:{now}": 1.0,
            f"act:{act}": 1.0,
            f"act:{act} now:{now}": 1.0,
            f"proposed:{proposed}": 1.0,
            f"proposed:{proposed} act:{act}": 1.0,
            f"asked:{asked}": 1.0,
            f"asked for:{self._takers(asked)}": 1.0,
        }
        for slot in named:
            features |= {f"named:{slot}": 0.5, f"named for:{self._takers(slot)}": 0.5}
        return features

    def _takers(self, slot: str | None) -> str:
        """Tell what the intents do that take a slot."""
        takers = [one.name for one in self.service.intents.values() if slot in one.slots]
        return " ".join(sorted({self._family(name) for name in takers}))

    def possible(self, text: str) -> dict[str, float]:
        """The labels of the intents that there may be now, with the scores that they begin with."""
        joined = "".join(filter(str.isalpha, fold(text)))
        first = {_label_of(self.service, NO_INTENT): _STAYING * (self.intent == NO_INTENT)}
        for name, words in self.service.telling_words.items():
            named = any(word in joined for word in words)
            first[_label_of(self.service, name)] = _STAYING * (name == self.intent) + _NAMED * named
        return first

    def _family(self, intent: str) -> str:
        known = self.service.intents.get(intent)
        return "none" if known is None else "changes" if known.is_transactional else "finds"


def _label_of(service: Service, intent: str) -> str:
    return intent if intent == NO_INTENT else f"{service.name}:{intent}"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is annotated of a user's turn for a service. `intent`: after it. `alone`: it is about no other service."""

    moment: Moment
    text: str
    intent: str
    acts: Sequence[Act]
    alone: bool


@dataclass(frozen=True, slots=True)
class IntentModel:
    """Which intent of a service is active after a user's turn."""

    said: Classifier
    words: Words

    @classmethod
    def learn(cls, services: Mapping[str, Service], lessons: Sequence[Lesson], words: Words) -> IntentModel:
        rows: list[Features] = []
        labels: list[str] = []
        allowed: list[Mapping[str, float]] = []
        for one in lessons:
            moment = one.moment
            if one.intent in {*moment.service.intents, NO_INTENT}:
                named = {act.slot for act in one.acts if act.name == "INFORM"}
                rows.append(words.features(one.text) | moment.features(named))
                labels.append(_label_of(moment.service, one.intent))
                allowed.append(moment.possible(one.text))
        parts = {
            _label_of(service, name): {"changes" if intent.is_transactional else "finds"}
            for service in services.values()
            for name, intent in service.intents.items()
        }
        return cls(Classifier(fit(Examples(rows, labels, allowed, parts), _STRENGTH)), words)

    def decide(self, moment: Moment, text: str, named: Collection[str]) -> tuple[str, float]:
        """The likeliest intent, and how likely it is."""
        added = self.said.add_up(self.words.tokens(text), moment.features(named)).tolist()
        possible, columns = moment.possible(text), self.said.columns
        known = {label: one + added[columns[label]] for label, one in possible.items() if label in columns}
        best, share = pick_best(self.said.model, known or possible)
        return best.partition(":")[2] or NO_INTENT, share


@dataclass(frozen=True, slots=True)
class AnswerModel:
    """Whether a user's turn takes or refuses what a service's assistant offered, or wants to be confirmed."""

    said: Classifier
    words: Words

    @classmethod
    def learn(cls, lessons: Sequence[Lesson], words: Words) -> AnswerModel:
        rows = [words.features(one.text) | _after(one.moment, one.intent, alone=one.alone) for one in lessons]
        labels = [_answer_of({act.name for act in one.acts}) for one in lessons]
        return cls(Classifier(fit(Examples(rows, labels), _STRENGTH)), words)

    def decide(self, moment: Moment, text: str, intent: str, *, alone: bool) -> str:
        """Decide for a turn after which `intent` is active; `alone`: it is about no other service."""
        added = self.said.add_up(self.words.tokens(text), _after(moment, intent, alone=alone))
        return self.said.model.labels[int(added.argmax())]


def _answer_of(acts: set[str]) -> str:
    return TAKEN if acts & TAKING else REFUSED if acts & _REFUSING else NOTHING


def _after(moment: Moment, intent: str, *, alone: bool) -> dict[str, float]:
    moved = intent not in {moment.intent, NO_INTENT}
    return moment.features(()) | {f"alone:{alone}": 1.0, f"moved:{moved} alone:{alone}": 1.0}


@dataclass(frozen=True, slots=True)
class Wishes:
    """The models of a service's listed slots side by side, which one pass over a message applies.

    `slots`: by slot, its model and its first column among all of them.
    """

    said: Classifier
    slots: Mapping[str, tuple[LinearModel, int]]

    @classmethod
    def of(cls, models: Mapping[str, LinearModel]) -> Wishes:
        """Put models together that were fitted to the same messages."""
        parts = list(models.values())
        firsts = accumulate((len(model.labels) for model in parts[:-1]), initial=0)
        together = LinearModel(
            tuple(label for model in parts for label in model.labels),
            parts[0].places,
            np.hstack([model.weights for model in parts]),
            np.concatenate([model.bias for model in parts]),
        )
        return cls(
            Classifier(together),
            {name: (models[name], first) for name, first in zip(models, firsts, strict=True)},
        )

    def find(self, tokens: Sequence[str], asked: str | None) -> dict[str, str]:
        """The values that are likelier than not."""
        scores = self.said.add_up(tokens, _asked_for(asked)).tolist()
        found: dict[str, str] = {}
        for slot, (model, first) in self.slots.items():
            own = scores[first : first + len(model.labels)]
            highest = max(own)
            label = model.labels[own.index(highest)]
            others = sum(math.exp((one - highest) * model.sharpness) for one in own)
            if 1.0 / others > _SURE:
                found[slot] = label
        return found


@dataclass(frozen=True, slots=True)
class WishModel:
    """Values of listed slots that a message means as a whole ("child-friendly"), by service."""

    services: Mapping[str, Wishes]
    words: Words

    @classmethod
    def learn(cls, lessons: Sequence[Lesson], words: Words) -> WishModel:
        rows: dict[str, list[Features]] = {}
        said: dict[str, dict[str, list[str]]] = {}
        for one in lessons:
            service = one.moment.service
            features = words.features(one.text) | _asked_for(one.moment.system.asked)
            rows.setdefault(service.name, []).append(features)
            acts = {act.slot: act.canonical[0] for act in one.acts if act.name == "INFORM" and act.canonical}
            for slot in service.tracked:
                if slot.categorical:
                    labels = said.setdefault(service.name, {}).setdefault(slot.name, [])
                    labels.append(acts.get(slot.name, NOTHING))
        models = {
            service: {
                slot: fit(Examples(rows[service], labels), _STRENGTH)
                for slot, labels in slots.items()
                if len(labels) - labels.count(NOTHING) >= _LEAST_WISHES and NOTHING in labels
            }
            for service, slots in said.items()
        }
        return cls({service: Wishes.of(some) for service, some in models.items() if some}, words)

    def find(self, service: Service, text: str, asked: str | None) -> dict[str, str]:
        """The values that are likelier than not."""
        wishes = self.services.get(service.name)
        meant = {} if wishes is None else wishes.find(self.words.tokens(text), asked)
        return {slot: value for slot, value in meant.items() if value in service.slots[slot].values}


def _asked_for(slot: str | None) -> dict[str, float]:
    return {f"asked:{slot}": 1.0}


def read_lessons(services: Mapping[str, Service], dialogues: Sequence[Dialogue]) -> list[Lesson]:
    """Read what there is to learn from: each annotated frame of a user's turn, in the moment as it is annotated."""
    lessons: list[Lesson] = []
    for dialogue in dialogues:
        intents: dict[str, str] = {}
        said: dict[str, Frame] = {}
        for turn in dialogue.turns:
            if not turn.user:
                said = {frame.service: frame for frame in turn.frames}
                continue
            for frame in turn.frames:
                service = services.get(frame.service)
                if service is None or frame.state is None:
                    continue
                before, after = intents.get(service.name, NO_INTENT), frame.state.active_intent
                moment = Moment(service, before, annotated_turn(said.get(service.name), before))
                lessons.append(Lesson(moment, turn.text, after, frame.acts, alone=len(turn.frames) == 1))
                intents[service.name] = after
    return lessons
