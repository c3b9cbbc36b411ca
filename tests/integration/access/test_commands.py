"""Keys, approvals and webhooks from the command line, with a gateway that requires authentication (RT-22,
PX-17).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from orchestrator.errors import Forbidden, Unauthenticated
from orchestrator.ports.memory.preferences import Preference, PreferenceKind, Source
from orchestrator.turns.approval import ApprovalRecord
from orchestrator.turns.turn import TurnKind
from orchestrator.types import DEFAULT_TENANT, FlowId, JsonObject, SessionId, ToolId, UserId, new_id
from parley.main import run
from parley_client import Client
from tests.cases import for_each
from tests.contract.factories import commit_for, submission
from tests.integration.gateway import House, open_house

FAR = datetime(2040, 1, 1, tzinfo=UTC)


class Terminal:
    """A runner of commands beside the gateway's loop. `lines`: output of the last command."""

    def __init__(self, house: House, captured: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.house = house
        self._captured = captured
        self._patch = patch
        self.lines: list[str] = []
        self.complaint = ""

    async def run(self, *words: str) -> int:
        self._captured.readouterr()
        code = await asyncio.to_thread(run, list(words))
        printed = self._captured.readouterr()
        self.lines, self.complaint = printed.out.strip().splitlines(), printed.err.strip()
        return code

    async def ok(self, *words: str) -> list[str]:
        assert await self.run(*words) == 0, self.complaint
        return self.lines

    async def use_key(self, *words: str) -> str:
        (text,) = await self.ok("keys", "create", *words)
        self._patch.setenv("PARLEY_API_KEY", text)
        return text


@pytest.fixture
async def terminal(
    database_url: str,
    redis_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> AsyncIterator[Terminal]:
    async with open_house(database_url, redis_url, auth="required") as house:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DATABASE_URL", database_url)
        monkeypatch.setenv("PARLEY_URL", house.url)
        monkeypatch.delenv("PARLEY_API_KEY", raising=False)
        yield Terminal(house, capsys, monkeypatch)


async def ask_approval(house: House, *, operator_only: bool = False) -> str:
    """Create a session with a turn that requests an approval."""
    session_id = SessionId(new_id("session"))
    await house.ports.stores.inbox.submit(
        submission(DEFAULT_TENANT, session_id, create_session=True, domain="travel", user_id="ann")
    )
    lease = await house.claim(session_id)
    record = ApprovalRecord(
        approval_id=new_id("approval"),
        session_id=session_id,
        turn_id=lease.work.turn_id,
        flow_id=FlowId("flow_1"),
        tool_id=ToolId("disk_wipe"),
        fingerprint="f",
        arguments={"printer": "P1"},
        expires_at=FAR,
        question="Wipe a disk",
        cause="it cannot be undone",
        operator_only=operator_only,
    )
    await house.lane.commit(lease, commit_for(lease, approvals=(record,)))
    return record.approval_id


async def test_keys_are_made_listed_and_revoked(terminal: Terminal) -> None:
    assert await terminal.run("sessions") == 1
    assert "PARLEY_API_KEY" in terminal.complaint

    key = await terminal.use_key("shop", "--days", "3")
    await terminal.ok("sessions")
    (line,) = await terminal.ok("keys", "list", "--json", "--tenant", DEFAULT_TENANT)
    listed = orjson.loads(line)
    assert (listed["name"], listed["scopes"], listed["status"]) == ("shop", "user", "valid")
    assert key.split("_", 2)[2] not in line

    await terminal.ok("keys", "revoke", listed["key_id"])
    async with asyncio.timeout(10):
        while await terminal.run("sessions") == 0:
            pass
    assert "invalid or expired" in terminal.complaint
    (line,) = await terminal.ok("keys", "list", "--json")
    assert orjson.loads(line)["status"] == "revoked"


@for_each(
    ("words", "complaint"),
    [
        (["x", "--operator", "--user", "ann"], "limited to a user"),
        (["x", "--tenant", "no tenant"], "not a valid ID"),
        (["x", "--days", "0"], "--days"),
    ],
)
async def test_a_key_that_makes_no_sense_is_not_made(
    terminal: Terminal, words: list[str], complaint: str
) -> None:
    assert await terminal.run("keys", "create", *words) != 0
    assert complaint in terminal.complaint


async def test_approvals_are_listed_granted_and_denied(terminal: Terminal) -> None:
    granted, denied = [await ask_approval(terminal.house) for _ in range(2)]
    await terminal.use_key("desk", "--operator")

    listed = [orjson.loads(line) for line in await terminal.ok("approvals", "list", "--json")]
    assert {one["approval_id"] for one in listed} == {granted, denied}
    assert (listed[0]["tool_id"], listed[0]["cause"]) == ("disk_wipe", "it cannot be undone")

    (line,) = await terminal.ok("approvals", "grant", granted, "--by", "boss", "--reason", "it is old")
    first = orjson.loads(line)
    assert (first["status"], first["decided_by"], first["reason"]) == ("granted", "boss", "it is old")
    (line,) = await terminal.ok("approvals", "deny", denied)
    assert orjson.loads(line)["decided_by"] == "desk"
    assert await terminal.run("approvals", "deny", granted) == 1
    assert "already granted by boss" in terminal.complaint
    assert await terminal.run("approvals", "grant", "none") == 1
    assert "Approval 'none' not found" in terminal.complaint

    assert await terminal.ok("approvals", "list") == ["No results."]
    trail = [orjson.loads(line) for line in await terminal.ok("approvals", "list", "--all", "--json")]
    assert {one["status"] for one in trail} == {"granted", "denied"}
    for approval in (first, trail[0]):
        turns = await terminal.house.ports.stores.inbox.turns(
            DEFAULT_TENANT, session_id=SessionId(approval["session_id"]), limit=5
        )
        assert [turn.input.kind for turn in turns].count(TurnKind.SYSTEM) == 1


async def test_only_operators_grant_what_is_marked_so(terminal: Terminal) -> None:
    approval = await ask_approval(terminal.house, operator_only=True)
    await terminal.use_key("backend")
    assert await terminal.run("approvals", "grant", approval) == 1
    assert "Only operators" in terminal.complaint
    await terminal.use_key("hers", "--user", "ann")
    assert await terminal.run("approvals", "grant", approval) == 1
    await terminal.use_key("his", "--user", "bob")
    assert await terminal.run("approvals", "deny", approval) == 1
    assert "not found" in terminal.complaint

    await terminal.use_key("desk", "--operator")
    (line,) = await terminal.ok("approvals", "grant", approval)
    assert orjson.loads(line)["status"] == "granted"


async def test_webhooks_are_made_listed_and_closed(terminal: Terminal) -> None:
    await terminal.use_key("desk", "--operator")
    (line,) = await terminal.ok("webhooks", "create", "https://hooks.example/a", "--event", "answer")
    made = orjson.loads(line)
    assert (made["url"], made["events"]) == ("https://hooks.example/a", ["answer"])
    (secret,) = await terminal.ok("webhooks", "secret")
    assert secret.startswith("whsec_")
    listed = [orjson.loads(line) for line in await terminal.ok("webhooks", "list", "--json")]
    assert [one["webhook_id"] for one in listed] == [made["webhook_id"]]
    assert await terminal.ok("webhooks", "list", "--failing") == ["No results."]
    assert orjson.loads((await terminal.ok("webhooks", "retry", made["webhook_id"]))[0]) == {"feeds": 0}
    await terminal.ok("webhooks", "close", made["webhook_id"])
    assert await terminal.ok("webhooks", "list") == ["No results."]
    assert await terminal.run("webhooks", "create", "ftp://a") == 1


async def test_the_client_shows_its_key(terminal: Terminal) -> None:
    key = await terminal.use_key("hers", "--user", "ann")

    def ask(call: Callable[[Client], JsonObject], api_key: str | None) -> JsonObject:
        with Client(terminal.house.url, api_key=api_key) as client:
            return call(client)

    known = await asyncio.to_thread(ask, lambda client: client.whoami(), key)
    assert (known["user_id"], known["scopes"]) == ("ann", ["user"])
    with pytest.raises(Unauthenticated):
        await asyncio.to_thread(ask, lambda client: client.whoami(), None)
    with pytest.raises(Forbidden):
        await asyncio.to_thread(ask, lambda client: client.rotate_webhook_secret(), key)


async def test_what_is_remembered_is_listed_and_forgotten_by_key_or_as_a_whole(terminal: Terminal) -> None:
    """A note is deleted together with the rule derived from it."""
    await terminal.use_key("operator", "--operator")
    anna, store = UserId(new_id("anna")), terminal.house.ports.stores.preferences
    note = Preference("note.1", PreferenceKind.NOTE, Source.EXPLICIT, text="I prefer aisle seats")
    rule = Preference("*.seat", PreferenceKind.RULE, Source.EXPLICIT, "aisle", origin={"note": "note.1"})
    other = Preference("note.2", PreferenceKind.NOTE, Source.EXPLICIT, text="I eat no meat")
    await store.remember(DEFAULT_TENANT, anna, (note, rule, other))

    listed = [orjson.loads(line) for line in await terminal.ok("memory", "list", anna, "--json")]
    assert [one["key"] for one in listed] == ["*.seat", "note.1", "note.2"]
    await terminal.ok("memory", "forget", anna, "note.1")
    assert [one.key for one in await store.of_user(DEFAULT_TENANT, anna)] == ["note.2"]
    assert await terminal.run("memory", "forget", anna, "note.1") == 1
    assert await terminal.run("memory", "forget", anna) == 1
    await terminal.ok("memory", "forget", anna, "--everything")
    assert await store.of_user(DEFAULT_TENANT, anna) == []


async def test_a_turn_is_given_up_by_a_repair_with_a_reason(terminal: Terminal) -> None:
    """RT-35: without a reason, the command only shows a preview."""
    await terminal.use_key("desk", "--operator")
    inbox, session = terminal.house.ports.stores.inbox, SessionId(new_id("session"))
    turn = (
        await inbox.submit(submission(DEFAULT_TENANT, session, create_session=True, domain="travel"))
    ).turn_id
    assert await terminal.ok("turns", "drop", turn) == ["The turn is dropped."]
    assert (await inbox.turn(DEFAULT_TENANT, turn)).status == "queued"

    assert "The turn is dropped." in await terminal.ok("turns", "drop", turn, "--why", "Nobody waits for it.")

    assert (await inbox.turn(DEFAULT_TENANT, turn)).status == "cancelled"
    (signed,) = [one.payload for one in await terminal.house.logged(session) if one.type == "repaired"]
    assert (signed["by"], signed["why"]) == ("desk", "Nobody waits for it.")
    assert await terminal.run("turns", "retry", turn, "--why", "It is wanted.") != 0
    assert "is not queued or quarantined" in terminal.complaint
