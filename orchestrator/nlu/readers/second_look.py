"""Sides with the words of a message where a model has understood what they do not say.

What a model names is held against what System 1 reads, against the values, and against the words of each task.
Nothing is made up: whose reading counts is all that changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import FlowScore, MessageKind, Source, Understanding
from orchestrator.memory.tokenizer import find_terms
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.plain_yes import is_plain_yes, only_praises
from orchestrator.nlu.training.examples import PLACEHOLDER
from orchestrator.types import Dact

_MOST_SHARED = 0.3
"""A word of more than this share of the flows tells nothing of any ("find")."""
_OF_ACTIVE = frozenset({MessageKind.SLOT_VALUE, MessageKind.CORRECTION})
_SAYS_NOTHING = frozenset({MessageKind.UNKNOWN, MessageKind.TASK})
_NO_YES = frozenset({MessageKind.DENIAL, MessageKind.CANCELLATION, MessageKind.PLAN_CHANGE, MessageKind.TASK})
"""What a model may hear in praise that is then no yes: "great, thanks" ends a talk as well."""


class SecondLook:
    """Chooses between the readings of one domain's messages."""

    def __init__(self, flows: Mapping[Dact, FlowSpec]) -> None:
        self._flows = flows

    @cached_property
    def _terms(self) -> dict[Dact, set[str]]:
        """The words that speak of each flow; they are only looked for where a model is asked."""
        known = {dact: _terms_of(flow) for dact, flow in self._flows.items()}
        used = Counter(term for terms in known.values() for term in terms)
        most = max(1.0, _MOST_SHARED * len(known))
        return {dact: {term for term in terms if used[term] <= most} for dact, terms in known.items()}

    def choose(
        self,
        model: Understanding,
        other: Understanding,
        text: str,
        rate: Callable[[], Mapping[Dact, float]],
        context: NluContext,
    ) -> Understanding:
        """Give what a model has understood, or what its words and `other`, System 1's reading, say instead.

        `text`: the message, in English as far as it is known. `rate`: how likely each flow is by the words alone.
        """
        if model.source is not Source.SYSTEM2:
            return model
        if context.question.confirming and model.kind in _NO_YES and only_praises(text):
            return model
        known = [one for one in model.flows if one.dact in self._flows]
        spec = self._flows[max(known, key=lambda one: one.score).dact] if known else None
        if self._is_yes(model, other, text, context):
            return replace(model, kind=MessageKind.CONFIRMATION, flows=(), target=None, digression=None)
        if model.kind is not MessageKind.TASK or spec is None:
            return model
        if any(spec.dact == one.dact for one in (context.active, *context.tasks) if one is not None):
            return model
        named = model.slots.keys()
        if named and named.isdisjoint((*spec.slots, *spec.inputs)):
            return self._find_owner(model, spec, text, rate, context)
        if self._count_terms(spec.dact, text):
            return model
        return self._without_support(model, other, text, context)

    def _find_owner(
        self,
        model: Understanding,
        spec: FlowSpec,
        text: str,
        rate: Callable[[], Mapping[Dact, float]],
        context: NluContext,
    ) -> Understanding:
        """Take a request for that of the flows which has its values; the one that is named has none of them.

        What a task at hand has a place for stays as it is: it is for that one.
        """
        named = model.slots.keys()
        last = context.active or next((past.spec for past in context.completed), None)
        fitting = [one.dact for one in self._flows.values() if named <= one.slots.keys()]
        if not fitting or (last is not None and named <= last.slots.keys()):
            return model
        rated = rate()
        if max(rated, key=rated.__getitem__) == spec.dact:
            return model
        best = max(fitting, key=lambda one: (self._count_terms(one, text), rated.get(one, 0.0)))
        return replace(model, flows=(FlowScore(best, model.flows[0].score),))

    def _without_support(
        self, model: Understanding, other: Understanding, text: str, context: NluContext
    ) -> Understanding:
        """Read a request for a task of which no word speaks as System 1 does, where that explains the words.

        A model that gives such a task values may well be right: "I must be in Rome on Friday, get me there".
        """
        named = model.slots.keys()
        if other.kind is MessageKind.TASK:
            dact = other.flows[0].dact
            is_supported = not named and self._count_terms(dact, text) > 0
            return replace(model, flows=other.flows, slots=other.slots) if is_supported else model
        if context.active is not None and named and named <= context.active.slots.keys():
            is_answer = other.kind in _OF_ACTIVE and context.question.slot in named
            return replace(model, kind=MessageKind.SLOT_VALUE, flows=()) if is_answer else model
        is_begin = context.active is None and not context.completed
        has_values = bool(named or other.slots)
        return model if is_begin or has_values or other.kind in _SAYS_NOTHING else other

    def _is_yes(self, model: Understanding, other: Understanding, text: str, context: NluContext) -> bool:
        """Say whether the words agree to what is asked, and neither a value nor System 1 speaks for anything else."""
        is_plain = context.question.confirming and not model.slots and is_plain_yes(text, "")
        if not is_plain or model.kind is MessageKind.CONFIRMATION or other.slots:
            return False
        match model.kind:
            case MessageKind.TASK:
                return not any(self._count_terms(one.dact, text) for one in model.flows)
            case MessageKind.CHITCHAT | MessageKind.DIGRESSION | MessageKind.RESUMPTION:
                return other.kind is MessageKind.CONFIRMATION
            case _:
                return True

    def _count_terms(self, dact: Dact, text: str) -> int:
        """Count the words that speak of a task; "movie" and "movies" need not have one stem."""
        known = self._terms.get(dact, set[str]())
        return sum(
            any(said.startswith(one) or one.startswith(said) for one in known)
            for said in set(find_terms(text))
        )


def _terms_of(flow: FlowSpec) -> set[str]:
    examples = (PLACEHOLDER.sub(" ", one) for one in flow.examples)
    return set(find_terms(" ".join((flow.dact, *flow.slots, flow.description, *examples)).replace("_", " ")))
