"""Which kind of message it is: the classifier's opinion, weighed by the context (NL-4).

The weights are prior odds, as data; what a kind does to the stack is the Agent's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind
from orchestrator.nlu.extract.answers import read_answer, reject_answer
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import NAME, QUOTE, Candidate
from orchestrator.nlu.extract.span_types import is_free_text
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.types import Dact

_WEIGHTS: dict[str, tuple[float, float, float]] = {
    # label: (an open yes-or-no question, another open question, none)
    "kind:confirmation": (3.0, 0.8, 0.5),
    "kind:denial": (3.0, 0.8, 0.5),
    "kind:slot_value": (0.6, 2.0, 0.25),
    "kind:clarification": (1.2, 1.3, 0.6),
}
_CORRECTABLE = 1.3
_NOTHING_TO_CORRECT = 0.15
_CANCELLABLE = 1.3
_NOTHING_TO_CANCEL = 0.4
_RESUMABLE = 1.6
_NOTHING_TO_RESUME = 0.4
BEST = 3


def weigh(probabilities: Mapping[str, float], situation: Situation) -> dict[str, float]:
    """The classifier's probabilities under the context; they sum to one again."""
    column = 0 if situation.confirming else 1 if situation.open else 2
    weighed = dict(probabilities)
    for label, weights in _WEIGHTS.items():
        if label in weighed:
            weighed[label] *= weights[column]
    held = bool(situation.values) or any(flow.values for flow in situation.completed)
    _scale(weighed, "kind:correction", _CORRECTABLE if held else _NOTHING_TO_CORRECT)
    cancellable = situation.active is not None or bool(situation.interrupted)
    _scale(weighed, "kind:cancellation", _CANCELLABLE if cancellable else _NOTHING_TO_CANCEL)
    _scale(weighed, "kind:resumption", _RESUMABLE if situation.interrupted else _NOTHING_TO_RESUME)
    total = sum(weighed.values())
    return {label: value / total for label, value in weighed.items()}


def _scale(weighed: dict[str, float], label: str, weight: float) -> None:
    if label in weighed:
        weighed[label] *= weight


def best_flows(weighed: Mapping[str, float]) -> tuple[FlowScore, ...]:
    """The three best flows with their shares, best first."""
    flows = [(share, label) for label, share in weighed.items() if label.startswith("flow:")]
    flows.sort(key=lambda item: (-item[0], item[1]))
    return tuple(FlowScore(Dact(label[5:]), round(share, 4)) for share, label in flows[:BEST])


def best_label(weighed: Mapping[str, float]) -> tuple[str, float]:
    """The likeliest label that is no flow, or the likeliest flow, whichever has more.

    Flows compete as one: their shares are added, since which of them it is comes second.
    """
    tasks = sum(share for label, share in weighed.items() if label.startswith("flow:"))
    others = [(share, label) for label, share in weighed.items() if not label.startswith("flow:")]
    share, label = max(others, key=lambda item: (item[0], item[1]), default=(0.0, ""))
    if tasks >= share:
        flows = best_flows(weighed)
        return (f"flow:{flows[0].dact}", tasks) if flows else (label, share)
    return label, share


def kind_of_label(label: str) -> MessageKind:
    """The kind of message that a label of the classifier means."""
    if label.startswith("flow:"):
        return MessageKind.TASK
    if label.startswith("answer:"):
        return MessageKind.DIGRESSION
    name = label.removeprefix("kind:")
    if name in {"question", "clarification", "help", "status"}:
        return MessageKind.DIGRESSION
    return MessageKind(name) if name else MessageKind.UNKNOWN


KNOWN = 0.34
_SURE_OF_FLOW = 0.5
_SURE_OF_YES = 0.75
_BARE = 0.75
"""The share of words inside of values from which a message is nothing but values."""
"""A yes may do something that lasts: what is not plainly one is asked about again."""
_CHATTY = frozenset(
    {MessageKind.CHITCHAT, MessageKind.DIGRESSION, MessageKind.CANCELLATION, MessageKind.RESUMPTION}
)
_INTERRUPTS = frozenset({*_CHATTY, MessageKind.DENIAL, MessageKind.CONFIRMATION, MessageKind.TASK})


@dataclass(slots=True)
class Evidence:
    """What was found in one message, before the kind is decided."""

    utterance: Utterance
    candidates: list[Candidate]
    label: str
    share: float
    known: float
    flows: tuple[FlowScore, ...]
    mentions: dict[str, Mention]
    """For the slots of the active flow."""


class Decider:
    """Decides for one domain."""

    def __init__(self, extractor: Extractor, likely: float) -> None:
        self.extractor = extractor
        self.likely = likely

    def decide(self, evidence: Evidence, situation: Situation) -> MessageKind:
        """Name the kind; an answer to the open question is added to the evidence's mentions."""
        kind = kind_of_label(evidence.label)
        grounded = any(candidate.kind not in {NAME, QUOTE} for candidate in evidence.candidates)
        if evidence.share < self.likely or (evidence.known < KNOWN and not grounded):
            kind = MessageKind.UNKNOWN
        if kind is MessageKind.CONFIRMATION and evidence.share < _SURE_OF_YES:
            kind = MessageKind.UNKNOWN
        if situation.active is None:
            return self._decide_alone(kind, evidence, situation)
        changes = _changes(evidence.mentions, situation.values)
        asked = self._asked(situation)
        if asked is not None and self._is_answer(kind, asked, evidence, situation):
            only_others = changes and asked.name not in evidence.mentions
            return (
                MessageKind.CORRECTION
                if kind is MessageKind.CORRECTION or only_others
                else MessageKind.SLOT_VALUE
            )
        if changes and kind in {MessageKind.CORRECTION, MessageKind.DENIAL, MessageKind.SLOT_VALUE}:
            return MessageKind.CORRECTION
        if changes and kind is MessageKind.DIGRESSION and is_bare(evidence):
            return MessageKind.CORRECTION
        if kind is MessageKind.TASK:
            return self._decide_task(evidence, situation, changes)
        if evidence.mentions and kind in {
            MessageKind.UNKNOWN,
            MessageKind.CORRECTION,
            MessageKind.SLOT_VALUE,
        }:
            return MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        if kind is MessageKind.CORRECTION and not situation.values:
            return MessageKind.SLOT_VALUE if evidence.mentions else MessageKind.UNKNOWN
        return MessageKind.UNKNOWN if kind is MessageKind.SLOT_VALUE else kind

    def _decide_alone(self, kind: MessageKind, evidence: Evidence, situation: Situation) -> MessageKind:
        """Without an active flow a bare value belongs to nothing, except to correct what was done."""
        if kind is MessageKind.CORRECTION and not situation.completed:
            return MessageKind.UNKNOWN
        if kind is MessageKind.SLOT_VALUE:
            sure = evidence.flows and evidence.flows[0].score >= self.likely
            return MessageKind.TASK if sure else MessageKind.UNKNOWN
        return kind

    def _decide_task(self, evidence: Evidence, situation: Situation, changes: bool) -> MessageKind:
        """A flow was recognised; when it is the active one, its values may be answers or corrections.

        A message of nothing but values that the active flow has slots for is about the active flow,
        whatever other flow such values remind of.
        """
        assert situation.active is not None
        if evidence.mentions and _own_coverage(evidence) == 1.0:
            return MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        if evidence.flows[0].dact != situation.active.dact or not evidence.mentions:
            return MessageKind.TASK
        if changes:
            return MessageKind.CORRECTION
        return MessageKind.TASK

    def _is_answer(
        self, kind: MessageKind, asked: SlotSpec, evidence: Evidence, situation: Situation
    ) -> bool:
        """Whether the message answers the open question rather than going elsewhere."""
        active = situation.active
        assert active is not None
        elsewhere = (
            kind is MessageKind.TASK
            and evidence.flows[0].dact != active.dact
            and evidence.flows[0].score >= _SURE_OF_FLOW
        )
        if asked.name in evidence.mentions and not is_free_text(asked):
            if elsewhere or kind in _CHATTY:
                return _own_coverage(evidence) >= _BARE
            return True
        if elsewhere or (kind in _INTERRUPTS and kind is not MessageKind.TASK and evidence.share >= 0.5):
            return False
        answer = read_answer(evidence.utterance, asked, self.extractor, situation.today)
        if answer is None and not evidence.mentions and kind is MessageKind.UNKNOWN:
            answer = reject_answer(evidence.utterance.text, asked)
        if answer is None:
            return False
        if (
            kind in {MessageKind.TASK, MessageKind.CORRECTION}
            and evidence.mentions
            and not is_free_text(asked)
        ):
            return False
        evidence.mentions[asked.name] = answer
        return True

    @staticmethod
    def _asked(situation: Situation) -> SlotSpec | None:
        if situation.active is None or situation.asked is None:
            return None
        return situation.active.slots.get(situation.asked)


def _changes(mentions: Mapping[str, Mention], values: Mapping[str, object]) -> bool:
    """Whether a filled slot would get another value."""
    return any(
        name in values and (mention.value != values[name] or mention.value is None)
        for name, mention in mentions.items()
    )


def is_bare(evidence: Evidence, *, whole: bool = False) -> bool:
    """Whether a message holds values and hardly a word besides (`whole`: none), and asks nothing."""
    words = evidence.utterance.words
    asks = "?" in words and words[0] != "and" and tuple(words[:2]) not in _PROPOSALS
    return bool(evidence.candidates) and not asks and _is_covered(evidence, whole=whole)


def _is_covered(evidence: Evidence, *, whole: bool) -> bool:
    if not whole:
        return _coverage(evidence) >= _BARE
    inside = {place for c in evidence.candidates for place in range(c.first, c.last)}
    words = enumerate(evidence.utterance.words)
    return all(place in inside or not word.isalnum() or word in _LITTLE for place, word in words)


def _coverage(evidence: Evidence) -> float:
    """The share of the words that stand inside of candidates, little words not counted."""
    inside = {place for found in evidence.candidates for place in range(found.first, found.last)}
    return _share(evidence, inside)


def _own_coverage(evidence: Evidence) -> float:
    """The same for values that the active flow has slots for: other values speak for other flows."""
    said = {word for mention in evidence.mentions.values() for word in tokenize(mention.text).words}
    words = evidence.utterance.words
    inside = {
        place
        for found in evidence.candidates
        for place in range(found.first, found.last)
        if words[place] in said
    }
    return _share(evidence, inside)


def _share(evidence: Evidence, inside: set[int]) -> float:
    words = evidence.utterance.words
    counted = [
        place
        for place, word in enumerate(words)
        if word.isalnum() and (place in inside or word not in _LITTLE)
    ]
    return sum(place in inside for place in counted) / len(counted) if counted else 0.0


_PROPOSALS = {("how", "about"), ("what", "about")}
"""What begins a question that proposes another value."""

_LITTLE = word_set(
    "a an the on in at to from for of it its it's is be i'd like i want please and no not my with by "
    "make that rather only just instead then how what about"
)
