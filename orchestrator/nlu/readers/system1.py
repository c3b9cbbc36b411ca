"""System 1: reads a message without a model of language: classifier, extractors, slots and context.

Trained from a domain's flows, entities and answers, once for each version of them where what is trained
is kept; constant afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from re import Pattern

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import Digression, Mention, MessageKind, Source, Understanding
from orchestrator.domain.model import Answer, Domain, Entity
from orchestrator.domain.reader import Reader as DomainReader
from orchestrator.nlu.classifier import Classifier, Opinion, delexicalize, learn_labels
from orchestrator.nlu.examples import (
    Example,
    answer_label,
    flow_examples,
    flow_label,
    kind_examples,
    kind_texts,
    lower_words,
    typical_values,
    without_spans,
)
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import NAME, QUOTE, Candidate
from orchestrator.nlu.extract.gazetteer import Gazetteer
from orchestrator.nlu.linear import TrainedModels, key_of, train_once
from orchestrator.nlu.message_kind import Decider, Evidence, is_bare, kind_of_label, weigh
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, ReaderSetup, Reading
from orchestrator.nlu.readers.choices import choose
from orchestrator.nlu.readers.domain_reader import as_understanding, describe_message
from orchestrator.nlu.slot_assignment import SlotAssigner, is_negated, learn_slots
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.types import Dact

LIKELY = 0.35
_BARE = frozenset({MessageKind.SLOT_VALUE, MessageKind.UNKNOWN, MessageKind.TASK})
"""What values alone may be taken for."""
_SURE_OF_VALUES = 0.8
_UNLISTED = frozenset({NAME, QUOTE})


def make(setup: ReaderSetup) -> Reader:
    return setup.system1


class System1:
    """Understands messages for one domain."""

    def __init__(
        self,
        flows: Mapping[Dact, FlowSpec],
        extractor: Extractor,
        classifier: Classifier,
        slots: SlotAssigner,
        answers: Mapping[str, Answer],
        likely: float = LIKELY,
        reader: DomainReader | None = None,
    ) -> None:
        self.flows = flows
        self.extractor = extractor
        self.classifier = classifier
        self.slots = slots
        self.answers = answers
        self.likely = likely
        self.decider = Decider(extractor, likely)
        self.reader = reader

    @classmethod
    def train(
        cls,
        flows: Iterable[FlowSpec],
        entities: Mapping[str, Entity],
        answers: Iterable[Answer] = (),
        *,
        patterns: Mapping[str, Pattern[str]] | None = None,
        extra: Sequence[Example] = (),
        likely: float = LIKELY,
        kept: TrainedModels | None = None,
        reader: DomainReader | None = None,
    ) -> System1:
        """Learn a domain. `extra`: annotated messages besides the flows' own examples.

        `kept`: models that were trained before, and where those go that are trained now; None: nowhere.
        """
        specs = {flow.dact: flow for flow in flows}
        known = {answer.name: answer for answer in answers}
        texts = [text for flow in specs.values() for text in flow.examples]
        texts += [text for answer in known.values() for text in answer.examples]
        texts += [text for _kind, text in kind_texts()]
        common = lower_words([*texts, *(without_spans(example) for example in extra)])
        extractor = Extractor(specs.values(), entities, common, patterns)
        learnt_from = partial(_examples, specs.values(), known.values(), extra, extractor.gazetteer)

        slots = {slot.name: slot for flow in specs.values() for slot in flow.slots.values()}
        version = key_of(specs, entities, known, patterns, extra)
        labelling = train_once(kept, f"{version}-labels", lambda: learn_labels(learnt_from(), extractor))
        assigning = train_once(kept, f"{version}-slots", lambda: learn_slots(learnt_from(), extractor, slots))
        return cls(
            specs,
            extractor,
            Classifier(labelling),
            SlotAssigner(assigning, extractor),
            known,
            likely,
            reader,
        )

    @classmethod
    def for_domain(cls, domain: Domain, kept: TrainedModels | None = None) -> System1:
        """Learn a compiled domain; Internal flows are never predicted from a user's words (AG-7)."""
        specs = [flow.spec for flow in domain.flows.values() if flow.spec.family is not Family.INTERNAL]
        return cls.train(
            specs,
            domain.entities,
            domain.answers,
            patterns=domain.slot_patterns,
            likely=domain.config.thresholds.likely,
            kept=kept,
            reader=domain.reader,
        )

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Read a message; a model may know better, so this is not final."""
        return self.think(message.text, context)

    def think(self, text: str, context: NluContext) -> Reading:
        """Understand a cleaned message: the first of the `READINGS` that has one."""
        case = Case(self, text, context)
        return next(reading for read in READINGS if (reading := read(case)) is not None)

    def opinion(self, text: str, context: NluContext) -> dict[Dact, float]:
        """Rate how likely each flow is for a cleaned message, among all that a message may be."""
        found = Case(self, text, context).probabilities
        return {dact: found.get(flow_label(dact), 0.0) for dact in self.flows}

    def kind_of_part(self, text: str, context: NluContext) -> MessageKind:
        """Name the likeliest kind of one sentence of a message, from the classifier and the context alone."""
        weighed = weigh(Case(self, text, context).probabilities, context)
        return kind_of_label(weighed.label) if weighed.share >= self.likely else MessageKind.UNKNOWN

    def slots_for(self, text: str, flow: FlowSpec, context: NluContext) -> dict[str, Mention]:
        """Find what a cleaned message says for the slots of a given flow."""
        return Case(self, text, context).find_slots(flow)


def _examples(
    flows: Iterable[FlowSpec], answers: Iterable[Answer], extra: Iterable[Example], gazetteer: Gazetteer
) -> Iterator[Example]:
    for flow in flows:
        yield from flow_examples(flow, gazetteer)
    for answer in answers:
        yield from (Example(text, answer_label(answer.name)) for text in answer.examples)
    yield from kind_examples(typical_values(flows, gazetteer))
    yield from extra


class Case:
    """One message in its context, on its way through the readings of System 1; each part is worked out once."""

    def __init__(self, system1: System1, text: str, context: NluContext) -> None:
        self.system1 = system1
        self.context = context
        self.utterance = tokenize(text)

    @cached_property
    def candidates(self) -> list[Candidate]:
        return self.system1.extractor.find(self.utterance, self.context.today)

    @cached_property
    def _opinion(self) -> Opinion:
        return self.system1.classifier.classify(delexicalize(self.utterance, self.candidates))

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Give shares by label of the classifier, whatever the context."""
        return self._opinion.probabilities

    @cached_property
    def evidence(self) -> Evidence:
        active = self.context.active
        mentions = {} if active is None else self.find_slots(active)
        weighed = weigh(self.probabilities, self.context)
        return Evidence(self.utterance, self.candidates, weighed, self._opinion.known, mentions)

    @cached_property
    def kind(self) -> MessageKind:
        return self.system1.decider.decide(self.evidence, self.context)

    def find_slots(self, flow: FlowSpec, candidates: Sequence[Candidate] | None = None) -> dict[str, Mention]:
        """Find values for the slots of a flow; `candidates`: of all that were found, if not all count."""
        found = self.candidates if candidates is None else candidates
        return self.system1.slots.find_slots(self.utterance, found, flow, self.context)


def _read_choice(case: Case) -> Reading | None:
    """Take the message for one of the choices that the open question offers."""
    if not case.context.question.choices:
        return None
    chosen = choose(case.utterance, case.context, case.system1.flows)
    return None if chosen is None else Reading(chosen, is_final=False)


def _ask_domain(case: Case) -> Reading | None:
    """Ask the domain's own reader, if it has one."""
    system1, text = case.system1, case.utterance.text
    read = None if system1.reader is None else system1.reader(describe_message(text, case.context))
    if read is None:
        return None
    return Reading(as_understanding(read, text, system1.flows, case.context), read.sure, is_final=False)


def _look_up_again(case: Case) -> Reading | None:
    """Take values alone, said after something was looked up, for looking it up with them."""
    context, evidence, kind = case.context, case.evidence, case.kind
    past = context.completed[0] if context.completed else None
    if context.active is not None or kind not in _BARE or past is None or past.spec.family is not Family.READ:
        return None
    alone = kind is MessageKind.TASK  # a task of several values is one; a single value may be no task
    if not is_bare(evidence, whole=alone) or (alone and len(case.candidates) > 1):
        return None
    listed = [known for candidate in case.candidates if (known := candidate.without(_UNLISTED)).readings]
    found = case.find_slots(past.spec, listed)
    if all(m.value is None or past.values.get(name) == m.value for name, m in found.items()):
        return None
    text, intent = case.utterance.text, past.spec.intent
    understanding = Understanding(
        MessageKind.CORRECTION, Source.SYSTEM1, text, intent, evidence.flows, found, past.spec.dact
    )
    return Reading(understanding, _SURE_OF_VALUES, is_final=False)


def _conclude(case: Case) -> Reading:
    """Conclude from what was learnt: the kind that was decided, with what a message of that kind says."""
    evidence, kind, context = case.evidence, case.kind, case.context
    base = Understanding(kind, Source.SYSTEM1, case.utterance.text, flows=evidence.flows)
    share = evidence.share
    match kind:
        case MessageKind.TASK:
            understanding = _task(base, case)
            share = understanding.flows[0].score if understanding.flows else 0.0
        case MessageKind.SLOT_VALUE | MessageKind.CONFIRMATION | MessageKind.DENIAL:
            understanding = replace(base, intent=context.intent, slots=evidence.mentions)
            share = max(share, 0.8) if evidence.mentions else share
        case MessageKind.CORRECTION:
            understanding = _correction(base, case)
            share = max(share, 0.8) if understanding.slots else share
        case MessageKind.CANCELLATION | MessageKind.RESUMPTION:
            understanding = replace(base, target=target_of(evidence.utterance))
        case MessageKind.DIGRESSION | MessageKind.CHITCHAT:
            understanding = _digression(base, evidence.label, case.system1.answers)
        case MessageKind.UNKNOWN | MessageKind.PLAN_CHANGE:
            understanding = replace(base, slots=evidence.mentions)
            share = min(share, case.system1.likely)
    return Reading(understanding, share, is_final=False)


READINGS: tuple[Callable[[Case], Reading | None], ...] = (
    _read_choice,
    _ask_domain,
    _look_up_again,
    _conclude,
)
"""What System 1 tries, in order; the last one always has a reading."""


def _task(base: Understanding, case: Case) -> Understanding:
    spec, active = case.system1.flows[base.flows[0].dact], case.context.active
    about_active = active is not None and active.dact == spec.dact
    mentions = case.evidence.mentions if about_active else case.find_slots(spec)
    return replace(base, intent=spec.intent, slots=mentions)


def _correction(base: Understanding, case: Case) -> Understanding:
    """Find what changes: in the active flow, else in the last completed one that has such slots."""
    context = case.context
    mentions = {}
    if context.active is not None:
        mentions = _replaced(case.evidence, context.values, dict(case.evidence.mentions))
    if mentions or (context.active is not None and not context.completed):
        return replace(base, intent=context.intent, slots=mentions)
    for past in context.completed:
        found = _replaced(case.evidence, past.values, case.find_slots(past.spec))
        if found:
            return replace(base, intent=past.spec.intent, slots=found, target=past.spec.dact)
    return base


def _replaced(
    evidence: Evidence, values: Mapping[str, object], mentions: dict[str, Mention]
) -> dict[str, Mention]:
    """Apply "not Madrid but Porto": the new value goes where the old one stands."""
    old = {
        name
        for candidate in evidence.candidates
        if is_negated(evidence.utterance, candidate)
        for name, value in values.items()
        if any(reading.value == value for reading in candidate.readings.values())
    }
    if len(old) == 1 and len(mentions) == 1 and not old & mentions.keys():
        return {old.pop(): next(iter(mentions.values()))}
    return mentions


def _digression(base: Understanding, label: str, answers: Mapping[str, Answer]) -> Understanding:
    if label.startswith("answer:"):
        answer = answers[label[7:]]
        kind = MessageKind.DIGRESSION if answer.digression else MessageKind.CHITCHAT
        return replace(base, kind=kind, digression=answer.digression, target=answer.name)
    is_digression = base.kind is MessageKind.DIGRESSION
    return replace(base, digression=Digression(label.removeprefix("kind:")) if is_digression else None)


def target_of(utterance: Utterance) -> str | None:
    """Take the words of a resumption or cancellation that describe which one."""
    words = [word for word in utterance.words if word.isalnum() and word not in _GENERAL]
    return " ".join(words) or None


_GENERAL = word_set(
    "a an the to back go let's let us me my i i'd want like would please can could we you return "
    "continue with resume cancel stop forget about that this it never mind nevermind carry on pick up "
    "where left off were was now okay ok again get of in do don't need any more anymore drop quit abort "
    "thing other one previous earlier first last task request and for what doing"
)
