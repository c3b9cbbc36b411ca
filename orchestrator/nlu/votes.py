"""Letting several models vote on one message, in rounds that widen only on disagreement (NL-3).

Knows votes, not models: each voter is a function that understands the message or fails.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Understanding
from orchestrator.nlu.protocol import Vote
from orchestrator.ports.language_model import MODEL_FAILURES
from orchestrator.types import Dact

ROUNDS = (2, 4, 5)
Voter = Callable[[], Awaitable[Understanding]]


async def elect(voters: Sequence[Voter], rounds: Sequence[int] = ROUNDS) -> tuple[Understanding | None, Vote]:
    """Ask the voters of each round in parallel until one opinion has the majority of those heard.

    In the first round all have to agree. A voter that fails is left out. None: there is no majority.
    """
    heard: list[Understanding] = []
    asked = held = 0
    winner: Understanding | None = None
    for size in rounds:
        batch = voters[asked:size]
        if winner is not None or not batch:
            break
        held += 1
        asked += len(batch)
        results = await asyncio.gather(*(_ask(voter) for voter in batch))
        heard += [result for result in results if result is not None]
        winner = majority(heard, unanimous=held == 1)
    if winner is None and len(heard) == 1:
        winner = heard[0]
    return winner, Vote(len(heard), asked - len(heard), held)


async def _ask(voter: Voter) -> Understanding | None:
    """Ask for one vote; the Prompt Engineer has recorded why a call failed."""
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
    """Make one understanding of several that agree: mean scores, and the values that most of them found."""
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
