"""Reading the system's side of a dialogue from its words alone: what it asks, offers, and proposes.

In a running assistant the agent knows these things; here only its utterances are given. Learnt
from annotated dialogues; at measure time nothing but the text is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.nlu.classifier import delexicalize, features_of
from orchestrator.nlu.examples import Example
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.linear import LinearModel, train_linear
from orchestrator.nlu.slot_assignment import Roles
from orchestrator.nlu.text import clean, tokenize
from orchestrator.types import Dact
from parley.evaluation.compile import TODAY, category_spans
from parley.evaluation.dataset import Dialogue, Frame, Service, Turn

NOTHING = "-"
_SURE = 0.5
_PARTS = re.compile(r"(?<=[.!?])\s+|,?\s+and\s+")
_ACTS = (
    "OFFER_INTENT",
    "CONFIRM",
    "OFFER",
    "REQUEST",
    "NOTIFY_SUCCESS",
    "NOTIFY_FAILURE",
    "INFORM",
    "REQ_MORE",
    "GOODBYE",
)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a system turn seems to say. `act`: its chief act. `values`: by slot, in its words."""

    act: str = NOTHING
    asked: str | None = None
    intent: str | None = None
    values: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Models:
    """What is learnt of a system's turns: act, slot asked for, intent proposed; and of the users' questions.

    `lasting`: the slots whose offered values enter the state when the offer is taken.
    """

    acts: LinearModel
    asked: LinearModel
    intents: LinearModel
    wishes: LinearModel
    lasting: frozenset[str]


class SystemReader:
    """Reads system utterances for one service."""

    def __init__(
        self, service: Service, flow: FlowSpec, extractor: Extractor, roles: Roles, models: Models
    ) -> None:
        self._service = service
        self._flow = flow
        self._extractor = extractor
        self._roles = roles
        self._models = models
        self.lasting = models.lasting

    @classmethod
    def train(
        cls, service: Service, flow: FlowSpec, dialogues: Sequence[Dialogue], extractor: Extractor
    ) -> SystemReader:
        """Learn from the system's turns; acts and questions also from other services' turns."""
        own: list[Example] = []
        acts: list[tuple[str, str]] = []
        asked: list[tuple[str, str]] = []
        intents: list[tuple[str, str]] = []
        for turn, frame, current in _system_frames(dialogues):
            act, slot, intent = _label(frame)
            if act == "CONFIRM" and current is not None:
                intent = current
            acts.append((turn.text, act))
            mine = frame.service == service.name
            if mine or slot in flow.slots:
                asked.append((turn.text, slot if slot in flow.slots else NOTHING))
            if mine:
                own.append(_example(service, turn, frame))
                intents.append((turn.text, intent))
        roles = Roles.train(own, extractor, flow.slots)
        learn = _Learner(extractor)
        wishes = learn(_wishes(dialogues, service))
        lasting = lasting_slots(service, dialogues)
        models = Models(learn(acts), learn(asked), learn(intents), wishes, lasting)
        return cls(service, flow, extractor, roles, models)

    def read(self, text: str) -> Heard:
        """Read one system utterance."""
        utterance = tokenize(clean(text))
        candidates = self._extractor.find(utterance, TODAY)
        features = features_of(delexicalize(utterance, candidates))
        mentions = self._roles.assign(utterance, candidates, self._flow, None, self._extractor)
        values: dict[str, str] = {}
        for name, mention in mentions.items():
            slot = self._service.slots[name]
            if mention.invalid is None:
                values[name] = str(mention.value) if slot.categorical else mention.text
        asked, intent = _best(self._models.asked, features), _best(self._models.intents, features)
        return Heard(
            _best(self._models.acts, features) or NOTHING,
            asked if asked in self._flow.slots else None,
            intent if intent in self._service.intents else None,
            values,
        )

    def requested(self, text: str) -> frozenset[str]:
        """The slots that a user's message asks about."""
        slots: set[str] = set()
        for part in _PARTS.split(clean(text)):
            utterance = tokenize(part)
            features = features_of(delexicalize(utterance, self._extractor.find(utterance, TODAY)))
            best = _best(self._models.wishes, features)
            if best in self._service.slots:
                slots.add(best)
        return frozenset(slots)


def lasting_slots(service: Service, dialogues: Iterable[Dialogue]) -> frozenset[str]:
    """The tracked slots that were in the state at least every second time after their offer was taken."""
    kept: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    for dialogue in dialogues:
        offered: set[str] = set()
        for turn in dialogue.turns:
            frame = turn.frame(service.name)
            if frame is None:
                continue
            if not turn.user:
                offered |= {act.slot for act in frame.acts if act.name in {"OFFER", "CONFIRM"}}
            elif frame.state is not None and any(act.name in {"SELECT", "AFFIRM"} for act in frame.acts):
                kept.update(offered & frame.state.keys())
                dropped.update(offered - frame.state.keys())
                offered = set()
    return frozenset(slot.name for slot in service.tracked if kept[slot.name] >= dropped[slot.name])


def _wishes(dialogues: Iterable[Dialogue], service: Service) -> list[tuple[str, str]]:
    """Users' sentences with the slot that they ask about, of all services that have such a slot."""
    wishes: list[tuple[str, str]] = []
    for dialogue in dialogues:
        for turn in dialogue.turns:
            for frame in turn.frames if turn.user else ():
                slots = [act.slot for act in frame.acts if act.name == "REQUEST" and act.slot]
                if len(slots) <= 1 and (not slots or slots[0] in service.slots):
                    wishes.append((turn.text, slots[0] if slots else NOTHING))
    return wishes


class _Learner:
    def __init__(self, extractor: Extractor) -> None:
        self._extractor = extractor

    def __call__(self, examples: Iterable[tuple[str, str]]) -> LinearModel:
        rows: list[dict[str, float]] = []
        labels: list[str] = []
        for text, label in examples:
            utterance = tokenize(clean(text))
            rows.append(features_of(delexicalize(utterance, self._extractor.find(utterance, TODAY))))
            labels.append(label)
        return train_linear(rows, labels)


def _best(model: LinearModel, features: dict[str, float]) -> str | None:
    total = model.bias.copy()
    for name, weight in features.items():
        row = model.rows.get(name)
        if row is not None:
            total += weight * row
    shares = model.probabilities(total)
    share, label = max(zip(shares, model.labels, strict=True))
    return label if share >= _SURE and label != NOTHING else None


def _system_frames(dialogues: Iterable[Dialogue]) -> Iterable[tuple[Turn, Frame, str | None]]:
    """The system's turns with each frame, and the user's intent at that time."""
    for dialogue in dialogues:
        intents: dict[str, str | None] = {}
        for turn in dialogue.turns:
            for frame in turn.frames:
                if turn.user:
                    intents[frame.service] = frame.intent
                else:
                    yield turn, frame, intents.get(frame.service)


def _label(frame: Frame) -> tuple[str, str, str]:
    names = {act.name for act in frame.acts}
    chief = next((name for name in _ACTS if name in names), NOTHING)
    asked = next((act.slot for act in frame.acts if act.name == "REQUEST"), NOTHING)
    intent = next((act.values[0] for act in frame.acts if act.name == "OFFER_INTENT" and act.values), NOTHING)
    return chief, asked, intent


def _example(service: Service, turn: Turn, frame: Frame) -> Example:
    spans = [*frame.spans, *category_spans(service, frame.acts, turn.text)]
    spans = [span for span in spans if span[2] in service.slots]
    return Example(turn.text, None, tuple(spans), dact=Dact(next(iter(service.intents), "")))
