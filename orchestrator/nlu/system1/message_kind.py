"""Classification of a message's kind, by the weighed classifier and the values found (NL-4).

The Agent decides what a kind does to the stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention, MessageKind
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.asking import ASKING, LITTLE, asks_something, is_proposal
from orchestrator.nlu.system1.classifier import Weighed
from orchestrator.nlu.system1.extract.answers import read_answer, reject_answer
from orchestrator.nlu.system1.extract.extractor import Extractor, is_free_text
from orchestrator.nlu.system1.extract.found import NAME, NUMBER, QUOTE, Candidate
from orchestrator.nlu.system1.slot_assignment import is_negated
from orchestrator.nlu.system1.taking_back import postpones
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.types import Dact


def kind_of_label(label: str) -> MessageKind:
    """Translate a label of the classifier into a kind of message."""
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
_STOP_WORDS = 3
"""More words than these are a text, though they begin like a stop: "never mind the gap"."""
_ANSWER_WORDS = 4
"""Maximum words of a failed answer; longer messages may say something else."""
_SURE_OF_YES = 0.75
"""Minimum confidence of a “yes”, because it can cause irreversible effects; otherwise the question is repeated."""
_BARE = 0.75
"""The share of words inside of values from which a message is nothing but values."""
_CHATTY = frozenset(
    {MessageKind.CHITCHAT, MessageKind.DIGRESSION, MessageKind.CANCELLATION, MessageKind.RESUMPTION}
)
_VAGUE = frozenset({MessageKind.CHITCHAT, MessageKind.DIGRESSION, MessageKind.UNKNOWN, MessageKind.TASK})
_WHETHER_DONE = re.compile(
    r"^(?:(?:so|and|but|hey|ok|well)[, ]+)*(?:(?:have|did) you (?:already |really |actually |just )?\w+ "
    r"(?:it|that|this|them|one|those)|(?:did|has|is|was) (?:it|that|this|everything) (?:already )?"
    r"(?:work|worked|go through|gone through|happen|happened|gone|sent|booked|done|made|saved))"
    r"(?: (?:yet|already|now|for me|out|all))*\W*$",
    re.IGNORECASE,
)
"""Questions whether something was done: "did you send it?"."""
_LEAVES_TEXT = frozenset({MessageKind.CANCELLATION, MessageKind.RESUMPTION})
"""Kinds that prevent a message from being the requested text."""
_OF_VALUES = frozenset({MessageKind.UNKNOWN, MessageKind.CORRECTION, MessageKind.SLOT_VALUE})
_INTERRUPTS = frozenset({*_CHATTY, MessageKind.DENIAL, MessageKind.CONFIRMATION, MessageKind.TASK})


@dataclass(slots=True)
class Evidence:
    """Features found in one message before its kind is decided."""

    utterance: Utterance
    candidates: list[Candidate]
    weighed: Weighed
    known: float
    """The share of the words that training had seen."""
    mentions: dict[str, Mention]
    """Values by slot of the active flow."""

    @property
    def is_grounded(self) -> bool:
        """Return whether any value is of a kind that the domain knows."""
        return any(candidate.kind not in {NAME, QUOTE} for candidate in self.candidates)


class Decider:
    """Decides the kind of a domain's messages."""

    def __init__(
        self, extractor: Extractor, likely: float, codes: Mapping[Dact, frozenset[str]] | None = None
    ) -> None:
        """`codes`: by flow that only looks something up, the kinds of the domain's own codes that it takes."""
        self.extractor = extractor
        self.likely = likely
        self._codes = codes or {}

    def decide(self, evidence: Evidence, context: NluContext) -> MessageKind:
        """Return the kind; an answer to the open question is added to the evidence's mentions."""
        if _agrees(evidence.utterance.words, context):
            return MessageKind.CONFIRMATION
        kind = self._likely_kind(evidence, context)
        if context.active is None:
            kind = self._decide_alone(kind, evidence, context)
        else:
            kind = self._decide_beside(context.active, kind, evidence, context)
        return MessageKind.DENIAL if context.question.confirming and _declines(kind, evidence) else kind

    def _likely_kind(self, evidence: Evidence, context: NluContext) -> MessageKind:
        """Return the kind by the words alone, or unknown if it is too unlikely.

        An uncertain “yes” that is likely another task counts as that task. A question whether something was
        done counts as a question for the status.
        """
        kind = kind_of_label(evidence.weighed.label)
        unfamiliar = evidence.known < KNOWN and not evidence.is_grounded
        hedges = kind is MessageKind.CANCELLATION and postpones(evidence.utterance.words)
        kind = MessageKind.UNKNOWN if evidence.weighed.share < self.likely or unfamiliar or hedges else kind
        if kind in _VAGUE and _WHETHER_DONE.match(evidence.utterance.text):
            evidence.weighed = replace(evidence.weighed, label="kind:status")
            return MessageKind.DIGRESSION
        if kind is not MessageKind.CONFIRMATION or evidence.weighed.share >= _SURE_OF_YES:
            return kind
        flows = evidence.weighed.flows
        elsewhere = flows and context.active is not None and flows[0].dact != context.active.dact
        return MessageKind.TASK if elsewhere and flows[0].score >= self.likely else MessageKind.UNKNOWN

    def _decide_beside(
        self, active: FlowSpec, kind: MessageKind, evidence: Evidence, context: NluContext
    ) -> MessageKind:
        """Decide while a task is running: its open question and its values come first."""
        changes = _changes(evidence.mentions, context.values)
        asked = active.slots.get(context.question.slot or "")
        if active.dact not in self._codes and self._asks_about_code(evidence, active.dact):
            return MessageKind.TASK
        if asked is not None and asks_something(evidence.utterance.words, evidence.candidates):
            return self._decide_question(active, kind, evidence)
        if asked is not None and self._is_answer(kind, asked, evidence, context):
            only_others = changes and asked.name not in evidence.mentions
            corrects = kind is MessageKind.CORRECTION or only_others
            return MessageKind.CORRECTION if corrects else MessageKind.SLOT_VALUE
        if asked is not None and _is_bare_number(evidence):
            evidence.mentions.clear()
            return MessageKind.UNKNOWN
        if changes and kind in {MessageKind.CORRECTION, MessageKind.DENIAL, MessageKind.SLOT_VALUE}:
            return MessageKind.CORRECTION
        if changes and ((kind is MessageKind.DIGRESSION and is_bare(evidence)) or _proposes(evidence)):
            return MessageKind.CORRECTION
        if kind is MessageKind.TASK:
            return self._decide_task(evidence, context, changes)
        if evidence.mentions and kind in _OF_VALUES:
            return MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        if kind is MessageKind.CORRECTION and not context.values:
            return MessageKind.SLOT_VALUE if evidence.mentions else MessageKind.UNKNOWN
        return MessageKind.UNKNOWN if kind is MessageKind.SLOT_VALUE else kind

    def _decide_question(self, active: FlowSpec, kind: MessageKind, evidence: Evidence) -> MessageKind:
        """Decide about a question that is said instead of an answer: it fills no slot (IR-7)."""
        best = evidence.weighed.flows[0] if evidence.weighed.flows else None
        if best is not None and best.dact != active.dact and best.score >= self.likely:
            return MessageKind.TASK
        if kind in _CHATTY:
            return kind
        evidence.weighed = replace(evidence.weighed, label="kind:question")
        return MessageKind.DIGRESSION

    def _asks_about_code(self, evidence: Evidence, active: Dact | None = None) -> bool:
        """Return whether a question names a code that the likeliest other flow looks up: “is DY828 delayed?”.

        That flow is put first.
        """
        others = tuple(one for one in evidence.weighed.flows if one.dact != active)
        kinds = self._codes.get(others[0].dact, frozenset[str]()) if others else frozenset[str]()
        codes = [one for one in evidence.candidates if not kinds.isdisjoint(one.readings)]
        if not codes or not asks_something(evidence.utterance.words, codes):
            return False
        evidence.weighed = replace(evidence.weighed, flows=others)
        return True

    def _decide_alone(self, kind: MessageKind, evidence: Evidence, context: NluContext) -> MessageKind:
        """Decide without an active flow: a bare value can only correct a completed task."""
        if kind is MessageKind.CORRECTION and not context.completed:
            return MessageKind.UNKNOWN
        if kind is MessageKind.UNKNOWN and self._asks_about_code(evidence):
            return MessageKind.TASK
        if kind is MessageKind.SLOT_VALUE:
            sure = evidence.weighed.flows and evidence.weighed.flows[0].score >= self.likely
            return MessageKind.TASK if sure else MessageKind.UNKNOWN
        return kind

    def _decide_task(self, evidence: Evidence, context: NluContext, changes: bool) -> MessageKind:
        """Decide when a flow was recognized: values of the active one may be answers or corrections.

        A message of nothing but values that the active flow has slots for is about the active flow,
        whatever other flow such values remind of.
        """
        assert context.active is not None
        unlikely = not evidence.mentions and evidence.weighed.flows[0].score < self.likely
        if unlikely and context.question.confirming:
            return MessageKind.UNKNOWN  # an offer is left for no less than a likely task
        slot_words = frozenset(word for name in context.active.slots for word in name.split("_"))
        if evidence.mentions and _own_coverage(evidence, _CORRECTING | slot_words) == 1.0:
            return MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        if evidence.weighed.flows[0].dact != context.active.dact or not evidence.mentions:
            return MessageKind.TASK
        if context.plan is not None and _names_another(evidence.mentions, context.values):
            return MessageKind.TASK  # it is about no step of the plan (PL-8)
        return MessageKind.CORRECTION if changes else MessageKind.TASK

    def _is_answer(self, kind: MessageKind, asked: SlotSpec, evidence: Evidence, context: NluContext) -> bool:
        """Return whether the message answers the open question."""
        active = context.active
        assert active is not None
        words = evidence.utterance.words
        leaves = kind in _LEAVES_TEXT and len(words) <= _STOP_WORDS and _LEAVING.issuperset(words)
        if is_free_text(asked) and not leaves and "?" not in words:
            text = evidence.utterance.text
            evidence.mentions[asked.name] = Mention(text, text)  # whatever else these words might be
            return True
        elsewhere = (
            kind is MessageKind.TASK
            and evidence.weighed.flows[0].dact != active.dact
            and evidence.weighed.flows[0].score >= _SURE_OF_FLOW
        )
        if asked.name in evidence.mentions and not is_free_text(asked):
            if elsewhere or kind in _CHATTY:
                leads = kind is MessageKind.DIGRESSION and _begins_with(evidence, asked.name)
                return leads or _own_coverage(evidence) >= _BARE
            return True
        if elsewhere or (
            kind in _INTERRUPTS and kind is not MessageKind.TASK and evidence.weighed.share >= 0.5
        ):
            return False
        answer = read_answer(evidence.utterance, asked, self.extractor.gazetteer, context.today)
        short = len(evidence.utterance.words) <= _ANSWER_WORDS and "?" not in evidence.utterance.words
        if answer is None and not evidence.mentions and kind is MessageKind.UNKNOWN and short:
            answer = reject_answer(evidence.utterance.text, asked)
        if answer is None:
            return False
        is_else = kind in {MessageKind.TASK, MessageKind.CORRECTION} and evidence.mentions
        if is_else and not is_free_text(asked):
            return False
        rival = next((name for name, one in evidence.mentions.items() if one.text == answer.text), "")
        if rival and answer.text != evidence.utterance.text.strip(" .,!?"):
            return False  # "from Oslo" answers no question of where to
        evidence.mentions.pop(rival, None)
        evidence.mentions[asked.name] = answer
        return True


def _proposes(evidence: Evidence) -> bool:
    """Return whether a question proposes values and says nothing else: “how about business class?”."""
    return is_proposal(evidence.utterance.words) and _own_coverage(evidence) == 1.0


def _begins_with(evidence: Evidence, slot: str) -> bool:
    """Return whether a message that asks nothing begins with the value of a slot: “to Rome with my dog”."""
    text, words = evidence.mentions[slot].text, evidence.utterance.words
    first = next((one.first for one in evidence.candidates if one.text == text), len(words))
    return "?" not in words and all(word in LITTLE for word in words[:first])


def _is_bare_number(evidence: Evidence) -> bool:
    """Return whether a message is a number that says of no slot that it is meant: “2”."""
    words = [word for word in evidence.utterance.words if word.isalnum()]
    return [one.kind for one in evidence.candidates] == [NUMBER] and len(words) == 1


def _agrees(words: list[str], context: NluContext) -> bool:
    """Recognize "book it" as the answer to that question: only words of the task, and words of agreement."""
    question = context.question
    if context.active is None or question.slot is not None or not (question.confirming or question.options):
        return False
    may_keep = any(option.action_name == "change_slot" for option in question.options)
    if may_keep and {*words} & _NOTHING and _NOTHING.union(_AS_IT_IS, _AGREEING).issuperset(words):
        return True
    telling = set(context.active.dact.split("_")) | _YES
    return telling.intersection(words) != set() and telling.union(_AGREEING).issuperset(words)


def _declines(kind: MessageKind, evidence: Evidence) -> bool:
    """Recognize a no that says nothing else that is known, and "keep it": "no, that is fine as it is"."""
    words = evidence.utterance.words
    if evidence.mentions or "?" in words or kind not in _NO_MORE_THAN_THAT:
        return False
    keeps = _KEEPS.search(" ".join(words)) is not None
    if words[0] in _NO:
        return keeps or kind is not MessageKind.CORRECTION
    return kind is MessageKind.UNKNOWN and keeps


def _changes(mentions: Mapping[str, Mention], values: Mapping[str, object]) -> bool:
    """Return whether a filled slot would get another value."""
    return any(
        name in values and (mention.value != values[name] or mention.value is None)
        for name, mention in mentions.items()
    )


def _names_another(mentions: Mapping[str, Mention], values: Mapping[str, object]) -> bool:
    """Return whether a request has several values of the active task, and none of them as it is."""
    named = mentions.keys() & values.keys()
    return len(named) > 1 and all(mentions[name].value not in {None, values[name]} for name in named)


def is_bare(evidence: Evidence, *, whole: bool = False, besides: frozenset[str] = frozenset()) -> bool:
    """Return whether a message has values and hardly any other words (`whole`: none), and asks nothing.

    `besides`: words that do not count, such as names for the values.
    """
    words = evidence.utterance.words
    asks = "?" in words and not ASKING.isdisjoint(words) and not is_proposal(words)
    return bool(evidence.candidates) and not asks and _is_covered(evidence, besides, whole=whole)


def _is_covered(evidence: Evidence, besides: frozenset[str], *, whole: bool) -> bool:
    inside = {place for found in evidence.candidates for place in range(found.first, found.last)}
    if not whole:
        return _share(evidence, inside, besides) >= _BARE
    words, little = enumerate(evidence.utterance.words), LITTLE | besides
    return all(place in inside or not word.isalnum() or word in little for place, word in words)


def _own_coverage(evidence: Evidence, besides: frozenset[str] = frozenset()) -> float:
    """Measure how much of a message is values of the active flow: other values speak for other flows.

    `besides`: words that do not count.
    """
    said = {word for mention in evidence.mentions.values() for word in tokenize(mention.text).words}
    words = evidence.utterance.words
    inside = {
        place
        for found in evidence.candidates
        for place in range(found.first, found.last)
        if words[place] in said or is_negated(evidence.utterance, found)
    }
    return _share(evidence, inside, besides)


def _share(evidence: Evidence, inside: set[int], besides: frozenset[str] = frozenset()) -> float:
    """Measure the share of the words that stand inside of values, little words not counted."""
    words = evidence.utterance.words
    counted = [
        place
        for place, word in enumerate(words)
        if word.isalnum() and (place in inside or (word not in LITTLE and word not in besides))
    ]
    return len(inside.intersection(counted)) / len(counted) if counted else 0.0


_CORRECTING = word_set(
    "actually sorry oops wait instead rather meant mean means change set update switch correct correction wrong "
    "mistake should said say and also but can you could let let's us leave leaving go going fly flying"
)
"""Words around corrected values."""

_LEAVING = word_set(
    "stop cancel quit abort exit end never mind nevermind forget leave drop skip enough it that that's this all "
    "everything whole thing task please now here no sorry thanks back go let's to continue resume carry on with . ! ,"
)
"""Words of a message that is not text: "cancel that", not "cancel the newspaper"."""
_YES = word_set("yes yep yeah take approve approved")
_NOTHING = word_set("nothing none keep leave")
_AS_IT_IS = word_set("no yes as is it's all that's fine good right was at to change i want my mind")
"""Words that leave a task unchanged: "nothing, it is fine as it is"."""
_NO_MORE_THAN_THAT = frozenset({MessageKind.UNKNOWN, MessageKind.CONFIRMATION, MessageKind.CORRECTION})
_NO = word_set("no nope nah")
_KEEPS = re.compile(r"\b(?:keep|leave) (?:it|that|them|this|the|my|both|all|everything)\b")
_AGREEING = word_set(
    "sorry ok okay please do go ahead with it that this one i i'll we we'll will then now . ! ,"
)
"""Words around words of agreement."""
