"""Information from early in a long conversation is used later, and prompts do not grow with it (CO-1, CO-4)."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from orchestrator.bootstrap import Ports
from orchestrator.ports.memory.preferences import Source
from orchestrator.turns.turn import TurnKind
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, UserId, new_id
from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule, Script, ScriptedModel
from tests.conversation import say
from tests.integration.chaos.fleet import fleet
from tests.integration.internal.test_memory_flows import eventually

TOLD_AT = 5
LENGTHS = [30, pytest.param(290, marks=pytest.mark.slow)]
QUEUES = "turns,submissions,internal,urgent"


class Talk:
    """A user's conversation, turn by turn."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.session_id, self.user = SessionId(new_id("session")), UserId(new_id("user"))
        self.turn = 0

    async def say(self, text: str) -> JsonObject:
        self.turn += 1
        return await say(self.ports, self.session_id, text, "travel", user_id=self.user)

    async def pass_time(self, until: int) -> None:
        """Send other messages up to a turn."""
        while self.turn < until:
            await self.say(f"list my bookings please, number {self.turn}")

    async def wait_for_summary(self) -> None:
        async def summarised() -> bool | None:
            session = await self.ports.stores.sessions.get(DEFAULT_TENANT, self.session_id)
            summary = (session.state or {}).get("summary")
            return True if summary and self.turn - summary["through_turn"] <= 20 else None

        await eventually("a summary", summarised)

    async def wait_for_what_is_noticed(self) -> None:
        """Wait for a memory of something mentioned, which appears after a summary, unlike an explicit request."""

        async def noticed() -> bool | None:
            known = await self.ports.stores.preferences.of_user(DEFAULT_TENANT, self.user)
            return True if any(one.source is Source.INFERRED for one in known) else None

        await eventually("something that was noticed", noticed)


@pytest.mark.parametrize("length", LENGTHS)
async def test_what_is_told_early_serves_late_without_a_model(
    database_url: str, redis_url: str, tmp_path: Path, length: int
) -> None:
    """IF-12, RT-4: a flow proposes a summary after twenty turns, and the lane applies it. A rule fills its slot; a
    mentioned fact is remembered and returned on request.
    """
    with fleet(database_url, redis_url, tmp_path, {"PARLEY_DOMAIN": "travel"}) as crew:
        crew.start(1, application="workers.app", queues=QUEUES, threads=4)
        async with crew.ports() as ports:
            talk = Talk(ports)
            await talk.pass_time(TOLD_AT - 1)
            await talk.say("I always fly from Bergen")
            await talk.say("My wife is allergic to nuts.")
            await talk.pass_time(length - 2)
            await talk.wait_for_what_is_noticed()
            known = await talk.say("what do you know about me?")
            booked = await talk.say("book a flight to Rome tomorrow")
            state = (await ports.stores.sessions.get(DEFAULT_TENANT, talk.session_id)).state or {}
            turns = await ports.stores.inbox.turns(DEFAULT_TENANT, session_id=talk.session_id)

    decided = [turn.result or {} for turn in turns if turn.input.kind is TurnKind.SYSTEM]
    assert {one["proposal"]["decision"] for one in decided} <= {"applied", "rebased"}
    assert state["summary"]["through_turn"] >= 20
    assert "bookings" in state["summary"]["text"]
    assert talk.turn == length
    assert "My wife is allergic to nuts. (noticed in our conversation on " in known["reply"]
    assert "I'll use Bergen (BGO) as the origin (you said “I always fly from Bergen” on " in booked["reply"]


REMEMBERED_BYTES = 1_000
"""Maximum growth of a prompt after the second turn: latest messages, a summary, memories."""


def understand(request: Request) -> Reply:
    """Interpret who lives where, if the prompt contains it."""
    text = str(request.data["utterance"])
    if "Clara lives" not in text or "take" not in text:
        return Answer(json={"kind": "chitchat", "flows": [], "slots": {}})
    found = re.search(r"Clara lives in (\w+)", orjson.dumps(request.data["history"]).decode())
    slots = {"destination": "Rome", **({"origin": found[1]} if found else {})}
    return Answer(json={"kind": "task", "flows": [{"dact": "book_flight", "score": 0.9}], "slots": slots})


def summarize(request: Request) -> Reply:
    """Summarize facts about Clara, like a model that recognizes important facts."""
    lines = [str(request.data["summary"]), *(str(line["text"]) for line in request.data["turns"])]
    kept = dict.fromkeys(s for line in lines for s in re.findall(r"[^.]*Clara lives in \w+", line))
    return Answer(json={"summary": " ".join(("They look at bookings.", *kept)), "findings": []})


@pytest.mark.parametrize("length", LENGTHS)
async def test_a_summary_serves_late_and_prompts_do_not_grow(
    database_url: str, redis_url: str, tmp_path: Path, length: int
) -> None:
    rules = (
        Rule(prompt="nlu_think", replies=(Computed(understand),)),
        Rule(prompt="memory_summarize", replies=(Computed(summarize),)),
        Rule(prompt="slot_fill", replies=(Answer(json={"slots": {}}),)),
        Rule(prompt="res_naturalize", replies=(Computed(lambda asked: Answer(text=asked.data["draft"])),)),
    )
    with ScriptedModel(Script(rules=rules)) as model:
        environment = {"PARLEY_DOMAIN": "travel", "OPENAI_BASE_URL": model.base_url}
        with fleet(database_url, redis_url, tmp_path, environment) as crew:
            crew.start(1, application="workers.app", queues=QUEUES, threads=4)
            async with crew.ports(OPENAI_BASE_URL=model.base_url) as ports:
                talk = Talk(ports)
                await talk.pass_time(TOLD_AT - 1)
                await talk.say("our daughter Clara lives in Bergen")
                await talk.pass_time(24)
                await talk.wait_for_summary()
                await talk.say("and how is the weather where Clara lives?")
                await talk.pass_time(length - 1)
                await talk.wait_for_summary()
                late = await talk.say("please take us to Rome, from where Clara lives")
        sizes = [len(orjson.dumps(asked.body)) for asked in model.requests_for("nlu_think")]

    assert talk.turn == length
    assert late["flows"][-1]["slots"]["origin"] == "BGO"
    print(f"prompts of nlu_think over {length} turns: {sizes} bytes")
    assert max(sizes) - sizes[1] < REMEMBERED_BYTES, "prompts grow with the conversation"
