"""RS-4, RT-8: long answers are streamed while a model writes them, and stay the same after a crash."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from orchestrator.runtime.journal import Journal
from orchestrator.turns.event import Event
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.scripted_model import Answer, Computed, Reply, Request
from tests.integration.models.staging import Stage, rules, staged

ALWAYS = 1
"""A threshold that every answer exceeds."""
BOOK = "Book a flight from Oslo to Madrid tomorrow"


@dataclass
class Listened(Stage):
    """A travel domain with answers rephrased by a scripted model. `heard`: live events."""

    heard: list[Event] = field(default_factory=list[Event])

    @property
    def tokens(self) -> list[tuple[int, str]]:
        return [(e.payload["offset"], e.payload["text"]) for e in self.heard if e.type == "token"]

    @property
    def text(self) -> str:
        """Return the text of a client that has received all events."""
        shown = ""
        for offset, piece in self.tokens:
            shown = shown[:offset] + piece
        return shown

    async def book(self) -> dict[str, Any]:
        talk = self.simulator.converse()
        await talk.say(BOOK)
        async with self.listening(talk.session_id):
            return await talk.say("yes")

    @asynccontextmanager
    async def listening(self, session_id: SessionId):
        async with self.simulator.live.listen(session_id) as events:

            async def hear() -> None:
                async for event in events:
                    self.heard.append(event)

            task = asyncio.create_task(hear())
            try:
                yield
                await asyncio.sleep(0)
            finally:
                task.cancel()


@asynccontextmanager
async def listened(reply: Reply, *, threshold: int = ALWAYS) -> AsyncIterator[Listened]:
    sections = {
        "generation": {"naturalize": "auto", "fewest_words": 0},
        "nlu": {"mode": "system1"},
        "thresholds": {"stream_threshold_tokens": threshold},
    }
    async with staged(rules(res_naturalize=reply), **sections) as stage:
        yield Listened(stage.model, stage.simulator)


def rewrite(before: str = "Wonderful news! ", after: str = "", **how: Any) -> Reply:
    def make(request: Request) -> Reply:
        return Answer(text=f"{before}{request.data['draft']}{after}", **how)

    return Computed(make)


async def test_a_long_answer_is_told_piece_by_piece() -> None:
    async with listened(rewrite(piece_delay_s=0.01)) as stage:
        turn = await stage.book()

    assert stage.model.requests[0].body["stream"] is True
    assert turn["properties"]["streamed"] is True
    assert len(stage.tokens) > 3
    assert stage.tokens[0][0] == 0
    assert turn["reply"].startswith(stage.text)
    assert len(stage.text) > len(turn["reply"]) / 2


async def test_a_short_answer_arrives_whole() -> None:
    async with listened(rewrite(), threshold=500) as stage:
        turn = await stage.book()

    assert not stage.model.requests[0].body.get("stream")
    assert (stage.tokens, turn["properties"]["streamed"]) == ([], False)
    assert turn["properties"]["naturalized"] is True


async def test_what_the_model_invents_is_never_told() -> None:
    """RS-3: the correct beginning was streamed, and is retracted."""
    async with listened(
        rewrite(before="Good news. ", after=" Call 555-0100 in Paris now, or else.")
    ) as stage:
        turn = await stage.book()

    assert "555" not in "".join(text for _, text in stage.tokens)
    assert stage.tokens[-1] == (0, "")
    assert turn["reply"].startswith("Booked.")
    assert "555-0100" in stage.checks("naturalize")[0]


async def test_an_answer_that_breaks_off_gives_way_to_the_template() -> None:
    async with listened(rewrite(break_after=8)) as stage:
        turn = await stage.book()

    assert turn["reply"].startswith("Booked.")
    assert stage.text == ""
    assert len(stage.model.requests) == 1


async def test_after_a_crash_the_answer_is_the_journals() -> None:
    """RT-8: no second call, the same words, no repeated events."""
    async with listened(rewrite()) as stage:
        talk = stage.simulator.converse()
        await talk.say(BOOK)
        store, agent = stage.simulator.store, stage.simulator.agent
        assert agent is not None
        await MemoryInbox(store).submit(Submission(talk.session_id, TurnInput(text="yes"), DEFAULT_TENANT))
        lane, replies, heard = MemoryLane(store), [], []
        for _ in range(2):
            lease = await lane.claim(talk.session_id)
            assert lease is not None
            async with stage.listening(talk.session_id):
                commit = await agent.run_turn(lease, lease.work, Journal(lane, lease, lease.work))
            replies.append(commit.result["reply"])
            heard.append(len(stage.tokens))
            await lane.abandon(lease, error="the worker was killed")

    assert replies[0] == replies[1]
    assert replies[0].startswith("Wonderful news!")
    assert len(stage.model.requests_for("res_naturalize")) == 1
    assert heard[0] == heard[1] > 0
