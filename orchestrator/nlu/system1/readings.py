"""System 1's readings of a message, in order, and the case they look at.

Learned data comes in as `Learnt`; finding values and weighing kinds have their own files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import (
    Digression,
    FlowScore,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.nlu.nlu_context import NluContext, values_of
from orchestrator.nlu.protocol import Reading
from orchestrator.nlu.system1 import references, withdrawals
from orchestrator.nlu.system1.choices import choose
from orchestrator.nlu.system1.classifier import Opinion, Weighed, weigh
from orchestrator.nlu.system1.extract.answers import read_new_text
from orchestrator.nlu.system1.extract.dates import names_place
from orchestrator.nlu.system1.extract.days import count_from
from orchestrator.nlu.system1.extract.extractor import is_free_text, kinds_by_slot
from orchestrator.nlu.system1.extract.found import NAME, QUOTE, Candidate
from orchestrator.nlu.system1.features import delexicalize
from orchestrator.nlu.system1.learnt import Learnt
from orchestrator.nlu.system1.leftovers import (
    SURE_OF_VALUES,
    are_two_requests,
    find_owner,
    find_strange,
    is_about_another_thing,
    is_explained,
    name_unknown,
    slot_words,
    split_request,
    sure_of_answer,
    unexplained,
)
from orchestrator.nlu.system1.message_kind import Evidence, is_bare
from orchestrator.nlu.system1.plan_changes import read_plan_value
from orchestrator.nlu.system1.repeats import REPEATING, find_repeated, repeat
from orchestrator.nlu.system1.rivals import (
    assign_to_past,
    doubt_little_known,
    find_owners,
    find_rivals,
    is_praise,
)
from orchestrator.nlu.text import clean, tokenize

_BARE = frozenset({MessageKind.SLOT_VALUE, MessageKind.UNKNOWN, MessageKind.TASK})
"""Kinds that values alone can have."""
_WITH_VALUES = frozenset({MessageKind.CORRECTION, MessageKind.SLOT_VALUE, MessageKind.DENIAL})
_OF_PLANS = _WITH_VALUES | {MessageKind.TASK}
_SURE_OF_PART = 0.5
_UNLISTED = frozenset({NAME, QUOTE})
_OF_DAYS = frozenset({"date", "datetime"})
_MOST_CUTS = 4  # a message may have hundreds of parts, and all that it leaves over is read again later


class Case:
    """A message in its context, for the readings of System 1; each part is computed once."""

    def __init__(self, system1: Learnt, text: str, context: NluContext, depth: int = 0) -> None:
        self.system1 = system1
        self.depth = depth  # how many times the message was cut to get to this part of it
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
        return [] if is_place else found

    @property
    def _asks_day(self) -> bool:
        slot = self._asked
        return slot is not None and slot.type in _OF_DAYS

    @cached_property
    def listed(self) -> list[Candidate]:
        """Return the candidates that are more than a name or a quotation."""
        return [known for one in self.candidates if (known := one.without(_UNLISTED)).readings]

    @cached_property
    def _opinion(self) -> Opinion:
        return self.system1.classifier.classify(delexicalize(self.utterance, self.candidates))

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Return the classifier's shares by label, whatever the context."""
        return self._opinion.probabilities

    @cached_property
    def weighed(self) -> Weighed:
        """Weigh the shares in the context of the message."""
        return weigh(self._opinion, self.context)

    @cached_property
    def evidence(self) -> Evidence:
        active = self.context.active
        mentions = {} if active is None else self.find_slots(active)
        return Evidence(self.utterance, self.candidates, self.weighed, self._opinion.known, mentions)

    @cached_property
    def kind(self) -> MessageKind:
        return self.system1.decider.decide(self.evidence, self.context)

    def find_slots(self, flow: FlowSpec, candidates: Sequence[Candidate] | None = None) -> dict[str, Mention]:
        """Find values for the slots of a flow; `candidates`: of all that were found, if not all count."""
        found = self.candidates if candidates is None else candidates
        return self.system1.slots.find_slots(self.utterance, found, flow, self.context)


def _read_choice(case: Case) -> Reading | None:
    """Read a choice among the options of the open question; no model could choose better."""
    if not case.context.question.choices:
        return None
    chosen = choose(case.utterance, case.context, case.system1.flows)
    return None if chosen is None else Reading(chosen)


def _read_repeat(case: Case) -> Reading | None:
    """Read a repetition of a completed task with other values."""
    if REPEATING.isdisjoint(case.utterance.words):
        return None
    past = find_repeated(case.utterance, case.context)
    read = None if past is None else repeat(case.utterance, past, case.find_slots(past.spec))
    return None if read is None else Reading(read, SURE_OF_VALUES, is_final=False)


def _read_reference(case: Case) -> Reading | None:
    """Read a reference to a displayed row; other values are included."""
    system1, context = case.system1, case.context
    shown, asked = context.shown, context.question.slot
    spec = system1.rows.get(shown.tool_id) if shown is not None else None
    if case.asks_text or (shown is None and context.active is None):
        return None
    if shown is None or spec is None:
        listing = references.list_others(case.utterance, context, system1.flows, system1.rows)
        return None if listing is None else Reading(listing, SURE_OF_VALUES, is_final=False)
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
    return Reading(replace(read, slots={**besides, **read.slots}), SURE_OF_VALUES, is_final=False)


def _read_new_text(case: Case) -> Reading | None:
    """Read a new free text: "change the text to …", "no, write: …"."""
    active, text = case.context.active, case.utterance.text
    slots = {} if active is None or case.asks_text else read_new_text(text, active, case.context.values)
    if active is None or not slots:
        return None
    read = Understanding(MessageKind.CORRECTION, Source.SYSTEM1, text, active.intent, slots=slots)
    return Reading(read, is_final=False)


def _read_withdrawal(case: Case) -> Reading | None:
    """Read the withdrawal of a request, or the wish to talk to a person instead."""
    text, context, system1 = case.utterance.text, case.context, case.system1
    refused = None if case.asks_text else withdrawals.refused_part(case.utterance)
    may_wish = not (case.asks_text or refused or withdrawals.PERSONS.isdisjoint(case.utterance.words))
    if may_wish and (wish := withdrawals.wish_for_person(text)):
        return Reading(wish, is_final=False)
    stopped = None if case.evidence.mentions else withdrawals.stop_now(text, context)
    if stopped is not None:
        read = stopped
    elif refused is not None:
        wanted = Case(system1, clean(refused), context).weighed
        likely = wanted.flows if wanted.label.startswith("flow:") else ()
        read = withdrawals.withdraw(text, case.candidates, likely, context)
    elif case.asks_text or context.tasks or not context.completed:
        read = None
    else:
        read = withdrawals.undo_done(case.utterance, case.listed, case.probabilities, system1.flows, context)
    return None if read is None else Reading(read, SURE_OF_VALUES, is_final=False)


def _read_two_requests(case: Case) -> Reading | None:
    """Read the first of several requests; the rest is read when it has ended."""
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
    if one.slots and not (is_certain or two.slots):
        said, task = system1.flows.get(one.flows[0].dact), system1.flows.get(two.flows[0].dact)
        looked_up = said is None or said.family is Family.READ
        if not looked_up and task is not None and one.slots.keys() <= task.slots.keys():
            two = replace(two, text=case.utterance.text, assumed=one.assumed, slots=case.find_slots(task))
            return Reading(two, is_final=False)  # "I must be in Rome on Friday, book a flight"
    return Reading(replace(one, later=rest), min(begun.confidence, other.confidence), is_final=False)


def _read_part(case: Case, words: str, least: float) -> Reading | None:
    """Read a part of a message; None when it is less sure than that."""
    part = Case(case.system1, clean(words), case.context, case.depth + 1)
    reading = read(part)
    return reading if max(reading.confidence, part.weighed.share) >= least else None


def _look_up_again(case: Case) -> Reading | None:
    """Read bare values after an action as a correction of it: look it up again, or ask (RT-12)."""
    context, evidence, kind = case.context, case.evidence, case.kind
    past = context.completed[0] if context.completed else None
    if context.active is not None or kind not in _BARE or past is None:
        return None
    alone = kind is MessageKind.TASK  # a task of several values is one; a single value may be no task
    is_likely = alone and evidence.weighed.flows[0].score >= case.system1.likely
    besides = frozenset[str]() if is_likely else slot_words(past.spec)
    if (alone and len(case.candidates) > 1) or not is_bare(evidence, whole=alone, besides=besides):
        return None
    said = count_from(case.find_slots(past.spec, case.listed), past.spec, past.values)
    found = assign_to_past(said, past, evidence)
    if all(m.value is None or past.values.get(name) == m.value for name, m in found.items()):
        return None
    spec, text, flows = past.spec, case.utterance.text, evidence.weighed.flows
    read = Understanding(MessageKind.CORRECTION, Source.SYSTEM1, text, spec.intent, flows, found, spec.dact)
    return Reading(read, SURE_OF_VALUES, is_final=False)


def _read_plan_value(case: Case) -> Reading | None:
    """Read a value of the plan, while one of its steps is running."""
    plan = case.context.plan
    if plan is None or case.context.question.slot is not None or case.kind not in _OF_PLANS:
        return None
    takes = kinds_by_slot(plan.spec.slots)
    found = count_from(case.find_slots(plan.spec), plan.spec, values_of(plan))
    read = read_plan_value(case.utterance, case.candidates, plan, takes, found)
    return None if read is None else Reading(read, SURE_OF_VALUES, is_final=False)


def _conclude(case: Case) -> Reading:
    """Return the classifier's reading: the decided kind, with its values."""
    evidence, kind, context, share = case.evidence, case.kind, case.context, case.weighed.share
    text, flows = case.utterance.text, evidence.weighed.flows
    understand = partial(Understanding, source=Source.SYSTEM1, text=text, flows=flows)
    known = case.system1.classifier.knows
    is_of_known = kind is MessageKind.CORRECTION or evidence.weighed.label.startswith("answer:")
    if is_of_known and (strange := find_strange(case.utterance, case.candidates, known, context)):
        said = understand(MessageKind.UNKNOWN, assumed=(name_unknown(strange),), unexplained=strange)
        return Reading(said, min(share, case.system1.likely), is_final=False)
    match kind:
        case MessageKind.TASK:
            understanding = _task(understand, case)
            share = understanding.flows[0].score if understanding.flows else 0.0
            if understanding.unexplained:  # a model may know what the rest means
                share = min(share, case.system1.likely)
        case MessageKind.SLOT_VALUE | MessageKind.CONFIRMATION | MessageKind.DENIAL:
            understanding = understand(kind, intent=context.intent, slots=_with_rivals(case))
            share = sure_of_answer(kind, evidence, context)
        case MessageKind.CORRECTION:
            understanding = _correction(understand, case)
            share = sure_of_answer(kind, evidence, context) if understanding.slots else share
        case MessageKind.CANCELLATION | MessageKind.RESUMPTION:
            understanding = understand(kind, target=withdrawals.target_of(evidence.utterance))
        case MessageKind.DIGRESSION | MessageKind.CHITCHAT:
            understanding = _digression(understand, case)
        case MessageKind.UNKNOWN | MessageKind.PLAN_CHANGE:
            understanding = understand(kind, slots=evidence.mentions)
            share = min(share, case.system1.likely)
    answer = case.system1.answers.get(evidence.weighed.label.removeprefix("answer:"))
    if not (kind is MessageKind.TASK or understanding.slots or is_explained(case.utterance, answer)):
        share = min(share, case.system1.likely)  # what it names besides may be a task
    return Reading(understanding, share, is_final=False)


READINGS: tuple[Callable[[Case], Reading | None], ...] = (
    _read_choice,
    _read_two_requests,
    _read_repeat,
    _read_reference,
    _read_new_text,
    _read_withdrawal,
    _look_up_again,
    _read_plan_value,
    _conclude,
)
"""System 1's readings, in order; the last one always succeeds."""


def read(case: Case) -> Reading:
    """Understand a cleaned message: the first of the `READINGS` that has one."""
    for attempt in READINGS:
        if (reading := attempt(case)) is not None:
            return reading
    raise AssertionError("the last of them always has one")


def _with_rivals(case: Case) -> Mapping[str, Mention]:
    """Return the values of an answer; one of which the message names several is asked about."""
    active, mentions = case.context.active, case.evidence.mentions
    if active is None or case.asks_text or len(case.candidates) <= len(mentions):
        return mentions
    takes = kinds_by_slot(active.slots)
    return {**mentions, **find_rivals(case.utterance, case.candidates, mentions, takes)}


def _task(
    understand: Callable[..., Understanding], case: Case, owner: FlowSpec | None = None
) -> Understanding:
    """Read a request for the likeliest flow, or for an `owner` whose words it has."""
    active = case.context.active
    spec = owner or case.system1.flows[case.evidence.weighed.flows[0].dact]
    about_active = active is not None and active.dact == spec.dact
    mentions = case.evidence.mentions if about_active else case.find_slots(spec)
    if len(case.candidates) > len(mentions):
        takes = kinds_by_slot(spec.slots)
        mentions = {**mentions, **find_rivals(case.utterance, case.candidates, mentions, takes)}
    left = unexplained(case.utterance, mentions.values(), spec)
    if left and owner is None and is_about_another_thing(case.utterance, left):
        owner = find_owner(left, case.system1.flows.values(), case.probabilities)
        if owner is not None:
            scores = (FlowScore(owner.dact, case.system1.likely),)
            return _task(partial(understand, flows=scores), case, owner)
        said = (name_unknown(left),)
        return understand(MessageKind.UNKNOWN, assumed=said, unexplained=tuple(left))
    return understand(MessageKind.TASK, intent=spec.intent, slots=mentions, unexplained=tuple(left))


def _correction(understand: Callable[..., Understanding], case: Case) -> Understanding:
    """Return the corrected values: of the active flow, or of the last completed one with such slots."""
    context, correct = case.context, partial(understand, MessageKind.CORRECTION)
    mentions = {}
    if context.question.confirming and is_praise(case.evidence):
        return understand(MessageKind.UNKNOWN)
    if context.active is not None:
        mentions = withdrawals.replace_old(case.evidence, context.values, dict(case.evidence.mentions))
        mentions = doubt_little_known(case.evidence, mentions, case.system1.extractor.gazetteer)
        takes = kinds_by_slot(context.active.slots)
        either = find_owners(case.evidence, context, takes) if len(mentions) == 1 else ()
        if len(either) > 1:
            return correct(intent=context.intent, flows=(), slots=mentions, either=either)
        if either:
            mentions = dict.fromkeys(either, next(iter(mentions.values())))
    if mentions or (context.active is not None and not context.completed):
        return correct(intent=context.intent, flows=(), slots=mentions)
    for past in context.completed:
        said = count_from(case.find_slots(past.spec), past.spec, past.values)
        if found := withdrawals.replace_old(case.evidence, past.values, said):
            found = assign_to_past(found, past, case.evidence)
            return correct(intent=past.spec.intent, flows=(), slots=found, target=past.spec.dact)
    return correct()


def _digression(understand: Callable[..., Understanding], case: Case) -> Understanding:
    label = case.evidence.weighed.label
    if (answer := case.system1.answers.get(label.removeprefix("answer:"))) is not None:
        kind = MessageKind.DIGRESSION if answer.digression else MessageKind.CHITCHAT
        return understand(kind, digression=answer.digression, target=answer.name)
    digression = Digression(label.removeprefix("kind:")) if case.kind is MessageKind.DIGRESSION else None
    if digression is Digression.STATUS and case.evidence.is_grounded:
        digression = Digression.QUESTION  # how far we are is asked without values
    return understand(case.kind, digression=digression)
