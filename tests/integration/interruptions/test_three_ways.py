"""The same messages over HTTP, WebSocket and Celery, on real workers (RT-5).

No message or session specifies a policy, so each is interpreted.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from celery import Celery

from orchestrator.turns.turn import FINISHED, TurnRecord
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.celery_clients import celery_client, submit_turn
from tests.integration.chaos.test_stopped_workers import Setting
from tests.integration.gateway import House, open_house
from tests.integration.interruptions.test_random_moments import WITHIN_S, Outside, mailroom, outcome_of
from tests.unit.interruptions.judge import ASK, SAID, find_faults

AT_ONCE = 4

Say: TypeAlias = Callable[[str], Coroutine[Any, Any, tuple[str, str]]]
"""A function that sends a message, and returns the turn with the text of its answer."""


class Held(Outside):
    """A service that stops counting a session's letters until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.call_s = 0.0
        self.let_go: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def serve(self, path: str, body: dict[str, Any]) -> Any:
        answer = super().serve(path, body)
        assert self.let_go[body["session"]].wait(WITHIN_S)
        return answer


@asynccontextmanager
async def by_http(house: House, session: str) -> AsyncIterator[Say]:
    async def say(text: str) -> tuple[str, str]:
        turn = (await house.http.post(f"/v1/sessions/{session}/turns", json={"text": text})).json()
        while turn["status"] not in FINISHED:
            turn = (await house.http.get(f"/v1/turns/{turn['turn_id']}", params={"wait": 5})).json()
        return turn["turn_id"], turn["reply"]

    made = {"session_id": session, "domain": "mailroom"}
    assert (await house.http.post("/v1/sessions", json=made)).status_code == 201
    yield say


@asynccontextmanager
async def by_socket(house: House, session: str) -> AsyncIterator[Say]:
    """Receive answers as they arrive, each with its turn."""
    made = {"session_id": session, "domain": "mailroom"}
    assert (await house.http.post("/v1/sessions", json=made)).status_code == 201
    asked = dict[str, asyncio.Future[tuple[str, str]]]()

    async def say(text: str) -> tuple[str, str]:
        asked[text] = asyncio.get_running_loop().create_future()
        await socket.send(json.dumps({"currentMessage": text}))
        return await asked[text]

    async def listen() -> None:
        async for message in socket:
            told = json.loads(message)
            if told["type"] in {"text", "error"}:  # of a stopped turn
                turn = await house.ports.stores.inbox.turn(DEFAULT_TENANT, told["turn_id"])
                asked[turn.input.text or ""].set_result((told["turn_id"], told["text"]))

    async with house.socket(session) as socket:
        listener = asyncio.create_task(listen())
        yield say
        listener.cancel()


@asynccontextmanager
async def by_celery(app: Celery, _house: House, session: str) -> AsyncIterator[Say]:
    async def say(text: str) -> tuple[str, str]:
        sent = submit_turn(app, session, text, domain="mailroom", wait=WITHIN_S)
        turn = await asyncio.to_thread(sent.get, timeout=WITHIN_S, interval=0.05)
        return turn["turn_id"], turn["reply"]

    yield say


async def talk(
    way: Callable[[House, str], AbstractAsyncContextManager[Say]],
    house: House,
    setting: Setting,
    world: Held,
    kind: str,
    session: str,
) -> list[str]:
    """Interrupt a turn while it counts letters, and return both answers."""

    async def accepted(number: int) -> list[TurnRecord]:
        while (
            len(turns := await house.ports.stores.inbox.turns(DEFAULT_TENANT, session_id=SessionId(session)))
            < number
        ):
            await asyncio.sleep(0.05)
        return turns

    async with way(house, session) as say:
        first = asyncio.create_task(say(ASK))
        await accepted(1)
        while (session, "letters") not in world.reached:
            await asyncio.sleep(0.05)
        second = asyncio.create_task(say(SAID[kind][0]))
        await accepted(2)
        world.let_go[session].set()
        told = dict(await asyncio.gather(first, second))
    turns = [await house.ports.stores.inbox.turn(DEFAULT_TENANT, turn_id) for turn_id in told]  # type: ignore[arg-type]
    assert find_faults(await outcome_of(setting, kind, session, *turns)) == [], (session, told)
    return list(told.values())


@pytest.mark.timeout(600)
async def test_each_kind_is_answered_in_the_same_words_over_each_way(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    world, limit = Held(), asyncio.Semaphore(AT_ONCE)
    async with mailroom(database_url, redis_url, tmp_path, world) as setting:
        served = open_house(database_url, redis_url, domain=str(tmp_path / "mailroom"))
        with celery_client(redis_url) as app:
            ways = {"http": by_http, "socket": by_socket, "celery": partial(by_celery, app)}

            async def one(kind: str, way: str) -> list[str]:
                async with limit:
                    session = f"{kind.replace(' ', '-')}-{way}"
                    return await talk(ways[way], house, setting, world, kind, session)

            async with served as house:
                pairs = [(kind, way) for kind in SAID for way in ways]
                words = dict(zip(pairs, await asyncio.gather(*(one(*pair) for pair in pairs)), strict=True))

    for kind in SAID:
        assert words[kind, "http"] == words[kind, "socket"] == words[kind, "celery"]
    assert len({tuple(answers) for answers in words.values()}) > len(SAID) // 2
