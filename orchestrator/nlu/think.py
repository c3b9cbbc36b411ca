"""Who understands a message: System 1, a model, or several models (NL-2, NL-3).

With no model, or when it is down, System 1 carries on alone and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import MessageKind, Source, Understanding
from orchestrator.errors import CircuitOpen, ModelUnavailable
from orchestrator.nlu.situation import Situation
from orchestrator.nlu.system1 import System1
from orchestrator.nlu.system2 import Asker, ask_model
from orchestrator.nlu.voting import Election, Voter, elect
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.prompting.calling import CallContext


@dataclass(frozen=True, slots=True)
class Policy:
    """`mode`: system1, system2 or auto. `confident`: from here on System 1 decides alone under auto."""

    mode: str
    confident: float
    assistant: str
    rounds: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Thought:
    """`election` tells of the vote, if there was one; `problem` is the error code of a model that failed."""

    understanding: Understanding
    election: Election | None = None
    problem: str | None = None


async def think(
    text: str,
    system1: System1,
    policy: Policy,
    askers: Sequence[Asker],
    state: DialogueState,
    situation: Situation,
    call: CallContext | None,
) -> Thought:
    """Understand a prepared message. `askers`: the models that may be asked; one, or several to vote."""
    first = system1.think(text, situation)
    if policy.mode == "system1" or not askers or call is None:
        return Thought(first.understanding)
    sure = first.confidence >= policy.confident and first.understanding.kind is not MessageKind.UNKNOWN
    if policy.mode == "auto" and sure:
        return Thought(first.understanding)
    usable = [asker for asker in askers if asker.available]
    degraded = Thought(replace(first.understanding, degraded=True), problem=CircuitOpen.code)
    if not usable:
        return degraded
    flows = list(system1.flows.values())

    def ask(asker: Asker) -> Voter:
        return lambda: ask_model(asker, text, flows, policy.assistant, state, situation, call)

    if len(usable) > 1:
        return _count(await elect([ask(asker) for asker in usable], policy.rounds), degraded, text)
    try:
        return Thought(await ask(usable[0])())
    except MODEL_FAILURES as error:
        return replace(degraded, problem=error.code)


def _count(election: Election, degraded: Thought, text: str) -> Thought:
    if election.winner is not None:
        return Thought(election.winner, election)
    if not election.votes:
        return replace(degraded, election=election, problem=ModelUnavailable.code)
    return Thought(Understanding(MessageKind.UNKNOWN, Source.SYSTEM2, text), election)
