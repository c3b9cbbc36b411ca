"""Several models vote on one message, in rounds that widen only on disagreement (NL-3).

Knows votes, not models: each voter is a function that understands the message or fails.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.errors import CircuitOpen, ModelUnavailable
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.readers.system2 import Asker, ask_model
from orchestrator.ports.models import MODEL_FAILURES
from orchestrator.types import Dact

ROUNDS = (2, 4, 5)
Voter = Callable[[], Awaitable[Understanding]]


@dataclass(frozen=True, slots=True)
class Election:
    """`winner` is None without a majority. `votes` counts those heard, `failed` those left out."""

    winner: Understanding | None
    votes: int
    failed: int
    rounds: int


async def elect(voters: Sequence[Voter], rounds: Sequence[int] = ROUNDS) -> Election:
    """Hear the voters of each round in parallel until one opinion has the majority of those heard.

    In the first round all have to agree. A voter that fails is left out.
    """
    heard: list[Understanding] = []
    asked = failed = held = 0
    for size in rounds:
        batch = voters[asked:size]
        if not batch:
            break
        held += 1
        asked += len(batch)
        results = await asyncio.gather(*(_hear(voter) for voter in batch))
        heard += [result for result in results if result is not None]
        failed += sum(1 for result in results if result is None)
        winner = majority(heard, unanimous=held == 1)
        if winner is not None:
            return Election(winner, len(heard), failed, held)
    winner = heard[0] if len(heard) == 1 else None
    return Election(winner, len(heard), failed, held)


async def _hear(voter: Voter) -> Understanding | None:
    """Hear one vote; the Prompt Engineer has recorded why a call failed."""
    try:
        return await voter()
    except MODEL_FAILURES:
        return None


def majority(votes: Sequence[Understanding], *, unanimous: bool) -> Understanding | None:
    """Join the votes of those who agree on kind and best flow, if they are more than half of at least two."""
    if len(votes) < 2:
        return None
    counted = Counter(_opinion(vote) for vote in votes)
    opinion, count = counted.most_common(1)[0]
    if count * 2 <= len(votes) or (unanimous and count < len(votes)):
        return None
    return join([vote for vote in votes if _opinion(vote) == opinion])


def _opinion(vote: Understanding) -> tuple[str, str]:
    best = vote.flows[0].dact if vote.kind is MessageKind.TASK and vote.flows else ""
    return vote.kind.value, best


def join(votes: Sequence[Understanding]) -> Understanding:
    """One understanding of several that agree: mean scores, and the values that most of them found."""
    scores: dict[Dact, float] = {}
    for vote in votes:
        for flow in vote.flows:
            scores[flow.dact] = scores.get(flow.dact, 0.0) + flow.score / len(votes)
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:3]
    return replace(votes[0], flows=tuple(FlowScore(*item) for item in best), slots=_join_slots(votes))


def _join_slots(votes: Sequence[Understanding]) -> dict[str, Mention]:
    joined: dict[str, Mention] = {}
    for name in dict.fromkeys(name for vote in votes for name in vote.slots):
        mentions = [vote.slots[name] for vote in votes if name in vote.slots]
        counted = Counter(repr(mention.value) for mention in mentions)
        value, count = counted.most_common(1)[0]
        if count * 2 > len(votes):
            joined[name] = next(mention for mention in mentions if repr(mention.value) == value)
    return joined


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
