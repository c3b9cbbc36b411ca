"""Reading the system's side of a dialogue from its words alone: what it asks, offers, and proposes.

In a running assistant the agent knows these things; here only its utterances are given. Learnt
from annotated dialogues; at measure time nothing but the text is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.nlu.classifier import Classifier, delexicalize
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.slot_assignment import SlotAssigner
from orchestrator.nlu.text import clean, tokenize
from orchestrator.nlu.training.examples import Example
from orchestrator.nlu.training.learning import learn_labels, learn_slots
from orchestrator.types import Dact
from parley.evaluation.dialogues.compile import TODAY, annotated_spans
from parley.evaluation.dialogues.dataset import Dialogue, Frame, Service, Turn

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
class SystemTurn:
    """The apparent meaning of a system turn. `act`: its chief act. `values`: by slot, in its words."""

    act: str = NOTHING
    asked: str | None = None
    intent: str | None = None
    values: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SystemReader:
    """Reads system utterances for one service.

    The classifiers are of a system turn's act, of the slot asked for and the intent proposed, and of the
    slot that a user asks about. `lasting`: the slots whose offered values enter the state when the offer
    is taken.
    """

    service: Service
    flow: FlowSpec
    extractor: Extractor
    slots: SlotAssigner
    acts: Classifier
    asked: Classifier
    intents: Classifier
    questions: Classifier
    lasting: frozenset[str]

    @classmethod
    def train(
        cls, service: Service, flow: FlowSpec, dialogues: Sequence[Dialogue], extractor: Extractor
    ) -> SystemReader:
        """Learn from the system's turns; acts and questions also from other services' turns."""
        own: list[Example] = []
        acts: list[Example] = []
        asked: list[Example] = []
        intents: list[Example] = []
        for turn, frame, current in _system_frames(dialogues):
            act, slot, intent = _label(frame)
            if act == "CONFIRM" and current:
                intent = current
            acts.append(Example(turn.text, act))
            mine = frame.service == service.name
            if mine or slot in flow.slots:
                asked.append(Example(turn.text, slot if slot in flow.slots else NOTHING))
            if mine:
                dact = Dact(next(iter(service.intents), ""))
                own.append(Example(turn.text, None, annotated_spans(service, frame, turn.text), dact=dact))
                intents.append(Example(turn.text, intent))
        return cls(
            service,
            flow,
            extractor,
            slots=SlotAssigner(learn_slots(own, extractor, flow.slots), extractor),
            acts=Classifier(learn_labels(acts, extractor)),
            asked=Classifier(learn_labels(asked, extractor)),
            intents=Classifier(learn_labels(intents, extractor)),
            questions=Classifier(learn_labels(_questions(dialogues, service), extractor)),
            lasting=lasting_slots(service, dialogues),
        )

    def read(self, text: str) -> SystemTurn:
        """Read one system utterance."""
        utterance = tokenize(clean(text))
        candidates = self.extractor.find(utterance, TODAY)
        tokens = delexicalize(utterance, candidates)
        mentions = self.slots.assign(utterance, candidates, self.flow, None)
        values: dict[str, str] = {}
        for name, mention in mentions.items():
            if mention.invalid is None:
                values[name] = str(mention.value) if self.service.slots[name].categorical else mention.text
        asked, intent = _best(self.asked, tokens), _best(self.intents, tokens)
        return SystemTurn(
            _best(self.acts, tokens) or NOTHING,
            asked if asked in self.flow.slots else None,
            intent if intent in self.service.intents else None,
            values,
        )

    def requested(self, text: str) -> frozenset[str]:
        """The slots that a user's message asks about."""
        found: set[str | None] = set()
        for part in _PARTS.split(clean(text)):
            utterance = tokenize(part)
            found.add(_best(self.questions, delexicalize(utterance, self.extractor.find(utterance, TODAY))))
        return frozenset(slot for slot in found if slot in self.service.slots and slot is not None)


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
                kept.update(offered & frame.state.slot_values.keys())
                dropped.update(offered - frame.state.slot_values.keys())
                offered = set()
    return frozenset(slot.name for slot in service.tracked if kept[slot.name] >= dropped[slot.name])


def _questions(dialogues: Iterable[Dialogue], service: Service) -> Iterator[Example]:
    """Users' sentences with the slot that they ask about, of all services that have such a slot."""
    for dialogue in dialogues:
        for turn in dialogue.turns:
            for frame in turn.frames if turn.user else ():
                slots = [act.slot for act in frame.acts if act.name == "REQUEST" and act.slot]
                if len(slots) <= 1 and (not slots or slots[0] in service.slots):
                    yield Example(turn.text, slots[0] if slots else NOTHING)


def _best(classifier: Classifier, tokens: Sequence[str]) -> str | None:
    probabilities = classifier.classify(tokens).probabilities
    label = max(probabilities, key=lambda one: (probabilities[one], one))
    return label if probabilities[label] >= _SURE and label != NOTHING else None


def _system_frames(dialogues: Iterable[Dialogue]) -> Iterator[tuple[Turn, Frame, str]]:
    """The system's turns with each frame, and the user's intent at that time."""
    for dialogue in dialogues:
        intents: dict[str, str] = {}
        for turn in dialogue.turns:
            for frame in turn.frames:
                if turn.user:
                    intents[frame.service] = frame.state.active_intent if frame.state else ""
                else:
                    yield turn, frame, intents.get(frame.service, "")


def _label(frame: Frame) -> tuple[str, str, str]:
    names = {act.name for act in frame.acts}
    chief = next((name for name in _ACTS if name in names), NOTHING)
    asked = next((act.slot for act in frame.acts if act.name == "REQUEST"), NOTHING)
    intent = next((act.values[0] for act in frame.acts if act.name == "OFFER_INTENT" and act.values), NOTHING)
    return chief, asked, intent
