"""Every API call with identifiers of another tenant (RT-22).

New API calls are tested automatically. They fail here until their path parameters have test data, and until
they have a body if necessary.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from orchestrator.dialogue.state import DialogueState
from orchestrator.turns.access import Scope
from orchestrator.types import SessionId, TenantId, UserId
from tests.contract.factories import commit_for
from tests.integration.access.tenants import sample
from tests.integration.gateway import House, open_house

WORD = "hushhush7f3a"
"""A word in everything that belongs to bolt, and in no identifier."""
BOLT, ACME = TenantId("bolt"), TenantId("acme")
SESSION, USER = SessionId("bolt-session"), UserId("bolt-ann")
REPORT = "20260102-100000"

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/sessions"): {"session_id": SESSION, "domain": "travel"},
    ("POST", "/v1/sessions/{session_id}/rollback"): {"epoch": 1},
    ("POST", "/v1/sessions/{session_id}/branch"): {"epoch": 1},
    ("POST", "/v1/sessions/{session_id}/turns"): {"text": "hello"},
    ("POST", "/v1/sessions/{session_id}/repairs"): {
        "repairs": [{"kind": "drop", "flow": "bolt-flow"}],
        "epoch": 1,
        "why": "To look.",
    },
    ("POST", "/v1/sessions/{session_id}/repairs/preview"): {
        "repairs": [{"kind": "drop", "flow": "bolt-flow"}]
    },
    ("POST", "/v1/sessions/{session_id}/events"): {
        "name": "flight_reminder",
        "payload": {"booking_ref": "ABC123"},
        "not_before": "2999-01-01T00:00Z",
    },
    ("POST", "/v1/calls/{reference}"): {"status": "done"},
    ("PUT", "/v1/sessions/{session_id}/events/{event_id}"): {"not_before": "2999-01-02T00:00Z"},
    ("POST", "/v1/turns/{turn_id}/feedback"): {"rating": "up"},
    ("POST", "/v1/approvals/{approval_id}"): {"decision": "grant"},
    ("POST", "/v1/runs"): {"flow": "summarize_session", "session_id": SESSION},
    ("POST", "/v1/documents"): {"text": "Small dogs are welcome.", "user_id": USER},
    ("PUT", "/v1/users/{user_id}/preferences"): {"preferences": []},
    ("POST", "/v1/webhooks"): {"url": "https://example.com/hook", "session_id": SESSION},
}
NO_BODY = {
    ("POST", "/v1/turns/{turn_id}/cancel"),
    ("POST", "/v1/turns/{turn_id}/retry"),
    ("POST", "/v1/runs/{run_id}/cancel"),
    ("POST", "/v1/runs/{run_id}/redo"),
    ("POST", "/v1/webhooks/secret"),
    ("POST", "/v1/webhooks/{webhook_id}/retry"),
    ("POST", "/v1/tickets"),
}
OWN = {"user_id", "domain", "number"}
"""Path parameters that refer to the caller's own data, even if another tenant uses the same name."""
TELLS_NOTHING_OF_TENANTS = {
    "/health/live",
    "/health/ready",
    "/v1/exports/{token}",  # signed for anyone with the path: see test_downloads.py
    "/v1/sessions/{session_id}/exports/{export_id}",  # a domain's service stores them by tenant
    "/v1/documents/search",  # finds what a worker has embedded; no worker runs here
    "/v1/runs/{run_id}/items",  # likewise, what a worker has started
    "/v1/inspector",
    "/v1/domains/{domain}/flows",
    "/v1/whoami",
    "/v1/webhooks/failing",
    "/v1/runs/backlog",
    "/v1/turns/days",  # counts: see test_turn_search.py
    "/v1/turns/users",
}
"""Read calls whose answers don't contain bolt's word even for bolt."""


@dataclass
class Houses:
    """A gateway over real stores with data of bolt everywhere, and a key for each kind of caller."""

    house: House
    calls: list[tuple[str, str, dict[str, Any]]]
    named: dict[str, str]
    keys: dict[str, str] = field(default_factory=dict)

    async def ask(self, key: str, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.keys[key]}"}
        return await self.house.http.request(method, path, headers=headers, **more)

    def fill(self, path: str, **instead: str) -> str:
        """Return the path with bolt's identifiers. Fail for a parameter without test data."""
        parts = re.findall(r"{(\w+)}", path)
        unknown = [part for part in parts if part not in self.named]
        assert not unknown, f"{path} names {unknown}: seed one of bolt's, and name it in `named`"
        return path.format_map(self.named | instead)

    def query(self, call: dict[str, Any]) -> dict[str, str]:
        """Return all query parameters that can refer to bolt's data, and the word as search text."""
        names = {one["name"] for one in call.get("parameters", ()) if one["in"] == "query"}
        wanted = {**self.named, "with": SESSION, "q": WORD, "tenant": BOLT, "signature": WORD}
        return {name: wanted[name] for name in names & wanted.keys()} | (
            {"follow": "false"} if "follow" in names else {}
        )


@pytest.fixture
async def houses(database_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Houses]:
    reports = tmp_path / "kept"
    settings = {"auth": "required", "evaluations_folder": reports, "domain": "travel"}
    async with open_house(database_url, redis_url, **settings) as house:
        described = (await house.http.get("/openapi.json")).json()["paths"]
        calls = [
            (method.upper(), path, call) for path, of in described.items() for method, call in of.items()
        ]
        made = Houses(house, calls, {})
        await give_keys(made)
        made.named = await seed(made, database_url, reports)
        yield made


async def give_keys(houses: Houses) -> None:
    keys = houses.house.ports.stores.keys
    operator, user = frozenset({Scope.OPERATOR}), frozenset({Scope.USER})
    for name, tenant, scopes, owner in (
        ("bolt", BOLT, operator, None),
        ("operator", ACME, operator, None),
        ("backend", ACME, user, None),
        ("namesake", ACME, user, USER),
    ):
        _, houses.keys[name] = await keys.create(tenant, name, scopes, user_id=owner)


async def seed(houses: Houses, database_url: str, reports: Path) -> dict[str, str]:
    """Create data of each kind for bolt, with the word. Return the identifiers by path parameter."""

    async def made(method: str, path: str, body: Any) -> Any:
        answer = await houses.ask("bolt", method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    await made("POST", "/v1/sessions", {"domain": "travel", "session_id": SESSION, "user_id": USER})
    turn = await made("POST", f"/v1/sessions/{SESSION}/turns", {"text": f"{WORD} said"})
    await answer_turn(houses.house)
    document = await made("POST", "/v1/documents", {"text": f"{WORD} written", "title": WORD})
    note = {"key": "note.secret", "kind": "note", "text": f"{WORD} remembered"}
    await made("PUT", f"/v1/users/{USER}/preferences", {"preferences": [note]})
    webhook = await made(
        "POST", "/v1/webhooks", {"url": f"https://example.com/{WORD}", "session_id": SESSION}
    )
    await made("POST", f"/v1/turns/{turn['turn_id']}/feedback", {"comment": f"{WORD} commented"})
    reminder = {
        "name": "flight_reminder",
        "payload": {"booking_ref": WORD},
        "not_before": "2999-01-01T00:00Z",
    }
    event = await made("POST", f"/v1/sessions/{SESSION}/events", reminder)
    run = await made(
        "POST", "/v1/runs", {"flow": "summarize_session", "session_id": SESSION, "inputs": [WORD]}
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        insert_rows(connection, turn["turn_id"])
        connection.execute("UPDATE internal_runs SET reason = %s WHERE run_id = %s", (WORD, run["run_id"]))
    for place, body in (
        ("travel", {"run": REPORT, "outcomes": [WORD]}),
        ("travel/replays", {"replay": REPORT, "different": [WORD]}),
    ):
        (reports / place).mkdir(parents=True, exist_ok=True)
        kept = {"tenant_id": BOLT, "domain": "travel", "name": WORD, "by": {"domain": WORD}, **body}
        (reports / place / f"{REPORT}.json").write_text(json.dumps(kept))
    return {
        "session_id": SESSION,
        "turn_id": turn["turn_id"],
        "user_id": USER,
        "document_id": document["document_id"],
        "approval_id": "bolt-approval",
        "frame_id": "bolt-frame",
        "webhook_id": webhook["webhook_id"],
        "run_id": run["run_id"],
        "event_id": event["event_id"],
        "reference": "bolt-call",
        "run": REPORT,
        "replay": REPORT,
        "domain": "travel",
        "number": "1",
        "export_id": "bolt-export",
        "token": "bolt-token",
    }


async def answer_turn(house: House) -> None:
    lease = await house.lane.claim(SESSION)
    assert lease is not None
    state = {**DialogueState.new(SESSION).serialize(), "said": WORD}
    committed = await house.lane.commit(lease, commit_for(lease, before={}, after=state))
    assert committed.epoch == 1


def insert_rows(connection: psycopg.Connection[Any], turn_id: str) -> None:
    """Insert the rows that turns create and no API call writes."""
    text, body = f"'{WORD}'", f"""'{{"text": "{WORD}"}}'"""
    shown = {"frame_id": "bolt-frame", "flow_id": "bolt-flow", "display_type": "table"}
    frame = f"'{json.dumps({**shown, 'data': [{'text': WORD}]})}'"
    of_session = {"session_id": f"'{SESSION}'", "turn_id": f"'{turn_id}'", "flow_id": "'bolt-flow'"}
    rows: dict[str, dict[str, str]] = {
        "approvals": {
            **of_session,
            "approval_id": "'bolt-approval'",
            "status": "'pending'",
            "question": text,
            "expires_at": "now() + interval '1 day'",
        },
        "scheduled_events": {
            "session_id": f"'{SESSION}'",
            "event_id": "'bolt-call'",
            "key": "'bolt-call'",
            "name": "'tool_result'",
            "payload": """'{"key": "of bolt"}'""",
            "not_before": "now() + interval '1 day'",
        },
        "effects": {**of_session, "fingerprint": "'bolt-print'", "status": "'done'", "arguments": body},
        "frames": {**of_session, "frame_id": "'bolt-frame'", "body": f"{frame}::json"},
        "plans": {
            **of_session,
            "plan_id": "'bolt-plan'",
            "goal": text,
            "body": "'{\"steps\": []}'",
            "state": "'Active'",
        },
        "journal": {**of_session, "key": f"'tool:{WORD}:1'", "kind": "'tool'", "status": "'finished'"},
        "scratchpad_entries": {
            "session_id": f"'{SESSION}'",
            "entry_id": "'bolt-note'",
            "body": f"""'{{"entry_id": "bolt-note", "flow": "f", "origin": "o", "kind": "finding", "text": "{WORD}",
                "data": null, "epoch": 1, "labels": [], "at": 1.0}}'""",
        },
    }
    for table, given in rows.items():
        needed = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull AND NOT atthasdef AND attidentity = ''"
            " FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (table,),
        ).fetchall()
        columns = {name for name, _, _ in needed}
        values = {name: sample(kind) for name, kind, required in needed if required}
        values |= {name: value for name, value in given.items() if name in columns} | {
            "tenant_id": f"'{BOLT}'"
        }
        statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join(values.values())})"
        connection.execute(statement.encode())


def requests_of(
    houses: Houses, method: str, path: str, call: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return a call with bolt's identifiers in path, query and body, and with its own session in the path."""
    more: dict[str, Any] = {"params": houses.query(call)}
    if method in {"POST", "PUT", "PATCH"} and (method, path) not in NO_BODY:
        assert (method, path) in BODIES, (
            f"{method} {path} is new: give it a body in BODIES, or name it in NO_BODY"
        )
        more["json"] = BODIES[method, path]
    yield houses.fill(path), more
    if "{session_id}" in path:
        yield houses.fill(path, session_id="acme-session"), more
    if not any(one["in"] == "query" and one["required"] for one in call.get("parameters", ())):
        yield houses.fill(path), {**more, "params": {}}


async def test_no_call_gives_or_changes_anything_of_another_tenant(houses: Houses) -> None:
    for key in ("operator", "namesake"):
        own = {"session_id": "acme-session", "domain": "travel", "user_id": USER}
        assert (await houses.ask(key, "POST", "/v1/sessions", json=own)).status_code == 201
    before = await read_all(houses, "bolt")
    found = {path for path, text in before.items() if WORD in text}
    assert before.keys() - found == TELLS_NOTHING_OF_TENANTS, (
        "seed what a new call reads, or name it with its reason"
    )
    tried = 0

    for method, path, call in houses.calls:
        names = {*re.findall(r"{(\w+)}", path)} - OWN
        for place, more in requests_of(houses, method, path, call):
            for key in ("operator", "backend", "namesake"):
                answer = await houses.ask(key, method, place, **more)
                asked, tried = f"{key}: {method} {place} {more}", tried + 1
                assert answer.status_code < 500, f"{asked}: {answer.text}"
                assert WORD not in answer.text.replace(json.dumps(WORD), "") or answer.status_code >= 400, (
                    asked
                )
                if names and "acme-session" not in place:
                    assert answer.status_code in {403, 404}, f"{asked}: {answer.status_code} {answer.text}"
                    assert key != "operator" or answer.status_code == 404, f"{asked}: {answer.text}"

    assert await read_all(houses, "bolt") == before
    assert tried > 400


async def read_all(houses: Houses, key: str) -> dict[str, str]:
    """Return the answers of all read calls to a caller. Changing times are left out."""
    answers: dict[str, str] = {}
    for method, path, call in houses.calls:
        if method == "GET":
            answer = await houses.ask(key, method, houses.fill(path), params=houses.query(call))
            assert answer.status_code < 500, f"{path}: {answer.text}"
            answers[path] = re.sub(r'"(updated_at|oldest_s|turn_wait_s)":[^,}]*', "", answer.text)
    return answers
