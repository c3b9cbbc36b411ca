"""NLU: from what a user says or clicks to an understanding, checked and ready for the Agent (NL-1 … NL-7).

One instance per domain and process; trained when it is made. It changes no state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from orchestrator.context import TurnLog
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Mention, Understanding
from orchestrator.domain.model import Domain
from orchestrator.models.calling import CallContext
from orchestrator.nlu import contemplate, fill, think
from orchestrator.nlu.nlu_context import Situation, day_of, read_situation
from orchestrator.nlu.prepare import Preparation, Prepared
from orchestrator.nlu.readers.actions import Action, react
from orchestrator.nlu.readers.commands import Commands
from orchestrator.nlu.readers.plan_changes import read_plan_words
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.readers.system2 import Asker
from orchestrator.nlu.text import clean
from orchestrator.nlu.validate import Validated, Validation
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.telemetry import SignalType
from orchestrator.types import Dact, Json, JsonObject

MODULE = "nlu"


class Surroundings(Protocol):
    """What NLU reads of the world of a turn. `now`: unix seconds."""

    @property
    def now(self) -> float: ...

    @property
    def text(self) -> str: ...

    @property
    def log(self) -> TurnLog: ...


class NLU:
    """Understands the messages and actions of one domain's sessions."""

    def __init__(
        self,
        domain: Domain,
        askers: Sequence[Asker] = (),
        *,
        system1: System1 | None = None,
        development: bool = False,
    ) -> None:
        """`askers`: Prompt Engineers, one, or several to vote; none means System 1 alone."""
        config = domain.config
        self.system1 = system1 or System1.for_domain(domain)
        self._askers = askers
        answers = {answer.name: answer for answer in domain.answers}
        commands = Commands.compile(config.commands, self.system1.flows, answers, development=development)
        self._preparation = Preparation(config.guardrails, config.language.supported, commands)
        self._validation = Validation(self.system1.flows, domain.slot_types, self.system1.extractor)
        assistant = f"{config.persona.name}. {config.description}".strip()
        self._policy = think.Policy(
            config.nlu.mode, config.thresholds.confident, assistant, config.nlu.voters.rounds
        )
        self._all = {flow.spec.dact: flow.spec for flow in domain.flows.values()}
        self._domain = domain

    async def think(
        self, text: str, state: DialogueState, context: Surroundings, call: CallContext | None = None
    ) -> Understanding:
        """Understand a message. `call`: for whom a model may be asked; without it none is."""
        situation = read_situation(state, context.now)
        prepared = self._preparation.prepare(text, situation)
        if not isinstance(prepared, Prepared):
            if prepared.rejection is not None:
                context.log.failed_check(MODULE, "prepare", prepared.rejection.value)
            return self._check(prepared, situation, context)
        about_plan = read_plan_words(prepared.text, state)
        if about_plan is not None:
            return self._check(about_plan, situation, context)
        thought = await think.think(
            prepared.text, self.system1, self._policy, self._askers, state, situation, call
        )
        if thought.election is not None:
            election = thought.election
            context.log.signal(
                MODULE, SignalType.VOTE, votes=election.votes, failed=election.failed, rounds=election.rounds
            )
        if thought.problem is not None:
            context.log.degrade(thought.problem)
        return self._check(thought.understanding, situation, context)

    def react(self, action: Action, state: DialogueState, context: Surroundings) -> Understanding:
        """Understand a click. Raises InvalidInput for an action that is none."""
        situation = read_situation(state, context.now)
        return self._check(react(action, situation, self.system1.flows), situation, context)

    async def contemplate(
        self,
        state: DialogueState,
        context: Surroundings,
        excluded: Collection[str],
        *,
        failed: str | None = None,
        evidence: JsonObject | None = None,
        text: str = "",
        call: CallContext | None = None,
    ) -> Understanding:
        """Find another flow for a request after one failed (NL-5).

        Args:
            state: with the failed flow still on top, or already gone.
            context: of the turn.
            excluded: dacts that are not tried again; the failed one is always among them.
            failed: the dact that failed; the top flow's when it is left out.
            evidence: what is known of the failure: category, message, the ambiguity's metadata, slots.
            text: the request; the last thing the user said when it is left out.
            call: for whom a model may be asked; without it none is.
        """
        situation = read_situation(state, context.now)
        spec = self._failed_flow(failed, situation)
        banned = {*excluded, *((spec.dact,) if spec else ())}
        words = clean(text or situation.previous)
        known: JsonObject = {**_question_metadata(state), **(evidence or {})}
        usable = [asker for asker in self._askers if asker.available]
        if self._policy.mode != "system1" and usable and call is not None:
            left = contemplate.narrow(spec, self.system1.flows, banned)
            what: JsonObject = {"dact": spec.dact if spec else None, "slots": dict(situation.values)}
            try:
                found = await contemplate.ask_model(
                    usable[0], words, left, self._policy.assistant, state, situation, what, known, call
                )
                return self._check(found, situation, context)
            except MODEL_FAILURES as error:
                context.log.failed_check(MODULE, "contemplate", str(error))
                context.log.degrade(error.code)
        found = contemplate.reroute(words, self.system1, situation, spec, banned, known)
        return self._check(found, situation, context)

    @property
    def has_model(self) -> bool:
        """Whether there is a model that may be asked, though it may be down."""
        return bool(self._askers) and self._policy.mode != "system1"

    async def find_values(
        self,
        flow: BaseFlow,
        slots: Sequence[SlotSpec],
        state: DialogueState,
        context: Surroundings,
        call: CallContext,
    ) -> dict[str, Mention]:
        """Look for the values of some slots in the conversation; nothing when no model answers (PX-4)."""
        asker = next((asker for asker in self._askers if asker.available), None)
        if asker is None or not slots:
            return {}
        situation = read_situation(state, context.now)
        try:
            found = await fill.ask_model(asker, context.text, flow, slots, state, situation, call)
        except MODEL_FAILURES as error:
            context.log.failed_check(MODULE, "slot_fill", f"{error.code}: {error}", flow.flow_id)
            return {}
        mentions, problems = self._validation.ground_values(found, flow.spec, situation)
        for problem in problems:
            context.log.failed_check(MODULE, "validate", problem, flow.flow_id)
        return mentions

    def ground(self, flow: type[BaseFlow], values: Mapping[str, Json], now: float) -> JsonObject:
        """The values that the words for some slots of a flow mean; what means none, or several, is left out."""
        mentions = {name: Mention(value, str(value)) for name, value in values.items() if value is not None}
        grounded, _ = self._validation.ground_values(mentions, flow.spec, Situation(today=day_of(now)))
        return {name: mention.value for name, mention in grounded.items() if mention.value is not None}

    def _failed_flow(self, dact: str | None, situation: Situation) -> FlowSpec | None:
        return self._all.get(Dact(dact)) if dact else situation.active

    def _check(
        self, understanding: Understanding, situation: Situation, context: Surroundings
    ) -> Understanding:
        validated: Validated = self._validation.validate(understanding, situation)
        for problem in validated.problems:
            context.log.failed_check(MODULE, "validate", problem)
        return validated.understanding


def _question_metadata(state: DialogueState) -> JsonObject:
    current = state.ambiguity.current
    return {} if current is None else dict(current.metadata)
