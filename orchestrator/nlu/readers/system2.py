"""System 2: asks a model, or lets several vote, where System 1 is unsure (NL-2, NL-3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import MessageKind, Source, Understanding
from orchestrator.errors import CircuitOpen, ModelUnavailable
from orchestrator.models.calling import CallContext
from orchestrator.nlu.model_calls import ask_understanding
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Asker, Message, Reader, ReaderSetup, Reading
from orchestrator.nlu.votes import Voter, elect
from orchestrator.ports.language_model import MODEL_FAILURES

ALWAYS = "system2"
NEVER = "system1"


@dataclass(frozen=True, slots=True)
class System2:
    """`mode`: system2, or auto: only below `confident`. `askers`: one, or several to vote in `rounds`."""

    askers: Sequence[Asker]
    flows: Sequence[FlowSpec]
    assistant: str
    mode: str
    confident: float
    rounds: Sequence[int]

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Ask the models that can be asked; without any, what System 1 thought is as good as it gets."""
        call, guess = message.call, message.guess
        if call is None or guess is None or (self.mode != ALWAYS and self._is_sure(guess)):
            return None
        usable = [asker for asker in self.askers if asker.available]
        if not usable:
            return _degraded(guess, CircuitOpen.code)
        remembered = [] if message.recall is None else await message.recall(message.text)
        voters = [self._voter(asker, message.text, context, call, remembered) for asker in usable]
        if len(voters) > 1:
            return await self._hold_vote(voters, message.text, guess)
        try:
            return Reading(await voters[0](), second=guess.understanding)
        except MODEL_FAILURES as error:
            return _degraded(guess, error.code)

    def _is_sure(self, guess: Reading) -> bool:
        return guess.confidence >= self.confident and guess.understanding.kind is not MessageKind.UNKNOWN

    def _voter(
        self, asker: Asker, text: str, context: NluContext, call: CallContext, remembered: Sequence[str]
    ) -> Voter:
        return lambda: ask_understanding(asker, text, self.flows, self.assistant, context, call, remembered)

    async def _hold_vote(self, voters: Sequence[Voter], text: str, guess: Reading) -> Reading:
        winner, vote = await elect(voters, self.rounds)
        if not vote.votes:
            return replace(_degraded(guess, ModelUnavailable.code), vote=vote)
        understood = winner or Understanding(MessageKind.UNKNOWN, Source.SYSTEM2, text)
        return Reading(understood, vote=vote, second=guess.understanding)


def _degraded(guess: Reading, problem: str) -> Reading:
    return Reading(replace(guess.understanding, degraded=True), problem=problem)


def make(setup: ReaderSetup) -> Reader | None:
    config = setup.domain.config
    if config.nlu.mode == NEVER or not setup.askers:
        return None
    flows, confident = list(setup.flows.values()), config.thresholds.confident
    rounds = config.nlu.voters.rounds
    return System2(setup.askers, flows, setup.assistant, config.nlu.mode, confident, rounds).read
