"""The local classifier (System 1), which interprets messages with a trained model, extractors and the context.

It is trained from a domain's flows, entities and answers, and does not change afterward.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from re import Pattern

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind
from orchestrator.domain.model import Answer, Domain, Entity
from orchestrator.domain.tool_schema import RowsSpec
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reading
from orchestrator.nlu.system1.classifier import FLOW
from orchestrator.nlu.system1.extract.extractor import Extractor
from orchestrator.nlu.system1.extract.gazetteer import Gazetteer
from orchestrator.nlu.system1.linear import TrainedModels, key_of, train_once
from orchestrator.nlu.system1.message_kind import Decider
from orchestrator.nlu.system1.readings import Case, Learnt, read
from orchestrator.nlu.system1.requests import request_verbs
from orchestrator.nlu.system1.slot_assignment import SlotAssigner
from orchestrator.nlu.system1.training.examples import (
    Example,
    flow_examples,
    kind_examples,
    kind_texts,
    lower_words,
    typical_values,
)
from orchestrator.nlu.system1.training.learning import fit, learn_labels
from orchestrator.nlu.system1.training.process import fit_in_process
from orchestrator.nlu.text import Lexicon, clean, tokenize
from orchestrator.types import Dact, ToolId

LIKELY = 0.35


class System1(Learnt):
    @classmethod
    def train(
        cls,
        flows: Iterable[FlowSpec],
        entities: Mapping[str, Entity],
        answers: Iterable[Answer] = (),
        *,
        patterns: Mapping[str, Pattern[str]] | None = None,
        likely: float = LIKELY,
        kept: TrainedModels | None = None,
        rows: Mapping[ToolId, RowsSpec] | None = None,
        lexicon: Lexicon | None = None,
        apart: bool = False,
    ) -> System1:
        """Train a classifier, or load it if the same training data is stored.

        `patterns`: patterns for the domain's own slot types, by type. `likely`: minimum probability of a flow
        that counts as requested. `kept`: storage of trained models, or None to train at every start.
        `apart`: True to train in a separate process, which frees the memory that training needs.
        """
        specs = {flow.dact: flow for flow in flows}
        known = {answer.name: answer for answer in answers}
        texts = [text for flow in specs.values() for text in flow.examples]
        texts += [text for answer in known.values() for text in answer.examples]
        texts += chain.from_iterable(kind_texts().values())
        extractor = Extractor(specs.values(), entities, lower_words(texts), patterns)
        taught = {name: answer.examples for name, answer in known.items()}  # without the texts of the answers
        version = key_of(specs, entities, taught, patterns)
        examples = partial(_examples, specs.values(), known.values(), extractor.gazetteer)
        fitting = fit_in_process if apart else fit
        labelling = train_once(kept, version, lambda: learn_labels(examples(), extractor, fitting))
        assigner, decider = SlotAssigner(extractor, specs.values()), Decider(extractor, likely, specs)
        words = lexicon or Lexicon()
        return cls(specs, extractor, labelling, assigner, known, likely, decider, rows or {}, words)

    @classmethod
    def for_domain(cls, domain: Domain, kept: TrainedModels | None = None, *, apart: bool = False) -> System1:
        """Train a domain's classifier, without background flows, which users can't request (AG-7)."""
        lexicon = Lexicon(domain.lexicon)

        def more(name: str) -> tuple[str, ...]:
            return tuple(
                lexicon.to_english(one) for file in domain.lexicon for one in file.examples.get(name, ())
            )

        specs = [
            replace(flow.spec, examples=(*flow.spec.examples, *more(flow.spec.dact)))
            for flow in domain.flows.values()
            if flow.spec.family is not Family.INTERNAL
        ]
        return cls.train(
            specs,
            domain.entities,
            [replace(one, examples=(*one.examples, *more(one.name))) for one in domain.answers],
            lexicon=lexicon,
            patterns=domain.slot_patterns,
            likely=domain.config.thresholds.likely,
            kept=kept,
            rows={tool_id: tool.rows for tool_id, tool in domain.tools.items() if tool.rows is not None},
            apart=apart,
        )

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Interpret a message. The interpretation is final only if the message selects an option."""
        reading = read(Case(self, message.english, context))
        return reading if message.english == message.text else _in_own_words(reading, message)

    def think(self, text: str, context: NluContext) -> Reading:
        return read(Case(self, text, context))

    def is_request(self, text: str, context: NluContext) -> bool:
        """Return whether a message's part begins with a flow's request verb and probably requests a task."""
        said = clean(text)
        begins = tokenize(said).words[:1]
        if request_verbs(self.flows.values()).isdisjoint(begins):
            return False
        reading = self.think(said, context)
        return reading.understanding.kind is MessageKind.TASK and reading.confidence >= self.likely

    def opinion(self, text: str, context: NluContext) -> dict[Dact, float]:
        """Return the probability of each flow for a cleaned message."""
        shares = Case(self, text, context).probabilities
        return {dact: shares.get(f"{FLOW}{dact}", 0.0) for dact in self.flows}

    def slots_for(self, text: str, flow: FlowSpec, context: NluContext) -> dict[str, Mention]:
        return Case(self, text, context).find_slots(flow)


def _in_own_words(reading: Reading, message: Message) -> Reading:
    """Restore the user's own spelling of a value that is the whole message."""
    understood = reading.understanding
    slots = {
        name: Mention(message.text, message.text) if one.value == message.english else one
        for name, one in understood.slots.items()
    }
    return replace(reading, understanding=replace(understood, slots=slots))


def _examples(
    flows: Iterable[FlowSpec], answers: Iterable[Answer], gazetteer: Gazetteer
) -> Iterator[Example]:
    for flow in flows:
        yield from flow_examples(flow, gazetteer)
    for answer in answers:
        yield from (Example(text, f"answer:{answer.name}") for text in answer.examples)
    yield from kind_examples(typical_values(flows, gazetteer))
