"""System 1: understanding a message without a model: classifier, extractors, roles and context.

Trained at process start from a domain's flows, entities and answers, or taken from what was trained
before; constant afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from re import Pattern

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import (
    Digression,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.domain.model import Answer, Domain, Entity
from orchestrator.domain.reader import Reader
from orchestrator.nlu.classifier import Classifier, delexicalize
from orchestrator.nlu.examples import (
    Example,
    answer_label,
    flow_examples,
    flow_label,
    kind_examples,
    kind_texts,
    lower_words,
    sample_values,
)
from orchestrator.nlu.extract.answers import read_answer
from orchestrator.nlu.extract.booleans import boolean_value, find_booleans
from orchestrator.nlu.extract.extractor import Extractor
from orchestrator.nlu.extract.found import NAME, QUOTE, Candidate
from orchestrator.nlu.extract.span_types import is_boolean, is_free_text
from orchestrator.nlu.message_kind import (
    Decider,
    Evidence,
    best_flows,
    best_label,
    is_bare,
    kind_of_label,
    weigh,
)
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.readers.choices import choose
from orchestrator.nlu.readers.domain_reader import as_understanding, heard
from orchestrator.nlu.slot_assignment import Roles, is_negated
from orchestrator.nlu.text import Utterance, tokenize, word_set
from orchestrator.nlu.training import Fit, FitOnce, fit
from orchestrator.ports.trained import TrainedModels
from orchestrator.types import Dact

LIKELY = 0.35
_BARE = frozenset({MessageKind.SLOT_VALUE, MessageKind.UNKNOWN, MessageKind.TASK})
"""What values alone may be taken for."""
_SURE_OF_VALUES = 0.8
_UNLISTED = frozenset({NAME, QUOTE})


@dataclass(frozen=True, slots=True)
class Reading1:
    """What System 1 thinks, and how sure it is of the kind and flow (0 … 1)."""

    understanding: Understanding
    confidence: float


class System1:
    """Understands messages for one domain."""

    def __init__(
        self, flows: Mapping[Dact, FlowSpec], extractor: Extractor, classifier: Classifier, roles: Roles,
        answers: Mapping[str, Answer], likely: float = LIKELY, reader: Reader | None = None,
    ) -> None:  # fmt: skip
        self.flows = flows
        self.extractor = extractor
        self.classifier = classifier
        self.roles = roles
        self._answers = answers
        self.likely = likely
        self._decider = Decider(extractor, likely)
        self._reader = reader

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
        fit: Fit = fit,
        reader: Reader | None = None,
    ) -> System1:
        """Learn a domain. `extra`: annotated messages besides the flows' own examples."""
        specs = {flow.dact: flow for flow in flows}
        known = {answer.name: answer for answer in answers}
        texts = [text for flow in specs.values() for text in flow.examples]
        texts += [text for answer in known.values() for text in answer.examples]
        texts += [text for _kind, text in kind_texts()]
        common = lower_words([*texts, *(_without_spans(example) for example in extra)])
        extractor = Extractor(specs.values(), entities, common, patterns)
        examples = [e for flow in specs.values() for e in flow_examples(flow, extractor.gazetteer)]
        examples += [
            Example(text, answer_label(answer.name)) for answer in known.values() for text in answer.examples
        ]
        examples += kind_examples(_typical_values(specs.values(), extractor))
        examples += extra
        slots = {slot.name: slot for flow in specs.values() for slot in flow.slots.values()}
        classifier = Classifier.train(examples, extractor, fit)
        roles = Roles.train(examples, extractor, slots, fit)
        return cls(specs, extractor, classifier, roles, known, likely, reader)

    @classmethod
    def for_domain(cls, domain: Domain, kept: TrainedModels | None = None) -> System1:
        """Learn a compiled domain; Internal flows are never predicted from a user's words (AG-7).

        `kept`: models that were trained before; None: all are trained now.
        """
        specs = [flow.spec for flow in domain.flows.values() if flow.spec.family is not Family.INTERNAL]
        return cls.train(
            specs,
            domain.entities,
            domain.answers,
            patterns=domain.slot_patterns,
            likely=domain.config.thresholds.likely,
            fit=fit if kept is None else FitOnce(kept),
            reader=domain.reader,
        )

    def think(self, text: str, situation: Situation) -> Reading1:
        """Understand a cleaned message in its situation."""
        utterance = tokenize(text)
        chosen = choose(utterance, situation, self.flows)
        if chosen is not None:
            return Reading1(replace(chosen, text=text), 1.0)
        read = None if self._reader is None else self._reader(heard(text, situation))
        if read is not None:
            return Reading1(as_understanding(read, text, self.flows, situation), read.sure)
        evidence = self._gather(utterance, situation)
        kind = self._decider.decide(evidence, situation)
        if situation.active is None and kind in _BARE:
            again = self._look_up_again(kind, evidence, situation)
            if again is not None:
                return Reading1(again, _SURE_OF_VALUES)
        return self._conclude(kind, evidence, situation)

    def opinion(self, text: str, situation: Situation) -> dict[Dact, float]:
        """How likely each flow is for a cleaned message, among all that a message may be."""
        utterance = tokenize(text)
        candidates = self.extractor.find(utterance, situation.today)
        opinion = self.classifier.classify(delexicalize(utterance, candidates))
        return {dact: opinion.probabilities.get(flow_label(dact), 0.0) for dact in self.flows}

    def kind_of_part(self, text: str, situation: Situation) -> MessageKind:
        """The likeliest kind of one sentence of a message, from the classifier and the context alone."""
        utterance = tokenize(text)
        candidates = self.extractor.find(utterance, situation.today)
        opinion = self.classifier.classify(delexicalize(utterance, candidates))
        label, share = best_label(weigh(opinion.probabilities, situation))
        return kind_of_label(label) if share >= self.likely else MessageKind.UNKNOWN

    def slots_for(self, text: str, flow: FlowSpec, situation: Situation) -> dict[str, Mention]:
        """What a cleaned message says for the slots of a given flow."""
        utterance = tokenize(text)
        return self.find_slots(utterance, self.extractor.find(utterance, situation.today), flow, situation)

    def _gather(self, utterance: Utterance, situation: Situation) -> Evidence:
        candidates = self.extractor.find(utterance, situation.today)
        opinion = self.classifier.classify(delexicalize(utterance, candidates))
        weighed = weigh(opinion.probabilities, situation)
        label, share = best_label(weighed)
        mentions = (
            self.find_slots(utterance, candidates, situation.active, situation) if situation.active else {}
        )
        return Evidence(utterance, candidates, label, share, opinion.known, best_flows(weighed), mentions)

    def _look_up_again(
        self, kind: MessageKind, evidence: Evidence, situation: Situation
    ) -> Understanding | None:
        """Values alone, said after something was looked up, are meant for looking it up with them."""
        past = situation.completed[0] if situation.completed else None
        if past is None or past.spec.family is not Family.READ:
            return None
        alone = kind is MessageKind.TASK  # a task of several values is one; a single value may be no task
        if not is_bare(evidence, whole=alone) or (alone and len(evidence.candidates) > 1):
            return None
        listed = [
            known for candidate in evidence.candidates if (known := candidate.without(_UNLISTED)).readings
        ]
        found = self.find_slots(evidence.utterance, listed, past.spec, situation)
        if all(m.value is None or past.values.get(name) == m.value for name, m in found.items()):
            return None
        text, intent = evidence.utterance.text, past.spec.intent
        return Understanding(
            MessageKind.CORRECTION, Source.SYSTEM1, text, intent, evidence.flows, found, past.spec.dact
        )

    def find_slots(
        self, utterance: Utterance, candidates: Sequence[Candidate], flow: FlowSpec, situation: Situation
    ) -> dict[str, Mention]:
        """Fill the slots of a flow from the candidates and what the wording says of yes-or-no slots."""
        asked = (
            situation.asked if situation.active is not None and flow.dact == situation.active.dact else None
        )
        mentions = self.roles.assign(utterance, candidates, flow, asked, self.extractor)
        for name, (wanted, words) in find_booleans(utterance, flow.slots.values()).items():
            mentions.setdefault(name, Mention(boolean_value(flow.slots[name], wanted), words))
        if (
            asked is not None
            and asked in flow.slots
            and is_boolean(flow.slots[asked])
            and asked not in mentions
        ):
            answer = read_answer(utterance, flow.slots[asked], self.extractor, situation.today)
            if answer is not None:
                mentions[asked] = answer
        return mentions

    def _conclude(self, kind: MessageKind, evidence: Evidence, situation: Situation) -> Reading1:
        text = evidence.utterance.text
        base = Understanding(kind, Source.SYSTEM1, text, flows=evidence.flows)
        share = evidence.share
        match kind:
            case MessageKind.TASK:
                understanding = self._task(base, evidence, situation)
                share = understanding.flows[0].score if understanding.flows else 0.0
            case MessageKind.SLOT_VALUE | MessageKind.CONFIRMATION | MessageKind.DENIAL:
                understanding = replace(base, intent=_intent(situation.active), slots=evidence.mentions)
                share = max(share, 0.8) if evidence.mentions else share
            case MessageKind.CORRECTION:
                understanding = self._correction(base, evidence, situation)
                share = max(share, 0.8) if understanding.slots else share
            case MessageKind.CANCELLATION | MessageKind.RESUMPTION:
                understanding = replace(base, target=target_of(evidence.utterance))
            case MessageKind.DIGRESSION | MessageKind.CHITCHAT:
                understanding = self._aside(base, evidence)
            case MessageKind.UNKNOWN | MessageKind.PLAN_CHANGE:
                understanding = replace(base, slots=evidence.mentions)
                share = min(share, self.likely)
        return Reading1(understanding, share)

    def _task(self, base: Understanding, evidence: Evidence, situation: Situation) -> Understanding:
        spec = self.flows[evidence.flows[0].dact]
        if situation.active is not None and situation.active.dact == spec.dact:
            mentions = evidence.mentions
        else:
            mentions = self.find_slots(evidence.utterance, evidence.candidates, spec, situation)
        return replace(base, intent=spec.intent, slots=mentions)

    def _correction(self, base: Understanding, evidence: Evidence, situation: Situation) -> Understanding:
        """Find what changes: in the active flow, else in the last completed one that has such slots."""
        mentions = self._replaced(evidence, situation.active, situation.values, dict(evidence.mentions))
        if mentions or (situation.active is not None and not situation.completed):
            return replace(base, intent=_intent(situation.active), slots=mentions)
        for past in situation.completed:
            found = self.find_slots(evidence.utterance, evidence.candidates, past.spec, situation)
            found = self._replaced(evidence, past.spec, past.values, found)
            if found:
                return replace(base, intent=past.spec.intent, slots=found, target=past.spec.dact)
        return base

    def _replaced(
        self,
        evidence: Evidence,
        flow: FlowSpec | None,
        values: Mapping[str, object],
        mentions: dict[str, Mention],
    ) -> dict[str, Mention]:
        """Apply "not Madrid but Porto": the new value goes where the old one stands."""
        if flow is None:
            return {}
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

    def _aside(self, base: Understanding, evidence: Evidence) -> Understanding:
        if evidence.label.startswith("answer:"):
            answer = self._answers[evidence.label[7:]]
            kind = MessageKind.DIGRESSION if answer.digression else MessageKind.CHITCHAT
            return replace(base, kind=kind, digression=answer.digression, target=answer.name)
        name = evidence.label.removeprefix("kind:")
        return replace(base, digression=Digression(name) if base.kind is MessageKind.DIGRESSION else None)


def _intent(flow: FlowSpec | None) -> str | None:
    return flow.intent if flow is not None else None


def target_of(utterance: Utterance) -> str | None:
    """The words of a resumption or cancellation that describe which one."""
    words = [word for word in utterance.words if word.isalnum() and word not in _GENERAL]
    return " ".join(words) or None


def _typical_values(flows: Iterable[FlowSpec], extractor: Extractor) -> list[str]:
    """A few texts of each kind of value the domain has, for the universal examples."""
    values: dict[str, None] = {}
    for flow in flows:
        for slot in flow.slots.values():
            if not is_boolean(slot) and not is_free_text(slot):
                values |= dict.fromkeys(list(sample_values(slot, extractor.gazetteer))[:2])
    return list(values)


def _without_spans(example: Example) -> str:
    """An example's own words, without the values that it mentions."""
    pieces: list[str] = []
    position = 0
    for start, end, _slot in sorted(example.spans):
        pieces.append(example.text[position:start])
        position = end
    return "".join([*pieces, example.text[position:]])


_GENERAL = word_set(
    "a an the to back go let's let us me my i i'd want like would please can could we you return "
    "continue with resume cancel stop forget about that this it never mind nevermind carry on pick up "
    "where left off were was now okay ok again get of in do don't need any more anymore drop quit abort "
    "thing other one previous earlier first last task request and for what doing"
)
