"""Decide a message's kind from the weighted classifier's result and the extracted values (NL-4).

The Agent decides how a kind changes the stack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.classifier import FLOW, Weighed
from orchestrator.nlu.system1.extract.answers import WH_WORDS, read_answer, reject_answer
from orchestrator.nlu.system1.extract.extractor import CODES, Extractor, kinds_of
from orchestrator.nlu.system1.extract.found import Candidate, places_of
from orchestrator.nlu.system1.requests import request_verbs
from orchestrator.nlu.system1.slot_assignment import is_negated, slot_words
from orchestrator.nlu.system1.training.examples import kind_texts
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.types import Dact

LITTLE = word_set(
    "we we'd go a an the on in at to from for of it its it's is be i'd like i want please and no not my with by "
    "make that rather only just instead then how what about people persons"
)
"""Words that often surround values."""
_PROPOSALS = {("how", "about"), ("what", "about")}
ASKING = WH_WORDS | word_set("is are was were do does did has will isn't aren't doesn't")
_BEFORE_QUESTION = word_set("and but so wait hold on ok okay well um hm hmm first oh sorry")
_PROPOSING = word_set(
    "ok okay possible fine good available free there too would could can work works alright right"
)
_AROUND_PROPOSED = LITTLE | ASKING | _BEFORE_QUESTION | _PROPOSING
_DIGRESSIONS = frozenset({"question", "clarification", "help", "status", "person"})
_WITH_EFFECT = frozenset({"cancellation", "person"})
"""Kinds that stop a task or notify a person. Such messages must not contain unknown words."""
_SURE_OF_FLOW = 0.5
_STOP_WORDS = 3
"""Maximum length of a stop phrase, in words. A longer message, such as “never mind the gap”, is free text."""
_ANSWER_WORDS = 4
"""Maximum length of an invalid answer, in words. Longer messages may mean something else."""
_BARE = 0.75
"""Minimum share of value words at which a message counts as containing only values."""
_CHATTY = frozenset(
    {MessageKind.CHITCHAT, MessageKind.DIGRESSION, MessageKind.CANCELLATION, MessageKind.RESUMPTION}
)
_BARE_KINDS = frozenset({MessageKind.SLOT_VALUE, MessageKind.UNKNOWN, MessageKind.TASK})
_PLEASANT = frozenset({MessageKind.CHITCHAT, MessageKind.CONFIRMATION})
_LEAVING = frozenset({MessageKind.CANCELLATION, MessageKind.RESUMPTION})
"""Kinds of messages that, if short, don't answer a question that asks for free text."""
_OF_VALUES = frozenset({MessageKind.UNKNOWN, MessageKind.CORRECTION, MessageKind.SLOT_VALUE})
_INTERRUPTS = frozenset({*_CHATTY, MessageKind.DENIAL, MessageKind.CONFIRMATION})
_NO_MORE_THAN_THAT = frozenset({MessageKind.UNKNOWN, MessageKind.CONFIRMATION, MessageKind.CORRECTION})
_NO = word_set("no nope nah")
_OF_DEEDS = frozenset({MessageKind.CORRECTION, MessageKind.TASK, MessageKind.UNKNOWN})
_OTHERS = word_set("different another other else")
_OF_OTHERS = frozenset({MessageKind.TASK, MessageKind.UNKNOWN, MessageKind.CHITCHAT})
"""Kinds of messages that reject an offer if they contain a word such as “another”."""
_CORRECTING = word_set(
    "actually sorry oops wait instead rather meant mean change set update switch correct correction wrong should "
    "said and also but can could you let's us go going leave leaving"
)
"""Words that often surround corrected values."""


def kind_of_label(label: str) -> MessageKind:
    if label.startswith(FLOW):
        return MessageKind.TASK
    name = label.removeprefix("kind:")
    if label.startswith("answer:") or name in _DIGRESSIONS:
        return MessageKind.DIGRESSION
    return MessageKind(name) if name else MessageKind.UNKNOWN


@dataclass(slots=True)
class Evidence:
    """Features found in one message before its kind is decided.

    `mentions`: values for slots of the active flow. `rejected`: the slot of the active flow whose value the
    message rejects, or None.
    """

    utterance: Utterance
    candidates: list[Candidate]
    weighed: Weighed
    mentions: dict[str, Mention]
    rejected: str | None = None

    @property
    def best_score(self) -> float:
        return self.weighed.flows[0].score if self.weighed.flows else 0.0

    def is_elsewhere(self, active: FlowSpec, least: float) -> bool:
        """Return whether the most likely flow is not the active flow and has at least the probability `least`."""
        return self.best_score >= least and self.weighed.flows[0].dact != active.dact

    def covered(self, besides: frozenset[str] = frozenset()) -> float:
        """Return the share of words that belong to values of the active flow. `besides`: ignored words."""
        said = {word for mention in self.mentions.values() for word in tokenize(mention.text).words}
        words = self.utterance.words
        inside = {
            place
            for found in self.candidates
            for place in found.places
            if words[place] in said or is_negated(self.utterance, found)
        }
        return self._share(inside, besides)

    def is_bare(self, besides: frozenset[str] = frozenset(), least: float = _BARE) -> bool:
        """Return whether a message has values, hardly any other words, and no question.

        `besides`: ignored words. `least`: minimum share of the words that belong to values.
        """
        words = self.utterance.words
        asks = "?" in words and not ASKING.isdisjoint(words) and not is_proposal(words)
        share = self._share(places_of(self.candidates), besides)
        return bool(self.candidates) and not asks and share >= least

    def _share(self, inside: set[int], besides: frozenset[str]) -> float:
        counted = [
            place
            for place, word in enumerate(self.utterance.words)
            if word.isalnum() and (place in inside or (word not in LITTLE and word not in besides))
        ]
        return len(inside.intersection(counted)) / len(counted) if counted else 0.0


class Decider:
    def __init__(self, extractor: Extractor, likely: float, flows: Mapping[Dact, FlowSpec]) -> None:
        self.extractor = extractor
        self.likely = likely
        self._flows = [*flows.values()]
        self._kinds = {
            dact: {kind for slot in flow.slots.values() for kind in kinds_of(slot)}
            for dact, flow in flows.items()
        }

    def decide(self, evidence: Evidence, context: NluContext) -> MessageKind:
        """Return the kind of a message. Add its answer to the open question, if any, to the mentions in `evidence`."""
        is_unlikely = evidence.weighed.share < self.likely
        kind = MessageKind.UNKNOWN if is_unlikely else kind_of_label(evidence.weighed.label)
        name = evidence.weighed.label.removeprefix("kind:")
        if name in _WITH_EFFECT:
            codes = {kind for one in evidence.candidates for kind in one.readings if kind.startswith(CODES)}
            if codes or not names_only(evidence.utterance.words, name, context):
                kind = self._find_coded_task(evidence, codes)
        if context.active is None:
            return self._decide_alone(kind, evidence, context)
        kind = self._decide_beside(context.active, kind, evidence, context)
        if not context.question.confirming or evidence.mentions or evidence.rejected:
            return kind
        is_no = evidence.utterance.words[0] in _NO and kind in _NO_MORE_THAN_THAT
        wants_other = not _OTHERS.isdisjoint(evidence.utterance.words) and kind in _OF_OTHERS
        return MessageKind.DENIAL if is_no or wants_other else kind

    def _find_coded_task(self, evidence: Evidence, codes: Collection[str]) -> MessageKind:
        """Return TASK if a verb and a code, as in “cancel V-001”, fit only one flow; otherwise, UNKNOWN."""
        words = evidence.utterance.words
        fitting = [flow for flow in self._flows if not self._kinds[flow.dact].isdisjoint(codes)]
        fitting = [flow for flow in fitting if not request_verbs((flow,)).isdisjoint(words)]
        if len(fitting) != 1:
            return MessageKind.UNKNOWN
        others = (one for one in evidence.weighed.flows if one.dact != fitting[0].dact)
        flows = (FlowScore(fitting[0].dact, self.likely), *others)
        evidence.weighed = replace(evidence.weighed, flows=flows)
        return MessageKind.TASK

    def _decide_alone(self, kind: MessageKind, evidence: Evidence, context: NluContext) -> MessageKind:
        """Classify a message when no flow is active. Bare values correct the last completed task (RT-12)."""
        if context.completed and kind in _BARE_KINDS:
            is_task = kind is MessageKind.TASK
            names = frozenset[str]() if is_task else slot_words((context.completed[0].spec,))
            is_bare = evidence.is_bare(names, 1.0 if is_task else _BARE)
            if is_bare and not (is_task and len(evidence.candidates) > 1):
                return MessageKind.CORRECTION
        if kind is MessageKind.CORRECTION and not context.completed:
            return MessageKind.UNKNOWN
        if kind is MessageKind.SLOT_VALUE:
            return MessageKind.TASK if evidence.best_score >= self.likely else MessageKind.UNKNOWN
        return kind

    def _decide_beside(
        self, active: FlowSpec, kind: MessageKind, evidence: Evidence, context: NluContext
    ) -> MessageKind:
        """Classify during a task. The open question and the values of this task take precedence."""
        changes = _changes(evidence.mentions, context.values)
        asked = active.slots.get(context.question.slot or "")
        may_ask = asked is not None or kind is MessageKind.CONFIRMATION  # “ok, how much is it”
        if may_ask and asks_something(evidence.utterance.words, evidence.candidates):
            return self._decide_question(active, kind, evidence)
        if asked is not None and self._is_answer(kind, asked, active, evidence, context):
            only_others = changes and asked.name not in evidence.mentions
            corrects = kind is MessageKind.CORRECTION or only_others
            return MessageKind.CORRECTION if corrects else MessageKind.SLOT_VALUE
        return self._decide_by_values(active, kind, evidence, context, changes=changes)

    def _decide_by_values(
        self, active: FlowSpec, kind: MessageKind, evidence: Evidence, context: NluContext, *, changes: bool
    ) -> MessageKind:
        """Classify a message that doesn't answer a question.

        `changes`: True if a filled slot would get another value.
        """
        values = MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        if evidence.rejected is not None and not evidence.is_elsewhere(active, _SURE_OF_FLOW):
            return MessageKind.CORRECTION
        names_deed = not request_verbs((active,)).isdisjoint(evidence.utterance.words)
        if context.question.options and names_deed and kind in _OF_DEEDS and not evidence.mentions:
            return MessageKind.CONFIRMATION  # “book it” as the answer to what to change
        is_other_task = evidence.is_elsewhere(active, self.likely)
        if kind is MessageKind.TASK or (kind is MessageKind.CONFIRMATION and is_other_task):
            return self._decide_task(active, evidence, context, values)
        if evidence.mentions and (kind in _OF_VALUES or (kind is MessageKind.DENIAL and changes)):
            return values
        is_said_so = kind in _PLEASANT or (kind is MessageKind.DIGRESSION and evidence.is_bare())
        if changes and (is_said_so or _proposes(evidence)):
            return values
        if kind is MessageKind.CORRECTION and not context.values:
            return MessageKind.UNKNOWN
        return MessageKind.UNKNOWN if kind is MessageKind.SLOT_VALUE else kind

    def _decide_question(self, active: FlowSpec, kind: MessageKind, evidence: Evidence) -> MessageKind:
        """Classify a question that the user asks instead of answering. It doesn't fill slots (IR-7)."""
        codes = {kind for one in evidence.candidates for kind in one.readings if kind.startswith(CODES)}
        others = [one for one in evidence.weighed.flows if one.dact != active.dact]
        if others and not codes.isdisjoint(self._kinds[others[0].dact]):
            evidence.weighed = replace(evidence.weighed, flows=tuple(others))  # “is DY828 delayed?”
            return MessageKind.TASK
        if evidence.is_elsewhere(active, self.likely):
            return MessageKind.TASK
        if kind in _CHATTY:
            return kind
        evidence.weighed = replace(evidence.weighed, label="kind:question")
        return MessageKind.DIGRESSION

    def _decide_task(
        self, active: FlowSpec, evidence: Evidence, context: NluContext, values: MessageKind
    ) -> MessageKind:
        """Classify a message that requests a flow. Bare values of the active flow don't start another task."""
        if not evidence.mentions and evidence.best_score < self.likely and context.question.confirming:
            return MessageKind.UNKNOWN  # only a likely task replaces an offer
        is_own = not evidence.is_elsewhere(active, 0.0)
        if evidence.mentions and evidence.covered(_CORRECTING | slot_words((active,))) == 1.0:
            return values
        if not is_own or not evidence.mentions:
            return MessageKind.TASK
        if context.plan is not None and _names_another(evidence.mentions, context.values):
            return MessageKind.TASK  # a task outside the plan (PL-8)
        return values if values is MessageKind.CORRECTION else MessageKind.TASK

    def _is_answer(
        self, kind: MessageKind, asked: SlotSpec, active: FlowSpec, evidence: Evidence, context: NluContext
    ) -> bool:
        """Return whether the message answers the open question. If so, the mentions in `evidence` have the answer."""
        words, text = evidence.utterance.words, evidence.utterance.text
        if asked.is_free_text:
            if "?" in words or (kind in _LEAVING and len(words) <= _STOP_WORDS):
                return False
            evidence.mentions[asked.name] = Mention(text, text)  # even if the words could mean something else
            return True
        is_elsewhere = kind is MessageKind.TASK and evidence.is_elsewhere(active, _SURE_OF_FLOW)
        if asked.name in evidence.mentions:
            is_other = is_elsewhere or kind in _CHATTY
            return not is_other or _begins_with(evidence, asked.name) or evidence.covered() >= _BARE
        if is_elsewhere or (kind in _INTERRUPTS and evidence.weighed.share >= _SURE_OF_FLOW):
            return False
        answer = read_answer(evidence.utterance, asked, self.extractor.gazetteer, context.today)
        is_short = len(words) <= _ANSWER_WORDS and "?" not in words
        if answer is None and not evidence.mentions and kind is MessageKind.UNKNOWN and is_short:
            answer = reject_answer(text, asked)
        is_else = kind in {MessageKind.TASK, MessageKind.CORRECTION} and evidence.mentions
        if answer is None or is_else:
            return False
        rival = next((name for name, one in evidence.mentions.items() if one.text == answer.text), "")
        if rival and answer.text != text.strip(" .,!?"):
            return False  # "from Oslo" doesn't answer “where to?”
        evidence.mentions.pop(rival, None)
        evidence.mentions[asked.name] = answer
        return True


def names_only(words: Sequence[str], kind: str, context: NluContext) -> bool:
    """Return whether all words are typical for `kind` or name a task.

    “Let me think about it” does not cancel.
    """
    texts = [
        text for flow in context.tasks for text in (flow.spec.dact.replace("_", " "), *flow.spec.examples)
    ]
    texts += kind_texts()[kind]
    known = STOP_WORDS.union(*(tokenize(text.lower()).words for text in texts))
    return all(not word.isalpha() or not known.isdisjoint((word, word.removesuffix("s"))) for word in words)


def _proposes(evidence: Evidence) -> bool:
    """Return whether a question only proposes values: “how about business class?”."""
    return is_proposal(evidence.utterance.words) and evidence.covered() == 1.0


def _begins_with(evidence: Evidence, slot: str) -> bool:
    """Return whether a message begins with the slot's value and isn't a question: “to Rome with my dog”."""
    text, words = evidence.mentions[slot].text, evidence.utterance.words
    first = next((one.first for one in evidence.candidates if one.text == text), len(words))
    return "?" not in words and all(word in LITTLE for word in words[:first])


def _changes(mentions: Mapping[str, Mention], values: Mapping[str, object]) -> bool:
    return any(
        name in values and (mention.value != values[name] or mention.value is None)
        for name, mention in mentions.items()
    )


def _names_another(mentions: Mapping[str, Mention], values: Mapping[str, object]) -> bool:
    """Return whether a request has values for several filled slots, all different from the current values."""
    named = mentions.keys() & values.keys()
    return len(named) > 1 and all(mentions[name].value not in {None, values[name]} for name in named)


def asks_something(words: Sequence[str], candidates: Iterable[Candidate]) -> bool:
    """Return whether a message asks a question without proposing a value.

    A question can follow a clause without values: “hang on, is DY828 delayed?”.
    """
    inside = places_of(candidates)
    if words[-1:] == ["?"]:
        commas = (at for at, word in enumerate(words) if word == "," and inside.isdisjoint(range(at)))
        ahead = max(commas, default=-1) + 1
        words, inside = words[ahead:], {at - ahead for at in inside}
    start = _begin_of_question(words)
    if start == len(words) or words[start] not in ASKING or is_proposal(words):
        return False
    if words[start] in WH_WORDS:
        return True
    return not all(
        at in inside or not word.isalnum() or word in _AROUND_PROPOSED for at, word in enumerate(words)
    )


def is_proposal(words: Sequence[str]) -> bool:
    start = _begin_of_question(words)
    return tuple(words[start : start + 2]) in _PROPOSALS


def _begin_of_question(words: Sequence[str]) -> int:
    ahead = (at for at, word in enumerate(words) if word.isalnum() and word not in _BEFORE_QUESTION)
    return next(ahead, len(words))
