"""NLU, which interprets messages and actions without changing state (NL-1, NL-2, NL-4 … NL-7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Mention, MessageKind, Rejection, Source, Understanding
from orchestrator.domain.locales import separators_of
from orchestrator.domain.model import Domain
from orchestrator.errors import ModelOutputInvalid
from orchestrator.models.calling import CallContext
from orchestrator.nlu.actions import Action, react
from orchestrator.nlu.contemplate import FailedRequest, reroute, reroute_by_model
from orchestrator.nlu.cues import find_cues
from orchestrator.nlu.model_calls import ask_values
from orchestrator.nlu.nlu_context import NluContext, day_of, read_nlu_context
from orchestrator.nlu.protocol import Asker, Message, Reading
from orchestrator.nlu.readers import make_readers
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.readers.system2 import NEVER
from orchestrator.nlu.restraint import Restraint
from orchestrator.nlu.row_questions import read_row_question
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.text import LONGEST_CHECKED, clean, tokenize
from orchestrator.nlu.unused import UnusedWords
from orchestrator.nlu.validate import Validation
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.tools.remembered import recall_for_prompt
from orchestrator.types import Json, JsonObject

MODULE = "nlu"
_ABOUT_SOMETHING = frozenset(
    {
        MessageKind.SLOT_VALUE,
        MessageKind.CORRECTION,
        MessageKind.CONFIRMATION,
        MessageKind.DENIAL,
        MessageKind.CANCELLATION,
        MessageKind.RESUMPTION,
    }
)
"""Kinds of messages that refer to a task or a question."""
LONGEST_READ = 65_536
"""Maximum number of characters that NLU reads per message. Longer messages are truncated."""


class NLU:
    def __init__(
        self,
        domain: Domain,
        asker: Asker | None = None,
        *,
        system1: System1 | None = None,
        development: bool = False,
    ) -> None:
        """Create the NLU for a domain.

        `asker`: the Prompt Engineer. Default: no model, only the local classifier. `system1`: the local
        classifier. Default: train one. `development`: True enables shortcuts for developers.
        """
        self.system1 = system1 or System1.for_domain(domain)
        self._domain = domain
        self._asker = asker if domain.config.nlu.mode != NEVER else None
        self.has_model = self._asker is not None
        """True if NLU has a model that it may use, even if the model is unavailable."""
        learnt = self.system1
        self._setup = ReaderSetup(domain, learnt, self._asker, development)
        self._readers = make_readers(self._setup)
        self._separators = separators_of(None, domain.config.language.default)
        self._restraint = Restraint(learnt.flows)
        self._unused = UnusedWords(learnt.flows, learnt.answers, learnt.extractor)
        self._validation = Validation(
            learnt.flows, domain.slot_types, learnt.extractor, domain.config.command_flows
        )

    def _read_context(self, state: DialogueState, turn: TurnContext) -> NluContext:
        separators = self._separators
        if turn.locale is not None:
            separators = separators_of(turn.locale, self._domain.config.language.default)
        return read_nlu_context(state, turn.local_now, separators)

    async def think(
        self,
        text: str,
        state: DialogueState,
        turn: TurnContext,
        call: CallContext | None = None,
        *,
        only_sure: bool = False,
    ) -> Understanding:
        """Interpret a message: ask the NLU components in order until an interpretation is final.

        `call`: the context for model calls. Default: no model call. `only_sure`: True to return `UNKNOWN` for
        messages that need a model.
        """
        context = self._read_context(state, turn)
        recall = partial(recall_for_prompt, turn)
        words = clean(text[:LONGEST_READ])
        message = Message(text, words, self.system1.lexicon.to_english(words), call, recall=recall)
        reading: Reading | None = None
        for reader in self._readers:
            guess = await reader(message if reading is None else replace(message, guess=reading), context)
            reading = guess or reading
            if guess is not None and guess.is_final:
                break
        assert reading is not None, "System 1 must interpret every message"
        reading = self._prefer_possible(reading, context)
        understanding = reading.understanding
        unsure = not reading.is_final and reading.confidence < self._domain.config.thresholds.confident
        if only_sure and self.has_model and unsure:
            understanding = Understanding(MessageKind.UNKNOWN, understanding.source, understanding.text)
        understanding = self._restraint.judge(
            understanding,
            message.english,
            context,
            lambda rest: self.system1.think(rest, context).understanding,
        )
        if message.text == understanding.text != message.english:
            understanding = replace(understanding, text=message.english)
        if len(message.english) > LONGEST_CHECKED and _is_unchecked(understanding, message, context):
            kind, source, why = MessageKind.UNKNOWN, Source.SYSTEM1, Rejection.TOO_LONG
            understanding = Understanding(kind, source, words[:LONGEST_CHECKED], rejection=why)
        if understanding.rejection is not None:
            turn.log.failed_check(MODULE, "prepare", understanding.rejection.value)
        if reading.problem is not None:
            turn.log.degrade(reading.problem)
        checked = self._check(understanding, context, turn)
        if reading.second is not None:
            second, _ = self._validation.validate(reading.second, context)
            checked = checked.with_undecided(second)
            checked = replace(checked, by_model_alone=not checked.agrees_with(second))
        text = checked.text if checked.source is Source.SYSTEM1 else message.english
        is_closed = checked.plain or (reading.is_final and checked.source is Source.SYSTEM1)
        judged = checked if is_closed else self._unused.judge(checked, text, context)
        row = state.find_current_row()
        rows = read_row_question(judged.text, row, state) if row else judged.rows
        judged = replace(judged, cues=find_cues(judged.text), rows=rows)
        return judged if message.english == words else self._quote_as_said(judged, words)

    def _quote_as_said(self, understood: Understanding, text: str) -> Understanding:
        """Replace English quotes in an interpretation with the user's own words."""
        quote = partial(self.system1.lexicon.as_said, text=text)
        return replace(
            understood,
            not_understood=tuple(map(quote, understood.not_understood)),
            assumed=tuple(one if isinstance(one, str) else one.quoting(quote) for one in understood.assumed),
            later=quote(understood.later),
        )

    def react(self, action: Action, state: DialogueState, turn: TurnContext) -> Understanding:
        """Interpret an action. Raises InvalidInput if the action is invalid."""
        context = self._read_context(state, turn)
        return self._check(react(action, context, self.system1.flows), context, turn)

    async def contemplate(
        self,
        text: str,
        state: DialogueState,
        turn: TurnContext,
        flow: FlowSpec,
        evidence: JsonObject,
        call: CallContext | None = None,
    ) -> Understanding:
        """Find another flow for a request after `flow` has failed (NL-5).

        `text`: the request, or an empty string for the user's previous message. `evidence`: category, message,
        slots and ambiguity metadata. `call`: the context for model calls. Default: no model call.
        """
        context = self._read_context(state, turn)
        question = state.ambiguity.current
        known: JsonObject = {**({"asked": question.words} if question else {}), **evidence}
        request = FailedRequest(self.system1.lexicon.to_english(clean(text or context.previous)), flow, known)
        asker = self._asker
        if asker is not None and asker.available and call is not None:
            flows, assistant = self.system1.flows, self._setup.assistant
            try:
                found = await reroute_by_model(request, asker, flows, assistant, context, call)
                return self._check(found, context, turn)
            except MODEL_FAILURES as error:
                turn.log.failed_check(MODULE, "contemplate", str(error))
                turn.log.degrade(error.code)
        return self._check(reroute(request, self.system1, context), context, turn)

    async def find_values(
        self,
        flow: BaseFlow,
        slots: Sequence[SlotSpec],
        turn: TurnContext,
        passages: Sequence[str] = (),
    ) -> dict[str, Mention]:
        """Find slot values in the conversation and in document passages (PX-4).

        Return an empty dictionary if no model answers.
        """
        asker = self._asker
        if asker is None or not asker.available or not slots:
            return {}
        context = self._read_context(turn.state, turn)
        try:
            wanted = " ".join((turn.text, flow.title, *(slot.name.replace("_", " ") for slot in slots)))
            notes = [*await recall_for_prompt(turn, wanted), *passages]
            found = await ask_values(asker, turn.text, flow, slots, context, turn.call, notes)
        except MODEL_FAILURES as error:
            turn.log.failed_check(MODULE, "slot_fill", f"{error.code}: {error}", flow.flow_id)
            return {}
        mentions, problems = self._validation.ground_values(found, flow.spec, context)
        for problem in problems:
            turn.log.failed_check(MODULE, "validate", problem, flow.flow_id)
        return mentions

    def ground(self, flow: type[BaseFlow], values: Mapping[str, Json], now: float) -> JsonObject:
        """Return the valid values for a flow's slots, without ambiguous values. `now`: Unix seconds."""
        mentions = {name: Mention(value, str(value)) for name, value in values.items() if value is not None}
        grounded, _ = self._validation.ground_values(mentions, flow.spec, NluContext(today=day_of(now)))
        return {name: mention.value for name, mention in grounded.items() if mention.value is not None}

    def _prefer_possible(self, reading: Reading, context: NluContext) -> Reading:
        """Return `reading`, or the local classifier's interpretation if the model's flow or task doesn't exist."""
        second = reading.second
        if second is None:
            return reading
        checked, _ = self._validation.validate(reading.understanding, context)
        empty = not (context.tasks or context.completed or context.question.is_open)
        needs_more = reading.understanding.kind is MessageKind.TASK or (
            empty and checked.kind in _ABOUT_SOMETHING
        )
        if checked.flows or not needs_more or second.kind is checked.kind:
            return reading
        return Reading(second, is_final=False, problem=ModelOutputInvalid.code)

    def _check(self, understanding: Understanding, context: NluContext, turn: TurnContext) -> Understanding:
        checked, problems = self._validation.validate(understanding, context)
        for problem in problems:
            turn.log.failed_check(MODULE, "validate", problem)
        return checked


def _is_unchecked(understanding: Understanding, message: Message, context: NluContext) -> bool:
    """Return whether a message is so long that its words aren't checked, and only the local classifier read it.

    An answer that is free text may be long.
    """
    is_text = context.asks_for_text and understanding.kind is MessageKind.SLOT_VALUE
    is_long = not is_text and len(tokenize(message.english).words) > LONGEST_CHECKED
    return is_long and understanding.source is Source.SYSTEM1
