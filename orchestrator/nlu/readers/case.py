"""A message on its way through the readings of System 1, with all that is found out about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import Mention, MessageKind
from orchestrator.nlu.classifier import Opinion, delexicalize
from orchestrator.nlu.extract.extractor import is_free_text
from orchestrator.nlu.extract.found import NAME, QUOTE, Candidate
from orchestrator.nlu.leftovers import slot_words
from orchestrator.nlu.message_kind import Evidence, Weighed, weigh
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Learnt, Reading
from orchestrator.nlu.readers.domain_reader import as_understanding, describe_message
from orchestrator.nlu.text import tokenize
from orchestrator.nlu.training.examples import flow_label
from orchestrator.types import Dact

_UNLISTED = frozenset({NAME, QUOTE})


class Case:
    """One message in its context, on its way through the readings of System 1; each part is worked out once."""

    def __init__(self, system1: Learnt, text: str, context: NluContext, depth: int = 0) -> None:
        self.system1 = system1
        self.depth = depth  # how many times the message was cut to get to this part of it
        self.context = context
        self.utterance = tokenize(text)

    @cached_property
    def candidates(self) -> list[Candidate]:
        return self.system1.extractor.find(self.utterance, self.context.today)

    @cached_property
    def listed(self) -> list[Candidate]:
        """Those that are more than a name or a quotation."""
        return [known for one in self.candidates if (known := one.without(_UNLISTED)).readings]

    @cached_property
    def _opinion(self) -> Opinion:
        return self.system1.classifier.classify(delexicalize(self.utterance, self.candidates))

    @cached_property
    def by_domain(self) -> Reading | None:
        """Give what the domain's own reader makes of the message."""
        system1, text = self.system1, self.utterance.text
        read = None if system1.reader is None else system1.reader(describe_message(text, self.context))
        if read is None:
            return None
        return Reading(as_understanding(read, text, system1.flows, self.context), read.sure, is_final=False)

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Give shares by label of the classifier, whatever the context."""
        return self._opinion.probabilities

    @property
    def opinion(self) -> dict[Dact, float]:
        """Rate how likely each flow is, among all that a message may be."""
        return {dact: self.probabilities.get(flow_label(dact), 0.0) for dact in self.system1.flows}

    @property
    def asks_text(self) -> bool:
        """Tell whether the user was asked for words of their own, which may be any."""
        active = self.context.active
        asked = None if active is None else active.slots.get(self.context.question.slot or "")
        return asked is not None and is_free_text(asked)

    @cached_property
    def weighed(self) -> Weighed:
        """Weigh the shares in the context of the message."""
        return weigh(self._opinion.probabilities, self.context)

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

    def knows(self, word: str) -> bool:
        """Tell whether a word is one of the domain's, or names a slot of the task at work."""
        active = self.context.active
        return self.system1.classifier.knows(word) or (active is not None and word in slot_words(active))
