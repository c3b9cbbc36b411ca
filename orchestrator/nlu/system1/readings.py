"""Ordered attempts of the local classifier to interpret a message, and their shared input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import (
    Digression,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.nlu.clauses import find_moods
from orchestrator.nlu.nlu_context import NluContext, values_of
from orchestrator.nlu.protocol import Reading
from orchestrator.nlu.system1 import corrections, references
from orchestrator.nlu.system1.choices import choose
from orchestrator.nlu.system1.classifier import Opinion, Weighed, weigh
from orchestrator.nlu.system1.extract.answers import read_new_text
from orchestrator.nlu.system1.extract.dates import names_place
from orchestrator.nlu.system1.extract.days import count_from
from orchestrator.nlu.system1.extract.extractor import is_free_text
from orchestrator.nlu.system1.extract.found import NAME, QUOTE, Candidate
from orchestrator.nlu.system1.learnt import Learnt
from orchestrator.nlu.system1.message_kind import Evidence
from orchestrator.nlu.system1.requests import (
    are_two_requests,
    find_strange,
    find_things,
    name_unknown,
    slot_words,
    split_request,
    unexplained,
)
from orchestrator.nlu.text import Utterance, clean, tokenize, word_set

_BARE = frozenset({MessageKind.SLOT_VALUE, MessageKind.UNKNOWN, MessageKind.TASK})
"""Kinds of messages that consist only of values."""
_OF_PLANS = frozenset({MessageKind.CORRECTION, MessageKind.SLOT_VALUE, MessageKind.DENIAL, MessageKind.TASK})
SURE = 0.8
"""Confidence of readings by rules."""
_SURE_OF_PART = 0.5
_UNLISTED = frozenset({NAME, QUOTE})
_OF_DAYS = frozenset({"date", "datetime"})
_MOST_CUTS = 4  # limits the cost of messages with hundreds of parts; the rest is read in later turns


class Case:
    """A message in its context, as input for interpretation. Properties are computed on first use."""

    def __init__(self, system1: Learnt, text: str, context: NluContext, depth: int = 0) -> None:
        self.system1 = system1
        self.depth = depth  # number of times that the message was split before this part
        self.context = context
        self.utterance = tokenize(text)
        self._asked = (
            None if context.active is None else context.active.slots.get(context.question.slot or "")
        )
        self.asks_text = self._asked is not None and is_free_text(self._asked)
        """True if the question asks for free text."""

    @cached_property
    def candidates(self) -> list[Candidate]:
        found = self.system1.extractor.find(self.utterance, self.context.today, self.context.separators)
        is_place = len(found) == 1 and not self._asks_day and names_place(self.utterance, found[0])
        if self.context.question.confirming:
            common = self.system1.extractor.common
            found = [one for one in found if not corrections.is_ordinary(self.utterance, one, common)]
        return [] if is_place else found

    @property
    def _asks_day(self) -> bool:
        slot = self._asked
        return slot is not None and slot.type in _OF_DAYS

    @cached_property
    def listed(self) -> list[Candidate]:
        """Return the candidates without mere names and quotations."""
        return [known for one in self.candidates if (known := one.without(_UNLISTED)).readings]

    @cached_property
    def _opinion(self) -> Opinion:
        return self.system1.classifier.classify(self.utterance, self.candidates)

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Return the classifier's probabilities by label, independent of the context."""
        return self._opinion.probabilities

    @cached_property
    def weighed(self) -> Weighed:
        """Return the probabilities, weighted by the context."""
        return weigh(self._opinion, self.context)

    @cached_property
    def evidence(self) -> Evidence:
        active = self.context.active
        evidence = Evidence(self.utterance, self.candidates, self.weighed, self._opinion.known, {})
        if active is not None:
            evidence.mentions = self.find_slots(active)
            said, values = self.utterance, self.context.values
            evidence.rejected = corrections.find_rejected(said, self.candidates, active, values)
        return evidence

    @cached_property
    def kind(self) -> MessageKind:
        return self.system1.decider.decide(self.evidence, self.context)

    def find_slots(self, flow: FlowSpec, candidates: Sequence[Candidate] | None = None) -> dict[str, Mention]:
        """Find values for the slots of a flow. `candidates`: values to consider. Default: all candidates."""
        found = self.candidates if candidates is None else candidates
        return self.system1.slots.find_slots(self.utterance, found, flow, self.context)


def _rule(understood: Understanding | None) -> Reading | None:
    return None if understood is None else Reading(understood, SURE, is_final=False)


def _read_choice(case: Case) -> Reading | None:
    """Interpret a choice among the options of the open question. This interpretation is final."""
    if not case.context.question.choices:
        return None
    chosen = choose(case.utterance, case.context, case.system1.flows)
    return None if chosen is None else Reading(chosen)


def _read_repeat(case: Case) -> Reading | None:
    """Interpret a request to repeat a completed task with other values."""
    if corrections.REPEATING.isdisjoint(case.utterance.words):
        return None
    past = corrections.find_repeated(case.utterance, case.context)
    said = {} if past is None else case.find_slots(past.spec)
    return None if past is None else _rule(corrections.repeat(case.utterance, past, said))


def _read_reference(case: Case) -> Reading | None:
    """Interpret a reference to a displayed row, with other values in the message."""
    system1, context = case.system1, case.context
    shown, asked = context.shown, context.question.slot
    spec = system1.rows.get(shown.tool_id) if shown is not None else None
    if case.asks_text or (shown is None and context.active is None):
        return None
    if shown is None or spec is None:
        listing = references.list_others(case.utterance, context, system1.flows, system1.rows)
        return _rule(listing)
    current, flows = context.values.get(shown.key), system1.flows.values()
    message = references.Message(case.utterance, shown, spec, current, case.candidates, flows)
    found = references.find_reference(message)
    if found is None or (asked != shown.key and asked in case.evidence.mentions):
        return None
    read = references.understand_reference(found, message, context, system1.flows, case.weighed.flows)
    if read is None:
        return None
    rest = [one for one in case.candidates if found.places.isdisjoint(range(one.first, one.last))]
    flow = system1.flows[read.flows[0].dact] if read.flows else context.active
    besides = case.find_slots(flow, rest) if flow is not None else {}
    return _rule(replace(read, slots={**besides, **read.slots}))


def _read_new_text(case: Case) -> Reading | None:
    """Interpret a replacement for a free text: "change the text to …", "no, write: …"."""
    active, text = case.context.active, case.utterance.text
    slots = {} if active is None or case.asks_text else read_new_text(text, active, case.context.values)
    if active is None or not slots:
        return None
    read = Understanding(MessageKind.CORRECTION, Source.SYSTEM1, text, active.intent, slots=slots)
    return Reading(read, is_final=False)


def _read_undone(case: Case) -> Reading | None:
    """Interpret "cancel it" after a task, when nothing is running, as the flow that undoes the task."""
    if case.context.tasks or corrections.UNDOING.isdisjoint(case.utterance.words):
        return None
    flows = case.system1.flows.values()
    return _rule(corrections.find_undone(case.utterance, case.listed, flows, case.context))


def _read_two_requests(case: Case) -> Reading | None:
    """Interpret the first of several requests. Parley interprets the rest after the first request has ended."""
    system1 = case.system1
    parts = split_request(case.utterance.text, system1.flows.values())
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


def _read_part(case: Case, words: str, least: float) -> Reading | None:
    """Interpret a part of a message, or return None if the confidence is below `least`."""
    part = Case(case.system1, clean(words), case.context, case.depth + 1)
    reading = read(part)
    return reading if max(reading.confidence, part.weighed.share) >= least else None


def _look_up_again(case: Case) -> Reading | None:
    """Interpret bare values after a completed task as a correction of this task (RT-12)."""
    context, evidence, kind = case.context, case.evidence, case.kind
    past = context.completed[0] if context.completed else None
    if context.active is not None or kind not in _BARE or past is None:
        return None
    is_task = kind is MessageKind.TASK  # several values make a new task likely; a single value often doesn't
    is_likely = is_task and evidence.best_score >= case.system1.likely
    besides = frozenset[str]() if is_likely else slot_words(past.spec)
    if (is_task and len(case.candidates) > 1) or not evidence.is_bare(besides, 1.0 if is_task else 0.75):
        return None
    said = count_from(case.find_slots(past.spec, case.listed), past.spec, past.values)
    found = corrections.assign_to_past(said, past, case.utterance, case.candidates)
    if all(m.value is None or past.values.get(name) == m.value for name, m in found.items()):
        return None
    spec, text, flows = past.spec, case.utterance.text, evidence.weighed.flows
    return _rule(
        Understanding(MessageKind.CORRECTION, Source.SYSTEM1, text, spec.intent, flows, found, spec.dact)
    )


def _read_plan_value(case: Case) -> Reading | None:
    """Interpret a value for the plan's own slots while a step of the plan is running."""
    plan = case.context.plan
    if plan is None or case.context.question.slot is not None or case.kind not in _OF_PLANS:
        return None
    found = count_from(case.find_slots(plan.spec), plan.spec, values_of(plan))
    return _rule(corrections.read_plan_value(case.utterance, case.candidates, plan, found))


def _conclude(case: Case) -> Reading:
    """Return an interpretation with the classifier's kind and the values found."""
    evidence, kind, context = case.evidence, case.kind, case.context
    share, flows = case.weighed.share, evidence.weighed.flows
    understand = partial(Understanding, source=Source.SYSTEM1, text=case.utterance.text, flows=flows)
    match kind:
        case MessageKind.TASK:
            understanding = _task(understand, case)
            share = evidence.best_score
        case MessageKind.SLOT_VALUE | MessageKind.CONFIRMATION | MessageKind.DENIAL:
            understanding = understand(kind, intent=context.intent, slots=_with_rivals(case))
        case MessageKind.CORRECTION:
            understanding = _correction(understand, case)
        case MessageKind.CANCELLATION | MessageKind.RESUMPTION:
            understanding = understand(kind, target=_target_of(case.utterance))
        case MessageKind.DIGRESSION | MessageKind.CHITCHAT:
            understanding = _digression(understand, case)
        case MessageKind.UNKNOWN | MessageKind.PLAN_CHANGE:
            understanding = understand(kind, slots=evidence.mentions)
    is_sure = understanding.slots or not (kind is MessageKind.UNKNOWN or understanding.unexplained)
    return Reading(understanding, share if is_sure else min(share, case.system1.likely), is_final=False)


READINGS: tuple[Callable[[Case], Reading | None], ...] = (
    _read_choice,
    _read_two_requests,
    _read_repeat,
    _read_reference,
    _read_new_text,
    _read_undone,
    _look_up_again,
    _read_plan_value,
    _conclude,
)
"""The attempts in order. The last attempt always succeeds."""


def read(case: Case) -> Reading:
    """Return the first successful interpretation of a cleaned message."""
    for attempt in READINGS:
        if (reading := attempt(case)) is not None:
            return reading
    raise AssertionError("the last of them always has one")


def _with_rivals(case: Case) -> Mapping[str, Mention]:
    """Return the values of an answer. Slots with several possible values stay empty."""
    active, mentions = case.context.active, case.evidence.mentions
    if active is None or case.asks_text:
        return mentions
    return {**mentions, **corrections.find_rivals(case.utterance, case.candidates, mentions, active)}


def _task(understand: Callable[..., Understanding], case: Case) -> Understanding:
    """Interpret a request for the likeliest flow, or return UNKNOWN if the message names only unknown things."""
    active = case.context.active
    spec = case.system1.flows[case.evidence.weighed.flows[0].dact]
    about_active = active is not None and active.dact == spec.dact
    mentions = case.evidence.mentions if about_active else case.find_slots(spec)
    if len(case.candidates) > len(mentions):
        mentions |= corrections.find_rivals(case.utterance, case.candidates, mentions, spec)
    left = unexplained(case.utterance, mentions.values(), spec)
    if (unknown := _name_things(understand, case, left)) is not None:
        return unknown
    return understand(MessageKind.TASK, intent=spec.intent, slots=mentions, unexplained=tuple(left))


def _name_things(
    understand: Callable[..., Understanding], case: Case, left: Sequence[str]
) -> Understanding | None:
    """Return UNKNOWN if a message names only unknown things, as in “book a train”, or else None."""
    things = find_things(case.utterance) if left else set[str]()
    if not things or not things <= set(left):
        return None
    return understand(MessageKind.UNKNOWN, assumed=(name_unknown(left),), unexplained=tuple(left))


def _correction(understand: Callable[..., Understanding], case: Case) -> Understanding:
    """Return corrected values for the active flow, or for the last completed flow with such slots."""
    context, correct, said = case.context, partial(understand, MessageKind.CORRECTION), case.utterance
    mentions: dict[str, Mention] = {}
    if context.active is not None:
        left = unexplained(said, case.evidence.mentions.values(), context.active)
        if (unknown := _name_things(understand, case, left)) is not None:
            return unknown
        mentions = corrections.replace_old(case.evidence.rejected, said.text, case.evidence.mentions)
        names = case.system1.extractor.gazetteer
        mentions = corrections.doubt_little_known(said, case.candidates, mentions, names)
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
            found = corrections.assign_to_past(found, past, said, case.candidates)
            return correct(intent=past.spec.intent, flows=(), slots=found, target=past.spec.dact)
    return correct()


def _digression(understand: Callable[..., Understanding], case: Case) -> Understanding:
    label = case.evidence.weighed.label
    answer = case.system1.answers.get(label.removeprefix("answer:"))
    if answer is not None:
        named = [one.text for one in case.candidates if one.kind not in _UNLISTED]
        if strange := find_strange(case.utterance, (*answer.examples, *named)):
            said = (name_unknown(strange),)
            return understand(MessageKind.UNKNOWN, assumed=said, unexplained=tuple(strange))
        kind = MessageKind.DIGRESSION if answer.digression else MessageKind.CHITCHAT
        return understand(kind, digression=answer.digression, target=answer.name)
    digression = Digression(label.removeprefix("kind:")) if case.kind is MessageKind.DIGRESSION else None
    words = case.utterance.words
    last = max((place for place, word in enumerate(words) if word.isalnum()), default=0)
    if digression is Digression.PERSON and last in find_moods(words, ()):
        return understand(MessageKind.UNKNOWN)  # “I don't want to talk to a person”
    if digression is Digression.STATUS and case.evidence.is_grounded:
        digression = Digression.QUESTION  # questions about progress contain no values
    return understand(case.kind, digression=digression)


def _target_of(utterance: Utterance) -> str | None:
    """Return the words that name the task to resume or cancel."""
    words = [word for word in utterance.words if word.isalnum() and word not in _GENERAL]
    return " ".join(words) or None


_GENERAL = word_set(
    "a an the to back go let's let us me my i i'd want like would please can could we you return continue with resume "
    "cancel stop forget about that this it never mind nevermind carry on pick up where left off were was now okay ok "
    "again get of in do don't need any more anymore drop quit abort thing other one previous earlier first last task "
    "request and for what doing"
)
