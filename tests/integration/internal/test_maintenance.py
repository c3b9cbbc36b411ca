"""The built-in background flows on real stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import psycopg
import pytest

from internal_flows.builtin import FLOWS
from internal_flows.catalogue import Catalogue
from orchestrator.bootstrap import Ports
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.storage.serialization import diff
from orchestrator.ports.lane import Lane
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.ports.runs.records import RunRecord
from orchestrator.ports.runs.status import RunStatus
from orchestrator.turns.lease import ArchivedFlow, TurnCommit
from orchestrator.turns.turn import TurnKind, TurnStatus
from orchestrator.types import DEFAULT_TENANT, Epoch, Json, JsonObject, SessionId, UserId, new_id
from tests.contract.factories import commit_of, submission
from tests.contract.internal.in_process import InProcessRunner
from workers.internal.tools import make_session_side, make_tools

DAYS = 86_400.0


@dataclass
class House:
    """Sessions with states from the test, and the flows over them."""

    ports: Ports
    lane: Lane
    config: dict[str, JsonObject]

    async def session(self, *states: JsonObject, user: str | None = None, **more: Any) -> SessionId:
        """Create a session whose turns produced these states."""
        session_id = SessionId(new_id("session"))
        owner = None if user is None else UserId(user)
        await self.ports.stores.sessions.create(
            DEFAULT_TENANT, "travel", session_id=session_id, user_id=owner
        )
        before: JsonObject = {}
        for state in states:
            await self.ports.stores.inbox.submit(submission(DEFAULT_TENANT, session_id))
            lease = await self.lane.claim(session_id)
            assert lease is not None
            commit: TurnCommit = commit_of(
                lease.work,
                session_id,
                before=before,
                after=state,
                diff=orjson.dumps(diff(before, state)),
                **more,
            )
            await self.lane.commit(lease, commit)
            before = state
        return session_id

    async def run(
        self, flow: str, session_id: SessionId | None = None, inputs: tuple[Json, ...] = ()
    ) -> list[RunRecord]:
        tools = make_tools(self.ports)
        catalogue = Catalogue(FLOWS, tools=tools, configure=lambda name: self.config.get(name, {}))
        tools["triggers"].bind(catalogue)
        return await InProcessRunner(catalogue, sessions=make_session_side(self.ports)).run(
            catalogue.new_run(flow, session_id=session_id, inputs=inputs)
        )

    async def proposals(self, session_id: SessionId) -> list[JsonObject]:
        turns = await self.ports.stores.inbox.turns(
            DEFAULT_TENANT, session_id=session_id, status=TurnStatus.QUEUED
        )
        return [turn.input.action["payload"] for turn in turns if turn.input.kind is TurnKind.SYSTEM]

    async def execute(self, statement: str, *arguments: object) -> list[tuple]:
        url = self.ports.settings.database_url
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            cursor = await connection.execute(statement, arguments or None)
            return await cursor.fetchall() if cursor.description else []


def spoken(turns: int, summary: JsonObject | None = None) -> JsonObject:
    """Return a state after this number of turns."""
    state = DialogueState.new(SessionId("any"))
    for number in range(1, turns + 1):
        state.turn = number
        state.say("user", f"I am looking for a flight to Lisbon, question {number}.")
        state.say("agent", "Which day would you like to fly?")
    body = state.serialize()
    return body if summary is None else {**body, "summary": summary}


def flow_body(dact: str, state: str, reason: str | None = None, **more: Any) -> JsonObject:
    return {"flow_id": f"flow_{dact}", "dact": dact, "state": state, "reason": reason, **more}


async def test_a_summary_is_proposed_with_the_turns_and_the_epoch_that_it_was_made_from(house: House) -> None:
    """IF-12"""
    session_id = await house.session(*(spoken(number) for number in (1, 2, 3)))
    [record] = await house.run("summarize_session", session_id)
    [proposal] = await house.proposals(session_id)

    assert record.status is RunStatus.DONE
    assert (proposal["kind"], proposal["epoch"], proposal["change"]["through_turn"]) == ("summary", 3, 3)
    assert "User: I am looking for a flight to Lisbon" in proposal["change"]["text"]


async def test_a_summary_goes_on_where_the_last_one_ended(house: House) -> None:
    session_id = await house.session(spoken(4, {"text": "They greeted us.", "through_turn": 3}))
    await house.run("summarize_session", session_id)
    [proposal] = await house.proposals(session_id)

    text = proposal["change"]["text"]
    assert text.startswith("They greeted us.\n")
    assert "question 4" in text
    assert "question 3" not in text


async def test_nothing_new_is_not_summarised(house: House) -> None:
    session_id = await house.session(spoken(2, {"text": "All.", "through_turn": 2}))
    [record] = await house.run("summarize_session", session_id)

    assert (record.status, await house.proposals(session_id)) == (RunStatus.SKIPPED, [])


async def test_a_habit_becomes_a_preference(house: House) -> None:
    user = new_id("user")

    def booked(number: int, seat: str) -> ArchivedFlow:
        slots = {
            "seat": {"value": seat, "source": "user"},
            "day": {"value": f"2030-01-0{number}", "source": "user"},
        }
        return ArchivedFlow(f"flow_{number}", "book_flight", "Completed", None, {"slots": slots})

    flows = tuple(booked(number, "aisle" if number < 4 else "window") for number in range(1, 5))
    session_id = await house.session(spoken(1), user=user, archived=flows)
    [record] = await house.run("distil_preferences", session_id)

    kept = await house.execute(
        "SELECT key, kind, source, value, origin FROM preferences WHERE user_id = %s ORDER BY key", user
    )
    origin = {"run_id": record.run_id, "session_id": session_id}
    usual = {"flow": "book_flight", "completed": 4, "gives": ["day", "seat"], "usually": {"seat": "aisle"}}
    assert record.closing == {"preferences": ["book_flight.seat", "playbook.book_flight"]}
    assert kept == [
        ("book_flight.seat", "rule", "habit", "aisle", {**origin, "seen": 3, "of": 4}),
        ("playbook.book_flight", "playbook", "habit", usual, origin),
    ]


async def test_equal_notes_become_one_with_the_labels_of_all(house: House) -> None:
    session_id = await house.session(spoken(1))
    pad = make_tools(house.ports)["scratchpad"]
    notes = [("Likes  aisles", ("private",)), ("likes aisles", ("untrusted",)), ("other", ())]
    await pad.put(
        DEFAULT_TENANT,
        session_id,
        tuple(Entry("f", "o", EntryKind.FINDING, 1.0, text=text, labels=labels) for text, labels in notes),
    )
    [record] = await house.run("tidy_scratchpad", session_id)

    left = {entry.text: entry.labels for entry in await pad.read(DEFAULT_TENANT, session_id)}
    assert left == {"likes aisles": ("private", "untrusted"), "other": ()}
    assert record.closing == {"kept": 2, "removed": 1}


async def test_tasks_that_were_interrupted_for_long_are_proposed_to_be_abandoned(house: House) -> None:
    waiting = [flow_body("check_booking", "Pending", "interrupted"), flow_body("book_flight", "Active")]
    session_id = await house.session({**spoken(1), "stack": waiting})
    fresh = await house.session({**spoken(1), "stack": waiting})
    await house.execute(
        "UPDATE lanes SET updated_at = now() - interval '2 days' WHERE session_id = %s", session_id
    )
    await house.run("abandon_flows")

    [proposal] = await house.proposals(session_id)
    assert (proposal["kind"], proposal["change"]) == ("abandon", {"older_than_s": DAYS})
    assert await house.proposals(fresh) == []


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_broken_state_is_noted_first_and_proposed_when_it_is_found_again(
    house: House, dry_run: bool
) -> None:
    """IF-12: the dry run's note and the proposal contain the diff."""
    broken = [flow_body("book_flight", "Active", started_at=1.0), flow_body("check_booking", "Active")]
    session_id = await house.session({**spoken(1), "stack": broken})
    sound = await house.session({**spoken(1), "stack": broken[1:]})
    house.config["repair_state"] = {"quiet_for_s": 0, "dry_run": dry_run}
    chain = await house.run("repair_state")

    pad = house.ports.shared.scratchpad
    notes = await pad.read(DEFAULT_TENANT, session_id, kinds=frozenset({EntryKind.RESULT}))
    [note] = notes
    assert isinstance(note.data, dict)
    assert note.data["why"] == ["book_flight was Active below the top of the stack."]
    assert [record.redo_count for record in chain] == ([None] if dry_run else [None, 1])
    assert [one["change"] for one in await house.proposals(session_id)] == (
        [] if dry_run else [note.data["change"]]
    )
    assert note.data["change"]["diff"]["~"].keys() == {"stack"}
    assert await house.proposals(sound) == []


async def test_rows_that_must_not_be_are_put_right_when_they_are_found_again(house: House) -> None:
    """An abandoned turn is cleaned up, a frame without its flow is deleted, and a plan outside the stack is
    closed.
    """
    session_id = await house.session({**spoken(1), "stack": [flow_body("book_flight", "Active")]})
    sound = await house.session({**spoken(1), "stack": [flow_body("book_flight", "Active")]})
    await house.ports.stores.inbox.submit(submission(DEFAULT_TENANT, session_id))
    for broken, flow in ((session_id, "flow_gone"), (sound, "flow_book_flight")):
        frame = "INSERT INTO frames (session_id, flow_id, tenant_id, turn_id, frame_id, body)"
        await house.execute(f"{frame} VALUES (%s, %s, %s, 't', 'f', '{{}}')", broken, flow, DEFAULT_TENANT)
        plan = (
            "INSERT INTO plans (session_id, plan_id, tenant_id, turn_id, dact, goal, state, revision, body)"
        )
        await house.execute(
            f"{plan} VALUES (%s, %s, %s, 't', 'trip', '', 'Active', 1, '{{}}')", broken, flow, DEFAULT_TENANT
        )
    await house.execute(
        "UPDATE turns SET status = 'running' WHERE session_id = %s AND status = 'queued'", session_id
    )
    await house.execute("UPDATE lanes SET check_at = NULL WHERE session_id = %s", session_id)
    house.config["repair_state"] = {"quiet_for_s": 0}

    chain = await house.run("repair_state")

    assert chain[-1].progress.done >= 1
    assert await house.execute("SELECT 1 FROM frames WHERE session_id = %s", session_id) == []
    assert await house.execute("SELECT state FROM plans WHERE session_id = %s", session_id) == [("Invalid",)]
    assert await house.execute("SELECT 1 FROM frames WHERE session_id = %s", sound) == [(1,)]
    assert await house.execute("SELECT state FROM plans WHERE session_id = %s", sound) == [("Active",)]
    assert session_id in await house.lane.sweep(grace_s=0)


async def test_idle_sessions_are_closed_and_old_ones_deleted(house: House) -> None:
    idle, fresh, old = [await house.session(spoken(1)) for _ in range(3)]
    await house.execute("UPDATE lanes SET updated_at = now() - interval '8 days' WHERE session_id = %s", idle)
    await house.ports.stores.sessions.close(DEFAULT_TENANT, old)
    await house.execute(
        "UPDATE sessions SET closed_at = now() - interval '91 days' WHERE session_id = %s", old
    )
    [record] = await house.run("expire_sessions")

    assert (await house.ports.stores.sessions.get(DEFAULT_TENANT, idle)).closed
    assert not (await house.ports.stores.sessions.get(DEFAULT_TENANT, fresh)).closed
    for table in ("sessions", "lanes", "turns", "states", "state_history", "utterances", "events"):
        assert await house.execute(f"SELECT 1 FROM {table} WHERE session_id = %s", old) == [], table
    assert (record.closing["closed"] >= 1, record.closing["deleted"]) == (True, 1)


async def test_closing_makes_a_checkpoint_of_the_whole_state(house: House) -> None:
    """CO-1: the last epoch alone is enough to restore the state."""
    states = [spoken(number) for number in (1, 2, 3)]
    session_id = await house.session(*states)
    await house.ports.stores.sessions.close(DEFAULT_TENANT, session_id)
    await house.execute("DELETE FROM state_history WHERE session_id = %s AND epoch < 3", session_id)

    assert await house.ports.stores.sessions.state_at(DEFAULT_TENANT, session_id, Epoch(3)) == states[-1]


async def test_pruned_histories_keep_their_newest_epochs_readable(house: House) -> None:
    """ST-2, ST-3"""
    states = [spoken(number) for number in range(1, 8)]
    session_id = await house.session(*states)
    body = orjson.dumps(states[3]).decode()
    await house.execute(
        "UPDATE state_history SET snapshot = %s WHERE session_id = %s AND epoch = 4", body, session_id
    )
    await house.execute("UPDATE states SET base_epoch = 4, body = %s WHERE session_id = %s", body, session_id)
    house.config["prune_archive"] = {"keep_epochs": 2}
    await house.run("prune_archive")

    left = await house.execute("SELECT epoch FROM state_history WHERE session_id = %s ORDER BY 1", session_id)
    assert left == [(4,), (5,), (6,), (7,)]
    for epoch in (4, 5, 6, 7):
        found = await house.ports.stores.sessions.state_at(DEFAULT_TENANT, session_id, Epoch(epoch))
        assert found == states[epoch - 1]
    assert (await house.ports.stores.sessions.get(DEFAULT_TENANT, session_id)).state == states[-1]
