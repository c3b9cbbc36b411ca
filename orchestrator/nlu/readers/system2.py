"""The language model (System 2) as an NLU component, for messages without a final interpretation (NL-2)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.errors import CircuitOpen
from orchestrator.nlu.model_calls import ask_understanding, choose_likely
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Asker, Message, Reader, Reading
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.validate import requestable_flows
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.types import Dact

NEVER = "system1"


@dataclass(frozen=True, slots=True)
class System2:
    asker: Asker
    flows: Sequence[FlowSpec]
    rate: Callable[[str, NluContext], Mapping[Dact, float]]
    assistant: str

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Ask the model. If it is unavailable or fails, return the earlier interpretation with the problem.

        Return None if no model may be called, or if there is no earlier interpretation.
        """
        call, guess = message.call, message.guess
        if call is None or guess is None:
            return None
        if not self.asker.available:
            return replace(guess, problem=CircuitOpen.code)
        remembered = [] if message.recall is None else await message.recall(message.text)
        likely = choose_likely(self.flows, self.rate(message.english, context), context)
        try:
            understood = await ask_understanding(
                self.asker,
                message.text,
                self.flows,
                self.assistant,
                context,
                call,
                likely=likely,
                remembered=remembered,
            )
            return Reading(understood, second=guess.understanding)
        except MODEL_FAILURES as error:
            return replace(guess, problem=error.code)


def make(setup: ReaderSetup) -> Reader | None:
    config = setup.domain.config
    if config.nlu.mode == NEVER or setup.asker is None:
        return None
    requestable = requestable_flows(setup.system1.flows, config.command_flows)
    return System2(setup.asker, requestable, setup.system1.opinion, setup.assistant).read
