"""The life of a preference: learned, used, corrected, forgotten, and deleted everywhere (CO-4, RT-28)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from orchestrator.adapters.postgres.memory.forgetting import PostgresForgetting
from orchestrator.bootstrap import open_lane, open_ports
from orchestrator.dialogue.state import DialogueState
from orchestrator.errors import LaneLost
from orchestrator.memory.forgetting import collect_unwanted
from orchestrator.ports.memory.documents import NewDocument, Owned
from orchestrator.ports.memory.preferences import Preference, PreferenceKind, Source
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.ports.runs.status import RunStatus
from orchestrator.settings import Settings
from orchestrator.turns.lease import ArchivedFlow
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, UserId, new_id
from tests.contract.factories import commit_for, submission, take_turn
from tests.conversation import say
from tests.integration.chaos.fleet import fleet
from tests.integration.internal.test_maintenance import House, spoken
from tests.integration.internal.test_memory_flows import eventually
from tests.integration.internal.test_retention import everything

TRACES = ("prefer aisle", "like the window", "aisle as the seat", "window as the seat")


@pytest.fixture
async def house(database_url: str, redis_url: str) -> AsyncIterator[House]:
    settings = Settings(DATABASE_URL=database_url, REDIS_URL=redis_url)
    async with open_ports(settings) as ports, open_lane(ports) as lane:
        yield House(ports, lane, {"erase_forgotten": {"after_s": 0}})


@pytest.fixture
def anna() -> UserId:
    return UserId(new_id("anna"))


def saying(text: str) -> JsonObject:
    """Return a state in which the user has said something."""
    state = DialogueState.new(SessionId("any"))
    state.begin_turn()
    state.say("user", text)
    return state.serialize()


async def find(house: House, *traces: str) -> list[str]:
    """Return where any of these words is stored."""
    stored = (await everything(house)).items()
    return [f"{trace} in {name}" for name, body in stored for trace in traces if trace.encode() in body]


async def test_a_preference_is_learned_used_corrected_forgotten_and_then_nowhere(
    house: House, tmp_path: Path, anna: UserId
) -> None:
    ports = house.ports
    first, second, other = (SessionId(new_id("session")) for _ in range(3))
    environment = {"PARLEY_DOMAIN": "travel"}
    url, redis = ports.settings.database_url, ports.settings.redis_url
    with fleet(url, redis, tmp_path, environment) as crew:
        crew.start(1, application="workers.app", queues="turns,submissions,internal,urgent", threads=4)
        for line in ("Remember that I prefer aisle seats.", "what do you know about me?"):
            shown = await say(ports, first, line, "travel", user_id=anna)
        for line in ("Book a flight from Oslo to Madrid tomorrow", "yes", "choose a seat"):
            used = await say(ports, second, line, "travel", user_id=anna)
        corrected = await say(ports, second, "remember that I like the window", "travel", user_id=anna)
        again = await say(ports, first, "what do you know about me?", "travel", user_id=anna)
        pad = ports.shared.scratchpad
        await eventually("the notes", lambda: _at_least(house, second, 4))
        told = Entry("look", "turn 1", EntryKind.FINDING, 1.0, text="They like the window seat.")
        await pad.put(DEFAULT_TENANT, second, (told,))
        document = NewDocument(DEFAULT_TENANT, "Anna likes the window, and wrote so.", user_id=anna)
        await ports.context.documents.add(document)
        gone = await say(ports, other, "forget that I like the window", "travel", user_id=anna)

        assert "I prefer aisle seats" in shown["reply"]
        assert "(aisle)" in used["reply"]
        assert "I like the window" in corrected["reply"]
        assert "I like the window" in again["reply"]
        assert "aisle" not in again["reply"]
        assert "I like the window" in gone["reply"]
        assert await find(house, *TRACES)
        [record] = await house.run("erase_forgotten")
        assert (record.status, record.closing) == (RunStatus.DONE, {"erased": 1, "left": 0})
        assert await find(house, *TRACES) == []

        after = await say(ports, first, "what do you know about me?", "travel", user_id=anna)
        assert "anything about you yet" in after["reply"]
        for session_id in (first, second, other):
            session = await ports.stores.sessions.get(DEFAULT_TENANT, session_id)
            rebuilt = await ports.stores.sessions.state_at(DEFAULT_TENANT, session_id, session.epoch)
            assert rebuilt == session.state, "the last state is what its diffs make of it"
    assert [made["seat"][-1] for made in await _bookings(house)] == ["C"], "the seat that was chosen stays"


async def _at_least(house: House, session_id: SessionId, count: int) -> bool | None:
    entries = await house.ports.shared.scratchpad.read(DEFAULT_TENANT, session_id, touch=False)
    return True if len(entries) >= count else None


async def _bookings(house: House) -> list[dict[str, Any]]:
    rows = await house.execute("SELECT document FROM records WHERE collection = 'bookings'")
    return [row[0] for row in rows]


async def test_a_session_at_work_is_left_to_the_next_run(house: House, anna: UserId) -> None:
    session_id = await house.session(saying("Velvet curtains calm me."), user=anna)
    await forget_liking(house, anna, "velvet curtains")
    await house.execute(
        "UPDATE lanes SET lease_owner = 1, lease_until = now() + '1 hour' WHERE session_id = %s", session_id
    )
    [busy] = await house.run("erase_forgotten")
    assert await house.ports.stores.preferences.of_user(DEFAULT_TENANT, anna) == []
    assert await find(house, "elvet curtains")
    await house.execute(
        "UPDATE lanes SET lease_owner = NULL, lease_until = NULL WHERE session_id = %s", session_id
    )
    [free] = await house.run("erase_forgotten")
    [idle] = await house.run("erase_forgotten")

    assert [run.closing for run in (busy, free, idle)] == [
        {"erased": 0, "left": 1},
        {"erased": 1, "left": 0},
        {"erased": 0, "left": 0},
    ]
    assert await find(house, "elvet curtains") == []


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 1)])
async def test_a_worker_forgets_what_it_remembers_of_a_session(
    house: House, anna: UserId, before: int, after: int
) -> None:
    """They are in an earlier diff and in the working state, and other workers ran turns meanwhile."""
    told = [saying("Nothing yet. " * 40) for _ in range(3)]
    for state in told[1:]:
        state["messages"].append({"role": "user", "text": "Velvet curtains calm me.", "turn": 1})
    told[2]["messages"].append({"role": "user", "text": "And now?", "turn": 2})
    session_id = await house.session(*told, user=anna)
    await forget_liking(house, anna, "velvet curtains")
    inbox = house.ports.stores.inbox
    async with open_lane(house.ports) as other:
        for _ in range(before):
            await take_turn(inbox, other, DEFAULT_TENANT, session_id)
        await house.run("erase_forgotten")
        for _ in range(after):
            await take_turn(inbox, other, DEFAULT_TENANT, session_id)
    await inbox.submit(submission(DEFAULT_TENANT, session_id))
    lease = await house.lane.claim(session_id)

    assert lease is not None
    assert lease.present_state is not None
    assert b"Nothing yet." in lease.present_state
    assert b"elvet" not in lease.present_state


async def test_who_waits_for_a_session_meanwhile_takes_it_up_without_them(
    house: House, anna: UserId, database_url: str
) -> None:
    """The state was read before it was rewritten, and its epoch is unchanged."""
    session_id = await house.session(saying("Velvet curtains calm me."), user=anna)
    await house.ports.stores.inbox.submit(submission(DEFAULT_TENANT, session_id))
    forgetting = PostgresForgetting(house.ports.stores.database)

    async with await psycopg.AsyncConnection.connect(database_url) as holder:
        await holder.execute("LOCK TABLE plans")  # so that rewriting takes time and locks the session
        erasing = asyncio.create_task(
            forgetting.take_out(DEFAULT_TENANT, session_id, collect_unwanted([liking("velvet curtains")]))
        )
        await wait_for_locks(house, 1)
        claiming = asyncio.create_task(house.lane.claim(session_id))
        await wait_for_locks(house, 2)
    assert await erasing
    lease = await claiming

    assert lease is not None
    assert lease.present_state is not None
    assert b"elvet" not in lease.present_state


async def wait_for_locks(house: House, count: int) -> None:
    """Wait until this number of transactions of the database wait for locks."""
    waiting = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    async with asyncio.timeout(9):
        while len(await house.execute(waiting)) < count:
            await asyncio.sleep(0.02)


async def test_a_worker_that_was_overtaken_brings_nothing_back(house: House, anna: UserId) -> None:
    session_id = await house.session(saying("Velvet curtains calm me."), user=anna)
    await house.ports.stores.inbox.submit(submission(DEFAULT_TENANT, session_id))
    lease = await house.lane.claim(session_id)
    assert lease is not None
    assert lease.present_state is not None
    late = commit_for(lease, after=orjson.loads(lease.present_state))
    await house.execute(
        "UPDATE lanes SET lease_until = now() - interval '1 s' WHERE session_id = %s", session_id
    )
    await forget_liking(house, anna, "velvet curtains")
    await house.run("erase_forgotten")

    with pytest.raises(LaneLost):
        await house.lane.commit(lease, late)
    assert await find(house, "elvet curtains") == []


async def test_another_users_words_stay(house: House, anna: UserId) -> None:
    theirs = await house.session(saying("Paper lanterns please me."), user="bob")
    own = await house.session(saying("Paper lanterns please me."), user=anna)
    store = house.ports.stores
    await store.preferences.remember(DEFAULT_TENANT, anna, (liking("paper lanterns"),))
    await store.preferences.replace(DEFAULT_TENANT, anna, ())
    [record] = await house.run("erase_forgotten")

    assert record.closing == {"erased": 1, "left": 0}
    assert "Paper lanterns" not in str((await store.sessions.get(DEFAULT_TENANT, own)).state)
    assert "Paper lanterns" in str((await store.sessions.get(DEFAULT_TENANT, theirs)).state)


async def test_what_nobody_s_conversation_forgot_is_taken_out_of_its_branches(house: House) -> None:
    """ST-4: forks share a memory."""
    store, root = house.ports.stores, await house.session(saying("Paper lanterns please me."))
    branch = (await store.sessions.branch(DEFAULT_TENANT, root)).session_id
    owner = UserId(f"session:{root}")
    await store.preferences.remember(DEFAULT_TENANT, owner, (liking("paper lanterns"),))
    await store.preferences.replace(DEFAULT_TENANT, owner, ())
    [record] = await house.run("erase_forgotten")

    assert record.closing == {"erased": 1, "left": 0}
    for session_id in (root, branch):
        assert "Paper lanterns" not in str((await store.sessions.get(DEFAULT_TENANT, session_id)).state)


def liking(what: str) -> Preference:
    return Preference(f"note.{what}", PreferenceKind.NOTE, Source.EXPLICIT, text=f"I like {what}")


async def forget_liking(house: House, user: UserId, what: str) -> None:
    wish = liking(what)
    await house.ports.stores.preferences.remember(DEFAULT_TENANT, user, (wish,))
    await house.ports.stores.preferences.forget(DEFAULT_TENANT, user, (wish.key,))


def booked(cabin: str) -> ArchivedFlow:
    slots = {"cabin": {"value": cabin, "source": "user"}}
    return ArchivedFlow(new_id("flow"), "book_flight", "Completed", None, {"slots": slots})


async def test_a_forgotten_habit_does_not_come_back_from_what_was_done_before(
    house: House, anna: UserId
) -> None:
    store = house.ports.stores.preferences
    flows = tuple(booked("business") for _ in range(3))
    session_id = await house.session(spoken(1), user=anna, archived=flows)
    await house.run("distil_preferences", session_id)
    learned = [one.key for one in await store.of_user(DEFAULT_TENANT, anna)]
    await store.forget(DEFAULT_TENANT, anna, ("book_flight.cabin",))
    await house.run("erase_forgotten")
    left = [one.key for one in await store.of_user(DEFAULT_TENANT, anna)]
    await house.run("distil_preferences", session_id)
    again = [one.key for one in await store.of_user(DEFAULT_TENANT, anna)]
    later = await house.session(spoken(1), user=anna, archived=tuple(booked("business") for _ in range(3)))
    await house.run("distil_preferences", later)

    assert learned == ["book_flight.cabin", "playbook.book_flight"]
    assert (left, again) == ([], [])
    assert [one.key for one in await store.of_user(DEFAULT_TENANT, anna)] == learned


async def test_everything_is_what_was_said_and_noted_and_learned(house: House, anna: UserId) -> None:
    """Over HTTP, an empty list means the same; completed actions remain, and no summary restores anything."""
    store, pad = house.ports.stores.preferences, house.ports.shared.scratchpad
    summary = {"text": "Anna is allergic to nuts.", "through_turn": 1}
    state = {**saying("My shoes are green."), "summary": summary}
    session_id = await house.session(state, user=anna, archived=tuple(booked("business") for _ in range(3)))
    finding = Entry("look", "turn 1", EntryKind.FINDING, 1.0, text="Anna is allergic to nuts.")
    await pad.put(DEFAULT_TENANT, session_id, (replace(finding, data={"about": "user", "explicit": True}),))
    added = await house.ports.context.documents.add(
        NewDocument(DEFAULT_TENANT, "Nuts are bad for Anna.", user_id=anna)
    )
    await house.ports.context.embed(DEFAULT_TENANT, added.document_id)
    await store.replace(DEFAULT_TENANT, anna, ())
    await house.run("erase_forgotten")

    assert await find(house, "shoes are green", "allergic", "Nuts") == []
    assert await house.ports.context.documents.list(Owned(DEFAULT_TENANT, anna)) == []
    await house.run("distil_preferences", session_id)
    assert await store.of_user(DEFAULT_TENANT, anna) == []
    assert await house.execute("SELECT count(*) FROM flows_archive") != [(0,)]
