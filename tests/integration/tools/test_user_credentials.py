"""Users' own credentials for HTTP tools: read by reference during the call, and never exposed (PX-8)."""

from __future__ import annotations

from pathlib import Path

import orjson

from orchestrator.adapters.domains.folder import check_domain
from orchestrator.errors import FailureCategory
from orchestrator.tools.toolbox import ToolData
from orchestrator.types import JsonObject
from tests.integration.tools.factories import LOOPBACK, Caller, http_tool
from tests.integration.tools.web import Web
from tests.unit.domain.factories import write_domain
from tests.wording import english

VAULT = {"VAULT_KEY": "v4ult"}


def sections(web: Web) -> JsonObject:
    calendar = {
        "url": web.url + "/tokens/{tenant_id}/{user_id}",
        "headers": {"Authorization": "Bearer ${VAULT_KEY}"},
        "missing": "Please connect your calendar first.",
    }
    return {**LOOPBACK, "credentials": {"calendar": calendar}}


def tool(web: Web, path: str = "/echo/events"):
    return http_tool(web.url + path, headers={"Authorization": "Bearer ${user.calendar}"})


async def test_each_user_is_known_by_their_own_credential(web: Web) -> None:
    web.tokens = {"ada": "tok-ada", "bob": "tok-bob"}
    async with Caller(tool(web), sections=sections(web), environment=VAULT) as caller:
        for user in ("ada", "bob", "ada"):
            assert await caller.call(user=user) == ToolData({"ok": True})

    sent = [(one.path, one.headers["authorization"]) for one in web.asked]
    assert sent == [
        ("/tokens/default/ada", "Bearer v4ult"),
        ("/echo/events", "Bearer tok-ada"),
        ("/tokens/default/bob", "Bearer v4ult"),
        ("/echo/events", "Bearer tok-bob"),
        ("/echo/events", "Bearer tok-ada"),
    ]


async def test_a_rejected_credential_is_read_again(web: Web) -> None:
    web.tokens = {"ada": "old"}
    async with Caller(tool(web, "/status/401"), sections=sections(web), environment=VAULT) as caller:
        await caller.call()
        web.tokens = {"ada": "new"}
        await caller.call()
    assert web.last.headers["authorization"] == "Bearer new"


async def test_a_user_without_one_is_told_what_to_do_and_nothing_is_called(web: Web) -> None:
    async with Caller(tool(web), sections=sections(web), environment=VAULT) as caller:
        refused = await caller.refused()
        anonymous = await caller.refused(user=None)
    assert (refused.category, english(refused.message)) == (
        FailureCategory.AUTH_ERROR,
        "Please connect your calendar first.",
    )
    assert "please sign in" in english(anonymous.message)
    assert [one.path for one in web.asked] == ["/tokens/default/ada"]


def test_a_credential_is_declared_and_only_sent_in_headers(tmp_path: Path) -> None:
    entry: JsonObject = {
        "url": "https://calendar.example/events",
        "method": "POST",
        "headers": {"Authorization": "Bearer ${user.calender}"},
        "body": {"token": "${user.calendar}"},
    }
    schemas = {"input_schema": {"type": "object"}, "output_schema": {"type": "object"}}
    tools = orjson.dumps({"tools": {"event_list": {"http": entry, **schemas}}}).decode()
    config = '{"credentials": {"calendar": {"url": "https://vault.example/{user_id}"}}}'
    ontology = 'flows: {list_events: {dax: "001", intent: Read, tools: [{tool_id: event_list}]}}'
    folder = write_domain(
        tmp_path, {"tools.yaml": tools, "domain.yaml": config, "ontology.yaml": ontology, "services.py": ""}
    )
    found = {problem.place.partition("event_list.")[2]: problem.message for problem in check_domain(folder)}
    assert found == {
        "http.body": "can't contain the user's credentials: put them in headers",
        "http.headers.Authorization": (
            "unknown credential in domain.yaml 'calender'; did you mean 'calendar'?"
        ),
    }
