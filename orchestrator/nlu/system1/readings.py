"""Ordered attempts by the local classifier to interpret a message, and their shared input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import (
    Digression,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.domain.model import Answer
from orchestrator.domain.tool_schema import RowsSpec
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.clauses import find_moods
from orchestrator.nlu.nlu_context import NluContext, values_of
from orchestrator.nlu.protocol import Reading
from orchestrator.nlu.system1 import corrections, references
from orchestrator.nlu.system1.choices import choose
from orchestrator.nlu.system1.classifier import Weighed, classify, weigh
from orchestrator.nlu.system1.extract.dates import count_from
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.system1.extract.found import UNLISTED, Candidate
from orchestrator.nlu.system1.extract.numbers import TIMES
from orchestrator.nlu.system1.linear import LinearModel
from orchestrator.nlu.system1.message_kind import Decider, Evidence, names_only
from orchestrator.nlu.system1.requests import UNDOING, are_two_requests, request_verbs, split_request
from orchestrator.nlu.system1.slot_assignment import SlotAssigner
from orchestrator.nlu.system1.training.examples import kind_texts
from orchestrator.nlu.text import Lexicon, Utterance, clean, tokenize
from orchestrator.types import Dact, ToolId

_OF_PLANS = frozenset({MessageKind.CORRECTION, MessageKind.SLOT_VALUE, MessageKind.DENIAL, MessageKind.TASK})
SURE = 0.8
"""Confidence of rule-based interpretations."""
_SURE_OF_PART = 0.5
_NEW_TEXT = re.compile(
    r"(?:(?:no|sorry|actually|please)\b[ ,.]*)*(?:(?:change|set) the (?P<slot>[\w ]+?) to|(?:write|make it):)"
    r"[ :]+(?P<new>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_MOST_CUTS = 4  # limits the cost of messages with hundreds of parts; the rest is read in later turns


@dataclass
class Learnt:
    """The trained parts of the local classifier, and the domain data that they use.

    `rows`: how users refer to displayed rows, by tool. `lexicon`: translates users' words into English.
    """

    flows: Mapping[Dact, FlowSpec]
    extractor: Extractor
    classifier: LinearModel
    slots: SlotAssigner
    answers: Mapping[str, Answer]
    likely: float
    decider: Decider
    rows: Mapping[ToolId, RowsSpec]
    lexicon: Lexicon


class Case:
    """A message in its context, as input for interpretation. Properties are computed on first use."""

    def __init__(self, system1: Learnt, text: str, context: NluContext, depth: int = 0) -> None:
        self.system1 = system1
        self.depth = depth  # number of times that the message was split before this part
        self.context = context
        self.utterance = tokenize(text)

    @cached_property
    def candidates(self) -> list[Candidate]:
        found = self.system1.extractor.find(self.utterance, self.context.today, self.context.separators)
        if self.context.question.confirming:
            common = self.system1.extractor.common
            found = [one for one in found if not corrections.is_ordinary(self.utterance, one, common)]
        return found

    @cached_property
    def probabilities(self) -> Mapping[str, float]:
        return classify(self.system1.classifier, self.utterance, self.candidates)

    @cached_property
    def weighed(self) -> Weighed:
        return weigh(self.probabilities, self.context)

    @cached_property
    def evidence(self) -> Evidence:
        active = self.context.active
        evidence = Evidence(self.utterance, self.candidates, self.weighed, {})
        if active is not None:
            evidence.mentions = self.find_slots(active)
            said, values = self.utterance, self.context.values
            evidence.rejected = corrections.find_rejected(said, self.candidates, active, values)
        return evidence

    @cached_property
    def kind(self) -> MessageKind:
        return self.system1.decider.decide(self.evidence, self.context)

    def find_slots(self, flow: FlowSpec, candidates: Sequence[Candidate] | None = None) -> dict[str, Mention]:
        """Find values for a flow's slots. `candidates`: values to consider. Default: all candidates."""
        found = self.candidates if candidates is None else candidates
        return self.system1.slots.find_slots(self.utterance, found, flow, self.context)


def _rule(understood: Understanding | None) -> Reading | None:
    return None if understood is None else Reading(understood, SURE, is_final=False)


def _read_choice(case: Case) -> Reading | None:
    """Interpret a choice among the options of the open question. This interpretation is final."""
    has_choices = bool(case.context.question.choices)
    chosen = choose(case.utterance, case.context, case.system1.flows) if has_choices else None
    return None if chosen is None else Reading(chosen)


def _read_repeat(case: Case) -> Reading | None:
    """Interpret a repetition of a completed task, such as “the same for tomorrow”."""
    past = corrections.find_repeated(case.utterance, case.context)
    said = {} if past is None else case.find_slots(past.spec)
    return None if past is None else _rule(corrections.repeat(case.utterance, past, said))


def _read_reference(case: Case) -> Reading | None:
    """Interpret a reference to a displayed row, with other values in the message.

    If no rows are displayed, interpret a request for alternatives to an offer.
    """
    system1, context = case.system1, case.context
    shown, asked = context.shown, context.question.slot
    spec = system1.rows.get(shown.tool_id) if shown is not None else None
    if context.asks_for_text:
        return None
    if shown is None or spec is None:
        if not context.question.confirming:
            return None
        return _rule(references.list_others(case.utterance, context, system1.flows, system1.rows))
    current, flows = context.values.get(shown.key), system1.flows.values()
    message = references.Message(case.utterance, shown, spec, current, case.candidates, flows)
    found = references.find_reference(message)
    if found is None or (asked != shown.key and asked in case.evidence.mentions):
        return None
    read = references.understand_reference(found, message, context, system1.flows, case.weighed.flows)
    if read is None:
        return None
    rest = [one for one in case.candidates if found.places.isdisjoint(one.places)]
    flow = system1.flows[read.flows[0].dact] if read.flows else context.active
    besides = case.find_slots(flow, rest) if flow is not None else {}
    return _rule(replace(read, slots={**besides, **read.slots}))


def _read_new_text(case: Case) -> Reading | None:
    """Interpret a replacement for free text: "change the text to …", "no, write: …"."""
    active, found = case.context.active, _NEW_TEXT.fullmatch(case.utterance.text)
    if active is None or found is None or case.context.asks_for_text:
        return None
    held = [name for name, slot in active.slots.items() if name in case.context.values and slot.is_free_text]
    meant = [name for name in held if found["slot"] in {None, "text", name.replace("_", " ")}]
    slots = {name: Mention(found["new"], found["new"]) for name in meant}
    kind, text = MessageKind.CORRECTION, case.utterance.text
    read = Understanding(kind, Source.SYSTEM1, text, active.intent, slots=slots)
    return Reading(read, is_final=False) if len(meant) == 1 else None


def _read_undone(case: Case) -> Reading | None:
    """Interpret "cancel it" or "undo it" as a request for the only flow that cancels the outputs of completed tasks."""
    context, words = case.context, case.utterance.words
    if context.tasks or UNDOING.isdisjoint(words):
        return None
    moods = find_moods(words, UNDOING)
    verbs = {word for at, word in enumerate(words) if word in UNDOING and at not in moods}
    if not verbs:
        return None
    held = {str(value) for past in context.completed for value in past.values.values()}
    for one in case.candidates:
        if one.kind not in UNLISTED and held.isdisjoint(str(read.value) for read in one.readings.values()):
            return None
    given = {name for past in context.completed for name in past.outputs}
    takers = [flow for flow in case.system1.flows.values() if given & {*flow.inputs}]
    flows = [flow for flow in takers if verbs & request_verbs((flow,))]
    if not flows and verbs == {"undo"} and not context.question.is_open:
        flows = [flow for flow in takers if UNDOING & request_verbs((flow,))]
    if len(flows) != 1:
        return None
    return _rule(Understanding.of_task(flows[0], Source.SYSTEM1, case.utterance.text, {}))


def _read_two_requests(case: Case) -> Reading | None:
    """Interpret the first of several requests. Parley interprets the rest after the first request has ended."""
    system1 = case.system1
    text, flows = case.utterance.text, system1.flows.values()
    if split_request(text, flows) is None:
        return None
    parts = split_request(text, flows, _find_values(case))
    if parts is None or case.context.question.slot is not None or case.depth == _MOST_CUTS:
        return None
    first, rest, is_certain = parts
    least = _SURE_OF_PART if is_certain else system1.likely
    begun = _read_part(case, first, least)
    if begun is None or (other := _read_part(case, rest, least)) is None:
        return None
    one, two = begun.understanding, other.understanding
    if not are_two_requests(one, two, case.context, is_certain=is_certain):
        return None
    return Reading(replace(one, later=rest), min(begun.confidence, other.confidence), is_final=False)


def _find_values(case: Case) -> list[tuple[int, int]]:
    """Return the spans of the message's listed values, in characters."""
    said, listed = case.utterance, (one for one in case.candidates if one.kind not in UNLISTED)
    return [(said.starts[one.first], said.ends[one.last - 1]) for one in listed]


def _read_part(case: Case, words: str, least: float) -> Reading | None:
    """Interpret a part of a message, or return None if the confidence is below `least`."""
    part = Case(case.system1, clean(words), case.context, case.depth + 1)
    reading = read(part)
    return reading if max(reading.confidence, part.weighed.share) >= least else None


def _read_plan_value(case: Case) -> Reading | None:
    """Interpret “come back on Tuesday” as a correction to the plan, regardless of the running step."""
    plan = case.context.plan
    if (
        plan is None
        or not plan.rounds
        or case.context.question.slot is not None
        or case.kind not in _OF_PLANS
    ):
        return None
    named = case.system1.slots.find_named(case.utterance, case.candidates, plan.spec)
    found = count_from(case.find_slots(plan.spec), plan.spec, values_of(plan))
    if len(case.candidates) != 1 or not found or not found.keys() <= named:
        return None
    kind, spec = MessageKind.CORRECTION, plan.spec
    text = case.utterance.text
    return _rule(Understanding(kind, Source.SYSTEM1, text, spec.intent, slots=found, target=plan.dact))


def _conclude(case: Case) -> Reading:
    evidence, kind, context = case.evidence, case.kind, case.context
    share, flows = case.weighed.share, evidence.weighed.flows
    understand = partial(Understanding, source=Source.SYSTEM1, text=case.utterance.text, flows=flows)
    match kind:
        case MessageKind.TASK:
            understanding = _task(understand, case)
            share = evidence.best_score
        case MessageKind.SLOT_VALUE | MessageKind.CONFIRMATION | MessageKind.DENIAL:
            understanding = understand(kind, intent=context.intent, slots=evidence.mentions)
        case MessageKind.CORRECTION:
            understanding = _correction(understand, case)
        case MessageKind.CANCELLATION | MessageKind.RESUMPTION:
            understanding = understand(kind, target=_target_of(case.utterance, kind))
        case MessageKind.DIGRESSION | MessageKind.CHITCHAT:
            understanding = _digression(understand, case)
        case MessageKind.UNKNOWN | MessageKind.PLAN_CHANGE:
            understanding = understand(kind, slots=evidence.mentions)
    is_sure = understanding.slots or kind is not MessageKind.UNKNOWN
    return Reading(understanding, share if is_sure else min(share, case.system1.likely), is_final=False)


READINGS: tuple[Callable[[Case], Reading | None], ...] = (
    _read_choice,
    _read_two_requests,
    _read_repeat,
    _read_reference,
    _read_new_text,
    _read_undone,
    _read_plan_value,
    _conclude,
)
"""The attempts in order. The last attempt always succeeds."""


def read(case: Case) -> Reading:
    """Return the first successful interpretation of a cleaned message."""
    for attempt in READINGS:
        if (reading := attempt(case)) is not None:
            return reading
    raise AssertionError("the last attempt must always succeed")


def _task(understand: Callable[..., Understanding], case: Case) -> Understanding:
    active = case.context.active
    spec = case.system1.flows[case.evidence.weighed.flows[0].dact]
    about_active = active is not None and active.dact == spec.dact
    mentions = case.evidence.mentions if about_active else case.find_slots(spec)
    return understand(MessageKind.TASK, intent=spec.intent, slots=mentions)


def _correction(understand: Callable[..., Understanding], case: Case) -> Understanding:
    """Return corrected values for the active flow, or for the last completed flow with such slots."""
    context, correct, said = case.context, partial(understand, MessageKind.CORRECTION), case.utterance
    mentions: dict[str, Mention] = {}
    if context.active is not None:
        mentions = corrections.replace_old(case.evidence.rejected, said.text, case.evidence.mentions)
        either = corrections.find_owners(said, case.candidates, mentions, context)
        if len(either) > 1:
            return correct(intent=context.intent, flows=(), slots=mentions, either=either)
        if either:
            mentions = dict.fromkeys(either, next(iter(mentions.values())))
    if mentions or (context.active is not None and not context.completed):
        return correct(intent=context.intent, flows=(), slots=mentions)
    for past in context.completed:
        counted = count_from(case.find_slots(past.spec), past.spec, past.values)
        old = corrections.find_rejected(said, case.candidates, past.spec, past.values)
        if found := corrections.replace_old(old, said.text, counted):
            return correct(intent=past.spec.intent, flows=(), slots=found, target=past.spec.dact)
    return correct()


def _digression(understand: Callable[..., Understanding], case: Case) -> Understanding:
    label = case.evidence.weighed.label
    answer = case.system1.answers.get(label.removeprefix("answer:"))
    if answer is not None:
        kind = MessageKind.DIGRESSION if answer.digression else MessageKind.CHITCHAT
        return understand(kind, digression=answer.digression, target=answer.name)
    digression = Digression(label.removeprefix("kind:")) if case.kind is MessageKind.DIGRESSION else None
    words = case.utterance.words
    last = max((place for place, word in enumerate(words) if word.isalnum()), default=0)
    if digression is Digression.PERSON and last in find_moods(words, ()):
        return understand(MessageKind.UNKNOWN)  # “I don't want to talk to a person”
    has_value = any(one.kind not in UNLISTED for one in case.candidates)
    if digression is Digression.STATUS and (has_value or _is_idle(case, Digression.STATUS)):
        digression = Digression.QUESTION  # questions about progress contain no values and few other words
    if case.kind is MessageKind.CHITCHAT and not names_only(words, case.kind, case.context):
        if words[-1:] == ["?"]:
            return understand(MessageKind.DIGRESSION, digression=Digression.QUESTION)
        if has_value or _is_about_tasks(case):
            return understand(MessageKind.UNKNOWN)
    return understand(case.kind, digression=digression)


def _is_idle(case: Case, kind: str) -> bool:
    """Return whether no task is open and the message has words that aren't typical for `kind`."""
    return not case.context.tasks and not names_only(case.utterance.words, kind, case.context)


def _is_about_tasks(case: Case) -> bool:
    """Return whether a message has a word for a time span, or a verb of a flow, also in the past."""
    words, verbs = set(case.utterance.words), request_verbs(case.system1.flows.values())
    stems = {stem for word in words for stem in (word, word.removesuffix("ed"), word.removesuffix("d"))}
    return not (TIMES.isdisjoint(words) and verbs.isdisjoint(stems))


def _target_of(utterance: Utterance, kind: MessageKind) -> str | None:
    """Return the words that name the task to resume or cancel, or None if the message does not name a task."""
    said = (tokenize(text.lower()).words for text in kind_texts()[kind])
    general = STOP_WORDS.union(*said) - {"everything", "all", "both"}
    return " ".join(word for word in utterance.words if word.isalnum() and word not in general) or None
