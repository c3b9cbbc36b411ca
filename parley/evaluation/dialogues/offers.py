"""Reading the system's side of a dialogue from its words alone: what it asks, offers, and proposes.

In a running assistant the agent knows these things; here only its utterances are given. Learnt
from annotated dialogues; at measure time nothing but the text is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.nlu.classifier import Classifier, delexicalize, pick_best
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.linear import Examples, fit
from orchestrator.nlu.slot_assignment import SlotAssigner
from orchestrator.nlu.text import clean, tokenize
from orchestrator.nlu.training.examples import Example
from orchestrator.nlu.training.learning import learn_labels, learn_slots
from parley.evaluation.dialogues.compile import TODAY, Words, annotated_spans
from parley.evaluation.dialogues.dataset import Dialogue, Frame, Service, Turn
from parley.evaluation.name_spans import learn_spans

NOTHING = "-"
PROPOSE = "PROPOSE"
"""The act of a system turn that asks for a value by naming one: "Will this be on March 12th?"."""
_SURE = 0.5
_STRENGTH = 10.0
_PARTING = frozenset({".", "!", "?", "and"})
"""What ends a part of a message, which may ask about a slot of its own."""
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
TAKING = frozenset({"SELECT", "AFFIRM"})
"""The acts of a user's turn that take an offer."""


@dataclass(frozen=True, slots=True)
class SystemTurn:
    """The apparent meaning of a system turn. `act`: its chief act. `values`: by slot, in its words."""

    act: str = NOTHING
    asked: str | None = None
    intent: str | None = None
    values: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SystemReader:
    """Reads system utterances of all services.

    The classifiers are of a system turn's act, of the slot asked for, and of the slot that a user asks
    about. `proposed`: by service and act, the intent that such an act is mostly about. `lasting`: the slots of
    services whose offered values enter the state when the offer is taken.
    """

    services: Mapping[str, Service]
    words: Words
    spoken: Mapping[str, FlowSpec]
    extractor: Extractor
    slots: SlotAssigner
    acts: Classifier
    asked: Classifier
    questions: Classifier
    proposed: Mapping[tuple[str, str], str]
    lasting: frozenset[tuple[str, str]]

    @classmethod
    def train(
        cls,
        services: Mapping[str, Service],
        spoken: Mapping[str, FlowSpec],
        dialogues: Sequence[Dialogue],
        words: Words,
    ) -> SystemReader:
        """Learn from the system's turns; `words`: of the users'."""
        examples: list[Example] = []
        acts: list[Example] = []
        asked: list[Example] = []
        intents: dict[tuple[str, str], Counter[str]] = {}
        for turn, frame, current in _system_frames(dialogues):
            service = services.get(frame.service)
            if service is None:
                continue
            meant = annotated_turn(frame, current)
            acts.append(Example(turn.text, meant.act))
            asked.append(Example(turn.text, meant.asked if meant.asked in service.slots else NOTHING))
            spans = annotated_spans(service, frame, turn.text)
            examples.append(Example(turn.text, None, spans, dact=spoken[service.name].dact, said=True))
            if meant.intent in service.intents:
                intents.setdefault((service.name, meant.act), Counter())[meant.intent] += 1
        flows = {flow.dact: flow for flow in spoken.values()}
        names = learn_spans(examples, flows)
        extractor = Extractor(
            flows.values(), {}, words.extractor.common, find_more_names=names and names.find
        )
        return cls(
            services,
            words,
            spoken,
            extractor,
            slots=SlotAssigner(learn_slots(examples, extractor, flows), extractor, flows.values()),
            acts=Classifier(learn_labels(acts, extractor)),
            asked=Classifier(learn_labels(asked, extractor)),
            questions=_learn_questions(dialogues, words),
            proposed={key: counts.most_common(1)[0][0] for key, counts in intents.items()},
            lasting=_lasting_slots(services.values(), dialogues),
        )

    def read(self, service: Service, text: str) -> SystemTurn:
        """Read one system utterance."""
        utterance = tokenize(clean(text))
        candidates = self.extractor.find(utterance, TODAY)
        tokens = delexicalize(utterance, candidates)
        mentions = self.slots.assign(utterance, candidates, self.spoken[service.name], None)
        values: dict[str, str] = {}
        for name, mention in mentions.items():
            if mention.invalid is None:
                values[name] = str(mention.value) if service.slots[name].categorical else mention.text
        act = _best(self.acts, tokens) or NOTHING
        asked = _best(self.asked, tokens, {slot.name for slot in service.tracked})
        return SystemTurn(act, asked, self.proposed.get((service.name, act)), values)

    def requested(self, service: Service, text: str) -> frozenset[str]:
        """The slots that a user's message asks about, each in a part of it."""
        parts = _parts(self.words.tokens(text))
        found = (_best(self.questions, part, service.slots.keys()) for part in parts)
        return frozenset(slot for slot in found if slot is not None)


def _lasting_slots(services: Iterable[Service], dialogues: Sequence[Dialogue]) -> frozenset[tuple[str, str]]:
    """The tracked slots that were in the state at least every second time after their offer was taken."""
    kept: Counter[tuple[str, str]] = Counter()
    dropped: Counter[tuple[str, str]] = Counter()
    for dialogue in dialogues:
        offered: dict[str, set[str]] = {}
        known: dict[str, set[str]] = {}
        for turn in dialogue.turns:
            for frame in turn.frames:
                acts = {act.name for act in frame.acts}
                if not turn.user:
                    slots = {act.slot for act in frame.acts if act.name == "OFFER"}
                    offered[frame.service] = offered.get(frame.service, set()) | slots
                elif frame.state is not None:
                    state, before = set(frame.state.slot_values), known.get(frame.service, set())
                    if acts & TAKING:
                        news = offered.pop(frame.service, set()) - before
                        kept.update((frame.service, slot) for slot in news & state)
                        dropped.update((frame.service, slot) for slot in news - state)
                    known[frame.service] = state
    return frozenset(
        (service.name, slot.name)
        for service in services
        for slot in service.tracked
        if kept[service.name, slot.name] >= dropped[service.name, slot.name]
    )


def _questions(dialogues: Iterable[Dialogue]) -> Iterator[tuple[str, str]]:
    """Users' messages with the slot that they ask about."""
    for dialogue in dialogues:
        for turn in dialogue.turns:
            for frame in turn.frames if turn.user else ():
                slots = [act.slot for act in frame.acts if act.name == "REQUEST" and act.slot]
                if len(slots) <= 1:
                    yield turn.text, slots[0] if slots else NOTHING


def _learn_questions(dialogues: Iterable[Dialogue], words: Words) -> Classifier:
    examples = list(_questions(dialogues))
    rows = [words.features(text) for text, _ in examples]
    return Classifier(fit(Examples(rows, [slot for _, slot in examples], balanced=True), _STRENGTH))


def _parts(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Cut a message's tokens where a sentence ends, and at each "and"."""
    first, *inner, last = tokens
    part: list[str] = []
    for word in inner:
        if word != "and":
            part.append(word)
        if word in _PARTING and part:
            yield [first, *part, last]
            part = []
    if part:
        yield [first, *part, last]


def _best(classifier: Classifier, tokens: Sequence[str], among: Collection[str] | None = None) -> str | None:
    """The likeliest label (`among` some of them, or none), if it is likelier than not."""
    added = classifier.add_up(tokens).tolist()
    scores = {
        label: added[place]
        for label, place in classifier.columns.items()
        if among is None or label in among or label == NOTHING
    }
    label, share = pick_best(classifier.model, scores or {NOTHING: 0.0})
    return None if label == NOTHING or share < _SURE else label


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


def _chief_act(frame: Frame) -> str:
    """The act of a system turn that matters most."""
    names = {act.name for act in frame.acts}
    if any(act.name == "REQUEST" and act.values for act in frame.acts) and "OFFER_INTENT" not in names:
        return PROPOSE
    return next((name for name in _ACTS if name in names), NOTHING)


def annotated_turn(frame: Frame | None, intent: str) -> SystemTurn:
    """A system turn as it is annotated. `intent`: the user's at that time, which is what is to be confirmed."""
    if frame is None:
        return SystemTurn()
    act = _chief_act(frame)
    asked = next((one.slot for one in frame.acts if one.name == "REQUEST"), None)
    offered = next((one.values[0] for one in frame.acts if one.name == "OFFER_INTENT" and one.values), None)
    return SystemTurn(act, asked, offered if act == "OFFER_INTENT" else intent if act == "CONFIRM" else None)
